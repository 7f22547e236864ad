//! Compact events for lists, which can be long.

use std::cmp::Ordering;

use bellwether_proto::{
    cloud::{Severity, Status},
    v1::{self, HoldKind},
};

use super::Label;

/// A sort key of occurrences for which the service has an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EventKey {
    #[default]
    LastSeen,
    Severity,
    Start,
}

/// The order of a list of occurrences. Ties are broken by start and then by id, in the same
/// direction, as in the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventOrder {
    pub(crate) by: EventKey,
    pub(crate) ascending: bool,
}

/// Sort key of an occurrence, without its id.
pub(crate) type Rank = (i64, i64);

impl EventOrder {
    pub(crate) fn rank(self, row: &EventRow) -> Rank {
        let first = match self.by {
            EventKey::LastSeen => row.last_seen_ms,
            EventKey::Severity => i64::from(i32::from(row.severity)),
            EventKey::Start => row.start_ms,
        };
        (first, row.start_ms)
    }

    pub(crate) fn compare(self, one: (Rank, &str), other: (Rank, &str)) -> Ordering {
        if self.ascending {
            one.cmp(&other)
        } else {
            other.cmp(&one)
        }
    }
}

/// An occurrence in a list; compact because lists can be long.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EventRow {
    pub(crate) id: Box<str>,
    pub(crate) name: Box<str>,
    /// The dimensions as `key=value`, sorted by key.
    pub(crate) entity: Box<str>,
    pub(crate) summary: Box<str>,
    pub(crate) severity: Severity,
    pub(crate) status: Status,
    pub(crate) acknowledged: bool,
    pub(crate) last_seen_ms: i64,
    pub(crate) start_ms: i64,
    pub(crate) count: u32,
    /// The client that the occurrence is assigned to; empty if none.
    pub(crate) assignee: Box<str>,
    pub(crate) held: HoldReason,
}

/// The reason why messages about an event are held; the first one if there are several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HoldReason {
    Silence,
    Inhibition,
    Calendar,
    /// A condition of the rule, such as its delay.
    Wait,
    #[default]
    Nothing,
}

impl HoldReason {
    fn from_occurrence(occurrence: &v1::Occurrence) -> Self {
        let kinds = occurrence.holds.iter().map(|hold| match hold.kind() {
            // The status already shows these holds.
            HoldKind::Unspecified | HoldKind::Suppressed => Self::Nothing,
            HoldKind::Silence => Self::Silence,
            HoldKind::Inhibition => Self::Inhibition,
            HoldKind::ActiveTimes => Self::Calendar,
            _ => Self::Wait,
        });
        kinds.min().unwrap_or_default()
    }
}

impl Label for HoldReason {
    fn label(self) -> &'static str {
        match self {
            Self::Silence => "silenced",
            Self::Inhibition => "inhibited",
            Self::Calendar | Self::Wait => "held",
            Self::Nothing => "",
        }
    }
}

impl EventRow {
    /// Parses the dimensions: a word without `=` belongs to the preceding value.
    pub(crate) fn dimensions(&self) -> Vec<(String, String)> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for word in self.entity.split(' ') {
            match (word.split_once('='), pairs.last_mut()) {
                (Some((key, value)), _) => pairs.push((key.to_owned(), value.to_owned())),
                (None, Some((_, value))) => {
                    value.push(' ');
                    value.push_str(word);
                }
                (None, None) => {}
            }
        }
        pairs
    }

    pub(crate) fn dimension(&self, key: &str) -> Option<String> {
        let mut pairs = self.dimensions().into_iter();
        pairs.find_map(|(own, value)| (own == key).then_some(value))
    }

    pub(crate) fn from_event(event: v1::Event) -> Vec<Self> {
        let pairs = event.dimensions.iter();
        let pairs: Vec<String> = pairs.map(|(key, value)| format!("{key}={value}")).collect();
        let entity = pairs.join(" ").into_boxed_str();
        let row = |occurrence: v1::Occurrence| Self {
            held: HoldReason::from_occurrence(&occurrence),
            severity: occurrence.severity(),
            status: occurrence.status(),
            id: occurrence.id.into_boxed_str(),
            name: event.name.as_str().into(),
            entity: entity.clone(),
            summary: occurrence.summary.into_boxed_str(),
            acknowledged: occurrence.acknowledged.unwrap_or_default(),
            last_seen_ms: occurrence.last_seen,
            start_ms: occurrence.start_time,
            count: u32::try_from(occurrence.count.unwrap_or_default()).unwrap_or(u32::MAX),
            assignee: occurrence.assignee.into_boxed_str(),
        };
        event.occurrences.into_iter().map(row).collect()
    }
}
