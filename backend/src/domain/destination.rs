//! Destinations: named places a message can be sent to.

use std::{collections::BTreeMap, time::Duration};

use crate::domain::{Name, RecordId, Secret, Severity};

/// A named place a message can be sent to.
#[derive(Debug, Clone, PartialEq)]
pub struct Destination {
    /// Tells it from an earlier destination of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Labels, in the author's order.
    pub tags: Vec<String>,
    /// Where messages go.
    pub kind: DestinationKind,
    /// How messages are delivered.
    pub delivery: DeliverySettings,
    /// Counts its edits from 1; the etag is made of it.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub create_ms: i64,
    /// When it was edited last, in milliseconds since 1970.
    pub update_ms: i64,
}

/// Where messages go.
#[derive(Debug, Clone, PartialEq)]
pub enum DestinationKind {
    /// An HTTP address.
    Webhook(Webhook),
    /// A mail address.
    Email(Email),
    /// A Slack channel.
    Slack(Slack),
    /// A Microsoft Teams incoming webhook.
    MsTeams(MsTeams),
    /// A PagerDuty service.
    PagerDuty(PagerDuty),
    /// A ServiceNow instance.
    ServiceNow(ServiceNow),
    /// A new event in this service.
    Event(EventTemplates),
}

impl DestinationKind {
    /// The kind's name in the JSON interface.
    pub fn word(&self) -> &'static str {
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
}

/// The method of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WebhookMethod {
    /// `POST`.
    #[default]
    Post,
    /// `PUT`.
    Put,
    /// `PATCH`.
    Patch,
}

/// Sends an HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// An `http` or `https` address without user information.
    pub url: String,
    /// The method.
    pub method: WebhookMethod,
    /// Further headers, in the author's spelling, sorted by name.
    pub headers: Vec<Header>,
    /// A template for the body; empty means the standard document.
    pub payload: String,
    /// One or two `whsec_…` secrets, parted by a space.
    pub signing_secret: Option<Secret>,
}

/// One header of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: HeaderValue,
}

/// The value of a header; what carries credentials is secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderValue {
    /// Shown to readers.
    Plain(String),
    /// Never shown.
    Secret(Secret),
}

/// Sends a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email {
    /// The one address.
    pub to: String,
    /// A template; empty means the default subject.
    pub subject: String,
    /// A template for HTML; empty means the default body.
    pub body: String,
}

/// Posts to a Slack channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slack {
    /// A channel's name or id.
    pub channel: String,
    /// A bot token.
    pub token: Secret,
}

/// Posts a card to a Teams incoming webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MsTeams {
    /// The whole address.
    pub url: Secret,
}

/// Sends to PagerDuty's Events API v2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagerDuty {
    /// The integration key.
    pub routing_key: Secret,
}

/// Writes `em_event` records in ServiceNow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceNow {
    /// The instance's address.
    pub instance_url: String,
    /// OAuth client.
    pub client_id: String,
    /// OAuth client secret.
    pub client_secret: Secret,
    /// Where tokens come from; empty means the instance's own address.
    pub token_url: String,
    /// OAuth refresh token; without it the client credentials grant is used.
    pub refresh_token: Option<Secret>,
}

/// Makes a new event in this service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTemplates {
    /// The new event's name.
    pub name_template: String,
    /// The new event's type.
    pub type_template: String,
    /// The new event's summary.
    pub summary_template: String,
    /// The new event's severity.
    pub severity: Severity,
}

/// How messages to a destination are delivered; what is absent is the service's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliverySettings {
    /// How long an attempt may take, 1 s to 30 s.
    pub timeout: Option<Duration>,
    /// How many attempts may be under way at once, 1 to 64.
    pub max_in_flight: Option<u32>,
    /// How many attempts may start in a minute.
    pub max_per_minute: Option<u32>,
    /// How many attempts a delivery gets, 1 to 8.
    pub max_attempts: Option<u32>,
}

/// How a destination's deliveries fare. Kept apart from the destination: it changes with traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The destination, by identity.
    pub destination: RecordId,
    /// The verdict.
    pub state: HealthState,
    /// Since when, in milliseconds since 1970.
    pub since_ms: i64,
    /// Failures in a row.
    pub failures: u32,
    /// What the last failed attempt said; empty when healthy.
    pub last_error: String,
}

/// The name and the dimensions of the event that the service makes of a pause: open while the
/// destination of that name is paused.
pub fn pause_event(destination: &str) -> (&'static str, BTreeMap<String, String>) {
    let dimensions = BTreeMap::from([
        ("source".into(), "bellwether".into()),
        ("destination".into(), destination.into()),
    ]);
    ("destination paused", dimensions)
}

/// The verdict on a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthState {
    /// The last attempt was delivered.
    Healthy,
    /// The last attempts failed.
    Failing,
    /// Nothing is sent until somebody resumes it.
    Paused,
}
