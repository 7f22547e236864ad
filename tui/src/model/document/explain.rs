//! Why rules did or did not notify about an event: what was decided, what became of it, and what
//! would be decided now.

use bellwether_proto::v1::{
    ClauseExplanation, DecisionBasis as Basis, Definition, ExplainEventResponse, ExplainedAttempt,
    ExplainedDelivery, ExplainedNotification, Gate, RuleExplanation, RuleJudgement,
    TriggerExplanation,
};
use serde_json::Value;

use crate::{
    data::{Kind, Outcome, Word, value},
    document::{Document, Link, Span, span},
    model::Model,
    route::Route,
    theme::Token,
};

pub(super) fn write(into: &mut Document, model: &Model, explanation: &ExplainEventResponse) {
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
    let main = RuleJudgement {
        basis: rule.basis,
        time: rule.decision_time.unwrap_or_default(),
        notifies: rule.notified,
        reason: rule.reason.clone(),
        definition: rule.definition,
        triggers: rule.triggers.clone(),
        gates: rule.gates.clone(),
    };
    let (token, mark) = verdict(Some(rule.notified == Some(true)));
    let told = if rule.notified == Some(true) {
        "decided to notify"
    } else {
        "did not notify"
    };
    let mut line = vec![
        span(token, &format!("{mark} ")),
        span(Token::Link, &rule.rule_name),
        span(Token::Text, &format!("  {told}{}", when(model, &main))),
    ];
    if rule.deleted == Some(true) {
        let at = rule.deleted_time.map(|ms| format!(" {}", model.moment(ms)));
        let gone = format!("  rule deleted{}", at.unwrap_or_default());
        line.push(span(Token::Warning, &gone));
        into.line(line);
    } else {
        into.linked(
            line,
            Link::Go(Route::Object(Kind::Rule, rule.rule_name.clone())),
        );
    }
    into.text(Token::Text, 2, &main.reason);
    judgement(into, model, &main);
    for sent in &rule.notifications {
        notification(into, model, rule, sent);
    }
    let listed = |id: &String| {
        rule.notifications
            .iter()
            .any(|it| it.delivery_ids.contains(id))
    };
    for delivery in rule.deliveries.iter().filter(|it| !listed(&it.id)) {
        self::delivery(into, model, delivery);
    }
    for other in &rule.others {
        aside(into, model, &main, other);
    }
}

/// Of which decision the page speaks.
fn when(model: &Model, judgement: &RuleJudgement) -> String {
    let at = model.moment(judgement.time);
    match judgement.basis() {
        Basis::Notification => format!(" {at}"),
        Basis::Last => format!(" when last asked, {at}"),
        Basis::Earlier => format!(" when asked {at}"),
        Basis::Now | Basis::Unspecified => " (as seen now)".to_owned(),
    }
}

fn judgement(into: &mut Document, model: &Model, judgement: &RuleJudgement) {
    let since = since(model, judgement.definition.as_ref());
    if !since.is_empty() {
        into.text(Token::Warning, 2, &format!("by the rule as it was:{since}"));
    }
    for trigger in &judgement.triggers {
        explain_trigger(into, model, trigger);
    }
    for condition in &judgement.gates {
        explain_condition(into, condition);
    }
}

/// What became of a definition since.
fn since(model: &Model, definition: Option<&Definition>) -> String {
    let Some((definition, until)) = definition.and_then(|it| Some((it, it.until?))) else {
        return String::new();
    };
    let what = if definition.deleted {
        "deleted"
    } else {
        "edited"
    };
    let at = model.moment(until);
    format!(" revision {}, {what} {at}", definition.revision)
}

