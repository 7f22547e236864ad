//! Tests of a query on stored occurrences, made in steps before the query is saved.

use crate::{
    clock::Clock,
    domain::Occurrence,
    error::Error,
    limits::{TRIGGER_TEST_SHOWN_MAX, TRIGGER_TEST_STEP, TRIGGER_TEST_TIME_MAX},
    matching::CompiledQuery,
    scan,
    search::{Filter, IndexWalk, NEWEST_FIRST},
    store::Store,
};

#[derive(Debug, Clone, Default)]
pub struct TriggerTest {
    pub matched: usize,
    /// Number of occurrences that the stored query matches; `None` if there is no stored query.
    pub matched_by_saved: Option<usize>,
    pub scanned: usize,
    /// The first matches, newest first.
    pub occurrences: Vec<Occurrence>,
    /// All occurrences last seen at or after this time were tested, in milliseconds since the
    /// epoch; `None` at the beginning.
    pub reached_ms: Option<i64>,
    pub stopped_early: bool,
    pub warnings: Vec<String>,
}

/// A test of a draft and the stored query against occurrences, newest first.
///
/// An occurrence that changes during the test may be tested in its old or new version, or missed if
/// it moves to the part already tested.
#[derive(Debug)]
pub struct TestRun {
    store: Store,
    draft: CompiledQuery,
    saved: Option<CompiledQuery>,
    filter: Filter,
    /// Position of the last occurrence tested.
    after: Option<Vec<u8>>,
    scanned: usize,
    is_over: bool,
    test: TriggerTest,
}

impl TestRun {
    pub fn new(
        store: Store,
        draft: CompiledQuery,
        saved: Option<CompiledQuery>,
        filter: Filter,
    ) -> Self {
        Self {
            test: TriggerTest {
                matched_by_saved: saved.as_ref().map(|_| 0),
                ..TriggerTest::default()
            },
            store,
            draft,
            saved,
            filter,
            after: None,
            scanned: 0,
            is_over: false,
        }
    }

    #[must_use]
    pub fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.test.warnings = warnings;
        self
    }

    pub fn results(&self) -> &TriggerTest {
        &self.test
    }

    pub fn is_finished(&self) -> bool {
        self.is_over
    }

    /// Returns start and end of the tested span; `None` means unbounded.
    pub fn span(&self) -> (Option<i64>, Option<i64>) {
        (self.filter.start_ms, self.filter.end_ms)
    }

    pub async fn advance(&mut self) -> Result<(), Error> {
        let _place = scan::wait_for_step().await;
        let store = self.store.clone();
        let filter = self.filter.clone();
        let mut walk = IndexWalk::new(&store, &filter, NEWEST_FIRST, self.after.as_deref());
        let mut left = TRIGGER_TEST_STEP;
        while left > 0 {
            let batch = walk.next(left).await?;
            left -= batch.len();
            let Some((place, last)) = batch.last() else {
                self.is_over = true;
                return Ok(());
            };
            self.after = Some(place.clone());
            self.test.reached_ms = Some(last.value.last_seen_ms);
            self.scanned += batch.len();
            for (_, found) in batch {
                if self.filter.matches(&found.value) {
                    self.test_occurrence(found.value);
                }
                scan::yield_if_needed().await;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn test_occurrence(&mut self, occurrence: Occurrence) {
        let test = &mut self.test;
        test.scanned += 1;
        if let (Some(count), Some(saved)) = (&mut test.matched_by_saved, &self.saved) {
            *count += usize::from(saved.matches(&occurrence));
        }
        if self.draft.matches(&occurrence) {
            test.matched += 1;
            if test.occurrences.len() < TRIGGER_TEST_SHOWN_MAX {
                test.occurrences.push(occurrence);
            }
        }
    }

    /// Tests all occurrences, up to `most` of them and for at most [`TRIGGER_TEST_TIME_MAX`].
    pub async fn run(&mut self, clock: &dyn Clock, most: usize) -> Result<(), Error> {
        let end = clock.elapsed() + TRIGGER_TEST_TIME_MAX;
        while !self.is_over {
            if self.scanned >= most || clock.elapsed() >= end {
                self.test.stopped_early = true;
                return Ok(());
            }
            self.advance().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
