//! The standard webhook document.

use serde_json::{Value, json};

use crate::{
    domain::{GroupContent, GroupId, MemberChange, Name, Occurrence},
    message::{Facts, digest, domain_json, members},
};

/// Maximum bytes of the members of a group or digest. Keeps the document below 256 KiB with a
/// summary, body and metadata of common size.
const MEMBERS_BYTES_MAX: usize = 128 * 1024;

/// Builds the document; severity and status are numbers as on the wire.
pub(super) fn document(facts: &Facts<'_>) -> Value {
    let occurrence = facts.occurrence();
    let rule = &facts.content.rule;
    let names = |names: &[Name]| -> Vec<Value> {
        let texts = names.iter().map(Name::as_str);
        texts.map(Value::from).collect()
    };
    let mut document = json!({
        "id": facts.context.delivery_id.to_string(),
        "tenant": facts.context.tenant,
        "timestamp": domain_json::time(facts.timestamp_ms()),
        "clear": facts.content.clear,
        "thread_id": facts.thread_id(),
        "rule": {
            "name": rule.name,
            "trigger_names": names(&rule.trigger_names),
            "destination_names": names(&rule.destination_names),
            "message": facts.message(),
            "enabled": rule.enabled,
            "repeat_interval": rule.repeat_interval_seconds,
        },
        "trigger": facts.content.trigger.as_ref().map(domain_json::trigger),
        "event": event(occurrence),
    });
    if let Some(group) = &facts.content.group {
        document["group"] = self::group(group, &facts.link);
    }
    if let Some(digest) = &facts.content.digest {
        let events = members_within_limit(digest::digest_events(digest, event));
        document["digest"] = digest::digest_variables(digest, &events);
    }
    document
}

fn members_within_limit(all: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut left_bytes = MEMBERS_BYTES_MAX;
    all.take_while(|shown| {
        let bytes = shown.to_string().len();
        let fits = bytes <= left_bytes;
        left_bytes = left_bytes.saturating_sub(bytes);
        fits
    })
    .collect()
}

fn event(occurrence: &Occurrence) -> Value {
    json!({
        "id": occurrence.event.to_string(),
        "occurrence_id": occurrence.id().to_string(),
        "name": occurrence.name,
        "type": occurrence.kind,
        "summary": occurrence.summary,
        "body": occurrence.body,
        "severity": occurrence.severity as i32,
        "status": occurrence.status as i32,
        "acknowledged": occurrence.acknowledged,
        "flapping": occurrence.is_notified_flapping(),
        "count": occurrence.count,
        "dimensions": occurrence.dimensions,
        "fields": domain_json::object(&occurrence.metadata),
    })
}

/// Returns a group with as many of its members as fit, the most severe first.
fn group(group: &GroupContent, link: &str) -> Value {
    let events = members_within_limit(group.members.iter().map(|(change, occurrence)| {
        let mut shown = event(occurrence);
        shown["change"] = change.map_or("", MemberChange::as_str).into();
        shown
    }));
    let shown = u32::try_from(events.len()).unwrap_or(u32::MAX);
    json!({
        "id": GroupId(group.id).to_string(),
        "by": members::shared_values(group),
        "count": group.count,
        "open_count": group.open_count,
        "joined_count": group.joined_count,
        "closed_count": group.closed_count,
        "more_count": group.count.saturating_sub(shown),
        "is_first": group.is_first,
        "is_over": group.is_over,
        "acknowledged": group.acknowledged,
        "link": link,
        "events": events,
    })
}
