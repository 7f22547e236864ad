//! Clients: named API keys and their permissions.

use std::{collections::BTreeSet, net::IpAddr};

use crate::domain::{Name, RecordId};

const CERTIFICATE_NAME_BYTES_MAX: usize = 300;

/// The role of a client. `Ingest` is separate; the other roles have increasing permissions from
/// `Viewer` to `Admin`. The numbers are those on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Sends events.
    Ingest = 1,
    Viewer = 2,
    /// Reads, annotates, sets the status, resends and tests.
    Operator = 3,
    /// Has the permissions of an operator, and also creates, updates and deletes definitions.
    Editor = 4,
    /// Has all permissions, including managing clients.
    Admin = 5,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Editor => "editor",
            Self::Admin => "admin",
        }
    }
}

/// Rate limits of a client; `None` means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rates {
    pub requests_per_second: Option<u32>,
    pub events_per_second: Option<u32>,
}

impl Rates {
    /// Returns these limits merged over `old`. An unset limit keeps the old limit, and zero removes
    /// it.
    #[must_use]
    pub fn merged_onto(self, old: Self) -> Self {
        let rate = |wanted: Option<u32>, old| match wanted {
            None => old,
            Some(wanted) => Some(wanted).filter(|rate| *rate > 0),
        };
        Self {
            requests_per_second: rate(self.requests_per_second, old.requests_per_second),
            events_per_second: rate(self.events_per_second, old.events_per_second),
        }
    }
}

/// A protocol that a client may use in addition to the native interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    Alertmanager,
    Prometheus,
    PagerDuty,
    Opsgenie,
    CloudEvents,
    Otlp,
    /// Webhooks from any service, through a stored mapping.
    Webhooks,
}

impl Dialect {
    pub const ALL: [Self; 7] = [
        Self::Alertmanager,
        Self::Prometheus,
        Self::PagerDuty,
        Self::Opsgenie,
        Self::CloudEvents,
        Self::Otlp,
        Self::Webhooks,
    ];

    pub fn as_str(self) -> &'static str {
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

    pub fn from_name(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyScope {
    /// The tags to which the client's changes are limited; unlimited if empty.
    pub tags: BTreeSet<String>,
    /// The sources of the events that the client may send; unlimited if empty.
    pub sources: BTreeSet<String>,
}

/// A named API key; the key itself is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    pub id: RecordId,
    pub name: Name,
    pub role: Role,
    pub rates: Rates,
    /// The dialects that the client may use. An admin may use all.
    pub dialects: BTreeSet<Dialect>,
    pub scope: KeyScope,
    /// The certificates that authenticate the client, by subject or fingerprint.
    pub certificates: BTreeSet<CertificateName>,
    /// SHA-256 of the key. A key has 256 random bits, so no slow hash is needed.
    pub key_hash: [u8; 32],
    pub create_ms: i64,
    /// Time at which the key was last used, to the minute.
    pub last_used_ms: Option<i64>,
    pub last_used_from: Option<IpAddr>,
    pub expire_ms: Option<i64>,
    /// The previous key while it is still accepted.
    pub previous: Option<PreviousKey>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousKey {
    pub hash: [u8; 32],
    pub until_ms: i64,
}

/// The name of a certificate, by subject or fingerprint: `dns:NAME`, `email:ADDRESS`, `uri:URI` or
/// `sha256:FINGERPRINT`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertificateName(String);

impl CertificateName {
    pub fn parse(text: &str) -> Result<Self, String> {
        const FORMS: &str = "`dns:NAME`, `email:ADDRESS`, `uri:URI` or `sha256:FINGERPRINT`";
        if text.len() > CERTIFICATE_NAME_BYTES_MAX {
            let most = CERTIFICATE_NAME_BYTES_MAX;
            return Err(format!("is {} bytes; the limit is {most}", text.len()));
        }
        let form = text.split_once(':').filter(|(_, name)| !name.is_empty());
        let visible = |name: &str| name.bytes().all(|byte| byte.is_ascii_graphic());
        let name = match form {
            Some(("dns", name)) if visible(name) => format!("dns:{}", name.to_ascii_lowercase()),
            Some(("email" | "uri", name)) if visible(name) => text.to_owned(),
            Some(("sha256", digits)) => {
                let digits = digits.replace(':', "").to_ascii_lowercase();
                let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                if digits.len() != 64 || !is_hex {
                    return Err("a fingerprint has 64 hexadecimal digits".into());
                }
                format!("sha256:{digits}")
            }
            _ => return Err(format!("`{text}` is not one of {FORMS}")),
        };
        Ok(Self(name))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Client {
    pub fn key_hashes(&self) -> impl Iterator<Item = ([u8; 32], Option<i64>)> {
        let previous = self.previous.iter().map(|previous| {
            let until_ms = self.expire_ms.unwrap_or(i64::MAX).min(previous.until_ms);
            (previous.hash, Some(until_ms))
        });
        std::iter::once((self.key_hash, self.expire_ms)).chain(previous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_names_are_parsed_and_normalized() {
        let fingerprint = "AB:".repeat(31) + "ab";
        let fingerprint = format!("sha256:{fingerprint}");
        let plain = format!("sha256:{}", "ab".repeat(32));
        let good = [
            ("dns:Sender.Example.org", "dns:sender.example.org"),
            ("uri:spiffe://prod/ns/web", "uri:spiffe://prod/ns/web"),
            ("email:Ops@example.org", "email:Ops@example.org"),
            (&fingerprint, &plain),
        ];
        for (text, name) in good {
            assert_eq!(CertificateName::parse(text).unwrap().as_str(), name);
        }
        let long = format!("dns:{}", "a".repeat(300));
        for bad in [
            "",
            "dns:",
            "dns",
            "cn:a",
            "dns:a b",
            "sha256:ab",
            "uri:\u{e9}",
            &long,
        ] {
            assert!(CertificateName::parse(bad).is_err(), "{bad}");
        }
    }
}
