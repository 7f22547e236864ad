//! Daily counts of notifications, which show how many of them were noise.

use sha2::{Digest as _, Sha256};

use crate::{
    domain::{
        CloseReason, Delivery, DeliveryState, Field, HistoryEntry, HoldKind, Name, Notified,
        Occurrence, RecordId, Status,
    },
    limits::HISTORY_MAX,
};

/// Time after a notification within which an occurrence counts as closed soon, in milliseconds.
pub const SOON_MS: i64 = 5 * 60_000;
/// Number of intervals of a day in which notifications are counted.
pub const HALF_HOURS: u8 = 48;
pub const HALF_HOUR_MS: i64 = 30 * 60_000;
const DAY_MS: i64 = 48 * HALF_HOUR_MS;
/// Upper bounds of the time to an acknowledgement, in seconds. The last bucket also includes longer
/// times.
pub const ACKNOWLEDGED_WITHIN: [i64; 12] = [
    60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400, 604_800,
];

/// The kinds of subjects by which notifications are counted. The numbers are stored on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoiseBy {
    Rule = 1,
    Trigger = 2,
    Destination = 3,
    Contact = 4,
}

impl NoiseBy {
    pub const ALL: [Self; 4] = [Self::Rule, Self::Trigger, Self::Destination, Self::Contact];
}

/// A count of notifications, deliveries or occurrences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseTally {
    /// Notifications: decisions of a rule about a thread at one time.
    Notification,
    /// Messages to one destination, except dry runs and resends.
    Delivery,
    Digested,
    DryRun,
    Occurrence,
    Acknowledged,
    /// Occurrences closed soon by their sender.
    ClosedSoon,
    /// Occurrences that were closed although no one acted on them.
    NeverActedOn,
    /// Notifications skipped while held for this reason.
    Skipped(HoldKind),
    /// Occurrences acknowledged within the bound at this index of [`ACKNOWLEDGED_WITHIN`].
    AcknowledgedWithin(u8),
    /// Notifications in this half hour of the day, in UTC.
    HalfHour(u8),
}

/// The first index of each of the last three kinds of counts.
const SKIPPED: u8 = 12;
const WITHIN: u8 = 24;
const HALF_HOUR: u8 = 36;
/// Number of counts per subject.
pub const NOISE_NUMBERS: usize = HALF_HOUR as usize + HALF_HOURS as usize;

impl NoiseTally {
    /// Returns the index of the count among those of a subject. The index is stored on disk.
    pub fn index(self) -> u8 {
        match self {
            Self::Notification => 0,
            Self::Delivery => 1,
            Self::Digested => 2,
            Self::DryRun => 3,
            Self::Occurrence => 4,
            Self::Acknowledged => 5,
            Self::ClosedSoon => 6,
            Self::NeverActedOn => 7,
            Self::Skipped(kind) => SKIPPED + kind as u8,
            Self::AcknowledgedWithin(at) => WITHIN + at,
            Self::HalfHour(at) => HALF_HOUR + at,
        }
    }
}

/// Converts milliseconds since 1970 to days since 1970, in UTC.
pub fn day_number(at_ms: i64) -> u32 {
    u32::try_from(at_ms.div_euclid(DAY_MS).max(0)).unwrap_or(u32::MAX)
}

/// Returns the half hour of the day of a time, in UTC.
pub fn half_hour_of_day(at_ms: i64) -> u8 {
    u8::try_from(at_ms.rem_euclid(DAY_MS) / HALF_HOUR_MS).unwrap_or_default()
}

/// Returns the identity under which the counts of a contact are stored, derived from its name.
pub fn contact_id(name: &Name) -> RecordId {
    let digest = Sha256::digest(name.as_str());
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    RecordId::from_bytes(id)
}

/// A notification: the rule, the thread and the time of the decision.
pub type DecisionKey = (RecordId, RecordId, i64);

impl Delivery {
    /// Returns the notification that the delivery belongs to; `None` for a test, a drill, a digest
    /// or a resend.
    pub fn decision_key(&self) -> Option<DecisionKey> {
        let is_test = self.test || self.content.is_drill();
        let is_first = !is_test && self.retry_of.is_none() && self.content.digest.is_none();
        let rule = self.rule.filter(|_| is_first)?;
        Some((rule, self.thread_id(), self.create_ms))
    }

