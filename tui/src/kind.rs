//! The console's definitions of resource kinds: one file per kind, and one row each here.

mod calendar;
mod client;
mod contact;
mod delivery;
pub(crate) mod destination;
mod drill;
mod enrichment;
mod event;
pub(crate) mod event_cell;
mod field;
mod group;
mod grouped;
mod heartbeat;
mod inhibition;
pub(crate) mod line_format;
mod mapping;
mod pending;
mod policy;
pub(crate) mod response;
mod rule;
mod schedule;
pub(crate) mod secret;
mod shared;
mod silence;
mod spec;
mod trigger;
mod view;

use self::spec::edited;
pub(crate) use self::{
    delivery::COLUMNS as DELIVERIES,
    event::COLUMNS as EVENTS,
    event_cell::EventCell,
    field::{FieldKind, FieldSpec},
    grouped::COLUMNS as GROUPS,
    heartbeat::expectation_words,
    pending::{format_hold, holder_names},
    secret::with_masked_secrets,
    spec::{Cell, Column, ColumnHead, HOST, Key, KindSpec, LastHour, Presence, RenderContext},
};
use crate::data::{Kind, Object};

/// Returns the name of a resource as displayed: for one without a name, its event or the fields
/// that its events share.
pub(crate) fn displayed_name(around: &dyn RenderContext, object: &Object) -> String {
    let event = || EventCell::from_object(around, object).title();
    let rule = object.text("ruleName");
    let shown = match object.kind {
        Kind::Response => event(),
        Kind::Pending => format!("{} · {rule}", event()),
        Kind::Group => format!("{rule} · {}", group::format_common_fields(object)),
        _ => String::new(),
    };
    match shown.trim_matches([' ', '·']) {
        "" => object.name().to_owned(),
        shown => shown.to_owned(),
    }
}

pub(crate) fn spec(kind: Kind) -> &'static KindSpec {
    match kind {
        Kind::Trigger => &trigger::SPEC,
        Kind::Destination => &destination::SPEC,
        Kind::Rule => &rule::SPEC,
        Kind::Client => &client::SPEC,
        Kind::Silence => &silence::SPEC,
        Kind::Calendar => &calendar::SPEC,
        Kind::Inhibition => &inhibition::SPEC,
        Kind::Mapping => &mapping::SPEC,
        Kind::Group => &group::SPEC,
        Kind::Pending => &pending::SPEC,
        Kind::Enrichment => &enrichment::SPEC,
        Kind::View => &view::SPEC,
        Kind::Heartbeat => &heartbeat::SPEC,
        Kind::Contact => &contact::SPEC,
        Kind::Schedule => &schedule::SPEC,
        Kind::Policy => &policy::SPEC,
        Kind::Response => &response::SPEC,
        Kind::Drill => &drill::SPEC,
    }
}

/// Returns the editable part of a stored resource, without output-only fields.
pub(crate) fn editable_part(object: &Object) -> Object {
    object.clone().without_fields(spec(object.kind).output)
}

/// Formats a draft for editing: JSON over several lines, in the order of the form, including fields
/// that can be filled in.
pub(crate) fn field_text(object: &Object) -> String {
    let fields = spec(object.kind).fields.iter();
    let fields = fields.filter(|field| field.kind != FieldKind::Section);
    let mut parts: Vec<(&str, serde_json::Value)> = Vec::new();
    for field in fields {
        let (name, below) = field.path.split_once('.').unwrap_or((field.path, ""));
        if parts.iter().any(|(known, _)| *known == name) {
            continue;
        }
        let blank = || field.kind.placeholder_value().filter(|_| below.is_empty());
        let value = object.value_at(name).cloned().or_else(blank);
        parts.extend(value.map(|value| (name, value)));
    }
    let known: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
    let others = object.json.as_object().into_iter().flatten();
    let others = others.filter(|(name, _)| !known.contains(&name.as_str()));
    let others: Vec<_> = others
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    let lines = parts.into_iter().chain(others).map(|(name, value)| {
        let value = serde_json::to_string_pretty(&value).unwrap_or_default();
        format!("  \"{name}\": {}", value.replace('\n', "\n  "))
    });
    format!("{{\n{}\n}}\n", lines.collect::<Vec<_>>().join(",\n"))
}

#[cfg(test)]
mod tests;
