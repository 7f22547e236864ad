//! Destinations: named targets of messages.

mod kind;
mod webhook;

use std::time::Duration;

use crate::{
    domain::{Budget, Name, RecordId, TemplateLanguage},
    limits::{FLAKY_FAILURES_MIN, FLAKY_FROM, HEALTH_ATTEMPTS_MAX, RECOVERED_AFTER},
};

pub use kind::*;
pub use webhook::{Auth, Expect, FollowUp, Keep, KeptValue, KeptValues, ValueMap, WebhookMethod};

#[derive(Debug, Clone, PartialEq)]
pub struct Destination {
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    pub tags: Vec<String>,
    pub kind: DestinationKind,
    pub template_language: TemplateLanguage,
    pub delivery: DeliverySettings,
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}

impl Destination {
    /// Returns the paths of the secrets that differ from those in `before`, or of all set secrets
    /// if `before` is `None`.
    pub fn changed_secrets(&self, before: Option<&Self>) -> Vec<String> {
        let of = |destination: &Self| {
            let mut secrets = Vec::new();
            let mut kind = destination.kind.clone();
            kind.for_each_secret(|place, secret| {
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

/// Delivery settings of a destination; `None` means the default of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliverySettings {
    /// Timeout of an attempt, 1 s to 30 s.
    pub timeout: Option<Duration>,
    /// Maximum number of concurrent attempts, 1 to 64.
    pub max_in_flight: Option<u32>,
    pub max_per_minute: Option<u32>,
    /// Maximum number of attempts per delivery, 1 to 8.
    pub max_attempts: Option<u32>,
    /// The budget of separate messages. Above it, digests are sent.
    pub budget: Option<Budget>,
}

/// The health of a destination, stored separately because it changes with traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    pub destination: RecordId,
    pub state: HealthState,
    /// Start of this state, in milliseconds since 1970.
    pub since_ms: i64,
    pub failures: u32,
    /// The error of the last failed attempt, or the client that paused the destination; empty if
    /// healthy.
    pub last_error: String,
    pub last_success_ms: Option<i64>,
    /// The last attempts with the current address and secrets, oldest first.
    pub tried: Vec<AttemptSummary>,
    /// The recipients that the mail server last refused, by address.
    pub refused: Vec<RejectedRecipient>,
    /// Time before which the receiver asked not to be contacted again (`Retry-After`), in
    /// milliseconds since 1970. `None` if there is no such time, or it has passed.
    pub requested_until_ms: Option<i64>,
    /// Start of the current period of failures, in milliseconds since 1970, even if some attempts
    /// succeed in between; `None` if attempts are not failing. In contrast, `since_ms` changes with
    /// every change of outcome.
    pub failing_since_ms: Option<i64>,
    /// The identical rejections since the last accepted message.
    pub alike: RepeatedRejections,
}

/// Messages rejected for the same reason, with none accepted in between.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepeatedRejections {
    /// The common reason.
    pub kind: String,
    pub messages: Vec<RecordId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedRecipient {
    pub address: String,
    /// The reply of the mail server, with secrets masked.
    pub said: String,
    /// Whether the reply is permanent (5xx).
    pub is_permanent: bool,
    /// Time of the first refusal, in milliseconds since 1970.
    pub since_ms: i64,
}

/// An attempt, reduced to the fields from which the health of a destination is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptSummary {
    pub took_ms: u32,
    pub is_delivered: bool,
}

impl Health {
    pub fn new_unattempted(destination: RecordId, now_ms: i64) -> Self {
        Self {
            destination,
            state: HealthState::Healthy,
            since_ms: now_ms,
            failures: 0,
            last_error: String::new(),
            last_success_ms: None,
            tried: Vec::new(),
            refused: Vec::new(),
            requested_until_ms: None,
            failing_since_ms: None,
            alike: RepeatedRejections::default(),
        }
    }

    /// Whether so many recent attempts failed that the outcome of the last one is not
    /// representative.
    pub fn is_flaky(&self) -> bool {
        let tried = &self.tried;
        let failed = tried.iter().filter(|one| !one.is_delivered).count();
        let last = tried.iter().rev().take(RECOVERED_AFTER);
        let is_well_again =
            tried.len() >= RECOVERED_AFTER && last.clone().all(|it| it.is_delivered);
        failed >= FLAKY_FAILURES_MIN && failed * FLAKY_FROM >= tried.len() && !is_well_again
    }

    pub fn failing_since_ms(&self) -> i64 {
        self.failing_since_ms.unwrap_or(self.since_ms)
    }

    pub fn record_attempt(&mut self, took: Duration, is_delivered: bool, now_ms: i64) {
        if self.tried.len() >= HEALTH_ATTEMPTS_MAX {
            self.tried.drain(..=self.tried.len() - HEALTH_ATTEMPTS_MAX);
        }
        self.tried.push(AttemptSummary {
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

    #[must_use]
    pub fn into_paused(self, author: &Name, now_ms: i64) -> Self {
        Self {
            state: HealthState::Paused,
            since_ms: now_ms,
            last_error: format!("{PAUSED_BY}{author}"),
            ..self
        }
    }

    /// Whether there was no attempt since a user resumed the destination.
    pub fn is_resumed(&self) -> bool {
        self.state == HealthState::Failing && self.failures == 0 && self.tried.is_empty()
    }

    /// Returns the health after a user resumed the destination; failing until an attempt succeeds.
    #[must_use]
    pub fn into_resumed(self, now_ms: i64) -> Self {
        Self {
            state: HealthState::Failing,
            since_ms: now_ms,
            failures: 0,
            last_error: String::new(),
            tried: Vec::new(),
            refused: Vec::new(),
            requested_until_ms: None,
            failing_since_ms: None,
            alike: RepeatedRejections::default(),
            ..self
        }
    }
}

/// Prefix of the last error of a destination paused by a user; the user's name follows.
pub const PAUSED_BY: &str = "paused by ";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthState {
    Healthy,
    /// The last attempts failed.
    Failing,
    /// No messages are sent until a user resumes the destination.
    Paused,
}
