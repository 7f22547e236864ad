//! Destinations: named places a message can be sent to.

mod kind;
mod webhook;

use std::{collections::BTreeMap, time::Duration};

use crate::{
    domain::{Budget, Name, RecordId, TemplateLanguage, own_dimensions},
    limits::{FLAKY_FAILURES_MIN, FLAKY_FROM, HEALTH_ATTEMPTS_MAX, WELL_AGAIN_AFTER},
};

pub use kind::{
    DestinationKind, Email, EventTemplates, Header, HeaderValue, MailPriority, MsTeams, PagerDuty,
    SecretPlace, ServiceNow, Slack, Webhook,
};
pub use webhook::{Auth, Expect, OnClear, ValueMap, WebhookMethod};

/// A named place a message can be sent to.
#[derive(Debug, Clone, PartialEq)]
pub struct Destination {
    /// Distinguishes it from an earlier destination of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Labels, in the author's order.
    pub tags: Vec<String>,
    /// Where messages go.
    pub kind: DestinationKind,
    /// The language of the templates in it.
    pub template_language: TemplateLanguage,
    /// How messages are delivered.
    pub delivery: DeliverySettings,
    /// Counts its edits from 1; the etag is derived from it.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}

impl Destination {
    /// The paths of the secrets that are other ones than before; of all that are there, when there was
    /// nothing before.
    pub fn changed_secrets(&self, before: Option<&Self>) -> Vec<String> {
        let of = |destination: &Self| {
            let mut secrets = Vec::new();
            let mut kind = destination.kind.clone();
            kind.each_secret(|place, secret| {
                if !secret.is_empty() {
                    secrets.push((place.path(), secret.clone()));
                }
            });
            secrets
        };
        let before = before.map(of).unwrap_or_default();
        let differs = of(self).into_iter().filter(|it| !before.contains(it));
        differs.map(|(path, _)| path).collect()
    }
}

/// How messages to a destination are delivered; what is absent is the service's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliverySettings {
    /// How long an attempt may take, 1 s to 30 s.
    pub timeout: Option<Duration>,
    /// How many attempts may be under way concurrently, 1 to 64.
    pub max_in_flight: Option<u32>,
    /// How many attempts may start in a minute.
    pub max_per_minute: Option<u32>,
    /// How many attempts a delivery gets, 1 to 8.
    pub max_attempts: Option<u32>,
    /// How many messages it gets one by one.
    pub budget: Option<Budget>,
}

/// The health of a destination's deliveries. Kept apart from the destination: it changes with
/// traffic.
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
    /// What the last failed attempt said, or who paused it; empty when healthy.
    pub last_error: String,
    /// When an attempt was delivered last, in milliseconds since 1970.
    pub last_success_ms: Option<i64>,
    /// The last attempts, oldest first. Those to another address, or with other secrets, are not
    /// among them.
    pub tried: Vec<Tried>,
    /// The addresses of a mail destination that its mail server refused last, by address.
    pub refused: Vec<RefusedRecipient>,
    /// Until when the receiver asks for nothing (`Retry-After`), in milliseconds since 1970; none when it
    /// does not, or that has passed.
    pub asked_until_ms: Option<i64>,
    /// Since when attempts fail, in milliseconds since 1970, be it that some are delivered in between; none
    /// when they do not. `since_ms` is when the last attempt was other than the one before.
    pub failing_since_ms: Option<i64>,
    /// The messages that were rejected alike since one arrived.
    pub alike: AlikeRefusals,
}

/// Messages that a receiver rejected alike, with none accepted between them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AlikeRefusals {
    /// What the rejections have in common.
    pub kind: String,
    /// The messages.
    pub messages: Vec<RecordId>,
}

/// A mail address that the mail server refused, while the destination has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRecipient {
    /// The address.
    pub address: String,
    /// The mail server's answer, secrets masked.
    pub said: String,
    /// Whether the answer is permanent (5xx).
    pub is_permanent: bool,
    /// When the address was refused first, in milliseconds since 1970.
    pub since_ms: i64,
}

