//! Columns, fields and parts of pages common to several kinds.

use bellwether_proto::{json, v1::Clause};

use super::{Cell, Column, Key, RenderContext};
use crate::{
    data::{Kind, Object, describe},
    document::{Document, Link, span},
    text,
    theme::Token,
};

/// Output-only fields of most kinds.
pub(super) const OUTPUT: &[&str] = &[
    "ruleNames",
    "recentNotificationCount",
    "recentShadowCount",
    "lastNotificationTime",
    "health",
    "reaches",
    "reachedBy",
    "lastingEffect",
    "createTime",
    "updateTime",
    "etag",
];

pub(super) const NAME: Column<Object> = Column::new("Name", 16, 1, 0, |_, it: &Object| {
    Cell::new(Token::Text, it.name())
})
.sort_by_key(|it| Key::Text(it.name().to_owned()));

pub(super) const fn recent_column(rank: u8) -> Column<Object> {
    Column::new("Decided 24 h", 12, 0, rank, |_, it: &Object| {
        Cell::new(Token::Text, format_recent_count(it))
    })
    .right_align()
    .sort_descending(|it| Key::Number(recent_count(it)))
}

pub(super) fn timestamp_ms(of: &serde_json::Value, field: &str) -> Option<i64> {
    let moment: jiff::Timestamp = of[field].as_str()?.parse().ok()?;
    Some(moment.as_millisecond())
}

pub(super) fn recent_count(object: &Object) -> i64 {
    object.number("recentNotificationCount").unwrap_or_default()
}

/// Count at which the service stops counting.
const COUNTED: i64 = 10_000;

/// Formats the number of notifications in the last 24 h, with `+` at the service's limit.
fn format_recent_count(object: &Object) -> String {
    match recent_count(object) {
        count @ COUNTED.. => format!("{}+", text::group_digits(count)),
        count => text::group_digits(count),
    }
}

pub(super) fn names_cell(object: &Object, path: &str, none: &str) -> Cell {
    let names: Vec<&str> = object.texts(path).collect();
    if names.is_empty() {
        Cell::new(Token::Warning, none)
    } else {
        Cell::new(Token::Text, names.join(", "))
    }
}

/// Returns the condition at a path as filter text; empty if there is none.
pub(super) fn condition_text(object: &Object, path: &str) -> String {
    let Some(clause) = object.value_at(path) else {
        return String::new();
    };
    let read = json::from_json::<Clause>(clause.to_string().as_bytes());
    read.map_or_else(|_unknown| clause.to_string(), |clause| describe(&clause))
}

pub(super) fn write_head(into: &mut Document, object: &Object) {
    into.field("name", Token::Title, object.name());
    let description = object.text("description");
    if !description.is_empty() {
        into.field("description", Token::Text, description);
    }
    let tags: Vec<&str> = object.texts("tags").collect();
    if !tags.is_empty() {
        into.field("tags", Token::Text, &tags.join(", "));
    }
}

pub(super) fn write_notifications(into: &mut Document, object: &Object) {
    let words = format!("{} decided in 24 h", format_recent_count(object));
    into.field("notifications", Token::Text, &words);
}

pub(super) fn write_times(into: &mut Document, around: &dyn RenderContext, object: &Object) {
    let (create, update) = (
        object.timestamp_ms("createTime"),
        object.timestamp_ms("updateTime"),
    );
    if let Some(create) = create {
        into.field("created", Token::Text, &around.format_full_time(create));
    }
    if let Some(update) = update.filter(|update| Some(*update) != create) {
        into.field("changed", Token::Text, &around.format_full_time(update));
    }
}

pub(super) fn write_users(into: &mut Document, around: &dyn RenderContext, object: &Object) {
    into.heading("Used by");
    let rules = object.texts("ruleNames");
    if rules.len() == 0 {
        into.text(Token::Warning, 0, "no rule: never notifies");
    }
    for name in rules {
        let state = match around.find_object(Kind::Rule, name) {
            Some(rule) if rule.flag("enabled") => span(Token::Good, "  enabled"),
            Some(_) => span(Token::Warning, "  disabled"),
            None => span(Token::Dim, ""),
        };
        let line = vec![span(Token::Dim, "rule "), span(Token::Link, name), state];
        into.linked_line(line, Link::object(Kind::Rule, name));
    }
}
