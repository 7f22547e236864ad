//! Rules as stored, as written, and previewed.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

/// A stored rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    pub(crate) spec: RuleSpec,
    /// Notifications in the last 24 h.
    pub(crate) recent_count: i32,
    pub(crate) last_notification_ms: Option<i64>,
    pub(crate) create_ms: Option<i64>,
    pub(crate) update_ms: Option<i64>,
    pub(crate) etag: String,
}

/// A rule as an operator writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RuleSpec {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) enabled: bool,
    #[serde(default)]
    pub(crate) trigger_names: Vec<String>,
    #[serde(default)]
    pub(crate) destination_names: Vec<String>,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) repeat: bool,
    /// Seconds; absent means 3600.
    #[serde(
        default,
        deserialize_with = "seconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) repeat_interval: Option<i64>,
    #[serde(default)]
    pub(crate) send_updates: bool,
}

/// Whole seconds as a number or as a string, as the API takes them.
fn seconds<'de, D: Deserializer<'de>>(input: D) -> Result<Option<i64>, D::Error> {
    match Value::deserialize(input)? {
        Value::Null => Ok(None),
        Value::String(text) if text.trim().is_empty() => Ok(None),
        Value::String(text) => text.trim().parse().map(Some).map_err(|_error| {
            de::Error::custom(format!(
                "repeatInterval: `{text}` is not a number of seconds"
            ))
        }),
        other => other.as_i64().map(Some).ok_or_else(|| {
            de::Error::custom(format!(
                "repeatInterval: `{other}` is not a number of seconds"
            ))
        }),
    }
}

/// What a draft rule would send to one destination.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RulePreview {
    pub(crate) destination_name: String,
    pub(crate) rendered: Value,
    pub(crate) size_bytes: i32,
    pub(crate) limit_bytes: Option<i32>,
    pub(crate) warnings: Vec<String>,
}
