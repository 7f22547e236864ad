//! The standard webhook document.

use serde_json::{Value, json};

use crate::{
    domain::Name,
    message::{Facts, domain_json},
};

/// The document; severity and status are the numbers of the wire.
pub(super) fn document(facts: &Facts<'_>) -> Value {
    let occurrence = facts.occurrence();
    let rule = &facts.content.rule;
    let names = |names: &[Name]| -> Vec<Value> {
        let texts = names.iter().map(Name::as_str);
        texts.map(Value::from).collect()
    };
    json!({
        "id": facts.context.delivery_id.to_string(),
        "tenant": facts.context.tenant,
        "timestamp": domain_json::time(facts.timestamp_ms()),
        "clear": facts.content.clear,
        "rule": {
            "name": rule.name,
            "trigger_names": names(&rule.trigger_names),
            "destination_names": names(&rule.destination_names),
            "message": facts.message(),
            "enabled": rule.enabled,
            "repeat_interval": rule.repeat_interval_seconds,
        },
        "trigger": facts.content.trigger.as_ref().map(domain_json::trigger),
        "event": {
            "id": occurrence.event.to_string(),
            "occurrence_id": occurrence.id().to_string(),
            "name": occurrence.name,
            "type": occurrence.kind,
            "summary": occurrence.summary,
            "body": occurrence.body,
            "severity": occurrence.severity as i32,
            "status": occurrence.status as i32,
            "acknowledged": occurrence.acknowledged,
            "count": occurrence.count,
            "dimensions": occurrence.dimensions,
            "fields": domain_json::object(&occurrence.metadata),
        },
    })
}
