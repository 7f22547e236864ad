//! A change set: the changes of one commit, with their index entries, counts and audit entries.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    EndedDelivery, Record, Stored,
    counters::{Counts, StoredCounter},
    kinds::with_shift,
    noise::NoiseCounts,
};
use crate::{
    audit::{self, AuditedChange, ChangeAudit},
    decide::Snapshot,
    domain::{
        Occurrence, RecordId,
        counter::{Counter, Period, Slot, Subject},
        noise::DecisionKey,
    },
    engine::{
        Action, Change, DiskShare, Duty, EngineError, Expect, Kind, LogPosition,
        ownership::slot_for_key,
    },
    metrics::CommitStep,
    seal::Sealer,
};

/// A change set that is applied atomically, with its counts. Each record can be changed once.
#[derive(Debug)]
pub struct Changes {
    pub(super) sealer: Arc<Sealer>,
    pub(super) list: Vec<Change>,
    pub(super) counts: Counts,
    /// Whether the records come from a backup, so that their steps were counted before.
    pub(super) is_past: bool,
    pub(super) rests_on: Option<LogPosition>,
    pub(super) space: DiskShare,
    pub(super) slots: BTreeSet<u8>,
    pub(super) owner: Option<Duty>,
    pub(super) steps: Vec<CommitStep>,
    pub(super) decided: BTreeSet<(DecisionKey, Counter)>,
    pub(super) audited: Option<ChangeAudit>,
    /// Checks that the owners of changed rows are unchanged.
    pub(super) owners: Vec<Change>,
    pub(super) ended: Vec<EndedDelivery>,
    /// Shift that the times of the records include, in milliseconds.
    pub(super) shift_ms: i64,
    pub(super) has_times: bool,
    /// Whether some records were read with another shift.
    pub(super) is_outdated: bool,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.counts.is_empty()
    }

    /// Asserts that no record is written twice in one commit, because such a commit would conflict
    /// with itself on every retry.
    fn check_single<T: Record>(&self, key: &[u8]) {
        let is_same =
            |it: &&Change| it.kind == T::KIND && it.key == key && it.action != Action::Touch;
        debug_assert!(
            !self.list.iter().any(|it| is_same(&it)),
            "two changes to one {:?} in a commit",
            T::KIND
        );
    }

    pub fn check_scope(&self) -> Result<(), EngineError> {
        self.audited
            .as_ref()
            .map_or(Ok(()), ChangeAudit::check_scope)
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Declares the snapshot of the rules on which the decisions depend. If the rules changed
    /// later, the changes conflict.
    pub fn depend_on(&mut self, rules: &Snapshot) {
        self.rests_on = Some(LogPosition::from_number(rules.position()));
    }

    pub fn set_disk_share(&mut self, space: DiskShare) {
        self.space = space;
    }

    fn record_audit<T: Record>(&mut self, before: Option<&T>, after: Option<&T>) {
        if let Some(audited) = &mut self.audited {
            if audit::has_owner(T::KIND) {
                audited.owned = Some(T::KIND);
            }
            let (before, after) = (
                before.and_then(T::audit_snapshot),
                after.and_then(T::audit_snapshot),
            );
            audited
                .changes
                .extend(AuditedChange::new(T::KIND, before, after));
        }
    }

    fn claim_slots<T: Record>(&mut self, record: &T) {
        self.slots.extend(match self.owner {
            Some(Duty::Ageing) => record.review_slot(),
            Some(_) => record.owning_destination().map(destination_slot),
            None => None,
        });
    }

    fn count_noise_change<T: Record>(&mut self, before: Option<&T>, after: &T) {
        if !self.is_past {
            let (counts, decided) = (&mut self.counts, &mut self.decided);
            after.count_noise(before, &mut NoiseCounts { counts, decided });
        }
    }

    pub fn insert<T: Record>(&mut self, new: &T) {
        let value = self.encode(new);
        self.insert_encoded(new, value);
    }

    fn encode<T: Record>(&mut self, new: &T) -> Vec<u8> {
        self.has_times |= T::MOVES;
        with_shift::<T>(new.encode(&self.sealer), self.shift_ms, &self.sealer)
    }

    /// Stores a record that must not exist yet, with its original encoding.
    pub(crate) fn insert_encoded<T: Record>(&mut self, new: &T, value: Vec<u8>) {
        self.check_single::<T>(&new.key());
        self.claim_slots(new);
        self.counts.add_new(&new.counter_entries(), self.is_past);
        new.steps(None, &mut self.steps);
        self.count_noise_change(None, new);
        self.record_audit(None, Some(new));
        self.list.push(Change {
            kind: T::KIND,
            key: new.key(),
            expect: Expect::Absent,
            action: Action::Put(value),
            remove: Vec::new(),
            add: new.entries(),
            is_logged: T::KIND.is_logged(),
            adds: adds_to_load(T::KIND),
            defines: is_definition(T::KIND),
        });
    }

    /// Replaces a record that must not have changed since it was read. The key must be the same.
    pub fn update<T: Record>(&mut self, old: &Stored<T>, new: &T) {
        self.check_single::<T>(&old.value.key());
        self.is_outdated |= T::MOVES && old.shift_ms != self.shift_ms;
        self.claim_slots(&old.value);
        let (was, is) = (old.value.counter_entries(), new.counter_entries());
        self.counts.replace_counted(&was, &is);
        new.steps(Some(&old.value), &mut self.steps);
        self.count_noise_change(Some(&old.value), new);
        self.record_audit(Some(&old.value), Some(new));
        self.ended.extend(T::ended_delivery(&old.value, Some(new)));
        let (mut remove, mut add) = (old.as_written().entries(), new.entries());
        remove.retain(|entry| match add.iter().position(|other| other == entry) {
            Some(at) => {
                add.swap_remove(at);
                false
            }
            None => true,
        });
        let value = self.encode(new);
        self.list.push(Change {
            kind: T::KIND,
            key: new.key(),
            expect: Expect::Version(old.version),
            action: Action::Put(value),
            remove,
            add,
            is_logged: T::KIND.is_logged(),
            adds: false,
            defines: is_definition(T::KIND),
        });
    }

    /// Deletes a record that must not have changed since it was read.
    pub fn delete<T: Record>(&mut self, old: &Stored<T>) {
        self.check_single::<T>(&old.value.key());
        self.claim_slots(&old.value);
        self.counts.subtract_removed(&old.value.counter_entries());
        self.record_audit(Some(&old.value), None);
        self.ended.extend(T::ended_delivery(&old.value, None));
        self.list.push(Change {
            kind: T::KIND,
            key: old.value.key(),
            expect: Expect::Version(old.version),
            action: Action::Delete,
            remove: old.as_written().entries(),
            add: Vec::new(),
            is_logged: T::KIND.is_logged(),
            adds: false,
            defines: is_definition(T::KIND),
        });
    }

    pub fn count(&mut self, subject: Subject, at_ms: i64, slot: impl Slot, number: i64) {
        let period = Period::minute_at(at_ms);
        self.counts.add(Counter { subject, period }, slot, number);
    }

    pub fn merge_into_hour(&mut self, minute: &StoredCounter, hour: u32) {
        self.counts.merge_into_hour(minute, hour);
    }

    /// Removes the value of a counter as it was read. Must not run concurrently.
    pub fn remove(&mut self, stored: &StoredCounter) {
        self.counts.subtract(stored);
    }

    /// Checks that a record has not changed since it was read, without changing it.
    pub fn check<T: Record>(&mut self, old: &Stored<T>) {
        self.list.push(check_change(old));
    }

    /// Touches a record for an action that does not change its value, and audits the action.
    pub fn audit_action<T: Record>(&mut self, old: &Stored<T>) {
        self.record_audit(Some(&old.value), Some(&old.value));
        self.touch_record(old);
    }

    /// Declares the definition to which changed rows belong. A restricted client requires
    /// permission to change it. The definition must not have changed since it was read.
    pub fn set_owner<T: Record>(&mut self, owner: &Stored<T>) {
        if let (Some(audited), Some(seen)) = (&mut self.audited, owner.value.audit_snapshot()) {
            audited
                .owners
                .push(audit::Owner::for_definition(T::KIND, &seen));
            self.owners.push(check_change(owner));
        }
    }

    /// Declares the event to which changed rows belong. The scope of a restricted client must
    /// include one of its dimensions.
    pub fn set_owner_event(&mut self, occurrence: &Occurrence) {
        if let Some(audited) = &mut self.audited {
            audited.owners.push(audit::Owner::for_event(occurrence));
        }
    }

    /// Declares that the rows belong only to the calling client, as in the test of a draft.
    pub fn set_owner_caller(&mut self) {
        if let Some(audited) = &mut self.audited {
            let tags = audited.by.scope.tags.iter().cloned().collect();
            audited.owners.push(audit::Owner::for_caller(tags));
        }
    }

    /// Leaves a record unchanged, but makes every decision that depends on it conflict.
    ///
    /// A record with a new reference touches the referenced record, so that it cannot be deleted
    /// concurrently.
    ///
    /// Has no effect on a record that is already in the change set.
    pub fn touch_record<T: Record>(&mut self, old: &Stored<T>) {
        self.claim_slots(&old.value);
        let key = old.value.key();
        let is_same = |other: &Change| other.kind == T::KIND && other.key == key;
        if self.list.iter().any(is_same) {
            return;
        }
        self.list.push(Change {
            kind: T::KIND,
            key,
            expect: Expect::Version(old.version),
            action: Action::Touch,
            remove: Vec::new(),
            add: Vec::new(),
            is_logged: T::KIND.is_logged(),
            adds: false,
            defines: false,
        });
    }
}

/// Whether a new record of this kind adds to the load of the store. Changes by users and progress
/// of deliveries do not.
fn adds_to_load(kind: Kind) -> bool {
    matches!(kind, Kind::Occurrence | Kind::Delivery)
}

/// Whether decisions depend on records of this kind, and have to be repeated if such a record
/// changed. These are the kinds from which the rules are built.
fn is_definition(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Trigger
            | Kind::Destination
            | Kind::Rule
            | Kind::Silence
            | Kind::Calendar
            | Kind::Inhibition
            | Kind::Enrichment
            | Kind::Settings
    )
}

fn check_change<T: Record>(old: &Stored<T>) -> Change {
    Change {
        is_logged: false,
        ..Change::new(
            T::KIND,
            &old.value.key(),
            Expect::Version(old.version),
            Action::Check,
        )
    }
}

pub fn destination_slot(destination: RecordId) -> u8 {
    slot_for_key(&destination.to_bytes())
}
