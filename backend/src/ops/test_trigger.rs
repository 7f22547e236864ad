//! Trying a query on stored occurrences before it is saved, a step at a time.

use crate::{
    clock::Clock,
    domain::Occurrence,
    error::Error,
    limits::{TRIGGER_TEST_SHOWN_MAX, TRIGGER_TEST_STEP, TRIGGER_TEST_TIME_MAX},
    matching::CompiledQuery,
    ops::search::{Filter, NEWEST_FIRST, Walk},
    scan,
    store::Store,
};

/// What a draft would have matched, as far as it was tried.
#[derive(Debug, Clone, Default)]
pub struct TriggerTest {
    /// How many occurrences the draft matches.
    pub matched: usize,
    /// How many the stored query matches; none when there is none.
    pub matched_by_saved: Option<usize>,
    /// How many were tried.
    pub scanned: usize,
    /// The first matches, newest first.
    pub occurrences: Vec<Occurrence>,
    /// Everything last seen at or after this moment was tried, in milliseconds since 1970; none
    /// at the beginning.
    pub reached_ms: Option<i64>,
    /// Whether it stopped before the end of the span.
    pub stopped_early: bool,
    /// What the author of the draft may not have meant.
    pub warnings: Vec<String>,
}

/// A draft, and the stored query beside it, on their way through occurrences, newest first.
///
/// What changes meanwhile may be tried as it was or as it is, and once, or not at all when it was
/// behind and moved ahead.
#[derive(Debug)]
pub struct TestRun {
    store: Store,
    draft: CompiledQuery,
    saved: Option<CompiledQuery>,
    filter: Filter,
    /// The place of the last occurrence looked at.
    after: Option<Vec<u8>>,
    looked_at: usize,
    is_over: bool,
    test: TriggerTest,
}

impl TestRun {
    /// Prepares to try a draft on what the filter means.
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
            looked_at: 0,
            is_over: false,
        }
    }

    /// The same with warnings about the draft.
    #[must_use]
    pub fn warning(mut self, warnings: Vec<String>) -> Self {
        self.test.warnings = warnings;
        self
    }

    /// What was found so far.
    pub fn so_far(&self) -> &TriggerTest {
        &self.test
    }

    /// Whether everything was tried.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The first and the last moment of the span that is tried; none is no bound.
    pub fn span(&self) -> (Option<i64>, Option<i64>) {
        (self.filter.start_ms, self.filter.end_ms)
    }

    /// Looks at the next occurrences.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn step(&mut self) -> Result<(), Error> {
        let _place = scan::step().await;
        let store = self.store.clone();
        let filter = self.filter.clone();
        let mut walk = Walk::new(&store, &filter, NEWEST_FIRST, self.after.as_deref());
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
            self.looked_at += batch.len();
            for (_, found) in batch {
                if self.filter.admits(&found.value) {
                    self.look_at(found.value);
                }
                scan::turn().await;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn look_at(&mut self, occurrence: Occurrence) {
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

    /// Looks at everything, or until it looked at so many or for [`TRIGGER_TEST_TIME_MAX`].
    ///
    /// # Errors
    /// Those of the store.
    pub async fn run(&mut self, clock: &dyn Clock, most: usize) -> Result<(), Error> {
        let end = clock.passed() + TRIGGER_TEST_TIME_MAX;
        while !self.is_over {
            if self.looked_at >= most || clock.passed() >= end {
                self.test.stopped_early = true;
                return Ok(());
            }
            self.step().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
