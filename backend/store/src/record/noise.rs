//! Daily noise counters, derived from changes of deliveries and occurrences.
//!
//! A later reaction to a notification is counted on the day of the notification, so that ratios of
//! a day refer to the same notifications.

use std::collections::BTreeSet;

use super::{Record, counters::Counts};
use crate::domain::{
    Delivery, Notified, Occurrence, RecordId,
    counter::{Counter, Numbers, Period, Subject},
    noise::{
        ACKNOWLEDGED_WITHIN, DecisionKey, NoiseBy, NoiseTally, Reaction, day_number,
        half_hour_of_day,
    },
};

#[derive(Debug)]
pub struct NoiseCounts<'a> {
    pub(super) counts: &'a mut Counts,
    pub(super) decided: &'a mut BTreeSet<(DecisionKey, Counter)>,
}

impl NoiseCounts<'_> {
    fn add(&mut self, (by, id): (NoiseBy, RecordId), at_ms: i64, tally: NoiseTally) {
        let (part, slot) = tally.slot();
        let counter = noise_counter((by, id), at_ms, part);
        self.counts.add(counter, slot, 1);
    }
}

fn noise_counter((by, id): (NoiseBy, RecordId), at_ms: i64, part: u8) -> Counter {
    Counter {
        subject: Subject::Noise(by, id, part),
        period: Period::Day(day_number(at_ms)),
    }
}

/// A scan that counts stored records in the same way as their changes were counted.
#[derive(Debug, Default)]
pub struct NoiseScan {
    counts: Counts,
    decided: BTreeSet<(DecisionKey, Counter)>,
}

impl NoiseScan {
    pub fn add<T: Record>(&mut self, record: &T) {
        let (counts, decided) = (&mut self.counts, &mut self.decided);
        record.count_noise(None, &mut NoiseCounts { counts, decided });
    }

    /// Returns the counts since the last call.
    pub fn take_counts(&mut self) -> impl Iterator<Item = (Counter, Numbers)> {
        std::mem::take(&mut self.counts).into_iter()
    }
}

pub(super) fn count_delivery(
    after: &Delivery,
    before: Option<&Delivery>,
    to: &mut NoiseCounts<'_>,
) {
    let Some(decision) = after.decision_key() else {
        return;
    };
    let at_ms = after.create_ms;
    let is_new = before.is_none();
    let was_digested = before.is_some_and(|it| it.folding.digest_id().is_some());
    let is_digested = !was_digested && after.folding.digest_id().is_some();
    for subject in after.noise_subjects() {
        if is_digested {
            to.add(subject, at_ms, NoiseTally::Digested);
        }
        if is_new && after.is_dry_run() {
            to.add(subject, at_ms, NoiseTally::DryRun);
        } else if is_new {
            to.add(subject, at_ms, NoiseTally::Delivery);
            if to
                .decided
                .insert((decision, noise_counter(subject, at_ms, 0)))
            {
                to.add(subject, at_ms, NoiseTally::Notification);
                to.add(
                    subject,
                    at_ms,
                    NoiseTally::HalfHour(half_hour_of_day(at_ms)),
                );
            }
        }
    }
}

/// Counts an occurrence: its notifications, reactions, and notifications dropped while held.
pub(super) fn count_occurrence(
    after: &Occurrence,
    before: Option<&Occurrence>,
    to: &mut NoiseCounts<'_>,
) {
    if after.is_drill() {
        return;
    }
    for entry in &after.notified {
        let Some(opened_ms) = entry.opened_ms() else {
            continue;
        };
        let mut known = before.iter().flat_map(|it| &it.notified);
        let known = known.find(|it| it.rule == entry.rule && it.opened_ms() == Some(opened_ms));
        let is_settled = |it: &Occurrence| it.close == after.close && it.history == after.history;
        if known.is_some_and(|it| it == entry) && before.is_some_and(is_settled) {
            continue;
        }
        let known_subjects = known.map(Notified::noise_subjects).unwrap_or_default();
        let was = before.filter(|_| known.is_some());
        let was = was.map_or_else(Reaction::default, |it| it.reaction(opened_ms));
        let is = after.reaction(opened_ms);
        for subject in entry.noise_subjects() {
            let was = if known_subjects.contains(&subject) {
                was
            } else {
                to.add(subject, opened_ms, NoiseTally::Occurrence);
                Reaction::default()
            };
            count_reaction(subject, opened_ms, (was, is), to);
        }
    }
    let known = before.map_or(&[][..], |it| &it.hold_changes);
    // New changes are at the end.
    let new = after.hold_changes.iter().rev();
    for change in new.take_while(|it| !known.contains(it)) {
        let first = change.held_by.first();
        let skipped = first.filter(|_| change.what.skipped_reason().is_some());
        if let Some(hold) = skipped {
            let tally = NoiseTally::Skipped(hold.kind);
            to.add((NoiseBy::Rule, change.rule), change.at_ms, tally);
        }
    }
}

fn count_reaction(
    subject: (NoiseBy, RecordId),
    opened_ms: i64,
    (was, is): (Reaction, Reaction),
    to: &mut NoiseCounts<'_>,
) {
    if let (None, Some(after_ms)) = (was.acknowledged_after_ms, is.acknowledged_after_ms) {
        to.add(subject, opened_ms, NoiseTally::Acknowledged);
        let fits = |bound: &i64| after_ms <= bound.saturating_mul(1_000);
        let at = ACKNOWLEDGED_WITHIN.iter().position(fits);
        let at = at.unwrap_or(ACKNOWLEDGED_WITHIN.len() - 1);
        let within = NoiseTally::AcknowledgedWithin(u8::try_from(at).unwrap_or_default());
        to.add(subject, opened_ms, within);
    }
    if is.closed_soon && !was.closed_soon {
        to.add(subject, opened_ms, NoiseTally::ClosedSoon);
    }
    if is.never_acted_on && !was.never_acted_on {
        to.add(subject, opened_ms, NoiseTally::NeverActedOn);
    }
}
