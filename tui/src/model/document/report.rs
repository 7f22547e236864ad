//! Results of tests of destinations, contacts and triggers, and previews of rules.

use bellwether_proto::{
    cloud::Event,
    v1::{
        self as v1, Attempt, PreviewRuleResponse, RulePreview, TestContactResponse,
        TestIntakeMappingResponse, TestTriggerResponse,
    },
};
use serde_json::Value;

use super::{audit, explain::receiver, handover, insight, obligation, rendered, transcript};
use crate::{
    data::{EventRow, Label, Severity, Status, span_ms, struct_to_json},
    document::{Document, Link, format_duration, span},
    model::{
        Model,
        bulk::pluralize,
        inquiry::{Inquiry, Outcome},
        page::Report,
    },
    theme::Token,
};

pub(super) fn write(into: &mut Document, model: &Model, report: &Report) {
    into.text(Token::Title, 0, &report.title);
    describe_request(into, model, report);
    into.blank_line();
    if report.found.waiting.is_some() {
        return write_progress(into, model, report);
    }
    if let Some(failure) = &report.found.failure {
        into.failure(failure);
        into.blank_line();
        into.text(
            Token::Dim,
            0,
            &model.expand_keys("‹test_destination› tries again"),
        );
        return;
    }
    match &report.found.value {
        Some(Outcome::Test(test)) => {
            let attempt = Attempt {
                duration: test.duration,
                outcome: test.outcome,
                explanation: test.explanation.clone(),
                request: test.request.clone(),
                response: test.response.clone(),
                ..Attempt::default()
            };
            if let Some((name, count)) = model.tested_backlog() {
                let words = format!(
                    "‹send_waiting› sends the {} waiting for {name}",
                    pluralize(count, "delivery")
                );
                into.text(Token::Good, 0, &model.expand_keys(&words));
            }
            if let Some(times) = &test.times {
                transcript::write_times(into, times);
            }
            transcript::write_attempt(into, &attempt);
            if !test.delivery_id.is_empty() {
                into.heading("Recorded");
                let link = Link::delivery(&test.delivery_id);
                into.link("delivery", &test.delivery_id, link);
            }
        }
        Some(Outcome::Methods(found)) => write_methods(into, found),
        Some(Outcome::Matches(test)) => write_matches(into, model, test, &report.inquiry),
        Some(Outcome::Mapped(found)) => write_mapping_result(into, found),
        Some(Outcome::Obligations(read)) => obligation::write(into, model, read),
        Some(Outcome::Audit(read)) => audit::write(into, model, read),
        Some(Outcome::Noise(found)) => insight::write_noise_table(into, model, found),
        Some(Outcome::Handover(found)) => {
            if let Inquiry::Handover { hours } = report.inquiry {
                handover::write(into, model, found, hours);
            }
        }
        Some(Outcome::Previews(found)) => write_previews(into, found),
        None => into.loading_or_failure(false, None),
    }
}

fn write_methods(into: &mut Document, found: &TestContactResponse) {
    for method in &found.methods {
        let result = method.result.clone().unwrap_or_default();
        let (token, sign) = match result.outcome() {
            v1::Outcome::Delivered => (Token::Good, "✓ delivered"),
            v1::Outcome::Unknown => (Token::Warning, "? unknown"),
            _ => (Token::Bad, "✗ not delivered"),
        };
        into.heading(&method.destination_name);
        into.field(sign, token, &result.explanation);
        if let Some(length) = &result.duration {
            into.field("took", Token::Text, &format_duration(span_ms(length)));
        }
        if !result.delivery_id.is_empty() {
            let link = Link::delivery(&result.delivery_id);
            into.link("delivery", &result.delivery_id, link);
        }
    }
}

pub(super) fn write_previews(into: &mut Document, found: &PreviewRuleResponse) {
    for warning in &found.warnings {
        into.text(Token::Warning, 0, &format!("! {warning}"));
    }
    if found.previews.is_empty() {
        let answer = "the rule has no destination, so there is no message to show";
        into.text(Token::Dim, 0, answer);
    }
    for preview in &found.previews {
        write_preview(into, preview);
    }
}

