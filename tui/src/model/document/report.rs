//! What a test of a destination, a try of a trigger or a preview of a rule brought.

use super::{Document, Link, span, transcript};
use crate::{
    client::Request,
    data::{RulePreview, TriggerTest},
    model::{
        Model,
        page::{Found, Report, Route},
    },
    theme::Token,
};

pub(super) fn write(into: &mut Document, model: &Model, report: &Report) {
    into.text(Token::Title, 0, &report.title);
    let event = match &report.request {
        Request::TestDestination { event_id, .. } | Request::PreviewRule { event_id, .. } => {
            Some(event_id.as_str())
        }
        _ => None,
    };
    match event {
        Some("") => into.text(Token::Dim, 0, "with a sample event; v takes a stored one"),
        Some(id) => {
            let line = vec![span(Token::Dim, "with event "), span(Token::Link, id)];
            into.linked(line, Link::Go(Route::Event(id.to_owned())));
        }
        None => {}
    }
    into.blank();
    if report.found.waiting.is_some() {
        let seconds = (model.now_ms - report.started_ms).max(0) / 1_000;
        into.text(
            Token::Info,
            0,
            &format!("… under way for {seconds} s; Esc leaves it"),
        );
        return;
    }
    if let Some(failure) = &report.found.failure {
        into.failure(failure);
        into.blank();
        into.text(Token::Dim, 0, &model.tell("‹test_destination› tries again"));
        return;
    }
    match &report.found.value {
        Some(Found::Test(test)) => {
            transcript::attempt(into, &test.attempt);
            if !test.delivery_id.is_empty() {
                into.heading("Recorded");
                let link = Link::Go(Route::Delivery(test.delivery_id.clone()));
                into.link("delivery", &test.delivery_id, link);
            }
        }
        Some(Found::Matches(test)) => matches(into, model, test),
        Some(Found::Previews { previews, warnings }) => {
            for warning in warnings {
                into.text(Token::Warning, 0, &format!("! {warning}"));
            }
            if previews.is_empty() {
                into.text(
                    Token::Dim,
                    0,
                    "the rule has no destination, so there is nothing to see",
                );
            }
            for preview in previews {
                show_preview(into, preview);
            }
        }
        None => into.missing(false, None),
    }
}

fn matches(into: &mut Document, model: &Model, test: &TriggerTest) {
    let now = test
        .matched_by_saved
        .map_or_else(String::new, |count| format!(" (as saved: {count})"));
    let told = format!(
        "would have matched {} of {} occurrences in the last 24 h{now}",
        test.matched, test.scanned
    );
    let token = if test.matched == 0 {
        Token::Warning
    } else {
        Token::Good
    };
    into.text(token, 0, &told);
    if !test.occurrences.is_empty() {
        into.heading("The newest of them");
    }
    for row in &test.occurrences {
        let line = vec![
            span(
                Token::Dim,
                &format!("{:<17}", model.moment(row.last_seen_ms)),
            ),
            span(row.severity.into(), &format!("{:<9}", row.severity.word())),
            span(Token::Link, &row.summary),
            span(Token::Dim, &format!("  {}", row.entity)),
        ];
        into.linked(line, Link::Go(Route::Event(row.id.to_string())));
    }
}

fn show_preview(into: &mut Document, preview: &RulePreview) {
    into.heading(&preview.destination_name);
    let limit = preview
        .limit_bytes
        .map_or_else(String::new, |limit| format!(" of {limit}"));
    into.field(
        "size",
        Token::Text,
        &format!("{}{limit} bytes", preview.size_bytes),
    );
    for warning in &preview.warnings {
        into.text(Token::Warning, 0, &format!("! {warning}"));
    }
    if let Some(fields) = preview.rendered.as_object() {
        for (key, value) in fields {
            match value.as_str() {
                Some(body) if body.contains('\n') || transcript::readable(body) != body => {
                    into.text(Token::Dim, 0, key);
                    into.text(Token::Text, 2, &transcript::readable(body));
                }
                _ => into.tree(0, key, value),
            }
        }
    }
}
