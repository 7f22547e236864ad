//! An event on its way in, and what identifies it.

use std::{collections::BTreeMap, fmt};

use crate::domain::{EventId, RecordId, Report, Value, value::Fields};

/// What the events name as their source which the service makes of itself, and no others. The
/// dimension that shows who sent an event.
pub const SOURCE: &str = "source";
const OWN_SOURCE: &str = "bellwether";

/// Whether these are the dimensions of an event that the service makes of itself.
pub fn is_own(dimensions: &BTreeMap<String, String>) -> bool {
    dimensions
        .iter()
        .any(|(key, value)| is_reserved(key, value))
}

/// Whether a dimension says that the service made the event of itself.
pub fn is_reserved(key: &str, value: &str) -> bool {
    key == SOURCE && value == OWN_SOURCE
}

/// Whether further fields report it, which queries ask in the same way.
pub fn claims_own(metadata: &Fields) -> bool {
    matches!(metadata.get(SOURCE), Some(Value::Text(source)) if source == OWN_SOURCE)
}

/// How bad an event is; ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Of interest to developers only.
    Debug = 1,
    /// Worth knowing, nothing to do.
    Info = 2,
    /// May become a problem.
    Warning = 3,
    /// Something does not work.
    Error = 4,
    /// Something important does not work.
    Critical = 5,
}

impl Severity {
    /// All of them, in rising order.
    pub const ALL: [Self; 5] = [
        Self::Debug,
        Self::Info,
        Self::Warning,
        Self::Error,
        Self::Critical,
    ];

    /// The severity of a wire number; none for `SEVERITY_DEFAULT` and for unknown numbers.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|severity| *severity as i32 == number)
    }

    /// Its word: `critical`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }

    /// The severity of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }

    /// Its enum name: `SEVERITY_CRITICAL`.
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

/// Where an occurrence stands; ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Continuing.
    Open = 1,
    /// Continuing, and no one is to be notified.
    Suppressed = 2,
    /// Over.
    Closed = 3,
}

impl Status {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Open, Self::Suppressed, Self::Closed];

    /// The status of a wire number; none for `STATUS_DEFAULT` and for unknown numbers.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|status| *status as i32 == number)
    }

    /// Its word: `open`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Suppressed => "suppressed",
            Self::Closed => "closed",
        }
    }

    /// The status of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }

    /// Its enum name: `STATUS_OPEN`.
    pub fn enum_name(self) -> &'static str {
        match self {
            Self::Open => "STATUS_OPEN",
            Self::Suppressed => "STATUS_SUPPRESSED",
            Self::Closed => "STATUS_CLOSED",
        }
    }
}

/// The identity of an occurrence: the event's, a colon, and the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OccurrenceId {
    /// The event.
    pub event: EventId,
    /// 1 for the event's first occurrence.
    pub number: u32,
}

impl OccurrenceId {
    /// Takes `<event id>:<number>` as an identity.
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

/// An event as its sender reported it, checked against the limits of the contract.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingEvent {
    /// What happened; the type when the sender gave no name.
    pub name: String,
    /// The kind of event; empty when the sender gave none.
    pub kind: String,
    /// The thing it happened to; at least one pair.
    pub dimensions: BTreeMap<String, String>,
    /// Further JSON values.
    pub metadata: Fields,
    /// One line for people.
    pub summary: String,
    /// Details for people.
    pub body: String,
    /// How bad it is, when stated.
    pub severity: Option<Severity>,
    /// Where it stands, when stated.
    pub status: Option<Status>,
    /// The acknowledged flag, when stated.
    pub acknowledged: Option<bool>,
    /// When it happened, in milliseconds since 1970.
    pub timestamp_ms: i64,
    /// Until when it is open without news, when stated, in milliseconds since 1970.
    pub expire_ms: Option<i64>,
    /// Of what it is a report.
    pub report: Report,
}

/// An event of the service's own that is stored with the change that causes it, until it is ingested.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnEvent {
    /// Its identity as a record.
    pub id: RecordId,
    /// The event.
    pub event: IncomingEvent,
    /// The rules that led to it, oldest first.
    pub chain: Vec<RecordId>,
}

/// The dimensions of an event that the service reports about itself, with what it concerns.
pub fn own_dimensions<'a>(
    about: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> BTreeMap<String, String> {
    let source = (SOURCE, OWN_SOURCE);
    let all = std::iter::once(source).chain(about);
    all.map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

impl IncomingEvent {
    /// An event that the service reports about itself, as yet without a summary, body, severity and
    /// status.
    pub fn own<'a>(
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

    /// The identity of the event.
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
        fn numbers_of_identities_follow_each_other_as_their_texts_do(one: [u8; 20], other: [u8; 20]) {
            let ids = [one, other].map(EventId::from_bytes);
            let [one, other] = ids.map(|id| id.to_string());
            prop_assume!(one[..10] != other[..10]);
            prop_assert_eq!(ids[0].order().cmp(&ids[1].order()), one.cmp(&other));
        }
    }
}
