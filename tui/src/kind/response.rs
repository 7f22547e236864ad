//! Responses: the progress of escalations.

use std::cmp::Reverse;

use serde_json::Value;

use super::{Cell, Column, Key, KindSpec, RenderContext, shared};
use crate::{
    data::{Kind, Named, Object, Role, Severity},
    document::{Document, Link, label, span},
    route::Route,
    theme::Token,
};

pub(super) const SPEC: KindSpec = KindSpec {
    service: "ResponseService",
    list: "ListResponses",
    create: None,
    update: None,
    delete: None,
    detail: None,
    naming: Some(|response| response["id"].as_str().unwrap_or_default().to_owned()),
    message: "Response",
    nested: true,
    output: &[],
    role: Role::Operator,
    columns: &[
        Column::new("State", 12, 0, 0, |_, it: &Object| {
            let (token, word) = state(it);
            Cell::new(token, word)
        })
        .by(|it| Key::Number(rank(it) * 10 - severity(it) as i64)),
        Column::new("Severity", 8, 0, 2, |_, it: &Object| {
            let severity = severity(it);
            Cell::new(severity, severity.label())
        })
        .sort_descending(|it| Key::Number(severity(it) as i64)),
        Column::new("Event", 18, 3, 0, |_, it: &Object| {
            Cell::new(Token::Text, subject(it))
        })
        .by(|it| Key::Text(subject(it).to_owned())),
        Column::new("Who", 16, 2, 0, |_, it: &Object| {
            Cell::new(Token::Text, responder(it))
        }),
        Column::new("Step", 8, 0, 1, |_, it: &Object| {
            Cell::new(Token::Text, step(it))
        }),
        Column::new("Next step", 16, 0, 1, |around, it: &Object| {
            match it.timestamp_ms("nextStepTime") {
                Some(ms) => Cell::time(around, Some(ms)),
                None => Cell::new(Token::Dim, "none"),
            }
        })
        .by(|it| Key::Number(it.timestamp_ms("nextStepTime").unwrap_or(i64::MAX))),
        Column::new("Policy", 12, 1, 3, |_, it: &Object| {
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
    fields: &[],
    document: Some(document),
    empty: "No one is paged.\n\n\
        An event whose rule has an escalation policy is listed here until it is closed: who was \
        notified, who\nresponded, and when the next step is due.",
    beside: &[],
};

pub(crate) fn severity(response: &Object) -> Severity {
    Severity::from_str_name(response.text("severity")).unwrap_or_default()
}

pub(crate) fn subject(response: &Object) -> &str {
    match response.text("summary") {
        "" => response.text("eventName"),
        summary => summary,
    }
}

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
pub(crate) fn urgency(response: &Object) -> (i64, Reverse<i64>, i64) {
    let next = response.timestamp_ms("nextStepTime").unwrap_or(i64::MAX);
    (rank(response), Reverse(severity(response) as i64), next)
}

fn rank(response: &Object) -> i64 {
    match state(response).1 {
        "unanswered" => 0,
        "paging" => 1,
        "held" => 2,
        "responded" => 3,
        _ => 4,
    }
}

fn step(response: &Object) -> String {
    let (step, count) = step_number(response);
    match round(response) {
        (round, rounds @ 2..) => format!("{step}/{count} ·{round}/{rounds}"),
        _ => format!("{step}/{count}"),
    }
}

/// Returns the step of the round, and the number of steps.
fn step_number(response: &Object) -> (i64, i64) {
    let number = |field| response.number(field).unwrap_or_default();
    let count = number("stepCount");
    // After all rounds, the service counts no step.
    let is_over = response.flag("unanswered");
    (if is_over { count } else { number("step") }, count)
}

/// Returns the round since the last start of the response, and the number of rounds.
pub(crate) fn round(response: &Object) -> (i64, i64) {
    let number = |field| response.number(field).unwrap_or_default();
    let count = number("roundCount").max(1);
    ((count - number("roundsLeft")).max(1), count)
}

/// Returns the contact that acknowledged the response, else the contact notified last.
pub(crate) fn responder(response: &Object) -> String {
    let by = response.text("acknowledgedBy");
    if !by.is_empty() {
        return by.to_owned();
    }
    let last = notified_receivers(response).last();
    last.map(receiver).unwrap_or_default()
}

pub(crate) fn notified_receivers(response: &Object) -> impl DoubleEndedIterator<Item = &Value> {
    let all = response.at("notified").and_then(Value::as_array);
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

fn document(into: &mut Document, around: &dyn RenderContext, response: &Object) {
    let severity = severity(response);
    into.linked_line(
        vec![
            span(severity.into(), &format!("{} ", severity.label())),
            span(Token::Link, subject(response)),
        ],
        Link::Go(Route::Event(response.text("occurrenceId").to_owned())),
    );
    let (token, word) = state(response);
    into.line(vec![label("state"), span(token, word)]);
    for (label, kind, path) in [
        ("rule", Kind::Rule, "ruleName"),
        ("policy", Kind::Policy, "policyName"),
    ] {
        let name = response.text(path);
        into.link(label, name, Link::Go(Route::Object(kind, name.to_owned())));
    }
    let (step, count) = step_number(response);
    into.field("step", Token::Text, &format!("{step} of {count}"));
    if let (round, rounds @ 2..) = round(response) {
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
        let delivery = Link::Go(Route::Delivery(text("deliveryId").to_owned()));
        let words = format!("{at}  {} by {}", receiver(one), text("destinationName"));
        into.linked_line(vec![span(Token::Link, &words)], delivery);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rounds_are_counted_from_the_last_start() {
        for (round, step, rounds, left, is_unanswered, expected) in [
            (1, 1, 1, 0, false, "1/2"),
            (1, 2, 2, 1, false, "2/2 ·1/2"),
            (2, 1, 2, 0, false, "1/2 ·2/2"),
            (2, 0, 2, 0, true, "2/2 ·2/2"),
            // Begun again after an acknowledgement, or for a higher severity.
            (3, 1, 2, 1, false, "1/2 ·1/2"),
            (7, 2, 2, 0, false, "2/2 ·2/2"),
            // A service of an earlier version does not state rounds.
            (3, 1, 0, 0, false, "1/2"),
        ] {
            let json = json!({
                "round": round,
                "step": step,
                "stepCount": 2,
                "roundCount": rounds,
                "roundsLeft": left,
                "unanswered": is_unanswered,
            });
            let kind = Kind::Response;
            let object = Object { kind, json };
            assert_eq!(super::step(&object), expected, "round {round}");
        }
    }
}
