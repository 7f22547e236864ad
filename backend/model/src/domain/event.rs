//! Incoming events, their identity, and the service's own events.

use std::{collections::BTreeMap, fmt};

use crate::domain::{EventId, RecordId, Report, Value, value::Fields};

/// The dimension naming the sender of an event. Its value for the service's own events is reserved.
pub const SOURCE: &str = "source";
const OWN_SOURCE: &str = "bellwether";

pub fn has_own_source(dimensions: &BTreeMap<String, String>) -> bool {
    dimensions
        .iter()
        .any(|(key, value)| is_reserved_key(key, value))
}

/// Whether the dimension marks an event as the service's own.
pub fn is_reserved_key(key: &str, value: &str) -> bool {
    key == SOURCE && value == OWN_SOURCE
}

/// Whether metadata claims to mark the event as the service's own. Queries do not distinguish
/// metadata from dimensions.
pub fn claims_own_event(metadata: &Fields) -> bool {
    matches!(metadata.get(SOURCE), Some(Value::Text(source)) if source == OWN_SOURCE)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Relevant to developers only.
    Debug = 1,
    Info = 2,
    Warning = 3,
    Error = 4,
    /// A failure of an important component.
    Critical = 5,
}

impl Severity {
    pub const ALL: [Self; 5] = [
        Self::Debug,
        Self::Info,
        Self::Warning,
        Self::Error,
        Self::Critical,
    ];

    /// Returns the severity of a wire number; `None` for `SEVERITY_DEFAULT` and unknown numbers.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|severity| *severity as i32 == number)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }

    pub fn enum_name(self) -> &'static str {
        match self {
            Self::Debug => "SEVERITY_DEBUG",
            Self::Info => "SEVERITY_INFO",
            Self::Warning => "SEVERITY_WARNING",
            Self::Error => "SEVERITY_ERROR",
            Self::Critical => "SEVERITY_CRITICAL",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    Open = 1,
    /// Open, without notifications.
    Suppressed = 2,
    Closed = 3,
}

impl Status {
    pub const ALL: [Self; 3] = [Self::Open, Self::Suppressed, Self::Closed];

    /// Returns the status of a wire number; `None` for `STATUS_DEFAULT` and unknown numbers.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|status| *status as i32 == number)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Suppressed => "suppressed",
            Self::Closed => "closed",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }

    pub fn enum_name(self) -> &'static str {
        match self {
            Self::Open => "STATUS_OPEN",
            Self::Suppressed => "STATUS_SUPPRESSED",
            Self::Closed => "STATUS_CLOSED",
        }
    }
}

/// The identity of an occurrence: the event id, a colon, and the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OccurrenceId {
    pub event: EventId,
    /// The number of the occurrence within its event, counted from 1.
    pub number: u32,
}

impl OccurrenceId {
    pub fn parse(text: &str) -> Option<Self> {
        let (event, number) = text.rsplit_once(':')?;
        let number = number.parse().ok().filter(|number| *number > 0)?;
        Some(Self {
            event: EventId::parse(event)?,
            number,
        })
    }
}

impl fmt::Display for OccurrenceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.event, self.number)
    }
}

/// An event as its sender reported it, validated against the limits.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingEvent {
    /// The name; defaults to the kind.
    pub name: String,
    /// The kind of event; may be empty.
    pub kind: String,
    /// The dimensions of the affected object; at least one.
    pub dimensions: BTreeMap<String, String>,
    pub metadata: Fields,
    pub summary: String,
    pub body: String,
    pub severity: Option<Severity>,
    pub status: Option<Status>,
    pub acknowledged: Option<bool>,
    pub timestamp_ms: i64,
    /// Time at which the event expires unless it is sent again, in milliseconds since 1970, if set.
    pub expire_ms: Option<i64>,
    pub report: Report,
}

/// An own event of the service, stored with the change that causes it until it is ingested.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnEvent {
    pub id: RecordId,
    pub event: IncomingEvent,
    /// The rules that caused the event, oldest first.
    pub chain: Vec<RecordId>,
}

pub(super) fn own_dimensions<'a>(
    about: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> BTreeMap<String, String> {
    let source = (SOURCE, OWN_SOURCE);
    let all = std::iter::once(source).chain(about);
    all.map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

impl IncomingEvent {
    pub fn new_own_event<'a>(
        name: &str,
        kind: &str,
        about: impl IntoIterator<Item = (&'a str, &'a str)>,
        now_ms: i64,
    ) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            dimensions: own_dimensions(about),
            metadata: Fields::new(),
            summary: String::new(),
            body: String::new(),
            severity: None,
            status: None,
            acknowledged: None,
            timestamp_ms: now_ms,
            expire_ms: None,
            report: Report::default(),
        }
    }

    pub fn id(&self) -> EventId {
        EventId::derive(&self.name, &self.dimensions)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn event_id_order_matches_text_order(one: [u8; 20], other: [u8; 20]) {
            let ids = [one, other].map(EventId::from_bytes);
            let [one, other] = ids.map(|id| id.to_string());
            prop_assume!(one[..10] != other[..10]);
            prop_assert_eq!(ids[0].sort_prefix().cmp(&ids[1].sort_prefix()), one.cmp(&other));
        }
    }
}
