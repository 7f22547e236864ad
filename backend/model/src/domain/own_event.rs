//! The events that the service opens about itself. `proto/reference/own-events.md` describes them.

use crate::domain::{EventId, IncomingEvent, Severity, Status, event::own_dimensions};

/// A kind of event that the service opens about itself. Each has one event per subject.
#[derive(Debug, PartialEq, Eq)]
pub struct OwnEventKind {
    pub name: &'static str,
    /// The `type` of the events.
    pub kind: &'static str,
    /// Keys of the dimensions that name the subject, in addition to `source`.
    pub keys: &'static [&'static str],
}

macro_rules! own_events {
    ($($item:ident = $name:literal, $kind:literal, [$($key:literal),*];)+) => {
        $(pub const $item: OwnEventKind =
            OwnEventKind { name: $name, kind: $kind, keys: &[$($key),*] };)+

        pub const OWN_EVENT_KINDS: &[OwnEventKind] = &[$($item),+];
    };
}

own_events! {
    CERTIFICATE_ENDS = "certificate ends", "certificate-ends", [];
    CLIENT_REFUSED = "key refused", "key-refused", ["why", "client"];
    DATABASE_LOST_COMMITS = "database lost commits", "store-loss", [];
    DEAD_LETTERS_GROWING = "dead letters growing", "dead-letters-growing", ["destination"];
    DELIVERY_POISON = "message stopped the service", "delivery-poison", ["destination"];
    DELIVERY_UNREADABLE = "stored delivery unreadable", "delivery-unreadable", ["destination"];
    DESTINATION_FAILING = "destination failing", "destination-failing", ["destination"];
    DESTINATION_PAUSED = "destination paused", "destination-paused", ["destination"];
    DISK_NEARLY_FULL = "disk nearly full", "disk-nearly-full", [];
    DRILL_FAILED = "drill failed", "drill", ["drill"];
    HOLDS_LATE = "held notifications late", "holds-late", [];
    KEY_REFUSED = "key refused", "key-refused", ["why", "address"];
    LOOP_STOPPED = "rule stopped by the loop guard", "loop-guard", ["rule"];
    NOBODY_ON_CALL = "no one on call", "on-call", ["schedule"];
    NO_RESPONSE = "no one responded", "escalation", ["policy"];
    ON_CALL_CHANGED = "on call changed", "on-call", ["schedule"];
    RECIPIENTS_REFUSED = "recipients refused", "recipients-refused", ["destination"];
    SETTINGS_DIFFER = "settings differ", "settings-differ", ["node"];
    SILENCE = "silence", "silence", ["silence"];
}

impl OwnEventKind {
    /// Returns an event without a status. The subject has one value per key.
    pub fn event<const N: usize>(&self, subject: [&str; N], now_ms: i64) -> IncomingEvent {
        debug_assert_eq!(self.keys.len(), N, "{}", self.name);
        let about = self.keys.iter().copied().zip(subject);
        IncomingEvent::new_own_event(self.name, self.kind, about, now_ms)
    }

    pub fn opened<const N: usize>(
        &self,
        subject: [&str; N],
        severity: Severity,
        summary: impl Into<String>,
        now_ms: i64,
    ) -> IncomingEvent {
        IncomingEvent {
            severity: Some(severity),
            status: Some(Status::Open),
            summary: summary.into(),
            ..self.event(subject, now_ms)
        }
    }

    pub fn closed<const N: usize>(
        &self,
        subject: [&str; N],
        summary: impl Into<String>,
        now_ms: i64,
    ) -> IncomingEvent {
        IncomingEvent {
            status: Some(Status::Closed),
            summary: summary.into(),
            ..self.event(subject, now_ms)
        }
    }

    pub fn id<const N: usize>(&self, subject: [&str; N]) -> EventId {
        let about = self.keys.iter().copied().zip(subject);
        EventId::derive(self.name, &own_dimensions(about))
    }
}