/// What is kept of an attempt to report the health of its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// How long it took, in milliseconds.
    pub took_ms: u32,
    /// Whether the provider took the message.
    pub is_delivered: bool,
}

impl Health {
    /// Of a destination that nothing was sent to yet.
    pub fn untried(destination: RecordId, now_ms: i64) -> Self {
        Self {
            destination,
            state: HealthState::Healthy,
            since_ms: now_ms,
            failures: 0,
            last_error: String::new(),
            last_success_ms: None,
            tried: Vec::new(),
            refused: Vec::new(),
            asked_until_ms: None,
            failing_since_ms: None,
            alike: AlikeRefusals::default(),
        }
    }

    /// Whether so many of the last attempts failed that the last one says little.
    pub fn is_flaky(&self) -> bool {
        let tried = &self.tried;
        let failed = tried.iter().filter(|one| !one.is_delivered).count();
        let last = tried.iter().rev().take(WELL_AGAIN_AFTER);
        let is_well_again =
            tried.len() >= WELL_AGAIN_AFTER && last.clone().all(|it| it.is_delivered);
        failed >= FLAKY_FAILURES_MIN && failed * FLAKY_FROM >= tried.len() && !is_well_again
    }

    /// Since when it fails, where it does.
    pub fn failing_since_ms(&self) -> i64 {
        self.failing_since_ms.unwrap_or(self.since_ms)
    }

    /// Takes note of an attempt.
    pub fn note(&mut self, took: Duration, is_delivered: bool, now_ms: i64) {
        if self.tried.len() >= HEALTH_ATTEMPTS_MAX {
            self.tried.drain(..=self.tried.len() - HEALTH_ATTEMPTS_MAX);
        }
        self.tried.push(Tried {
            took_ms: u32::try_from(took.as_millis()).unwrap_or(u32::MAX),
            is_delivered,
        });
        if is_delivered {
            self.last_success_ms = Some(now_ms);
        }
        if !is_delivered {
            self.failing_since_ms.get_or_insert(now_ms);
        } else if !self.is_flaky() {
            self.failing_since_ms = None;
        }
    }

    /// It once a user paused its destination.
    #[must_use]
    pub fn paused_by(self, author: &Name, now_ms: i64) -> Self {
        Self {
            state: HealthState::Paused,
            since_ms: now_ms,
            last_error: format!("{PAUSED_BY}{author}"),
            ..self
        }
    }

    /// Whether nothing was sent since a user resumed its destination.
    pub fn is_resumed(&self) -> bool {
        self.state == HealthState::Failing && self.failures == 0 && self.tried.is_empty()
    }

    /// It once a user resumed its destination, which has yet to prove itself.
    #[must_use]
    pub fn resumed(self, now_ms: i64) -> Self {
        Self {
            state: HealthState::Failing,
            since_ms: now_ms,
            failures: 0,
            last_error: String::new(),
            tried: Vec::new(),
            refused: Vec::new(),
            asked_until_ms: None,
            failing_since_ms: None,
            alike: AlikeRefusals::default(),
            ..self
        }
    }
}

/// What the health of a destination that was paused by hand says, before who paused it.
pub const PAUSED_BY: &str = "paused by ";

/// The name and the dimensions of the event that the service makes of a pause: open while the
/// destination of that name is paused.
pub fn pause_event(destination: &str) -> (&'static str, BTreeMap<String, String>) {
    let dimensions = own_dimensions([("destination", destination)]);
    ("destination paused", dimensions)
}

/// Returns the name and the dimensions of the event that the service makes of a destination that fails for some
/// time: open until it has recovered.
pub fn failing_event(destination: &str) -> (&'static str, BTreeMap<String, String>) {
    let dimensions = own_dimensions([("destination", destination)]);
    ("destination failing", dimensions)
}

/// The verdict on a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthState {
    /// The last attempt was delivered.
    Healthy,
    /// The last attempts failed.
    Failing,
    /// Nothing is sent until a user resumes it.
    Paused,
}
