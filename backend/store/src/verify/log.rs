//! The change log in itself, and beside the records that it names.

use std::{collections::BTreeMap, time::Instant};

use super::{Check, name};
use crate::engine::{EngineError, Kind};

/// Steps read at a time.
const STEPS: usize = 64;

impl Check<'_> {
    /// Reads the change log: its steps follow each other to the newest, and no record that it names
    /// is older than the step that names it.
    pub(super) async fn log(&mut self) -> Result<(), EngineError> {
        let mut place = self.oldest_position().await?;
        while place < self.head {
            let begun = Instant::now();
            let steps = self.store.engine().log_after(place, STEPS).await?;
            if steps.is_none() && self.is_in_use {
                // It was forgotten since the last step was read.
                place = self.oldest_position().await?.max(place + 1);
                continue;
            }
            let steps = steps.unwrap_or_default();
            if steps.is_empty() {
                let (from, to) = (place + 1, self.head);
                let fault = format!("the change log lacks the steps {from} to {to}");
                self.findings.tell(fault);
                return Ok(());
            }
            let mut newest: BTreeMap<u8, BTreeMap<Vec<u8>, u64>> = BTreeMap::new();
            let count = steps.len();
            for step in steps {
                if step.sequence != place + 1 {
                    let (lacking, found) = (place + 1, step.sequence);
                    let fault =
                        format!("the change log lacks step {lacking}: step {found} comes next");
                    self.findings.tell(fault);
                }
                place = step.sequence;
                for (kind, key) in step.changed {
                    newest.entry(kind as u8).or_default().insert(key, place);
                }
            }
            for (number, named) in newest {
                self.named(number, named).await?;
            }
            self.findings.log_steps += count as u64;
            self.advance(count, begun).await;
        }
        Ok(())
    }

    /// Compares records with the newest steps that name them.
    async fn named(
        &mut self,
        number: u8,
        named: BTreeMap<Vec<u8>, u64>,
    ) -> Result<(), EngineError> {
        let Some(kind) = Kind::from_number(number) else {
            return Ok(());
        };
        let keys: Vec<_> = named.keys().cloned().collect();
        let rows = self.store.engine().get(kind, &keys).await?;
        for ((key, step), row) in named.into_iter().zip(rows) {
            // One that is gone was deleted since.
            let is_comparable = self.store.engine().versions_are_places();
            if is_comparable && row.is_some_and(|row| row.version < step) {
                let fault = format!(
                    "{} is older than step {step} of the change log, which changed it",
                    name(kind, &key)
                );
                self.findings.tell(fault);
            }
        }
        Ok(())
    }

    /// The place before the oldest step that is remembered.
    async fn oldest_position(&self) -> Result<u64, EngineError> {
        let (mut forgotten, mut known) = (0, self.head);
        if self.is_known(0).await? {
            return Ok(0);
        }
        while known - forgotten > 1 {
            let middle = forgotten + (known - forgotten) / 2;
            if self.is_known(middle).await? {
                known = middle;
            } else {
                forgotten = middle;
            }
        }
        Ok(known)
    }

    async fn is_known(&self, place: u64) -> Result<bool, EngineError> {
        Ok(self.store.engine().log_after(place, 1).await?.is_some())
    }
}
