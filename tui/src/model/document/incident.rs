//! The top of an event's page: its state, its assignee, and the notified receivers.

use std::collections::BTreeMap;

use bellwether_proto::v1::{
    Event, ExplainEventResponse, ExplainedDelivery, Occurrence, TimelineEntry,
    occurrence::CloseReason,
};

use crate::{
    data::{Label, Sign, Status},
    document::{Document, Span, format_duration, span},
    model::{Model, loaded::Loaded},
    text,
    theme::Token,
};

/// Width of the reason why a receiver was not notified, in cells.
const REASON: usize = 40;
const ENTRIES: usize = 30;

pub(super) fn write(
    into: &mut Document,
    model: &Model,
    event: &Event,
    occurrence: &Occurrence,
    explanation: &Loaded<ExplainEventResponse>,
) {
    let severity = occurrence.severity();
    into.text(Token::Title, 0, &occurrence.summary);
    let pairs = event.dimensions.iter();
    let pairs = pairs.map(|(key, value)| format!(" {key}={value}"));
    into.line(vec![
        span(Token::Text, &event.name),
        span(Token::Dim, &pairs.collect::<String>()),
    ]);
    let sign = format!("{} {}", severity.symbol(), severity.label());
    let mut parts = vec![
        (severity.into(), sign),
        format_status(model, occurrence),
        describe_responder(occurrence),
    ];
    parts.extend(
        model
            .response_for_event(&occurrence.id)
            .map(|it| model.response_status(it)),
    );
    parts.extend(describe_receivers(model, explanation));
    write_lines(into, parts);
}

fn write_lines(into: &mut Document, parts: Vec<(Token, String)>) {
    let mut line: Vec<Span> = Vec::new();
    let mut used = 0;
    for (token, words) in parts {
        let cells = text::cell_width(&text::clean_text(&words)) + 3;
        if used > 0 && used + cells > into.columns {
            into.line(std::mem::take(&mut line));
            used = 0;
        }
        if !line.is_empty() {
            line.push(span(Token::Dim, " · "));
        }
        line.push(span(token, &words));
        used += cells;
    }
    into.line(line);
}

fn format_status(model: &Model, occurrence: &Occurrence) -> (Token, String) {
    let start = occurrence.start_time;
    let lasted = |end: i64| format_duration(end.saturating_sub(start).max(0));
    // In whole seconds, since it counts up.
    let open_for = || lasted(start + (model.now_ms - start) / 1_000 * 1_000);
    match (occurrence.status(), occurrence.close_time) {
        (_, Some(at)) => {
            let reason = match occurrence.close_reason() {
                CloseReason::Sender => " by its sender",
                CloseReason::Operator => " by an operator",
                CloseReason::Aged => " for lack of reports",
                CloseReason::Expired => " as expired",
                CloseReason::Unspecified => "",
            };
            let words = format!(
                "closed {}{reason} after {}",
                model.format_time(at),
                lasted(at)
            );
            (Token::Dim, words)
        }
        (Status::Suppressed, None) => {
            let words = format!("suppressed, open {}", open_for());
            (Token::Held, words)
        }
        (_, None) => (Token::Text, format!("open {}", open_for())),
    }
}

fn describe_responder(occurrence: &Occurrence) -> (Token, String) {
    let acknowledged = occurrence.acknowledged == Some(true);
    let mut history = occurrence.history.iter().rev();
    let by = history.find(|entry| entry.field == "acknowledged" && entry.to == "true");
    let by = by.map(|entry| entry.author.as_str());
    match (occurrence.assignee.as_str(), acknowledged, by) {
        ("", true, Some(by)) if !by.is_empty() => {
            (Token::Good, format!("acknowledged by {by}, unassigned"))
        }
        ("", true, _) => (Token::Good, "acknowledged, unassigned".to_owned()),
        ("", false, _) => (Token::Dim, "unassigned".to_owned()),
        (name, true, _) => (Token::Good, format!("assigned to {name}, acknowledged")),
        (name, false, _) => (Token::Info, format!("assigned to {name}")),
    }
}

fn describe_receivers(
    model: &Model,
    explanation: &Loaded<ExplainEventResponse>,
) -> Vec<(Token, String)> {
    let Some(found) = &explanation.value else {
        let words = match &explanation.failure {
            Some(failure) => format!("receivers not loaded: {}", failure.headline()),
            None => "reading receivers…".to_owned(),
        };
        return vec![(Token::Dim, words)];
    };
    let mut newest: BTreeMap<&str, &ExplainedDelivery> = BTreeMap::new();
    for delivery in found.rules.iter().flat_map(|rule| &rule.deliveries) {
        let known = newest
            .entry(delivery.destination_name.as_str())
            .or_insert(delivery);
        if delivery.create_time > known.create_time {
            *known = delivery;
        }
    }
    if newest.is_empty() {
        return vec![(Token::Dim, "no receiver notified".to_owned())];
    }
    let parts = newest.into_iter().map(|(name, delivery)| {
        let digest = delivery.digest.as_ref();
        let state = digest.map_or(delivery.state.as_str(), |it| it.state.as_str());
        let ended = digest.map_or(delivery.end_time, |it| it.end_time);
        let at = ended.map_or_else(String::new, |ms| format!(" {}", model.format_time(ms)));
        let error = text::shorten_error(&delivery.last_error);
        let error = text::fit_to_width(&error, REASON);
        let reason = if error.is_empty() {
            String::new()
        } else {
            format!(" ({error})")
        };
        match state {
            "DELIVERED" => (2, Token::Good, format!("notified {name}{at}")),
            "DEAD" => (0, Token::Bad, format!("{name} not notified{reason}")),
            "CANCELLED" => (3, Token::Dim, format!("{name} cancelled")),
            "SHADOWED" => (3, Token::Dim, format!("{name} dry run")),
            _ => (1, Token::Warning, format!("{name} waiting{reason}")),
        }
    });
    // Receivers that were not reached come first.
    let mut parts: Vec<_> = parts.collect();
    parts.sort_by_key(|(order, ..)| *order);
    let parts = parts.into_iter();
    parts.map(|(_, token, words)| (token, words)).collect()
}

pub(super) fn write_history(
    into: &mut Document,
    model: &Model,
    found: Option<&ExplainEventResponse>,
) {
    let Some(found) = found.filter(|found| !found.timeline.is_empty()) else {
        return;
    };
    let more = found.timeline.len().saturating_sub(ENTRIES);
    if more > 0 {
        into.text(
            Token::Dim,
            0,
            &format!("… {} earlier", text::group_digits(to_i64(more))),
        );
    }
    for entry in found.timeline.iter().skip(more) {
        let token = match entry.kind.as_str() {
            "delivered" | "acknowledged" => Token::Good,
            "dead" => Token::Bad,
            "held" | "suppressed" => Token::Held,
            _ => Token::Text,
        };
        into.line(vec![
            span(
                Token::Dim,
                &format!("{:<17}", model.format_time(entry.time)),
            ),
            span(token, &format!("{:<13} ", kind_word(entry))),
            span(Token::Text, &entry.text),
        ]);
    }
}

/// Returns the kind of an entry. An entry about a decision is not about a notification yet.
fn kind_word(entry: &TimelineEntry) -> &str {
    if entry.text.starts_with("decided") {
        "decided"
    } else {
        &entry.kind
    }
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
