//! Destinations: named places a message can be sent to.

mod kind;

use std::{collections::BTreeMap, time::Duration};

use crate::domain::{Name, RecordId};

pub use kind::{
    DestinationKind, Email, EventTemplates, Header, HeaderValue, MsTeams, PagerDuty, SecretPlace,
    ServiceNow, Slack, Webhook, WebhookMethod,
};

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
