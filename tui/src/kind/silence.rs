//! Silences: temporary holds on notifications of matching events.

use super::{
    Cell, Column, FieldKind, FieldSpec, Key, KindSpec, RenderContext, edited,
    field::{DESCRIPTION, NAME, TAGS},
    shared,
};
use crate::{
    data::{Kind, Object, Role},
    document::{Document, Link, label, span},
    theme::Token,
};

pub(super) const SPEC: KindSpec = KindSpec {
    output: &[
        // The form shows `filter` instead.
        "query",
        "state",
        "startedTime",
        "endsTime",
        "nextStartTime",
        "author",
        "lastEditor",
        "comments",
        "coveredCount",
        "pendingCount",
        "skippedCount",
        "eventId",
        "createTime",
        "updateTime",
        "etag",
    ],
    role: Role::Operator,
    columns: &[
        Column::new("State", 9, 0, 0, |_, it: &Object| state(it).into())
        .sort_by_key(|it| Key::Text(state(it).1.to_owned())),
        shared::NAME,
        Column::new("Covers", 24, 3, 1, |_, it: &Object| {
            Cell::new(Token::Dim, coverage_text(it))
        }),
        Column::new("Open", 6, 0, 3, |_, it: &Object| {
            Cell::number(covered_count(it, "coveredCount"))
        })
        .right_align()
        .sort_descending(|it| Key::Number(covered_count(it, "coveredCount"))),
        Column::new("Held", 6, 0, 2, |_, it: &Object| {
            Cell::number(covered_count(it, "pendingCount"))
        })
        .right_align()
        .sort_descending(|it| Key::Number(covered_count(it, "pendingCount"))),
        Column::new("Ends", 16, 0, 1, |around, it: &Object| {
            Cell::time(around, it.timestamp_ms("endsTime"))
        })
        .sort_by_key(|it| Key::Number(it.timestamp_ms("endsTime").unwrap_or_default())),
        Column::new("By", 10, 1, 4, |_, it: &Object| {
            Cell::new(Token::Text, it.text("author"))
        }),
        Column::new("Reason", 12, 2, 5, |_, it: &Object| {
            Cell::new(Token::Dim, it.text("reason"))
        }),
    ],
    searched: |it| vec![it.text("reason"), it.text("filter"), it.text("author")],
    fields: &[
        NAME,
        FieldSpec::text("reason", "Reason").with_required()
            .help("Reason, shown when explaining missing notifications."),
        FieldSpec::text("filter", "Events")
            .help("Events to silence, such as host=db-1 severity<critical. Empty: all events of its rules."),
        FieldSpec::new("ruleNames", "Rules", FieldKind::Names(Kind::Rule))
            .help("Rules to silence. Empty: all. Enter opens a list."),
        FieldSpec::new("span.startTime", "From", FieldKind::Time)
            .help("Start: 30m, 08:00, tomorrow 9:00, 2026-11-25 08:00. Empty: now."),
        FieldSpec::new("span.endTime", "Until", FieldKind::Time)
            .help("End: 2h, 08:00, tomorrow 9:00, 2026-11-25 08:00; at most 30 days ahead. Or set a calendar."),
        FieldSpec::text("calendar.calendarName", "Calendar")
            .help("Active during this calendar's windows, instead of from and until."),
        FieldSpec::new("destinationNames", "Destinations", FieldKind::Names(Kind::Destination))
            .help("Only messages to these destinations. Empty: to all. Enter opens a list."),
        FieldSpec::length("expireWhenIdle", "Idle")
            .help("End early after covering no event for this long, such as 10m."),
        FieldSpec::length("warnBefore", "Warn before")
            .help("Time before the end at which to warn, such as 15m; 0s: never."),
        DESCRIPTION,
        TAGS,
    ],
    document: Some(write_document),
    empty: "No silences yet.\n\n\
        A silence temporarily holds the notifications of rules about the events it covers.\n\
        ‹new› creates one; ‹silence› on an event silences it, its host or its name.\n\n\
        For example: reason `patching`, filter `host=db-*`, until the end of the work.",
    beside: &[Kind::Rule],
    ..edited!("Silence", "Silences")
};

fn covered_count(silence: &Object, path: &str) -> i64 {
    silence.number(path).unwrap_or_default()
}

fn state(silence: &Object) -> (Token, &'static str) {
    match silence.text("state") {
        "ACTIVE" => (Token::Held, "active"),
        "SCHEDULED" => (Token::Text, "scheduled"),
        "EXPIRED" => (Token::Dim, "expired"),
        _ => (Token::Dim, "unknown"),
    }
}

fn coverage_text(silence: &Object) -> String {
    let filter = silence.text("filter");
    let rules: Vec<&str> = silence.texts("ruleNames").collect();
    let events = match (filter, rules.as_slice()) {
        ("", rules) => format!("all of {}", rules.join(", ")),
        (filter, []) => filter.to_owned(),
        (filter, rules) => format!("{filter} for {}", rules.join(", ")),
    };
    let destinations: Vec<&str> = silence.texts("destinationNames").collect();
    if destinations.is_empty() {
        return events;
    }
    format!("{events} to {}", destinations.join(", "))
}

fn write_document(into: &mut Document, around: &dyn RenderContext, silence: &Object) {
    shared::write_head(into, silence);
    let (token, word) = state(silence);
    into.line(vec![label("state"), span(token, word)]);
    into.field("reason", Token::Text, silence.text("reason"));
    into.field("covers", Token::Text, &coverage_text(silence));
    for (name, path) in [
        ("open events", "coveredCount"),
        ("held", "pendingCount"),
        ("skipped", "skippedCount"),
    ] {
        into.field(name, Token::Text, &covered_count(silence, path).to_string());
    }
    for (name, path) in [
        ("begins", "nextStartTime"),
        ("began", "startedTime"),
        ("ends", "endsTime"),
    ] {
        if let Some(moment) = silence.timestamp_ms(path) {
            into.field(name, Token::Text, &around.format_full_time(moment));
        }
    }
    into.field("by", Token::Text, silence.text("author"));
    let annotations = silence
        .value_at("annotations")
        .and_then(|it| it.as_object());
    for (key, value) in annotations.into_iter().flatten() {
        into.field(key, Token::Text, value.as_str().unwrap_or_default());
    }
    shared::write_times(into, around, silence);
    let rules: Vec<&str> = silence.texts("ruleNames").collect();
    if !rules.is_empty() {
        into.heading("For these rules");
        for name in rules {
            let line = vec![span(Token::Link, name)];
            into.linked_line(line, Link::object(Kind::Rule, name));
        }
    }
    let comments = silence.value_at("comments").and_then(|it| it.as_array());
    let comments = comments.filter(|it| !it.is_empty());
    if let Some(comments) = comments {
        into.heading("Comments");
        for comment in comments {
            let part = |name: &str| comment[name].as_str().unwrap_or_default();
            let line = format!("{} {}: {}", part("time"), part("author"), part("text"));
            into.text(Token::Text, 0, &line);
        }
    }
}
