//! Responses: the progress of escalations.

use std::cmp::Reverse;

use serde_json::Value;

use super::{Cell, Column, EventCell, Key, KindSpec, RenderContext, edited, event_cell, shared};
use crate::{
    data::{Kind, Object, Role},
    document::{Document, Link, label, span},
    theme::Token,
};

pub(super) const SPEC: KindSpec = KindSpec {
    create: None,
    update: None,
    delete: None,
    naming: Some(|response| response["id"].as_str().unwrap_or_default().to_owned()),
    output: &[],
    role: Role::Operator,
    columns: &[
        Column::new("State", 10, 0, 0, |_, it: &Object| state(it).into())
            .sort_by_key(|it| Key::Number(state_rank(it) * 10 - event_cell::severity(it) as i64)),
        event_cell::SEVERITY,
        event_cell::EVENT,
        event_cell::EVENT_HOST,
        event_cell::SUMMARY,
        Column::new("Open for", 8, 0, 3, |around, it: &Object| {
            let begin = it.timestamp_ms("beginTime");
            let since = begin.map_or_else(String::new, |ms| around.format_since(ms));
            Cell::new(Token::Dim, since)
        })
        .right_align()
        .sort_descending(|it| Key::Number(-it.timestamp_ms("beginTime").unwrap_or(i64::MAX))),
        Column::new("Now", 14, 3, 0, |around, it: &Object| {
            let [now, _] = around.response_cells(it);
            now
        }),
        Column::new("Next", 16, 3, 1, |around, it: &Object| {
            let [_, next] = around.response_cells(it);
            next
        })
        .sort_by_key(|it| Key::Number(it.timestamp_ms("nextStepTime").unwrap_or(i64::MAX))),
        Column::new("Policy", 12, 1, 4, |_, it: &Object| {
            Cell::new(Token::Dim, it.text("policyName"))
        }),
    ],
    searched: |it| {
        let texts = [
            "eventName",
            "summary",
            "ruleName",
            "policyName",
            "acknowledgedBy",
        ];
        texts.map(|field| it.text(field)).into()
    },
    document: Some(write_document),
    empty: "No one is paged.\n\n\
        An event whose rule has an escalation policy is listed here until it is closed: who was \
        notified, who responded, and when the next step is due.",
    beside: &[Kind::Policy],
    ..edited!("Response", "Responses")
};

pub(crate) fn state(response: &Object) -> (Token, &'static str) {
    match response.text("state") {
        "ACTIVE" if response.flag("unanswered") => (Token::Bad, "unanswered"),
        "ACTIVE" => (Token::Warning, "paging"),
        "HELD" => (Token::Dim, "held"),
        "ACKNOWLEDGED" => (Token::Good, "responded"),
        "ENDED" => (Token::Dim, "ended"),
        _ => (Token::Dim, "unknown"),
    }
}

/// Returns the sort key by urgency: unanswered first, then by severity, then by the next step.
pub(crate) fn urgency_key(response: &Object) -> (i64, Reverse<i64>, i64) {
    let next = response.timestamp_ms("nextStepTime").unwrap_or(i64::MAX);
    (
        state_rank(response),
        Reverse(event_cell::severity(response) as i64),
        next,
    )
}

fn state_rank(response: &Object) -> i64 {
    match state(response).1 {
        "unanswered" => 0,
        "paging" => 1,
        "held" => 2,
        "responded" => 3,
        _ => 4,
    }
}

/// Returns the step of the round, and the number of steps.
fn step_number(response: &Object) -> (i64, i64) {
    let number = |field| response.number(field).unwrap_or_default();
    let count = number("stepCount");
    // After all rounds, the service returns no step.
    let is_over = response.flag("unanswered");
    (if is_over { count } else { number("step") }, count)
}

/// Returns the round since the last start of the response, and the number of rounds.
pub(crate) fn current_round(response: &Object) -> (i64, i64) {
    let number = |field| response.number(field).unwrap_or_default();
    let count = number("roundCount").max(1);
    ((count - number("roundsLeft")).max(1), count)
}