    pub fn noise_subjects(&self) -> impl Iterator<Item = (NoiseBy, RecordId)> {
        let content = &self.content;
        let contact = content.contact.as_ref();
        [
            self.rule.map(|it| (NoiseBy::Rule, it)),
            content.trigger.as_ref().map(|it| (NoiseBy::Trigger, it.id)),
            Some((NoiseBy::Destination, self.destination)),
            contact.map(|it| (NoiseBy::Contact, contact_id(&it.name))),
        ]
        .into_iter()
        .flatten()
    }

    pub fn is_dry_run(&self) -> bool {
        self.state == DeliveryState::Shadowed
    }
}

/// The reaction to the notifications about an occurrence so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reaction {
    /// Time from the notification to the acknowledgement, in milliseconds.
    pub acknowledged_after_ms: Option<i64>,
    /// Whether the sender closed the occurrence soon after the notification.
    pub closed_soon: bool,
    /// Whether the occurrence was closed although no one had acknowledged, annotated, assigned,
    /// reopened or closed it.
    pub never_acted_on: bool,
}

impl Notified {
    /// Returns the time at which the opening message was decided, in milliseconds since 1970;
    /// `None` for a dry run, or if it is not recorded.
    pub fn opened_ms(&self) -> Option<i64> {
        let opening = self.opening.as_ref().filter(|_| !self.shadow)?;
        Some(opening.at_ms)
    }

    /// Returns the distinct subjects by which the delivery is counted.
    pub fn noise_subjects(&self) -> Vec<(NoiseBy, RecordId)> {
        let mut all = vec![(NoiseBy::Rule, self.rule)];
        let trigger = self.opening.iter().map(|it| it.trigger.id);
        all.extend(trigger.map(|it| (NoiseBy::Trigger, it)));
        let paged = self.response.iter().flat_map(|it| &it.paged);
        let destinations = self.destinations.iter().map(|(id, _)| *id);
        let destinations = destinations.chain(paged.clone().map(|it| it.destination.0));
        all.extend(destinations.map(|it| (NoiseBy::Destination, it)));
        let contacts = paged.filter_map(|it| it.contact.as_ref());
        all.extend(contacts.map(|it| (NoiseBy::Contact, contact_id(&it.name))));
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl Occurrence {
    /// Returns the reaction to the notification decided at `opened_ms`.
    pub fn reaction(&self, opened_ms: i64) -> Reaction {
        // A full history may lack older changes.
        let is_known = self.history.len() < HISTORY_MAX;
        let since = self.history.iter().filter(|it| it.at_ms >= opened_ms);
        let acknowledged = |it: &&HistoryEntry| it.field == Field::Acknowledged && it.to == "true";
        let first = since.clone().find(acknowledged).filter(|_| is_known);
        let acknowledged_after_ms = first.map(|it| it.at_ms - opened_ms);
        let Some(close) = self.close.filter(|it| it.at_ms >= opened_ms) else {
            return Reaction {
                acknowledged_after_ms,
                ..Reaction::default()
            };
        };
        let by_sender = close.reason == CloseReason::Sender;
        let closed = Status::Closed.as_str();
        let is_acted_on = |it: &HistoryEntry| match it.field {
            Field::Assignee => true,
            Field::Acknowledged => it.to == "true",
            Field::Status => it.from == closed,
            Field::Severity => false,
        };
        let until_close = |at_ms: i64| at_ms <= close.at_ms;
        let mut changes = self.history.iter().filter(|it| until_close(it.at_ms));
        let mut notes = self.annotations.iter().map(|it| it.create_ms);
        let is_acted_on = close.reason == CloseReason::Operator
            || notes.any(until_close)
            || changes.any(is_acted_on);
        Reaction {
            acknowledged_after_ms,
            closed_soon: by_sender && close.at_ms - opened_ms <= SOON_MS,
            never_acted_on: is_known && !is_acted_on,
        }
    }
}
