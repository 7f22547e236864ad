//! Schedules: contacts on call by time.

use serde_json::Value;

use super::{
    Cell, Column, FieldKind, FieldSpec, Key, KindSpec, RenderContext, edited,
    field::{DESCRIPTION, NAME, TAGS},
    line_format::LineFormat,
    shared,
};
use crate::{
    data::{Kind, Object},
    document::{Document, Link, label, span},
    theme::Token,
};

pub(super) const SPEC: KindSpec = KindSpec {
    output: &[
        "overrides",
        "onCallNames",
        "nextChangeTime",
        "nextNames",
        "createTime",
        "updateTime",
        "etag",
    ],
    columns: &[
        shared::NAME,
        Column::new("On call", 18, 2, 0, |_, it: &Object| {
            shared::names_cell(it, "onCallNames", "no one")
        }),
        Column::new("Until", 16, 0, 1, |around, it: &Object| {
            Cell::time(around, it.timestamp_ms("nextChangeTime"))
        })
        .sort_by_key(|it| Key::Number(it.timestamp_ms("nextChangeTime").unwrap_or(i64::MAX))),
        Column::new("Next", 18, 2, 2, |_, it: &Object| match it.timestamp_ms("nextChangeTime") {
            Some(_) => shared::names_cell(it, "nextNames", "no one"),
            None => Cell::new(Token::Dim, "no change"),
        }),
        Column::new("Zone", 16, 1, 3, |_, it: &Object| {
            Cell::new(Token::Dim, it.text("timeZone"))
        }),
    ],
    searched: |it| it.texts("onCallNames").chain([it.text("timeZone")]).collect(),
    fields: &[
        NAME,
        FieldSpec::text("timeZone", "Time zone").with_required()
            .help("IANA time zone of the local times, such as Europe/Berlin."),
        FieldSpec::new("layers", "Layers", FieldKind::LineFormat(LineFormat::Layers)).with_required()
            .help("One per line: `ana, ben + cleo from 2027-01-04T08:00:00 weekly`, then `since TIME`, `until TIME`, `in CALENDAR`. `-` is no one."),
        FieldSpec::toggle("keepCurrent", "Keep current")
            .help("If this edit replaces the contacts on call, keep them until their hand-off."),
        FieldSpec::toggle("gapsAllowed", "Gaps allowed")
            .help("Allow gaps with no one on call."),
        DESCRIPTION,
        TAGS,
    ],
    document: Some(write_document),
    empty: "No schedules yet.\n\nA schedule defines who is on call at any time: contacts take turns, with hand-offs \
        by the local calendar.\nEscalation policies name schedules. ‹new› creates one.",
    ..edited!("Schedule", "Schedules")
};

fn write_document(into: &mut Document, around: &dyn RenderContext, schedule: &Object) {
    shared::write_head(into, schedule);
    let names: Vec<&str> = schedule.texts("onCallNames").collect();
    if names.is_empty() {
        into.line(vec![label("on call"), span(Token::Bad, "no one")]);
    }
    for name in names {
        let go = Link::object(Kind::Contact, name);
        into.link("on call", name, go);
    }
    if let Some(ms) = schedule.timestamp_ms("nextChangeTime") {
        let next: Vec<&str> = schedule.texts("nextNames").collect();
        let next = match next.as_slice() {
            [] => "no one".to_owned(),
            next => next.join(", "),
        };
        let words = format!("{next}, from {}", around.format_full_time(ms));
        into.field("then", Token::Text, &words);
    }
    into.field("time zone", Token::Text, schedule.text("timeZone"));
    for layer in LineFormat::Layers
        .format(schedule.value_at("layers"))
        .lines()
    {
        into.field("layer", Token::Text, layer);
    }
    let overrides = schedule.value_at("overrides").and_then(Value::as_array);
    for over in overrides.into_iter().flatten() {
        let names = over["contactNames"].as_array().into_iter().flatten();
        let names: Vec<&str> = names.filter_map(Value::as_str).collect();
        let names = match names.as_slice() {
            [] => "no one".to_owned(),
            names => names.join(", "),
        };
        let moment = |field: &str| {
            let ms = shared::timestamp_ms(over, field);
            ms.map_or_else(String::new, |ms| around.format_time(ms))
        };
        let reason = over["reason"].as_str().unwrap_or_default();
        let words = format!(
            "{names}, {} to {} {reason}",
            moment("startTime"),
            moment("endTime")
        );
        into.field("override", Token::Warning, words.trim());
    }
    let words = "‹feed› shows the URL of its iCalendar feed, ‹revoke_feed› replaces it";
    into.field("feed", Token::Dim, &around.expand_keys(words));
    shared::write_times(into, around, schedule);
}
