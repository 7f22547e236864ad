//! A delivery with the transcripts of its attempts.

use std::collections::BTreeMap;

use bellwether_proto::v1::{Attempt, Delivery, ExchangeTimes, RequestTranscript};

use super::rendered;
use crate::{
    data::{DeliveryState, Kind, Label, Outcome, Sign, span_ms, struct_to_json, to_millis},
    document::{Document, Link, format_duration, label, span},
    kind::RenderContext as _,
    model::Model,
    theme::Token,
};

pub(super) fn write_summary(into: &mut Document, model: &Model, delivery: &Delivery) {
    write_state(into, model, delivery);
    if delivery.test == Some(true) {
        into.field("what", Token::Text, "a test");
    } else if delivery.clear == Some(true) {
        into.field(
            "what",
            Token::Text,
            "reports a change or the end of the event",
        );
    }
    let destination = delivery.destination_name.clone();
    into.link(
        "destination",
        &delivery.destination_name,
        Link::object(Kind::Destination, destination),
    );
    if !delivery.rule_name.is_empty() {
        let link = Link::object(Kind::Rule, &delivery.rule_name);
        into.link("rule", &delivery.rule_name, link);
    }
    if !delivery.trigger_name.is_empty() {
        let link = Link::object(Kind::Trigger, &delivery.trigger_name);
        into.link("trigger", &delivery.trigger_name, link);
    }
    if delivery.is_digest == Some(true) {
        let words = format!("a digest of {} messages", delivery.folded_count);
        into.field("what", Token::Text, &words);
    }
    if !delivery.folded_into.is_empty() {
        let link = Link::delivery(&delivery.folded_into);
        into.link("folded into", &delivery.folded_into, link);
    }
    if !delivery.retry_of.is_empty() {
        let link = Link::delivery(&delivery.retry_of);
        into.link("resends", &delivery.retry_of, link);
    }
    if !delivery.retried_as.is_empty() {
        let link = Link::delivery(&delivery.retried_as);
        into.link("resent as", &delivery.retried_as, link);
    }
    let moments = [
        ("decided", &delivery.create_time),
        ("next attempt", &delivery.next_attempt_time),
        ("ended", &delivery.end_time),
    ];
    for (label, time) in moments {
        if let Some(ms) = to_millis(time.as_ref()) {
            let at = match label {
                "next attempt" => model.format_due(ms),
                _ => model.format_full_time(ms),
            };
            into.field(label, Token::Text, &at);
        }
    }
    if !delivery.wait_reason.is_empty() {
        into.field("waits", Token::Warning, &delivery.wait_reason);
    }
    if !delivery.last_error.is_empty() {
        into.field("last error", Token::Bad, &delivery.last_error);
    }
    into.field("id", Token::Text, &delivery.id);
}

fn write_state(into: &mut Document, model: &Model, delivery: &Delivery) {
    let resent = to_millis(delivery.retry_time.as_ref());
    let resent = resent.map_or_else(String::new, |ms| {
        format!(", resent {}", model.format_time(ms))
    });
    into.line(vec![
        label("state"),
        span(delivery.state().into(), delivery.state().label()),
        span(Token::Text, &resent),
    ]);
    if !delivery.event_name.is_empty() {
        let severity = delivery.severity();
        let pairs = delivery.dimensions.iter();
        let pairs = pairs.map(|(key, value)| format!(" {key}={value}"));
        let line = vec![
            label("about"),
            span(
                severity.into(),
                &format!("{} {} ", severity.symbol(), severity.label()),
            ),
            span(Token::Link, &delivery.event_name),
            span(Token::Dim, &pairs.collect::<String>()),
        ];
        match &*delivery.occurrence_id {
            "" => into.line(line),
            id => into.linked_line(line, Link::event(id)),
        }
    }
}

/// Writes the attempts of a delivery, or the message of one that is never sent.
pub(super) fn write_attempts(into: &mut Document, model: &Model, delivery: &Delivery) {
    if let Some(shown) = &delivery.rendered {
        let heading = match delivery.state() {
            DeliveryState::Shadowed => "What would have been sent",
            DeliveryState::Folded => "What would have been sent automatically",
            _ => "The message, as far as known",
        };
        into.heading(heading);
        rendered::write_message(into, &struct_to_json(shown));
        return;
    }
    if delivery.attempts.is_empty() {
        into.heading("Attempts");
        into.text(Token::Dim, 0, "none yet");
    }
    for one in delivery.attempts.iter().rev() {
        into.heading(&format!("Attempt {}", one.number));
        if let Some(start) = to_millis(one.start_time.as_ref()) {
            into.field("began", Token::Text, &model.format_full_time(start));
        }
        write_attempt(into, one);
    }
}

pub(super) fn write_attempt(into: &mut Document, attempt: &Attempt) {
    write_response(into, attempt);
    into.heading("Request");
    match &attempt.request {
        None => into.text(Token::Dim, 0, "nothing was sent"),
        Some(it) => write_request(into, it),
    }
}

pub(super) fn write_request(into: &mut Document, it: &RequestTranscript) {
    let line = format!("{} {}", it.method, it.url);
    write_sent(into, &line, &it.headers, &it.body);
}

pub(super) fn write_times(into: &mut Document, times: &ExchangeTimes) {
    let opened = [
        ("name", &times.resolve),
        ("connect", &times.connect),
        ("TLS", &times.tls),
    ];
    let answered = [("first byte", &times.first_byte), ("total", &times.total)];
    for (label, parts) in [("connection", &opened[..]), ("response", &answered[..])] {
        let parts = parts.iter().filter_map(|(name, span)| {
            let took = format_duration(span_ms(span.as_ref()?));
            Some(format!("{name} {took}"))
        });
        let words = parts.collect::<Vec<_>>().join(" · ");
        if !words.is_empty() {
            into.field(label, Token::Text, &words);
        }
    }
}

pub(super) fn write_response(into: &mut Document, attempt: &Attempt) {
    let outcome = attempt.outcome();
    let mark = match outcome {
        Outcome::Delivered => "✓",
        Outcome::Unspecified => "…",
        Outcome::Unknown => "?",
        Outcome::Rejected | Outcome::Unreachable | Outcome::Blocked => "✗",
    };
    let took = attempt.duration.as_ref().map(span_ms);
    let took = took.map_or_else(String::new, |ms| format!(" in {}", format_duration(ms)));
    into.line(vec![
        label("verdict"),
        span(
            outcome.into(),
            &format!("{mark} {}", outcome.label().to_uppercase()),
        ),
        span(Token::Text, &took),
    ]);
    if !attempt.explanation.is_empty() {
        into.field("", Token::Text, &attempt.explanation);
    }
    into.heading("Response");
    match &attempt.response {
        None => into.text(Token::Dim, 0, "no response"),
        Some(it) => write_sent(
            into,
            &format!("status {}", it.status),
            &it.headers,
            &it.body,
        ),
    }
}

fn write_sent(into: &mut Document, line: &str, headers: &BTreeMap<String, String>, body: &str) {
    into.text(Token::Title, 0, line);
    for (name, value) in headers {
        into.text(Token::Dim, 0, &format!("{name}: {value}"));
    }
    if !body.is_empty() {
        into.blank_line();
        into.body(0, body);
    }
}
