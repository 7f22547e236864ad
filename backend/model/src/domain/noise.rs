//! What is counted of notifications by day, to show how much of it was noise.

use sha2::{Digest as _, Sha256};

use crate::{
    domain::{
        CloseReason, Delivery, DeliveryState, Field, HistoryEntry, HoldKind, Name, Notified,
        Occurrence, RecordId, Status,
    },
    limits::HISTORY_MAX,
};

/// What closes within that time of its notification closed soon, in milliseconds.
pub const SOON_MS: i64 = 5 * 60_000;
/// The parts of a day in which notifications are counted.
pub const HALF_HOURS: u8 = 48;
/// One of them in milliseconds.
pub const HALF_HOUR_MS: i64 = 30 * 60_000;
/// One day in milliseconds.
const DAY_MS: i64 = 48 * HALF_HOUR_MS;
/// Upper bounds of the times to an acknowledgement that are counted, in seconds; the last also counts what
/// took longer.
pub const ACKNOWLEDGED_WITHIN: [i64; 12] = [
    60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400, 604_800,
];

/// What notifications are counted by. Numbers are written to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoiseBy {
    /// The rule.
    Rule = 1,
    /// The trigger that matched.
    Trigger = 2,
    /// The destination.
    Destination = 3,
    /// The contact.
    Contact = 4,
}

impl NoiseBy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rule, Self::Trigger, Self::Destination, Self::Contact];
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseTally {
    /// Notifications: what a rule decided about one thread at one moment.
    Notification,
    /// Messages to one destination, without those of dry runs and without those sent again.
    Delivery,
    /// Those of them that a digest includes.
    Digested,
    /// Messages of dry runs.
    DryRun,
    /// Occurrences with a notification.
    Occurrence,
    /// Those of them that were acknowledged afterwards.
    Acknowledged,
    /// Those that their sender closed soon.
    ClosedSoon,
    /// Those that were closed without anyone acting on them.
    NeverActedOn,
    /// What was dropped while something of that kind held it.
    Skipped(HoldKind),
    /// Those acknowledged within that bound of [`ACKNOWLEDGED_WITHIN`], by its place.
    AcknowledgedWithin(u8),
    /// Notifications in that half hour of the day, in UTC.
    HalfHour(u8),
}

/// Where the numbers of the last three begin.
const SKIPPED: u8 = 12;
const WITHIN: u8 = 24;
const HALF_HOUR: u8 = 36;
/// How many numbers there are of a subject.
pub const NOISE_NUMBERS: usize = HALF_HOUR as usize + HALF_HOURS as usize;

impl NoiseTally {
    /// Its place among the numbers of a subject, which is written to disk.
    pub fn place(self) -> u8 {
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

/// The day of a moment in milliseconds since 1970, counted from there, in UTC.
pub fn day(at_ms: i64) -> u32 {
    u32::try_from(at_ms.div_euclid(DAY_MS).max(0)).unwrap_or(u32::MAX)
}

/// The half hour of the day of a moment in milliseconds since 1970, in UTC.
pub fn half_hour(at_ms: i64) -> u8 {
    u8::try_from(at_ms.rem_euclid(DAY_MS) / HALF_HOUR_MS).unwrap_or_default()
}

/// Where the numbers of a contact are kept, which is known by its name.
pub fn contact_id(name: &Name) -> RecordId {
    let digest = Sha256::digest(name.as_str());
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    RecordId::from_bytes(id)
}

/// The notification that a delivery belongs to: the rule, the thread, and when it was decided.
pub type DecisionKey = (RecordId, RecordId, i64);

impl Delivery {
    /// The notification that it belongs to; none for a test, a digest, and what is sent again.
    pub fn decision(&self) -> Option<DecisionKey> {
        let is_first = !self.test && self.retry_of.is_none() && self.content.digest.is_none();
        let rule = self.rule.filter(|_| is_first)?;
        Some((rule, self.thread(), self.create_ms))
    }

    /// What its numbers are counted by.
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

    /// Whether it is of a dry run.
    pub fn is_dry_run(&self) -> bool {
        self.state == DeliveryState::Shadowed
    }
}

/// Reactions to the notifications about an occurrence, as far as it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reaction {
    /// How long after the notification it was acknowledged, in milliseconds.
    pub acknowledged_after_ms: Option<i64>,
    /// Whether its sender closed it soon.
    pub closed_soon: bool,
    /// Whether it was closed, and no one had acknowledged, annotated, assigned, reopened or closed it.
    pub never_acted_on: bool,
}

impl Notified {
    /// When its opening was decided, in milliseconds since 1970; none for a dry run, and where that
    /// was not noted.
    pub fn opened_ms(&self) -> Option<i64> {
        let opening = self.opening.as_ref().filter(|_| !self.shadow)?;
        Some(opening.at_ms)
    }

    /// What its numbers are counted by, each once.
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
    /// The reaction to a notification that was decided then, in milliseconds since 1970.
    pub fn reaction(&self, opened_ms: i64) -> Reaction {
        // With a full history, older changes are missing.
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
        let closed = Status::Closed.word();
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
