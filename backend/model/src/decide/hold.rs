//! Holds, which postpone a notification that all conditions allow. Every hold is evaluated.

mod active_times;
mod auto_pause;
mod delay;
pub(super) mod flapping;
mod silence;

pub(super) use silence::destination_holds;

use super::{Calendars, LoadedSilence, Snapshot};
use crate::domain::{EarlierOccurrence, HeldBy, Name, Occurrence, Pending, Rule, Status};

#[derive(Debug, Clone, Copy)]
pub struct OutgoingNotification<'a> {
    pub rule_name: &'a Name,
    /// The rule; `None` if it was deleted.
    pub rule: Option<&'a Rule>,
    pub covering: &'a [&'a LoadedSilence],
    pub inhibited: &'a [HeldBy],
    pub calendars: &'a Calendars,
    pub earlier: &'a [EarlierOccurrence],
    pub flapping: Option<&'a HeldBy>,
    /// The hold until the next message of the group. Applies only if there is no other hold.
    pub group: Option<&'a HeldBy>,
    /// Whether no receiver considers the occurrence open yet.
    pub is_opening: bool,
    pub is_repeat: bool,
    /// Time since which the notification is to be sent, in milliseconds since 1970.
    pub first_ms: i64,
    pub now_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendKind {
    Opening,
    Repeat,
    Update,
}

impl<'a> OutgoingNotification<'a> {
    /// Describes a notification, which may already be held. The caller sets the covering silences,
    /// the inhibitions and the group.
    pub fn new(
        (rule_name, rule): (&'a Name, Option<&'a Rule>),
        (kind, waits): (SendKind, Option<&'a Pending>),
        occurrence: &'a Occurrence,
        snapshot: &'a Snapshot,
        now_ms: i64,
    ) -> Self {
        // A match of a closed occurrence is sent immediately or never.
        let is_open = occurrence.status != Status::Closed;
        Self {
            rule_name,
            rule,
            covering: &[],
            inhibited: &[],
            calendars: snapshot.calendars(),
            earlier: &occurrence.earlier,
            flapping: None,
            group: None,
            is_opening: kind == SendKind::Opening && is_open,
            is_repeat: kind == SendKind::Repeat && is_open,
            first_ms: waits
                .filter(|it| it.is_opening)
                .map_or(now_ms, |it| it.since_ms),
            now_ms,
        }
    }
}

impl OutgoingNotification<'_> {
    pub fn holds(&self) -> Vec<HeldBy> {
        let mut all = self.inhibited.to_vec();
        all.extend(silence::silence_holds(self));
        all.extend(active_times::active_times_hold(self));
        all.extend(delay::delay_hold(self));
        all.extend(auto_pause::auto_pause_hold(self));
        all.extend(self.flapping.cloned());
        // A notification with another hold does not join a group.
        if all.is_empty() {
            all.extend(self.group.cloned());
        }
        all
    }
}

pub(super) fn format_length(ms: i64) -> String {
    match (ms / 60_000, ms % 60_000) {
        (minutes, 0) if minutes % 60 == 0 => format!("{} h", minutes / 60),
        (minutes, 0) => format!("{minutes} min"),
        _ => format!("{} s", ms.saturating_add(999) / 1_000),
    }
}