fn describe_request(into: &mut Document, model: &Model, report: &Report) {
    let event = match &report.inquiry {
        Inquiry::Destination { event_id, .. } | Inquiry::Rule { event_id, .. } => {
            Some(event_id.as_str())
        }
        Inquiry::Mapping { document, .. } => {
            into.text(Token::Dim, 0, document);
            let answer = model.expand_keys("‹test_with_document› uses another document");
            into.text(Token::Dim, 0, &answer);
            None
        }
        Inquiry::Obligations(request) => {
            obligation::describe_request(into, request);
            None
        }
        Inquiry::Audit(request) => {
            audit::describe_request(into, request);
            None
        }
        Inquiry::Noise(by) => {
            insight::write_noise(into, model, *by);
            None
        }
        Inquiry::Handover { hours } => {
            handover::describe_request(into, model, *hours);
            None
        }
        Inquiry::Trigger { .. } | Inquiry::Contact(_) => None,
    };
    match event {
        Some("") => {
            let answer =
                model.expand_keys("with a sample event; ‹test_with_event› uses a stored one");
            into.text(Token::Dim, 0, &answer);
        }
        Some(id) => {
            let line = vec![span(Token::Dim, "with event "), span(Token::Link, id)];
            into.linked_line(line, Link::event(id));
        }
        None => {}
    }
}

fn write_mapping_result(into: &mut Document, found: &TestIntakeMappingResponse) {
    let (count, actions) = (found.events.len(), found.actions.len());
    let token = if count + actions == 0 {
        Token::Warning
    } else {
        Token::Good
    };
    let plural = if count + actions == 1 { "" } else { "s" };
    let result = if actions == 0 {
        format!("{count} event{plural}; no events were created")
    } else {
        format!("{actions} action{plural}; no events were changed")
    };
    into.text(token, 0, &result);
    let dropped = found.dropped_count.unwrap_or_default();
    if dropped > 0 {
        into.text(Token::Dim, 0, &format!("{dropped} passed over"));
    }
    for message in &found.faults {
        into.text(Token::Bad, 0, &format!("✗ {message}"));
    }
    for empty in &found.empty_templates {
        into.text(Token::Warning, 0, &format!("! {empty}"));
    }
    for merge in &found.merges {
        into.text(Token::Warning, 0, &format!("! {merge}"));
    }
    for (index, event) in found.events.iter().enumerate() {
        into.heading(&format!("Event {}", index + 1));
        write_event(into, event);
    }
    for (index, action) in found.actions.iter().enumerate() {
        into.heading(&format!("Action {}", index + 1));
        for (label, text) in [
            ("action", &action.action),
            ("thread", &action.thread_id),
            ("kept value", &action.kept_value),
            ("user", &action.author),
            ("assignee", &action.assignee),
            ("note", &action.note),
        ] {
            if !text.is_empty() {
                into.field(label, Token::Text, text);
            }
        }
        if let Some(duration) = &action.duration {
            into.field("duration", Token::Text, &format!("{} s", duration.seconds));
        }
    }
}

