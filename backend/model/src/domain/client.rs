//! Named API keys and what they may do.

use std::{collections::BTreeSet, net::IpAddr};

use crate::domain::{Name, RecordId};

/// Longest name of a certificate, in bytes.
const CERTIFICATE_NAME_BYTES_MAX: usize = 300;

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

impl Rates {
    /// These over others: what is not stated stays, and zero takes a limit away.
    #[must_use]
    pub fn over(self, old: Self) -> Self {
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

/// What a sender may speak in addition to the native interface.
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

/// What of its role a client is kept to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyScope {
    /// It changes only what carries one of these tags; everything when there are none.
    pub tags: BTreeSet<String>,
    /// It sends only events of these sources; of every one when there are none.
    pub sources: BTreeSet<String>,
}

/// A named API key; the key itself is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Distinguishes it from an earlier client of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// What it may do.
    pub role: Role,
    /// How much it may ask for.
    pub rates: Rates,
    /// What it may speak in addition to the native interface; an admin may all.
    pub dialects: BTreeSet<Dialect>,
    /// What of its role it is kept to.
    pub scope: KeyScope,
    /// The certificates that stand for it, by what they say of their holder.
    pub certificates: BTreeSet<CertificateName>,
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

/// What a certificate says of its holder, or the certificate itself: `dns:NAME`, `email:ADDRESS`,
/// `uri:URI` or `sha256:FINGERPRINT`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertificateName(String);

impl CertificateName {
    /// Takes a text as the name of a certificate.
    ///
    /// # Errors
    /// A sentence fragment for people when it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        const FORMS: &str = "`dns:NAME`, `email:ADDRESS`, `uri:URI` or `sha256:FINGERPRINT`";
        if text.len() > CERTIFICATE_NAME_BYTES_MAX {
            let most = CERTIFICATE_NAME_BYTES_MAX;
            return Err(format!(
                "has {} bytes; at most {most} are taken",
                text.len()
            ));
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
            _ => return Err(format!("`{text}` is none of {FORMS}")),
        };
        Ok(Self(name))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_named_by_what_is_in_them() {
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
