//! Calendars: named spans of local time.

use super::{
    Cell, Column, FieldKind, FieldSpec, Key, KindSpec, RenderContext, edited,
    field::{DESCRIPTION, NAME, TAGS},
    shared,
};
use crate::{
    data::{Kind, Object},
    document::{Document, Link, label, span},
    theme::Token,
};

pub(super) const SPEC: KindSpec = KindSpec {
    output: &[
        "inWindow",
        "nextChangeTime",
        "usedBy",
        "createTime",
        "updateTime",
        "etag",
    ],
    columns: &[
        Column::new("Now", 8, 0, 0, |_, it: &Object| state(it).into())
            .sort_by_key(|it| Key::Number((!it.flag("inWindow")).into())),
        shared::NAME,
        Column::new("Changes", 16, 0, 1, |around, it: &Object| {
            Cell::time(around, it.timestamp_ms("nextChangeTime"))
        })
        .sort_by_key(|it| Key::Number(it.timestamp_ms("nextChangeTime").unwrap_or(i64::MAX))),
        Column::new("Zone", 16, 1, 3, |_, it: &Object| {
            Cell::new(Token::Text, it.text("timeZone"))
        }),
        Column::new("Windows", 24, 3, 2, |_, it: &Object| {
            Cell::new(Token::Dim, window_lines(it).join("; "))
        }),
        Column::new("Used by", 10, 1, 4, |_, it: &Object| {
            Cell::new(
                Token::Text,
                calendar_users(it)
                    .map(|(_, name)| name)
                    .collect::<Vec<_>>()
                    .join(", "),
            )
        }),
    ],
    searched: |it| vec![it.text("timeZone")],
    fields: &[
        NAME,
        FieldSpec::text("timeZone", "Time zone")
            .with_required()
            .help("IANA time zone of the local times, such as Europe/Berlin."),
        FieldSpec::text("windows.0.dtstart", "First start")
            .with_required()
            .help("Start in local time, without a zone, such as 2027-01-04T08:00:00."),
        FieldSpec::text("windows.0.endTimeOfDay", "Ends at")
            .help("Time of day at which each window ends, such as 18:00. Set this or «Lasts»."),
        FieldSpec::text("windows.0.duration", "Lasts")
            .help("Length of each window, such as PT8H or P1D."),
        FieldSpec::text("windows.0.rrule", "Again")
            .help("Recurrence, such as FREQ=WEEKLY;BYDAY=MO,TU. Empty: once."),
        FieldSpec::new(
            "exceptCalendarNames",
            "Except",
            FieldKind::Names(Kind::Calendar),
        )
        .help("Calendars whose windows are excluded, such as holidays. Enter opens a list."),
        DESCRIPTION,
        TAGS,
    ],
    document: Some(write_document),
    empty: "No calendars yet.\n\n\
        A calendar defines spans of local time, such as office hours or a patch window.\n\
        ‹new› creates one; the topic «calendars» of the reference has examples.",
    ..edited!("Calendar", "Calendars")
};

fn state(calendar: &Object) -> (Token, &'static str) {
    match calendar
        .value_at("inWindow")
        .and_then(serde_json::Value::as_bool)
    {
        Some(true) => (Token::Good, "inside"),
        Some(false) => (Token::Dim, "outside"),
        None => (Token::Warning, "unknown"),
    }
}

fn window_lines(calendar: &Object) -> Vec<String> {
    let all = calendar.value_at("windows").and_then(|it| it.as_array());
    let line = |window: &serde_json::Value| {
        let text = |name: &str| window[name].as_str().unwrap_or_default();
        let length = match (text("duration"), text("endTimeOfDay")) {
            ("", end) => format!("to {end}"),
            (duration, _) => format!("for {duration}"),
        };
        let rule = match text("rrule") {
            "" => "once",
            rule => rule,
        };
        format!("{} {length}, {rule}", text("dtstart"))
    };
    all.into_iter().flatten().map(line).collect()
}

fn calendar_users(calendar: &Object) -> impl Iterator<Item = (&str, &str)> {
    let all = calendar.value_at("usedBy").and_then(|it| it.as_array());
    all.into_iter().flatten().map(|user| {
        let text = |name: &str| user[name].as_str().unwrap_or_default();
        (text("kind"), text("name"))
    })
}

fn write_document(into: &mut Document, around: &dyn RenderContext, calendar: &Object) {
    shared::write_head(into, calendar);
    let (token, word) = state(calendar);
    into.line(vec![label("now"), span(token, word)]);
    if let Some(changes) = calendar.timestamp_ms("nextChangeTime") {
        into.field("changes", Token::Text, &around.format_full_time(changes));
    }
    into.field("zone", Token::Text, calendar.text("timeZone"));
    shared::write_times(into, around, calendar);
    into.heading("Windows");
    for line in window_lines(calendar) {
        into.text(Token::Text, 0, &line);
    }
    let except: Vec<&str> = calendar.texts("exceptCalendarNames").collect();
    if !except.is_empty() {
        into.heading("Except these calendars");
        for name in except {
            let line = vec![span(Token::Link, name)];
            into.linked_line(line, Link::object(Kind::Calendar, name));
        }
    }
    into.heading("Used by");
    let mut is_used = false;
    for (word, name) in calendar_users(calendar) {
        is_used = true;
        let line = vec![
            span(Token::Dim, &format!("{word} ")),
            span(Token::Link, name),
        ];
        let kind = Kind::ALL.iter().find(|kind| kind.singular() == word);
        match kind {
            Some(kind) => into.linked_line(line, Link::object(*kind, name)),
            None => into.line(line),
        }
    }
    if !is_used {
        into.text(Token::Dim, 0, "nothing");
    }
}
