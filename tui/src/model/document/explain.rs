//! Why rules did or did not notify about an event: what was decided, who was told, and what would
//! be decided now.

use super::{Document, Link, Span, span};
use crate::{
    data::{
        Basis, ClauseExplanation, Definition, ExplainedDelivery, Explanation, GateVerdict,
        Judgement, RuleExplanation, Told, TriggerExplanation,
    },
    model::{Model, page::Route},
    theme::Token,
};

pub(super) fn write(into: &mut Document, model: &Model, explanation: &Explanation) {
    if explanation.rules.is_empty() {
        into.text(Token::Dim, 0, "no rule is stored, so nobody is notified");
    }
    for rule in &explanation.rules {
        explain_rule(into, model, rule);
    }
}

fn verdict(good: Option<bool>) -> (Token, &'static str) {
    match good {
        Some(true) => (Token::Good, "✓"),
        Some(false) => (Token::Bad, "✗"),
        None => (Token::Warning, "?"),
    }
}

fn explain_rule(into: &mut Document, model: &Model, rule: &RuleExplanation) {
    if !into.lines.is_empty() {
        into.blank();
    }
    let (token, mark) = verdict(Some(rule.notified));
    let told = if rule.notified {
        "notified"
    } else {
        "did not notify"
    };
    let mut line = vec![
        span(token, &format!("{mark} ")),
        span(Token::Link, &rule.rule_name),
        span(Token::Text, &format!("  {told}{}", when(model, &rule.main))),
    ];
    if rule.deleted {
        let at = rule.deleted_ms.map(|ms| format!(" {}", model.moment(ms)));
        let gone = format!("  rule deleted{}", at.unwrap_or_default());
        line.push(span(Token::Warning, &gone));
        into.line(line);
    } else {
        into.linked(line, Link::Go(Route::Rule(rule.rule_name.clone())));
    }
    into.text(Token::Text, 2, &rule.main.reason);
    judgement(into, model, &rule.main);
    for told in &rule.told {
        notification(into, model, rule, told);
    }
    let listed = |id: &String| rule.told.iter().any(|told| told.delivery_ids.contains(id));
    for delivery in rule.deliveries.iter().filter(|it| !listed(&it.id)) {
        self::delivery(into, model, delivery);
    }
    for other in &rule.others {
        aside(into, model, &rule.main, other);
    }
}

/// Of which decision the page speaks.
fn when(model: &Model, judgement: &Judgement) -> String {
    let at = model.moment(judgement.time_ms);
    match judgement.basis {
        Basis::Notification => format!(" {at}"),
        Basis::Last => format!(" when last asked, {at}"),
        Basis::Earlier => format!(" when asked {at}"),
        Basis::Now | Basis::Unknown => " (as seen now)".to_owned(),
    }
}

fn judgement(into: &mut Document, model: &Model, judgement: &Judgement) {
    let since = since(model, judgement.definition.as_ref());
    if !since.is_empty() {
        into.text(Token::Warning, 2, &format!("by the rule as it was:{since}"));
    }
    for trigger in &judgement.triggers {
        explain_trigger(into, model, trigger);
    }
    for gate in &judgement.gates {
        explain_gate(into, gate);
    }
}

/// What became of a definition since.
fn since(model: &Model, definition: Option<&Definition>) -> String {
    let Some((definition, until_ms)) = definition.and_then(|it| Some((it, it.until_ms?))) else {
        return String::new();
    };
    let what = if definition.deleted {
        "deleted"
    } else {
        "edited"
    };
    let at = model.moment(until_ms);
    format!(" revision {}, {what} {at}", definition.revision)
}

fn explain_trigger(into: &mut Document, model: &Model, trigger: &TriggerExplanation) {
    let (token, mark) = verdict(trigger.matched);
    let told = match (trigger.matched, &trigger.clause) {
        (Some(true), _) => "matches",
        (Some(false), Some(_)) => "does not match",
        (Some(false), None) => "there was none",
        (None, _) => "not known",
    };
    let gone = trigger
        .definition
        .is_some_and(|it| it.deleted && it.until_ms.is_some());
    let line = vec![
        span(token, &format!("  {mark} ")),
        span(Token::Dim, "trigger "),
        span(Token::Link, &trigger.trigger_name),
        span(Token::Text, &format!("  {told}")),
        span(Token::Warning, &since(model, trigger.definition.as_ref())),
    ];
    if gone {
        into.line(line);
    } else {
        into.linked(line, Link::Go(Route::Trigger(trigger.trigger_name.clone())));
    }
    if let Some(clause) = &trigger.clause {
        explain_clause(into, clause, 6);
    }
}

