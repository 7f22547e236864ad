//! The receivers that a policy would notify, in order of time.

use bellwether_proto::v1::{EscalationNotice, PreviewEscalationPolicyResponse};

use crate::{
    data::span_ms,
    document::{Document, format_duration, span},
    kind::event_cell::pad_to_width,
    text,
    theme::Token,
};

const WHEN: usize = 10;
const PLACE: usize = 13;

pub(super) fn write_preview(into: &mut Document, found: &PreviewEscalationPolicyResponse) {
    let mut last = None;
    for one in &found.notices {
        let place = (one.round, one.step);
        write_notice(into, one, last != Some(place));
        last = Some(place);
    }
    if found.stopped_early {
        let count = text::group_digits(i64::try_from(found.notices.len()).unwrap_or(i64::MAX));
        let words = format!("only the first {count} messages are shown");
        into.text(Token::Warning, 0, &words);
    }
    if let Some(after) = &found.ends_after {
        let words = format!(
            "after {}, no one else is paged",
            format_duration(span_ms(after))
        );
        into.text(Token::Dim, 0, &words);
    }
}

fn write_notice(into: &mut Document, one: &EscalationNotice, is_first: bool) {
    let after = one.after.as_ref().map_or(0, span_ms);
    let (when, place) = match (is_first, after, one.step) {
        (false, ..) => (String::new(), String::new()),
        (true, after, 0) => (format_after(after), "fallback".to_owned()),
        (true, after, step) => (format_after(after), format!("{step}, round {}", one.round)),
    };
    let mut spans = vec![
        span(Token::Text, &pad_to_width(&when, WHEN)),
        span(Token::Dim, &pad_to_width(&place, PLACE)),
    ];
    let (token, who) = match (one.problem.as_str(), one.contact_name.as_str()) {
        ("", "") => (Token::Text, one.destination_name.clone()),
        ("", contact) => (
            Token::Text,
            format!("{contact} by {}", one.destination_name),
        ),
        (problem, "") => (Token::Warning, format!("! {problem}")),
        (problem, contact) => (Token::Warning, format!("! {contact}: {problem}")),
    };
    let space = into.columns.saturating_sub(WHEN + PLACE + 2);
    let mut parts = text::wrap_text(&who, space).into_iter();
    spans.push(span(token, &parts.next().unwrap_or_default()));
    if !one.schedule_name.is_empty() {
        spans.push(span(Token::Dim, &format!("  {}", one.schedule_name)));
    }
    into.line(spans);
    for part in parts {
        into.line(vec![
            span(Token::Text, &" ".repeat(WHEN + PLACE)),
            span(token, &part),
        ]);
    }
}

fn format_after(ms: i64) -> String {
    match ms {
        0 => "now".to_owned(),
        ms => format_duration(ms),
    }
}