fn explain_trigger(into: &mut Document, model: &Model, trigger: &TriggerExplanation) {
    let matched = (!trigger.unknown).then(|| trigger.matched == Some(true));
    let (token, mark) = verdict(matched);
    let told = match (matched, &trigger.clause) {
        (Some(true), _) => "matches",
        (Some(false), Some(_)) => "does not match",
        (Some(false), None) => "there was none",
        (None, _) => "not known",
    };
    let gone = trigger
        .definition
        .as_ref()
        .is_some_and(|it| it.deleted && it.until.is_some());
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
        into.linked(
            line,
            Link::Go(Route::Object(Kind::Trigger, trigger.trigger_name.clone())),
        );
    }
    if let Some(clause) = &trigger.clause {
        explain_clause(into, clause, 6);
    }
}

fn explain_condition(into: &mut Document, condition: &Gate) {
    let (token, mark) = verdict(Some(condition.passed == Some(true)));
    into.line(vec![
        span(token, &format!("  {mark} ")),
        span(Token::Dim, "condition "),
        span(
            Token::Text,
            &format!("{}: {}", condition.name, condition.detail),
        ),
    ]);
}

fn notification(
    into: &mut Document,
    model: &Model,
    rule: &RuleExplanation,
    sent: &ExplainedNotification,
) {
    let what = if sent.clear == Some(true) {
        "decided an update"
    } else {
        "decided"
    };
    let mut line = vec![
        span(Token::Info, "  → "),
        span(Token::Text, &format!("{what} {}", model.moment(sent.time))),
    ];
    if !sent.trigger_name.is_empty() {
        let by = format!("  by trigger {}", sent.trigger_name);
        line.push(span(Token::Dim, &by));
    }
    into.line(line);
    if sent.delivery_ids.is_empty() {
        into.text(Token::Dim, 4, "its deliveries are no longer kept");
    }
    let ours = |it: &&ExplainedDelivery| sent.delivery_ids.contains(&it.id);
    for delivery in rule.deliveries.iter().filter(ours) {
        self::delivery(into, model, delivery);
    }
}

fn delivery(into: &mut Document, model: &Model, delivery: &ExplainedDelivery) {
    let next = delivery
        .next_attempt_time
        .map(|ms| format!(", next try {}", model.moment(ms)));
    into.linked(
        vec![
            span(Token::Dim, "    delivery to "),
            span(Token::Link, &delivery.destination_name),
            span(Token::Text, &format!("  {}", delivery.state.to_lowercase())),
            span(Token::Dim, &next.unwrap_or_default()),
        ],
        Link::Go(Route::Delivery(delivery.id.clone())),
    );
    for attempt in &delivery.attempts {
        let (at, told) = (model.moment(attempt.start_time), outcome(attempt));
        into.text(Token::Dim, 6, &format!("{at} {told}"));
    }
}

/// What became of an attempt.
fn outcome(attempt: &ExplainedAttempt) -> String {
    let word = match attempt.outcome() {
        Outcome::Unreachable => "not reached",
        Outcome::Unknown => "outcome unknown",
        other => other.word(),
    };
    match attempt.explanation.as_str() {
        "" => word.to_owned(),
        explanation => format!("{word}: {explanation}"),
    }
}

/// Another judgement, as far as it differs from the main one.
fn aside(into: &mut Document, model: &Model, main: &RuleJudgement, other: &RuleJudgement) {
    let (token, mark) = verdict(Some(other.notifies == Some(true)));
    let title = match other.basis() {
        Basis::Now => "now: ".to_owned(),
        _ => format!("last asked {}: ", model.moment(other.time)),
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
    let result = (!clause.unknown).then(|| clause.result == Some(true));
    let (token, mark) = verdict(result);
    let expected = clause.expected.as_ref().map_or(Value::Null, value);
    let compared = || {
        format!(
            "{} {} {}",
            clause.field,
            comparison(&clause.r#type),
            expected
        )
    };
    let found = match clause.actual.as_ref().map(value) {
        _ if clause.field.is_empty() => clause.r#type.clone(),
        _ if result.is_none() => format!("{}; what it was is not known", compared()),
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
