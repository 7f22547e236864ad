//! Verifies that counters are well-formed, and that present counts agree with the records.

use std::time::Instant;

use super::{PAGE, Verifier, key_after, part::Part};
use crate::{
    domain::counter::Period,
    engine::{Direction, EngineError, Kind, Range},
    record::counters::decode_counter,
};

impl Verifier<'_> {
    pub(super) fn count(&mut self, parts: &[Part]) {
        for (counter, tally) in parts.iter().flat_map(|part| &part.counted) {
            if counter.period == Period::Now {
                let numbers = self.counted.entry(*counter).or_default();
                numbers.add(*tally, 1);
            }
        }
    }

    /// Reads all counters. In a store in use, counters change and are therefore not compared.
    pub(super) async fn check_counters(&mut self) -> Result<(), EngineError> {
        let is_counted = self.store.counters_since_ms().await?.is_some();
        let mut range = Range::with_prefix(b"");
        loop {
            let begun = Instant::now();
            let engine = self.store.engine();
            let page = engine.read_page(Kind::Counter, range.clone(), Direction::Ascending, PAGE);
            let page = page.await?;
            let Some((last, _)) = page.last() else {
                break;
            };
            range.start = key_after(last);
            let count = page.len();
            let kind = Kind::Counter.as_str();
            *self.findings.records.entry(kind).or_default() += count as u64;
            for (key, row) in page {
                match decode_counter(&key, &row.value) {
                    Ok(Some((counter, numbers))) if counter.period == Period::Now => {
                        let found = self.counted.remove(&counter).unwrap_or_default();
                        if found != numbers {
                            self.report_difference(is_counted, &counter);
                        }
                    }
                    Ok(_) => {}
                    Err(error) => self.findings.add_error(error.to_string()),
                }
            }
            self.record_progress(count, begun).await;
        }
        let left = std::mem::take(&mut self.counted);
        for counter in left.into_keys() {
            self.report_difference(is_counted, &counter);
        }
        Ok(())
    }

    fn report_difference(&mut self, is_counted: bool, counter: &crate::domain::counter::Counter) {
        if is_counted && !self.is_in_use {
            let subject = counter.subject;
            let error = format!("the counter of {subject:?} differs from the stored records");
            self.findings.add_error(error);
        }
    }
}
