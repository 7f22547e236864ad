//! Destinations as stored and as written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A stored destination, secrets masked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Destination {
    pub(crate) spec: DestinationSpec,
    pub(crate) rule_names: Vec<String>,
    /// Notifications in the last 24 h.
    pub(crate) recent_count: i32,
    pub(crate) health: Health,
    pub(crate) create_ms: Option<i64>,
    pub(crate) update_ms: Option<i64>,
    pub(crate) etag: String,
}

/// How deliveries fare.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Health {
    pub(crate) state: HealthState,
    pub(crate) since_ms: Option<i64>,
    pub(crate) last_error: String,
}

/// The verdict on a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HealthState {
    Failing,
    Paused,
    #[default]
    Unknown,
    Healthy,
}

impl HealthState {
    /// The word shown.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Paused => "paused",
            Self::Unknown => "unknown",
            Self::Healthy => "healthy",
        }
    }
}

/// A destination as an operator writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DestinationSpec {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<DestinationType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delivery: Option<DeliverySettings>,
}

/// Where messages go: exactly one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum DestinationType {
    Webhook(Webhook),
    Email(Email),
    Slack(Slack),
    MsTeams(MsTeams),
    PagerDuty(PagerDuty),
    ServiceNow(ServiceNow),
    Event(EventDestination),
}

impl DestinationType {
    /// The word of the API for each kind, in the order a form offers them.
    pub(crate) const WORDS: [&'static str; 7] = [
        "webhook",
        "email",
        "slack",
        "msteams",
        "pagerduty",
        "servicenow",
        "event",
    ];

    /// The word of the API for this kind.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "webhook",
            Self::Email(_) => "email",
            Self::Slack(_) => "slack",
            Self::MsTeams(_) => "msteams",
            Self::PagerDuty(_) => "pagerduty",
            Self::ServiceNow(_) => "servicenow",
            Self::Event(_) => "event",
        }
    }

    /// Where it leads, in a few words.
    pub(crate) fn target(&self) -> &str {
        match self {
            Self::Webhook(webhook) => &webhook.url,
            Self::Email(email) => &email.to,
            Self::Slack(slack) => &slack.channel,
            Self::MsTeams(_) => "incoming webhook",
            Self::PagerDuty(_) => "events API",
            Self::ServiceNow(servicenow) => &servicenow.instance_url,
            Self::Event(event) => &event.name_template,
        }
    }
}

macro_rules! text_fields {
    ($(#[$doc:meta])* $name:ident { $($field:ident),+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub(crate) struct $name {
            $(
                #[serde(default, skip_serializing_if = "String::is_empty")]
                pub(crate) $field: String,
            )+
        }
    };
}

text_fields!(/** Sends a mail. */ Email { to, subject, body });
text_fields!(/** Posts to a Slack channel. */ Slack { channel, token });
text_fields!(/** Posts a card to Microsoft Teams. */ MsTeams { url });
text_fields!(/** Sends to PagerDuty. */ PagerDuty { routing_key });
text_fields!(
    /** Writes event records in ServiceNow. */
    ServiceNow { instance_url, client_id, client_secret, token_url, refresh_token }
);
text_fields!(
    /** Makes a new event in this service. */
    EventDestination { name_template, type_template, summary_template, severity }
);

/// Sends an HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Webhook {
    #[serde(default)]
    pub(crate) url: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) method: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) payload: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) signing_secret: String,
}

/// How messages are delivered; zero and empty mean the service's defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DeliverySettings {
    /// As `15s`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) timeout: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) max_in_flight: i32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) max_per_minute: i32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) max_attempts: i32,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_zero(number: &i32) -> bool {
    *number == 0
}
