//! Builds a new event of this service from an occurrence.

use crate::{
    domain::{IncomingEvent, Status, destination::EventTemplates},
    limits::{EVENT_BODY_BYTES_MAX, EVENT_NAME_BYTES_MAX, EVENT_SUMMARY_BYTES_MAX},
    message::{Facts, cut},
    template::Escape,
};

/// Builds an event with the same dimensions and the rule's message as its body. It is closed if the
/// occurrence is.
pub(super) fn build_event(facts: &mut Facts<'_>, templates: &EventTemplates) -> IncomingEvent {
    let mut line = |what: &str, template: &str, bytes_max: usize| {
        let text = facts
            .render(what, template, Escape::None)
            .unwrap_or_default();
        cut::truncate_bytes(&cut::to_one_line(&text, usize::MAX), bytes_max)
    };
    let name = line(
        "the event's name",
        &templates.name_template,
        EVENT_NAME_BYTES_MAX,
    );
    let kind = line(
        "the event's type",
        &templates.type_template,
        EVENT_NAME_BYTES_MAX,
    );
    let summary = line(
        "the event's summary",
        &templates.summary_template,
        EVENT_SUMMARY_BYTES_MAX,
    );
    let occurrence = facts.occurrence();
    // The event represents a thread, so its identity must not depend on the most severe member,
    // which changes.
    let group = facts.content.group.as_ref();
    let dimensions = match group {
        Some(_) => [("group".to_owned(), facts.thread_id())].into(),
        None => occurrence.dimensions.clone(),
    };
    let name = match group {
        Some(_) => facts.content.rule.name.clone(),
        None => name,
    };
    let or = |text: String, other: &str| {
        if text.is_empty() {
            other.to_owned()
        } else {
            text
        }
    };
    // An empty name is replaced by the type and vice versa, as for every sender: an event must not
    // be lost because a template renders nothing.
    let name = or(or(name, &kind), "notification");
    IncomingEvent {
        kind: or(kind, &name),
        name,
        dimensions,
        metadata: occurrence.metadata.clone(),
        summary: or(summary, &facts.headline),
        body: cut::truncate_bytes(facts.message(), EVENT_BODY_BYTES_MAX),
        severity: Some(templates.severity),
        status: facts.are_all_closed().then_some(Status::Closed),
        acknowledged: None,
        timestamp_ms: facts.timestamp_ms(),
        expire_ms: None,
        report: crate::domain::Report::default(),
    }
}
