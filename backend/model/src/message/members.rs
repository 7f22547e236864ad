//! The content of messages about groups.

use serde_json::{Value, json};

use super::cut;
use crate::domain::{GroupContent, GroupId, MemberChange, Occurrence, hold::SharedValue};

/// Maximum number of members in a default text and in the variable `group.events`;
/// `group.all_events` has all that are stored.
const LISTED_MAX: usize = 20;

/// Maximum length of the shared values in a headline, in characters.
const SHARED_CHARACTERS_MAX: usize = 80;

/// Returns one line about a group: the number of open members, the changes, and the most severe
/// member.
pub(super) fn group_headline(group: &GroupContent, worst: &str) -> String {
    let mut parts = Vec::new();
    if !group.is_over {
        parts.push(format!("{} open", group.open_count));
    }
    for (count, word) in [(group.joined_count, "new"), (group.closed_count, "closed")] {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    let shared: Vec<_> = group.by.iter().map(format_shared_value).collect();
    let by = match cut::to_one_line(&shared.join(", "), SHARED_CHARACTERS_MAX) {
        shared if shared.is_empty() => String::new(),
        shared => format!(" ({shared})"),
    };
    format!("{}{by}: {worst}", parts.join(", "))
}

fn format_shared_value((field, value): &SharedValue) -> String {
    match value {
        Some(value) => format!("{field}={value}"),
        None => format!("no {field}"),
    }
}

pub(super) fn member_lines(
    group: &GroupContent,
    link: &str,
    headline: impl Fn(&Occurrence) -> String,
) -> Vec<String> {
    let listed = group.members.iter().take(LISTED_MAX);
    let mut lines: Vec<_> = listed
        .map(|(change, it)| {
            let change = change.map_or("", MemberChange::as_str);
            let change = if change.is_empty() {
                String::new()
            } else {
                format!(" ({change})")
            };
            format!("{}: {}{change}", it.severity.as_str(), headline(it))
        })
        .collect();
    match hidden_count(group) {
        0 => {}
        more if link.is_empty() => lines.push(format!("and {more} more")),
        more => lines.push(format!("and {more} more: {link}")),
    }
    lines
}

fn hidden_count(group: &GroupContent) -> u32 {
    let listed = group.members.len().min(LISTED_MAX);
    let listed = u32::try_from(listed).unwrap_or(u32::MAX);
    group.count.saturating_sub(listed)
}

pub(super) fn member_variables(
    group: &GroupContent,
    link: &str,
    event: &dyn Fn(&Occurrence) -> Value,
    names_all: bool,
) -> Value {
    let shown_max = if names_all {
        group.members.len()
    } else {
        LISTED_MAX
    };
    let shown = group.members.iter().take(shown_max);
    let shown = shown.map(|(change, it)| {
        let mut shown = event(it);
        shown["change"] = change.map_or("", MemberChange::as_str).into();
        shown
    });
    let shown: Vec<_> = shown.collect();
    let mut variables = json!({
        "id": GroupId(group.id).to_string(),
        "count": group.count,
        "open_count": group.open_count,
        "joined_count": group.joined_count,
        "closed_count": group.closed_count,
        "more_count": hidden_count(group),
        "is_first": group.is_first,
        "is_over": group.is_over,
        "acknowledged": group.acknowledged,
        "link": link,
        "by": shared_values(group),
        "events": shown[..shown.len().min(LISTED_MAX)],
    });
    if names_all {
        variables[crate::domain::group::ALL_EVENTS] = shown.into();
    }
    variables
}

/// Returns the values shared by the members, by field name without `dimensions.` and `metadata.`.
pub fn shared_values(group: &GroupContent) -> Value {
    let name = |field: &str| {
        let inside = field.strip_prefix("dimensions.");
        let inside = inside.or_else(|| field.strip_prefix("metadata."));
        inside.unwrap_or(field).to_owned()
    };
    let pairs = group.by.iter();
    let pairs = pairs.map(|(field, value)| (name(field), value.clone().into()));
    Value::Object(pairs.collect())
}
