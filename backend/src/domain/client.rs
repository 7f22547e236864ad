//! Named API keys and what they may do.

use std::{collections::BTreeSet, net::IpAddr};

use crate::domain::{Name, RecordId};

/// What a client may do. `Ingest` stands apart; the others rise from `Viewer` to `Admin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Send events.
    Ingest,
    /// Read.
    Viewer,
    /// Read; annotate, set status, send again, test.
    Operator,
    /// As operator; change triggers, destinations and rules.
    Editor,
    /// All, and manage clients.
    Admin,
}

impl Role {
    /// The word for it on the command line and in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Editor => "editor",
            Self::Admin => "admin",
        }
    }
}

/// How much a client may ask for in a second; none is as much as it likes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rates {
    /// Calls.
    pub requests_per_second: Option<u32>,
    /// Events sent.
    pub events_per_second: Option<u32>,
}

/// What a sender may speak besides the native interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Alertmanager's webhook, which is Grafana's as well.
    Alertmanager,
    /// Alerts as Prometheus sends them.
    Prometheus,
    /// Events and changes of PagerDuty.
    PagerDuty,
    /// Alerts and heartbeats of Opsgenie.
    Opsgenie,
    /// `CloudEvents`.
    CloudEvents,
    /// Logs of OpenTelemetry.
    Otlp,
    /// Webhooks of any service, by way of a stored mapping.
    Webhooks,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Alertmanager,
        Self::Prometheus,
        Self::PagerDuty,
        Self::Opsgenie,
        Self::CloudEvents,
        Self::Otlp,
        Self::Webhooks,
    ];

    /// The word for it on the wire, on the command line and in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Alertmanager => "alertmanager",
            Self::Prometheus => "prometheus",
            Self::PagerDuty => "pagerduty",
            Self::Opsgenie => "opsgenie",
            Self::CloudEvents => "cloudevents",
            Self::Otlp => "otlp",
            Self::Webhooks => "webhooks",
        }
    }

    /// The dialect of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }
}

/// A named API key; the key itself is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Tells it from an earlier client of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// What it may do.
    pub role: Role,
    /// How much it may ask for.
    pub rates: Rates,
    /// What it may speak besides the native interface; an admin may all.
    pub dialects: BTreeSet<Dialect>,
    /// SHA-256 of the key; a key has 256 random bits, so no slow hash is needed.
    pub key_hash: [u8; 32],
    /// When it was made, in milliseconds since 1970.
    pub create_ms: i64,
    /// When its key was last used, to the minute.
    pub last_used_ms: Option<i64>,
    /// The address that it was last used from.
    pub last_used_from: Option<IpAddr>,
    /// When its key ends, in milliseconds since 1970.
    pub expire_ms: Option<i64>,
    /// The key before, while it is still accepted.
    pub previous: Option<PreviousKey>,
}

/// A key that another one took the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousKey {
    /// SHA-256 of it.
    pub hash: [u8; 32],
    /// Until when it is accepted, in milliseconds since 1970.
    pub until_ms: i64,
}

impl Client {
    /// The keys that it may show, each with the moment it ends at.
    pub fn keys(&self) -> impl Iterator<Item = ([u8; 32], Option<i64>)> {
        let previous = self.previous.iter().map(|previous| {
            let until_ms = self.expire_ms.unwrap_or(i64::MAX).min(previous.until_ms);
            (previous.hash, Some(until_ms))
        });
        std::iter::once((self.key_hash, self.expire_ms)).chain(previous)
    }
}
