//! The content of digest messages.

use serde_json::{Value, json};

use super::domain_json;
use crate::domain::{DigestContent, DigestId, Occurrence};

pub(super) fn digest_headline(digest: &DigestContent, worst: &str) -> String {
    let messages = if digest.count == 1 {
        "message"
    } else {
        "messages"
    };
    format!(
        "{} {messages} ({}): {worst}",
        digest.count,
        format_counts(digest)
    )
}

fn format_counts(digest: &DigestContent) -> String {
    let new = digest.count - digest.clear_count;
    match (new, digest.clear_count) {
        (new, 0) => format!("{new} new"),
        (0, other) => format!("{other} changed or closed"),
        (new, other) => format!("{new} new, {other} changed or closed"),
    }
}

/// Returns one line per rule and severity, one per shown message, and one with the number of
/// further messages.
pub(super) fn digest_lines(
    digest: &DigestContent,
    headline: impl Fn(&Occurrence) -> String,
) -> Vec<String> {
    let rows = digest.rows.iter().map(|row| {
        let severity = row.severity.as_str();
        let rule = match &row.rule_name {
            Some(name) => format!("rule {name}, {severity}"),
            None => format!("other rules, at most {severity}"),
        };
        let clear = match row.clear_count {
            0 => String::new(),
            clear => format!(", {clear} of them changed or closed"),
        };
        format!("{rule}: {}{clear}", row.count)
    });
    let items = digest.items.iter().map(|it| {
        let severity = it.occurrence.severity.as_str();
        let clear = if it.clear { " (changed or closed)" } else { "" };
        format!("{severity}: {}{clear}", headline(&it.occurrence))
    });
    let more = match digest.hidden_count(digest.items.len()) {
        0 => None,
        more => Some(format!("and {more} more")),
    };
    rows.chain(items).chain(more).collect()
}

pub(super) fn digest_fields(
    digest: &DigestContent,
    worst: &Occurrence,
) -> Vec<(&'static str, String)> {
    vec![
        ("Severity", worst.severity.as_str().to_owned()),
        ("Messages", digest.count.to_string()),
        ("From", domain_json::time(digest.start_ms)),
        ("Until", domain_json::time(digest.end_ms)),
    ]
}

/// Returns the variables of a digest; `events` are the shown messages.
pub fn digest_variables(digest: &DigestContent, events: &[Value]) -> Value {
    let rows = digest.rows.iter().map(|row| {
        json!({
            "rule_name": row.rule_name.as_deref().unwrap_or_default(),
            "severity": row.severity.as_str(),
            "count": row.count,
            "clear_count": row.clear_count,
        })
    });
    json!({
        "id": DigestId(digest.id).to_string(),
        "count": digest.count,
        "new_count": digest.count - digest.clear_count,
        "clear_count": digest.clear_count,
        "more_count": digest.hidden_count(events.len()),
        "start": domain_json::time(digest.start_ms),
        "end": domain_json::time(digest.end_ms),
        "rows": rows.collect::<Vec<_>>(),
        "events": events,
    })
}

/// Returns the variables of the most severe messages.
pub fn digest_events(
    digest: &DigestContent,
    event: impl Fn(&Occurrence) -> Value,
) -> impl Iterator<Item = Value> {
    digest.items.iter().map(move |it| {
        let mut shown = event(&it.occurrence);
        shown["rule_name"] = it.rule_name.as_str().into();
        shown["clear"] = it.clear.into();
        shown
    })
}
