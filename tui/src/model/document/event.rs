//! One event: its fields, its notes and history, and why rules did or did not notify.

use serde_json::Value;

use super::{Document, Link, label, span};
use crate::{
    data::{ClauseExplanation, EventDetail, Explanation, RuleExplanation},
    model::{
        Model, filter,
        page::{Route, Tab},
    },
    theme::Token,
};

pub(super) fn write(into: &mut Document, model: &Model, event: &EventDetail, tab: Tab) {
    match tab {
        Tab::Details | Tab::Explain => details(into, model, event),
        Tab::Notes => notes(into, model, event),
    }
}

fn details(into: &mut Document, model: &Model, event: &EventDetail) {
    let occurrence = &event.occurrence;
    into.field("summary", Token::Title, &occurrence.summary);
    let acknowledged = if occurrence.acknowledged {
        ", acknowledged"
    } else {
        ""
    };
    into.line(vec![
        label("state"),
        span(occurrence.severity.into(), occurrence.severity.word()),
        span(Token::Text, ", "),
        span(occurrence.status.into(), occurrence.status.word()),
        span(Token::Good, acknowledged),
    ]);
    into.field("name", Token::Text, &event.name);
    if !event.kind.is_empty() && event.kind != event.name {
        into.field("type", Token::Text, &event.kind);
    }
    into.field(
        "opened",
        Token::Text,
        &model.moment_in_full(occurrence.start_ms),
    );
    into.field(
        "last seen",
        Token::Text,
        &model.moment_in_full(occurrence.last_seen_ms),
    );
    if let Some(close) = occurrence.close_ms {
        let words = format!(
            "{} {}",
            model.moment_in_full(close),
            occurrence.close_reason
        );
        into.field("closed", Token::Text, &words);
    }
    let counts = match (occurrence.count, event.count) {
        (1, 1) => "once".to_owned(),
        (count, all) if count == all => format!("{count} times"),
        (count, all) => format!("{count} times, {all} over all occurrences"),
    };
    into.field("sent", Token::Text, &counts);
    into.field("occurrence", Token::Text, &occurrence.number.to_string());
    if occurrence.number > 1 {
        let before = occurrence.number - 1;
        let id = format!("{}:{before}", event.id);
        into.link(
            "",
            &format!("the one before ({before})"),
            Link::Go(Route::Event(id)),
        );
    }
    let link = Link::List(Route::Deliveries, filter::part("event", &event.id));
    into.link("deliveries", "about this event", link);
    if !occurrence.annotations.is_empty() {
        let count = occurrence.annotations.len();
        let words = model.tell(&format!("{count} (‹next_tab› shows them)"));
        into.field("notes", Token::Text, &words);
    }
    contents(into, event);
}

/// What the sender told, and the ids.
fn contents(into: &mut Document, event: &EventDetail) {
    let occurrence = &event.occurrence;
    into.heading("Dimensions");
    for (key, value) in &event.dimensions {
        into.field(key, Token::Text, value);
    }
    if !occurrence.body.is_empty() {
        into.heading("Body");
        into.text(Token::Text, 0, &occurrence.body);
    }
    if let Value::Object(fields) = &occurrence.metadata
        && !fields.is_empty()
    {
        into.heading("Metadata");
        for (key, value) in fields {
            into.tree(0, key, value);
        }
    }
    into.heading("Ids");
    into.field("event", Token::Text, &event.id);
    into.field("occurrence", Token::Text, &occurrence.id);
}

fn notes(into: &mut Document, model: &Model, event: &EventDetail) {
    let occurrence = &event.occurrence;
    into.heading("Notes");
    if occurrence.annotations.is_empty() {
        into.text(Token::Dim, 0, "none yet; N writes one");
    }
    for note in &occurrence.annotations {
        let head = format!("{}  {}", model.moment(note.update_ms), note.author);
        into.text(Token::Dim, 0, &head);
        into.text(Token::Text, 2, &note.text);
    }
    into.heading("History");
    if occurrence.history.is_empty() {
        into.text(Token::Dim, 0, "nothing has changed yet");
    }
    for entry in occurrence.history.iter().rev() {
        let author = if entry.author.is_empty() {
            "the service"
        } else {
            &entry.author
        };
        let from = if entry.from.is_empty() {
            "(nothing)"
        } else {
            &entry.from
        };
        into.line(vec![
            span(Token::Dim, &format!("{:<17}", model.moment(entry.time_ms))),
            span(
                Token::Text,
                &format!("{}: {from} → {}", entry.field, entry.to),
            ),
            span(Token::Dim, &format!("  by {author}")),
        ]);
    }
}

pub(super) fn explanation(into: &mut Document, explanation: &Explanation) {
    if explanation.rules.is_empty() {
        into.text(Token::Dim, 0, "no rule is stored, so nobody is notified");
    }
    for rule in &explanation.rules {
        explain_rule(into, rule);
    }
}

fn verdict(good: bool) -> (Token, &'static str) {
    if good {
        (Token::Good, "✓")
    } else {
        (Token::Bad, "✗")
    }
}

fn explain_rule(into: &mut Document, rule: &RuleExplanation) {
    if !into.lines.is_empty() {
        into.blank();
    }
    let (token, mark) = verdict(rule.notified);
    let told = if rule.notified {
        "notified"
    } else {
        "did not notify"
    };
    into.linked(
        vec![
            span(token, &format!("{mark} ")),
            span(Token::Link, &rule.rule_name),
            span(Token::Text, &format!("  {told}")),
        ],
        Link::Go(Route::Rule(rule.rule_name.clone())),
    );
    into.text(Token::Text, 2, &rule.reason);
    for trigger in &rule.triggers {
        let (token, mark) = verdict(trigger.matched);
        let told = if trigger.matched {
            "matches"
        } else {
            "does not match"
        };
        into.linked(
            vec![
                span(token, &format!("  {mark} ")),
                span(Token::Dim, "trigger "),
                span(Token::Link, &trigger.trigger_name),
                span(Token::Text, &format!("  {told}")),
            ],
            Link::Go(Route::Trigger(trigger.trigger_name.clone())),
        );
        if let Some(clause) = &trigger.clause {
            explain_clause(into, clause, 6);
        }
    }
    for gate in &rule.gates {
        let (token, mark) = verdict(gate.passed);
        into.line(vec![
            span(token, &format!("  {mark} ")),
            span(Token::Dim, "gate "),
            span(Token::Text, &format!("{}: {}", gate.name, gate.detail)),
        ]);
    }
    for (id, destination, state) in &rule.deliveries {
        into.linked(
            vec![
                span(Token::Dim, "    delivery to "),
                span(Token::Link, destination),
                span(Token::Text, &format!("  {state}")),
            ],
            Link::Go(Route::Delivery(id.clone())),
        );
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
    let found = match &clause.actual {
        _ if clause.field.is_empty() => clause.kind.clone(),
        Some(actual) => {
            format!(
                "{} {} {}; it is {actual}",
                clause.field,
                comparison(&clause.kind),
                clause.expected
            )
        }
        None => format!(
            "{} {} {}; it has none",
            clause.field,
            comparison(&clause.kind),
            clause.expected
        ),
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
