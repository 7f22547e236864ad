//! Writes the records of a backup into a store, the newest steps first.
//!
//! Steps were read while the store was in use, so they can contain a record several times, or one
//! that was deleted later. In reverse order, the first occurrence is the valid one, so the store
//! gets only final states, and index entries never conflict.

use std::collections::{BTreeMap, HashSet};

use super::RestoreError;
use crate::{
    backup::{BackupRecord, Source},
    domain::{Attempt, Delivery, DeliveryState, Outcome},
    engine::{Action, Change, EngineError, Expect, Kind, Lane},
    open::is_key_check,
    record::{
        Changes, ProofLevel, Record, Store, counters, is_clock_fact, upgrade_proof, with_record,
    },
    verify::Findings,
};

const BATCH: usize = 1_000;
/// Time for which a delivery is held unless a user sends it: ten years.
const HELD_MS: i64 = 10 * 365 * 24 * 3_600_000;
const HELD: &str = "held because the store was restored from a backup made before it was due; \
    resend it to deliver it with the same id";

#[derive(Debug, Default)]
pub(super) struct FillResult {
    pub(super) records: BTreeMap<&'static str, u64>,
    pub(super) waiting: u64,
    pub(super) held: u64,
    /// Number of definitions without a proof, written by a service that did not authenticate them.
    pub(super) unproven: u64,
}

impl FillResult {
    pub(super) fn check_counts(&self, findings: &Findings) -> Result<(), RestoreError> {
        let words = Kind::ALL.into_iter().map(Kind::as_str);
        // Counters are not compared, because some are derived from the records.
        let words = words.filter(|word| *word != Kind::Counter.as_str());
        for word in words {
            let count = |records: &BTreeMap<&str, u64>| records.get(word).copied().unwrap_or(0);
            let (put, found) = (count(&self.records), count(&findings.records));
            if put != found {
                let why = format!("wrote {put} {word} records, but {found} exist");
                return Err(RestoreError::NotWhole(why));
            }
        }
        Ok(())
    }
}

/// Writes the records of a backup into an empty store; `progress` is called with the bytes read.
pub(super) async fn fill_store(
    source: &Source,
    store: &Store,
    hold_due_by_ms: Option<i64>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<FillResult, RestoreError> {
    let mut filling = Filler {
        store,
        is_proven: source.manifest().has_proofs(),
        hold_due_by_ms,
        deleted: HashSet::new(),
        filled: FillResult::default(),
    };
    let mut read = 0;
    for number in (0..source.piece_count()).rev() {
        for step in source.read_steps(number)? {
            let bytes: usize = step.records.iter().map(BackupRecord::bytes).sum();
            let filled = filling.apply_step(step.records).await;
            filled.map_err(|error| match error {
                EngineError::Corrupt(_) | EngineError::Conflict(_) => {
                    RestoreError::NotWhole(error.to_string())
                }
                error => RestoreError::Unwritten(error),
            })?;
            read += bytes as u64;
            progress(read);
        }
    }
    Ok(filling.filled)
}

struct Filler<'a> {
    store: &'a Store,
    is_proven: bool,
    hold_due_by_ms: Option<i64>,
    deleted: HashSet<(Kind, Vec<u8>)>,
    filled: FillResult,
}