/// A person or destination notified in the latest round and step, with the state of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotifiedReceiver {
    pub(crate) name: String,
    pub(crate) progress: Progress,
    /// The reason for a failure, or for a wait.
    pub(crate) cause: String,
    pub(crate) next_attempt_ms: Option<i64>,
}

/// Progress of the messages to a person, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    Sent,
    Waiting,
    Recorded,
    Failed,
    Unknown,
}

impl Progress {
    fn from_state(state: &str) -> Self {
        match state {
            "DELIVERED" => Self::Sent,
            "PENDING" | "LEASED" | "RETRY" => Self::Waiting,
            "SHADOWED" | "FOLDED" => Self::Recorded,
            "DEAD" | "CANCELLED" => Self::Failed,
            _ => Self::Unknown,
        }
    }

    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Sent => "✓",
            Self::Waiting => "◐",
            Self::Recorded => "○",
            Self::Failed => "✗",
            Self::Unknown => "",
        }
    }
}

/// Returns everyone notified in the latest round and step. A person with several methods has the
/// best of their states.
pub(crate) fn notified_in_latest_step(response: &Object) -> Vec<NotifiedReceiver> {
    let mut found: Vec<NotifiedReceiver> = Vec::new();
    let current = response.value_at("current").and_then(Value::as_array);
    for one in current.into_iter().flatten() {
        let text = |field: &str| one[field].as_str().unwrap_or_default();
        let reasons = [text("lastError"), text("waitReason")];
        let cause = reasons.into_iter().find(|reason| !reason.is_empty());
        let new = NotifiedReceiver {
            name: name(one).to_owned(),
            progress: Progress::from_state(text("deliveryState")),
            cause: cause.unwrap_or_default().to_owned(),
            next_attempt_ms: shared::timestamp_ms(one, "nextAttemptTime"),
        };
        match found.iter_mut().find(|known| known.name == new.name) {
            Some(known) if new.progress < known.progress => *known = new,
            Some(_) => {}
            None => found.push(new),
        }
    }
    found
}

