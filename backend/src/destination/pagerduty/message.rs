//! PagerDuty's Events API v2.

use serde_json::{Value, json};

use crate::{
    domain::Severity,
    message::{Facts, cut, domain_json},
};

/// PagerDuty refuses an event beyond 512 KB.
pub(super) const BODY_BYTES_MAX: usize = 512 * 1024;
/// PagerDuty refuses a longer summary, in characters.
const SUMMARY_CHARACTERS_MAX: usize = 1_024;
/// Bytes of one long value in the details, as JSON.
const DETAIL_BYTES_MAX: usize = 64 * 1024;

/// Opens an alert, acknowledges it or resolves it; the thread is what makes alerts one.
pub(super) fn body(facts: &mut Facts<'_>) -> Value {
    let occurrence = facts.occurrence();
    let summary = facts.message.as_deref().map(str::trim).unwrap_or_default();
    let summary = match summary {
        "" => facts.headline.clone(),
        message => message.to_owned(),
    };
    let start = cut::characters(&summary, SUMMARY_CHARACTERS_MAX);
    let limit = format!("{SUMMARY_CHARACTERS_MAX} characters as a summary");
    let summary = facts.note_cut(&summary, start, "PagerDuty", &limit);
    let source = match facts.entity.as_str() {
        "" => facts.context.tenant,
        entity => entity,
    };
    let mut body = json!({
        "event_action": action(facts),
        "dedup_key": facts.thread_id(),
        "client": "Bellwether",
        "payload": {
            "summary": summary,
            "source": cut::characters(source, SUMMARY_CHARACTERS_MAX),
            "severity": severity(occurrence.severity),
            "timestamp": domain_json::time(occurrence.last_seen_ms),
            "component": occurrence.name,
            "class": occurrence.kind,
            "group": facts.context.tenant,
            "custom_details": details(facts),
        },
    });
    if !facts.link.is_empty() {
        body["client_url"] = facts.link.as_str().into();
        body["links"] = json!([{"href": facts.link, "text": "Open the event"}]);
    }
    if body.to_string().len() > BODY_BYTES_MAX {
        let note = "the details are left out: with them the event is longer than PagerDuty takes";
        body["payload"]["custom_details"] = json!({"note": note});
    }
    body
}

/// An alert is opened before it can be acknowledged, so only a change acknowledges.
fn action(facts: &Facts<'_>) -> &'static str {
    match facts.content.clear {
        _ if facts.is_over() => "resolve",
        true if facts.is_acknowledged() => "acknowledge",
        _ => "trigger",
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info | Severity::Debug => "info",
    }
}

fn details(facts: &Facts<'_>) -> Value {
    let occurrence = facts.occurrence();
    let trigger = facts.content.trigger.as_ref();
    let mut details = json!({
        "message": cut::json_bytes(facts.message(), DETAIL_BYTES_MAX),
        "summary": occurrence.summary,
        "body": cut::json_bytes(&occurrence.body, DETAIL_BYTES_MAX),
        "status": occurrence.status.word(),
        "acknowledged": occurrence.acknowledged,
        "count": occurrence.count,
        "event_id": occurrence.event.to_string(),
        "dimensions": occurrence.dimensions,
        "fields": domain_json::object(&occurrence.metadata),
        "rule": facts.content.rule.name,
        "trigger": trigger.map(|trigger| trigger.name.as_str()),
    });
    if let Some(members) = facts.members() {
        details["members"] = members.into();
    }
    details
}
