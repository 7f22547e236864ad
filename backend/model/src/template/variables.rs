//! The variables of messages, and detection of unknown names in templates.

use super::{Part, Template};
use crate::domain::value::list_index;

/// All variables except those whose names start with a prefix in [`OPEN`].
pub const VARIABLES: [&str; 92] = [
    "ack",
    "ack.url",
    "acknowledged",
    "clear",
    "contact",
    "contact.name",
    "destination",
    "destination.name",
    "destination.type",
    "digest",
    "digest.clear_count",
    "digest.count",
    "digest.end",
    "digest.events",
    "digest.events.clear",
    "digest.events.rule_name",
    "digest.id",
    "digest.more_count",
    "digest.new_count",
    "digest.rows",
    "digest.rows.clear_count",
    "digest.rows.count",
    "digest.rows.rule_name",
    "digest.rows.severity",
    "digest.start",
    "entity",
    "entity.name",
    "event",
    "event.acknowledged",
    "event.assignee",
    "event.body",
    "event.count",
    "event.dimensions",
    "event.flapping",
    "event.headline",
    "event.id",
    "event.is_closed",
    "event.is_critical",
    "event.is_debug",
    "event.is_error",
    "event.is_info",
    "event.is_open",
    "event.is_warning",
    "event.last_seen",
    "event.metadata",
    "event.name",
    "event.occurrence_id",
    "event.severity",
    "event.severity_number",
    "event.start_time",
    "event.start_time_ms",
    "event.status",
    "event.summary",
    "event.timestamp",
    "event.title",
    "event.type",
    "group",
    "group.acknowledged",
    "group.all_events",
    "group.all_events.change",
    "group.by",
    "group.closed_count",
    "group.count",
    "group.events",
    "group.events.change",
    "group.id",
    "group.is_first",
    "group.is_over",
    "group.joined_count",
    "group.link",
    "group.more_count",
    "group.open_count",
    "headline",
    "id",
    "is_over",
    "labels",
    "link",
    "previous",
    "previous.severity",
    "previous.status",
    "rule",
    "rule.description",
    "rule.message",
    "rule.name",
    "tenant",
    "thread_id",
    "timestamp",
    "timestamp_ms",
    "title",
    "trigger",
    "trigger.name",
    "url",
];

/// The prefixes of variables defined by senders of events, by receivers, or by authors of rules,
/// destinations and contacts.
pub const OPEN: [&str; 6] = [
    "contact.",
    "event.dimensions.",
    "event.metadata.",
    "group.by.",
    KEPT,
    VALUES,
];

/// The prefix of the values kept from responses of the receiver.
pub const KEPT: &str = "kept.";

/// The prefix of a destination's custom variables.
pub const VALUES: &str = "values.";

/// Prefixes of list entries that have the variables of an event.
const MEMBERS: [&str; 3] = ["group.all_events.", "group.events.", "digest.events."];

pub(super) const UNKNOWN_MAX: usize = 20;

/// Lists whose entries can be selected by index.
const LISTS: [&str; 4] = [
    "digest.events.",
    "digest.rows.",
    "group.all_events.",
    "group.events.",
];

pub fn is_known_variable(name: &str) -> bool {
    let entry = LISTS.iter().find_map(|list| {
        let (index, rest) = name.strip_prefix(list)?.split_once('.')?;
        list_index(index).map(|_index| format!("{list}{rest}"))
    });
    let name = entry.as_deref().unwrap_or(name);
    let mut members = MEMBERS.iter();
    if let Some(of_event) = members.find_map(|it| name.strip_prefix(it))
        && is_known_variable(&format!("event.{of_event}"))
    {
        return true;
    }
    VARIABLES.binary_search(&name).is_ok()
        || OPEN
            .iter()
            .any(|open| name.len() > open.len() && name.starts_with(open))
}

impl Template {
    pub fn names_under(&self, prefix: &str) -> Vec<&str> {
        let names = self.used_names().into_iter();
        names.filter_map(|name| name.strip_prefix(prefix)).collect()
    }

    pub fn used_names(&self) -> Vec<&str> {
        fn collect_used<'a>(parts: &'a [Part], found: &mut Vec<&'a str>) {
            for part in parts {
                let (name, inside) = match part {
                    Part::Text(_) => continue,
                    Part::Variable { name, .. } => (name, &[][..]),
                    Part::Section { name, parts, .. } => (name, &parts[..]),
                };
                found.push(name.as_str());
                collect_used(inside, found);
            }
        }
        let mut found = Vec::new();
        collect_used(&self.parts, &mut found);
        found
    }

    /// Returns the distinct variables that no event can have, in order of first use, at most 20.
    ///
    /// Inside a section, a name may also refer to a part of the section's value.
    pub fn unknown_variables(&self) -> Vec<String> {
        let mut unknown = Vec::new();
        collect_names(&self.parts, &mut Vec::new(), &mut unknown);
        unknown
    }
}

fn collect_names(parts: &[Part], around: &mut Vec<String>, unknown: &mut Vec<String>) {
    for part in parts {
        let (name, inside) = match part {
            Part::Text(_) => continue,
            Part::Variable { name, .. } => (name, None),
            Part::Section {
                name,
                inverted,
                parts,
            } => (name, Some((*inverted, parts))),
        };
        if unknown.len() == UNKNOWN_MAX {
            return;
        }
        let full = full_name(name, around);
        if full.is_none() && name != "." && !unknown.contains(name) {
            unknown.push(name.clone());
        }
        match (inside, full) {
            (Some((false, parts)), Some(full)) => {
                around.push(full);
                collect_names(parts, around, unknown);
                around.pop();
            }
            (Some((inverted, parts)), _) if inverted || name == "." => {
                collect_names(parts, around, unknown);
            }
            // Names inside an unknown section are unknown too. Reporting the section is sufficient.
            _ => {}
        }
    }
}

/// Returns the full name from the root if some message may have such a variable.
fn full_name(name: &str, around: &[String]) -> Option<String> {
    let inside = around
        .iter()
        .rev()
        .map(|section| format!("{section}.{name}"));
    inside
        .chain([name.to_owned()])
        .find(|full| is_known_variable(full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_variables_are_reported() {
        let cases: [(&str, &[&str]); 9] = [
            (
                "{{event.metadata.list.0.text}} {{group.events.0.summary}} {{group.events.x.summary}}",
                &["group.events.x.summary"],
            ),
            ("{{event.summary}} {{event.metadata.a.b}} {{tenant}}", &[]),
            ("{{event.sumary}} {{x}} {{x}}", &["event.sumary", "x"]),
            (
                "{{#event}}{{summary}} {{dimensions.host}} {{foo}}{{/event}}",
                &["foo"],
            ),
            (
                "{{#event.metadata.list}}{{name}} {{.}}{{/event.metadata.list}}",
                &[],
            ),
            ("{{^event}}{{summary}}{{/event}}", &["summary"]),
            ("{{event.dimensions.}}", &["event.dimensions."]),
            ("{{#clear}}{{rule.name}}{{/clear}}", &[]),
            (
                "{{#contact}}{{name}} {{phone}}{{/contact}} {{ack.url}} {{ack.link}}",
                &["ack.link"],
            ),
        ];
        for (source, expected) in cases {
            let template = Template::parse(source).unwrap();
            assert_eq!(template.unknown_variables(), expected, "{source}");
        }
        assert!(VARIABLES.is_sorted() && VARIABLES.iter().all(|name| is_known_variable(name)));
    }
}
