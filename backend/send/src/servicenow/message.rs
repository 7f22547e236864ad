//! ServiceNow's `em_event` records for its table API.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    domain::Severity,
    message::{Facts, cut, domain_json},
};

/// Maximum characters of `event_class`, `node`, `resource` and `type`.
const NAME_CHARACTERS_MAX: usize = 100;
const DESCRIPTION_CHARACTERS_MAX: usize = 4_000;
const REDUCED_CHARACTERS_MAX: usize = 500;
/// Dimensions that may name a node, in order of preference.
const NODE_KEYS: [&str; 6] = ["node", "host", "hostname", "device", "server", "source"];

/// Builds a record. Records with the same `message_key` become one alert, which severity 0 closes.
pub(super) fn body(facts: &mut Facts<'_>) -> Value {
    let occurrence = facts.occurrence();
    let closed = facts.are_all_closed();
    let severity = if closed {
        "0"
    } else {
        severity(occurrence.severity)
    };
    json!({
        "source": "Bellwether",
        "event_class": cut::to_one_line(facts.context.tenant, NAME_CHARACTERS_MAX),
        "message_key": match &facts.content.group {
            Some(_) => facts.thread_id(),
            None => occurrence.event.to_string(),
        },
        "node": cut::to_one_line(node_name(facts), NAME_CHARACTERS_MAX),
        "resource": cut::to_one_line(&facts.entity, NAME_CHARACTERS_MAX),
        "type": cut::to_one_line(&occurrence.kind, NAME_CHARACTERS_MAX),
        "severity": severity,
        "resolution_state": if closed { "Closing" } else { "New" },
        "time_of_event": time(occurrence.last_seen_ms),
        "description": description(facts),
        // A JSON document as text.
        "additional_info": additional_info(facts).to_string(),
    })
}

/// Builds a record without the fields that instances may have rules for.
pub(super) fn reduced_message(facts: &mut Facts<'_>) -> Value {
    let mut record = body(facts);
    if let Some(record) = record.as_object_mut() {
        record.remove("additional_info");
    }
    record["description"] = cut::truncate_chars(&facts.headline, REDUCED_CHARACTERS_MAX).into();
    record
}

/// 1 critical, 2 major, 3 minor, 4 warning, 5 information.
fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "1",
        Severity::Error => "2",
        Severity::Warning => "4",
        Severity::Info | Severity::Debug => "5",
    }
}

fn node_name<'a>(facts: &'a Facts<'_>) -> &'a str {
    let dimensions = &facts.occurrence().dimensions;
    let named = NODE_KEYS.iter().find_map(|key| dimensions.get(*key));
    named.map_or(&facts.entity, String::as_str)
}

fn time(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(
        |_| String::new(),
        |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

fn description(facts: &mut Facts<'_>) -> String {
    let text = match &facts.message {
        Some(message) => message.clone(),
        None if facts.content.group.is_some() => {
            let members = facts.members().unwrap_or_default();
            format!("{}\n\n{}", facts.headline, members.join("\n"))
        }
        None if facts.occurrence().body.is_empty() => facts.headline.clone(),
        None => format!("{}\n\n{}", facts.headline, facts.occurrence().body),
    };
    let start = cut::truncate_chars(&text, DESCRIPTION_CHARACTERS_MAX);
    let limit = format!("{DESCRIPTION_CHARACTERS_MAX} characters for a description");
    facts.warn_truncated(&text, start, "ServiceNow", &limit)
}

/// ServiceNow only reads text values here, without nested objects.
fn additional_info(facts: &Facts<'_>) -> Value {
    let occurrence = facts.occurrence();
    let trigger = facts.content.trigger.as_ref();
    let pair = |key: &str, value: &str| (key.to_owned(), Value::from(value));
    let mut info = Map::from_iter([
        pair("event_name", &occurrence.name),
        pair("occurrence_id", &occurrence.id().to_string()),
        pair("status", occurrence.status.as_str()),
        pair("acknowledged", &occurrence.acknowledged.to_string()),
        pair("count", &occurrence.count.to_string()),
        pair("rule", &facts.content.rule.name),
        pair(
            "trigger",
            trigger.map_or("", |trigger| trigger.name.as_str()),
        ),
        pair("link", &facts.link),
    ]);
    let dimensions = occurrence.dimensions.iter();
    info.extend(dimensions.map(|(key, value)| pair(&format!("dimensions.{key}"), value)));
    let fields = occurrence.metadata.iter();
    info.extend(
        fields.map(|(key, value)| pair(&format!("fields.{key}"), &domain_json::text(value))),
    );
    Value::Object(info)
}