fn write_event(into: &mut Document, event: &Event) {
    into.field("name", Token::Title, &event.name);
    if event.severity() != Severity::Default {
        into.field(
            "severity",
            event.severity().into(),
            event.severity().label(),
        );
    }
    if event.status() != Status::Default {
        into.field("status", Token::Text, event.status().label());
    }
    if event.acknowledged == Some(true) {
        into.field("acknowledged", Token::Text, "yes");
    }
    for (label, text) in [
        ("type", &event.r#type),
        ("summary", &event.summary),
        ("body", &event.body),
    ] {
        if !text.is_empty() {
            into.field(label, Token::Text, text);
        }
    }
    for (name, value) in &event.dimensions {
        into.field(name, Token::Text, value);
    }
}

fn write_progress(into: &mut Document, model: &Model, report: &Report) {
    let seconds = (model.now_ms - report.started_ms).max(0) / 1_000;
    let answer = model.expand_keys(&format!("… in progress for {seconds} s; ‹back› cancels it"));
    into.text(Token::Info, 0, &answer);
    let Some(progress) = report.progress else {
        return;
    };
    if let Some(reached_ms) = progress.reached_ms {
        let share = scanned_percentage(model.now_ms, reached_ms, progress.start_ms);
        let share = share.map_or_else(String::new, |share| format!("  {share} %"));
        let answer = format!("back to {}{share}", model.format_time(reached_ms));
        into.field("looked", Token::Text, &answer);
    }
    let answer = format!("{} of {} so far", progress.matched, progress.scanned);
    into.field("would match", Token::Text, &answer);
    if let Some(saved) = progress.matched_by_saved {
        into.field("now", Token::Text, &saved.to_string());
    }
}

/// Returns the scanned percentage of a span; `None` if the span is unbounded.
fn scanned_percentage(now_ms: i64, reached_ms: i64, start_ms: Option<i64>) -> Option<i64> {
    let start_ms = start_ms.filter(|it| *it > 0)?;
    let (done_ms, all_ms) = (now_ms - reached_ms, now_ms - start_ms);
    Some((done_ms.max(0).saturating_mul(100) / all_ms.max(1)).min(100))
}

fn write_matches(
    into: &mut Document,
    model: &Model,
    test: &TestTriggerResponse,
    inquiry: &Inquiry,
) {
    let now = test
        .matched_by_saved
        .map_or_else(String::new, |count| format!(" (now: {count})"));
    let time = match inquiry {
        Inquiry::Trigger { span, .. } => span.description(),
        _ => "",
    };
    let (matched, scanned) = (
        test.matched.unwrap_or_default(),
        test.scanned.unwrap_or_default(),
    );
    let occurrences = if matched == 1 {
        "occurrence"
    } else {
        "occurrences"
    };
    let answer = format!("would have matched {matched} {occurrences} {time}{now}");
    let token = if matched == 0 {
        Token::Warning
    } else {
        Token::Good
    };
    into.text(token, 0, &answer);
    let were = if scanned == 1 { "was" } else { "were" };
    let scanned_text = format!("{scanned} {were} checked");
    into.text(
        Token::Dim,
        0,
        &model.expand_keys(&format!("{scanned_text}; ‹longer_try› extends the time")),
    );
    if let Some(stopped_ms) = test.reached_time.filter(|_| test.stopped_early) {
        let answer = format!(
            "stopped early: only events last seen since {} were checked",
            model.format_time(stopped_ms)
        );
        into.text(Token::Warning, 0, &answer);
    }
    let rows: Vec<EventRow> = test
        .occurrences
        .iter()
        .cloned()
        .flat_map(EventRow::from_event)
        .collect();
    if !rows.is_empty() {
        let shown = rows.len();
        let all = usize::try_from(matched).is_ok_and(|matched| matched == shown);
        let title = if all { "They are" } else { "The newest" };
        into.heading(title);
    }
    for row in &rows {
        let line = vec![
            span(
                Token::Dim,
                &format!("{:<17}", model.format_time(row.last_seen_ms)),
            ),
            span(row.severity.into(), &format!("{:<9}", row.severity.label())),
            span(Token::Link, &row.summary),
            span(Token::Dim, &format!("  {}", row.entity)),
        ];
        into.linked_line(line, Link::event(&*row.id));
    }
}

fn write_preview(into: &mut Document, preview: &RulePreview) {
    into.heading(&receiver(&preview.contact_name, &preview.destination_name));
    let limit = preview
        .limit_bytes
        .map_or_else(String::new, |limit| format!(" of {limit}"));
    into.field(
        "size",
        Token::Text,
        &format!("{}{limit} bytes", preview.size_bytes.unwrap_or_default()),
    );
    for warning in &preview.warnings {
        into.text(Token::Warning, 0, &format!("! {warning}"));
    }
    // The default document contains the rule's message at a deep level, so the message is taken
    // out.
    let rendered = preview
        .rendered
        .as_ref()
        .map_or(Value::Null, struct_to_json);
    let body = rendered.get("body").and_then(Value::as_str);
    let document = body.and_then(|body| serde_json::from_str::<Value>(body).ok());
    let text = document
        .as_ref()
        .and_then(|document| document.pointer("/rule/message"));
    let text = text.and_then(Value::as_str);
    if let Some(text) = text.filter(|it| !it.is_empty()) {
        into.field("message", Token::Title, text);
    }
    rendered::write_message(into, &rendered);
}
