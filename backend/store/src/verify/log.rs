//! Verifies that the change log is complete and agrees with the records that it lists.

use std::{collections::BTreeMap, time::Instant};

use super::{Verifier, record_name};
use crate::engine::{EngineError, Kind, LogPosition};

const STEPS: usize = 64;

impl Verifier<'_> {
    /// Reads the change log: its steps must be consecutive up to the newest, and no listed record
    /// may be older than its step.
    pub(super) async fn check_log(&mut self) -> Result<(), EngineError> {
        let mut place = self.store.engine().oldest_position().await?;
        while place < self.head {
            let begun = Instant::now();
            let steps = self.store.engine().log_after(place, STEPS).await?;
            if steps.is_none() && self.is_in_use {
                // The log has been trimmed since the last step was read.
                let oldest = self.store.engine().oldest_position().await?;
                if oldest > place {
                    place = oldest;
                    continue;
                }
            }
            let steps = steps.unwrap_or_default();
            if steps.is_empty() {
                let (from, to) = (place, self.head);
                let error =
                    format!("steps after {from} up to {to} are missing from the change log");
                self.findings.add_error(error);
                return Ok(());
            }
            let mut newest: BTreeMap<u8, BTreeMap<Vec<u8>, LogPosition>> = BTreeMap::new();
            let count = steps.len();
            for step in steps {
                if step.position.steps_since(place) != 1 {
                    let next = step.position;
                    let error = format!(
                        "a step is missing from the change log: step {next} comes after {place}"
                    );
                    self.findings.add_error(error);
                }
                place = step.position;
                for (kind, key) in step.changed {
                    newest.entry(kind as u8).or_default().insert(key, place);
                }
            }
            for (number, named) in newest {
                self.check_named(number, named).await?;
            }
            self.findings.log_steps += count as u64;
            self.record_progress(count, begun).await;
        }
        Ok(())
    }

    async fn check_named(
        &mut self,
        number: u8,
        named: BTreeMap<Vec<u8>, LogPosition>,
    ) -> Result<(), EngineError> {
        let Some(kind) = Kind::from_number(number) else {
            return Ok(());
        };
        let keys: Vec<_> = named.keys().cloned().collect();
        let rows = self.store.engine().get(kind, &keys).await?;
        for ((key, step), row) in named.into_iter().zip(rows) {
            // A missing record was deleted later.
            let made_at = row.and_then(|row| self.store.engine().position_of_version(row.version));
            if made_at.is_some_and(|it| it < step) {
                let error = format!(
                    "{} is older than step {step} of the change log, which changed it",
                    record_name(kind, &key)
                );
                self.findings.add_error(error);
            }
        }
        Ok(())
    }
}