impl Filler<'_> {
    async fn apply_step(&mut self, records: Vec<BackupRecord>) -> Result<(), EngineError> {
        let mut records = records.into_iter().peekable();
        while records.peek().is_some() {
            let batch: Vec<_> = records.by_ref().take(BATCH).collect();
            let mut kinds: Vec<_> = batch.iter().map(|record| record.kind).collect();
            kinds.dedup();
            kinds.sort_by_key(|kind| *kind as u8);
            kinds.dedup();
            for kind in kinds {
                let of_kind = batch.iter().filter(|record| record.kind == kind);
                self.restore_batch(kind, of_kind.collect()).await?;
            }
        }
        Ok(())
    }

    async fn restore_batch(
        &mut self,
        kind: Kind,
        records: Vec<&BackupRecord>,
    ) -> Result<(), EngineError> {
        let keys: Vec<_> = records.iter().map(|record| record.key.clone()).collect();
        let found = self.store.engine().get(kind, &keys).await?;
        let mut changes = self.store.new_past_changes();
        for (record, found) in records.into_iter().zip(found) {
            let place = (kind, record.key.clone());
            if found.is_some() || self.deleted.contains(&place) {
                continue;
            }
            match &record.value {
                None => {
                    self.deleted.insert(place);
                }
                Some(value) => self.insert(&mut changes, record, value).await?,
            }
        }
        if !changes.is_empty() {
            self.store.apply(Lane::Bulk, changes).await?;
        }
        Ok(())
    }

    async fn insert(
        &mut self,
        changes: &mut Changes,
        record: &BackupRecord,
        value: &[u8],
    ) -> Result<(), EngineError> {
        match record.kind {
            Kind::Meta if is_key_check(&record.key) || is_clock_fact(&record.key) => {
                return self.write_plain(record, value).await;
            }
            Kind::Counter if counters::is_independent_counter(&record.key) => {
                return self.write_plain(record, value).await;
            }
            // The layout is that of this version, and deliveries are counted as they are written.
            Kind::Meta | Kind::Counter => {}
            Kind::Delivery => self.restore_delivery(changes, record, value)?,
            kind => with_record!(kind, Of => {
                let (record, value) = self.read::<Of>(value)?;
                self.add(changes, &record, value);
            }, else {}),
        }
        Ok(())
    }

    /// Adds a record with its original bytes: hashes and proofs do not cover another encoding.
    fn add<T: Record>(&mut self, changes: &mut Changes, record: &T, value: Vec<u8>) {
        *self.filled.records.entry(T::KIND.as_str()).or_default() += 1;
        changes.insert_encoded(record, value);
    }

    /// Decodes a record, and returns it with its bytes. From a backup of an earlier version,
    /// unproven records are accepted and get a proof.
    fn read<T: Record>(&mut self, value: &[u8]) -> Result<(T, Vec<u8>), EngineError> {
        // The key checks, which are read later, show whether the service authenticated definitions.
        let is_definition = ProofLevel::oldest_for_kind(T::KIND) == Some(ProofLevel::Definitions);
        let may_lack = !self.is_proven || is_definition;
        let proven = may_lack.then(|| upgrade_proof(T::KIND, value, self.store.sealer()));
        let proven = proven.flatten();
        self.filled.unproven += u64::from(self.is_proven && proven.is_some());
        let value = proven.unwrap_or_else(|| value.to_vec());
        Ok((self.store.decode(&value)?, value))
    }

    /// Writes rows without a type: key checks and counters.
    async fn write_plain(&self, record: &BackupRecord, value: &[u8]) -> Result<(), EngineError> {
        let put = Action::Put(value.into());
        let put = Change {
            is_logged: false,
            ..Change::new(record.kind, &record.key, Expect::Absent, put)
        };
        self.store
            .engine()
            .apply(Lane::Bulk, vec![put].into())
            .await?;
        Ok(())
    }

    fn restore_delivery(
        &mut self,
        changes: &mut Changes,
        record: &BackupRecord,
        value: &[u8],
    ) -> Result<(), EngineError> {
        let (mut delivery, mut value) = self.read::<Delivery>(value)?;
        let attempts = record.attempts.iter();
        let attempts = attempts.map(|value| self.read::<Attempt>(value));
        let mut attempts = attempts.collect::<Result<Vec<_>, _>>()?;
        if delivery.behind.take().is_some() {
            // The message before this one may be missing: the delivery is evaluated again when it
            // is due.
            value = delivery.encode(self.store.sealer());
        }
        let due_ms = delivery.state.due_ms().filter(|_| !delivery.test);
        let is_held = due_ms
            .zip(self.hold_due_by_ms)
            .is_some_and(|(due_ms, by_ms)| {
                // It is unknown whether an attempt in progress succeeded.
                due_ms <= by_ms || matches!(delivery.state, DeliveryState::Leased { .. })
            });
        if let (true, Some(by_ms)) = (is_held, self.hold_due_by_ms) {
            hold_delivery(&mut delivery, by_ms);
            value = delivery.encode(self.store.sealer());
            for (attempt, value) in attempts.iter_mut().filter(|(it, _)| it.outcome.is_none()) {
                mark_as_interrupted(attempt);
                *value = attempt.encode(self.store.sealer());
            }
            self.filled.held += 1;
        } else if due_ms.is_some() {
            self.filled.waiting += 1;
        }
        self.add(changes, &delivery, value);
        for (attempt, value) in attempts {
            self.add(changes, &attempt, value);
        }
        Ok(())
    }
}

fn mark_as_interrupted(attempt: &mut Attempt) {
    attempt.outcome = Some(Outcome::Unknown);
    attempt.explanation =
        "the store was restored from a backup made before the end of this attempt".into();
}

fn hold_delivery(delivery: &mut Delivery, now_ms: i64) {
    delivery.may_have_arrived |= matches!(delivery.state, DeliveryState::Leased { .. });
    let due_ms = now_ms.saturating_add(HELD_MS);
    delivery.state = match delivery.attempts {
        0 => DeliveryState::Pending { due_ms },
        _ => DeliveryState::Retry { due_ms },
    };
    delivery.last_error = HELD.into();
}