/// Returns the names of the receivers of the next step, each once; empty if they are not known.
pub(crate) fn next_names(response: &Object) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let all = response.value_at("next").and_then(Value::as_array);
    for one in all.into_iter().flatten() {
        let name = match (name(one), one["scheduleName"].as_str()) {
            ("", Some(schedule)) => format!("no one ({schedule})"),
            (name, _) => name.to_owned(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn name(receiver: &Value) -> &str {
    let text = |field: &str| receiver[field].as_str().unwrap_or_default();
    match text("contactName") {
        "" => text("destinationName"),
        contact => contact,
    }
}

pub(crate) fn responder(response: &Object) -> String {
    match response.text("acknowledgedBy") {
        "" => {
            let reached = notified_in_latest_step(response).into_iter();
            reached.map(|it| it.name).collect::<Vec<_>>().join(", ")
        }
        by => by.strip_prefix("contact:").unwrap_or(by).to_owned(),
    }
}

/// Returns everyone whom a response concerns: who was notified, who is next, and who acknowledged.
pub(crate) fn people(response: &Object) -> Vec<String> {
    let by = response.text("acknowledgedBy");
    let by = by.strip_prefix("contact:").unwrap_or(by).to_owned();
    let notified = notified_receivers(response).map(|it| name(it).to_owned());
    let reached = notified_in_latest_step(response)
        .into_iter()
        .map(|it| it.name);
    let next = next_names(response).into_iter();
    let all = notified.chain(reached).chain(next).chain([by]);
    all.filter(|it| !it.is_empty()).collect()
}

pub(crate) fn notified_receivers(response: &Object) -> impl DoubleEndedIterator<Item = &Value> {
    let all = response.value_at("notified").and_then(Value::as_array);
    all.into_iter().flatten()
}

fn receiver(notified: &Value) -> String {
    let text = |field: &str| notified[field].as_str().unwrap_or_default();
    match (text("contactName"), text("scheduleName")) {
        ("", _) => text("destinationName").to_owned(),
        (contact, "") => contact.to_owned(),
        (contact, schedule) => format!("{contact} ({schedule})"),
    }
}

fn write_document(into: &mut Document, around: &dyn RenderContext, response: &Object) {
    let cells = into.columns.saturating_sub(2);
    into.linked_line(
        EventCell::from_object(around, response).spans(cells),
        Link::event(response.text("occurrenceId")),
    );
    let (token, word) = state(response);
    into.line(vec![label("state"), span(token, word)]);
    let [now, next] = around.response_cells(response);
    into.field("now", now.token, &now.text);
    into.field("next", next.token, &next.text);
    for (label, kind, path) in [
        ("rule", Kind::Rule, "ruleName"),
        ("policy", Kind::Policy, "policyName"),
    ] {
        let name = response.text(path);
        into.link(label, name, Link::object(kind, name));
    }
    let (step, count) = step_number(response);
    into.field("step", Token::Text, &format!("{step} of {count}"));
    if let (round, rounds @ 2..) = current_round(response) {
        into.field("round", Token::Text, &format!("{round} of {rounds}"));
    }
    for (label, path) in [
        ("next step", "nextStepTime"),
        ("ack ends", "acknowledgedUntilTime"),
        ("began", "beginTime"),
        ("ended", "endTime"),
    ] {
        if let Some(ms) = response.timestamp_ms(path) {
            into.field(label, Token::Text, &around.format_full_time(ms));
        }
    }
    let by = response.text("acknowledgedBy");
    if !by.is_empty() {
        into.field("responded", Token::Good, by);
    }
    let words = "‹acknowledge_response› acknowledges the event, ‹acknowledge_for› acknowledges it temporarily, ‹escalate› runs the next step now";
    into.text(Token::Dim, 0, &around.expand_keys(words));
    into.heading("Notified");
    for one in notified_receivers(response) {
        let text = |field: &str| one[field].as_str().unwrap_or_default();
        let at = shared::timestamp_ms(one, "time");
        let at = at.map_or_else(String::new, |ms| around.format_time(ms));
        let delivery = Link::delivery(text("deliveryId"));
        let words = format!("{at}  {} by {}", receiver(one), text("destinationName"));
        into.linked_line(vec![span(Token::Link, &words)], delivery);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn response(json: Value) -> Object {
        Object {
            kind: Kind::Response,
            json,
        }
    }

    #[test]
    fn rounds_are_counted_from_the_last_start() {
        for (round, step, rounds, left, is_unanswered, expected) in [
            (1, 1, 1, 0, false, (1, 1, 1)),
            (1, 2, 2, 1, false, (2, 1, 2)),
            (2, 1, 2, 0, false, (1, 2, 2)),
            (2, 0, 2, 0, true, (2, 2, 2)),
            // The rounds began again after an acknowledgement, or because of a higher severity.
            (3, 1, 2, 1, false, (1, 1, 2)),
            (7, 2, 2, 0, false, (2, 2, 2)),
            // A service of an earlier version does not return rounds.
            (3, 1, 0, 0, false, (1, 1, 1)),
        ] {
            let object = response(json!({
                "round": round,
                "step": step,
                "stepCount": 2,
                "roundCount": rounds,
                "roundsLeft": left,
                "unanswered": is_unanswered,
            }));
            let (own, rounds) = current_round(&object);
            let found = (step_number(&object).0, own, rounds);
            assert_eq!(found, expected, "round {round}");
        }
    }

    #[test]
    fn notified_contact_has_the_best_state_of_its_methods() {
        let method = |name: &str, state: &str, cause: &str| json!({"contactName": name, "deliveryState": state, "lastError": cause});
        let found = notified_in_latest_step(&response(json!({
            "current": [
                method("ana", "DEAD", "401"),
                method("ana", "DELIVERED", ""),
                method("cleo", "DEAD", "refused"),
                method("cleo", "RETRY", "timeout"),
                method("ben", "DEAD", "401"),
            ],
            "notified": [{"contactName": "dan", "round": 9, "step": 1}],
        })));
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.name.as_str(), it.progress.symbol(), it.cause.as_str()))
            .collect();
        let expected = [
            ("ana", "✓", ""),
            ("cleo", "◐", "timeout"),
            ("ben", "✗", "401"),
        ];
        assert_eq!(found, expected);
    }
}