fn explain_gate(into: &mut Document, gate: &GateVerdict) {
    let (token, mark) = verdict(Some(gate.passed));
    into.line(vec![
        span(token, &format!("  {mark} ")),
        span(Token::Dim, "gate "),
        span(Token::Text, &format!("{}: {}", gate.name, gate.detail)),
    ]);
}

fn notification(into: &mut Document, model: &Model, rule: &RuleExplanation, told: &Told) {
    let what = if told.clear {
        "told the change"
    } else {
        "told"
    };
    let mut line = vec![
        span(Token::Info, "  → "),
        span(
            Token::Text,
            &format!("{what} {}", model.moment(told.time_ms)),
        ),
    ];
    if !told.trigger_name.is_empty() {
        let by = format!("  by trigger {}", told.trigger_name);
        line.push(span(Token::Dim, &by));
    }
    into.line(line);
    if told.delivery_ids.is_empty() {
        into.text(Token::Dim, 4, "its deliveries are no longer kept");
    }
    let ours = |it: &&ExplainedDelivery| told.delivery_ids.contains(&it.id);
    for delivery in rule.deliveries.iter().filter(ours) {
        self::delivery(into, model, delivery);
    }
}

fn delivery(into: &mut Document, model: &Model, delivery: &ExplainedDelivery) {
    let next = delivery
        .next_attempt_ms
        .map(|ms| format!(", next try {}", model.moment(ms)));
    into.linked(
        vec![
            span(Token::Dim, "    delivery to "),
            span(Token::Link, &delivery.destination),
            span(Token::Text, &format!("  {}", delivery.state)),
            span(Token::Dim, &next.unwrap_or_default()),
        ],
        Link::Go(Route::Delivery(delivery.id.clone())),
    );
    for (start_ms, told) in &delivery.attempts {
        into.text(
            Token::Dim,
            6,
            &format!("{} {told}", model.moment(*start_ms)),
        );
    }
}

/// Another judgement, as far as it differs from the main one.
fn aside(into: &mut Document, model: &Model, main: &Judgement, other: &Judgement) {
    let (token, mark) = verdict(Some(other.notifies));
    let title = match other.basis {
        Basis::Now => "now: ".to_owned(),
        _ => format!("last asked {}: ", model.moment(other.time_ms)),
    };
    let head: Vec<Span> = vec![
        span(token, &format!("  {mark} ")),
        span(Token::Heading, &title),
    ];
    into.line(head);
    into.text(Token::Text, 6, &other.reason);
    for trigger in &other.triggers {
        let same = main.triggers.iter().any(|it| {
            it.trigger_name == trigger.trigger_name
                && it.clause == trigger.clause
                && it.matched == trigger.matched
        });
        if !same {
            explain_trigger(into, model, trigger);
        }
    }
}

/// How a comparison is written between a field and a value.
fn comparison(kind: &str) -> &str {
    match kind {
        "equals" => "=",
        "greaterAndEquals" => ">=",
        "lessAndEquals" => "<=",
        "startsWith" => "starts with",
        "endsWith" => "ends with",
        other => other,
    }
}

fn explain_clause(into: &mut Document, clause: &ClauseExplanation, indent: usize) {
    let (token, mark) = verdict(clause.result);
    let compared = || {
        format!(
            "{} {} {}",
            clause.field,
            comparison(&clause.kind),
            clause.expected
        )
    };
    let found = match &clause.actual {
        _ if clause.field.is_empty() => clause.kind.clone(),
        _ if clause.result.is_none() => format!("{}; what it was is not known", compared()),
        Some(actual) => format!("{}; it is {actual}", compared()),
        None => format!("{}; it has none", compared()),
    };
    let pad = " ".repeat(indent.min(40));
    into.line(vec![
        span(token, &format!("{pad}{mark} ")),
        span(Token::Text, &found),
    ]);
    for inner in &clause.clauses {
        explain_clause(into, inner, indent + 2);
    }
}
