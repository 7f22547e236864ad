//! Trying a query on stored occurrences before it is saved.

use crate::{
    domain::Occurrence,
    error::Error,
    matching::CompiledQuery,
    ops::search::{Filter, NEWEST_FIRST, Walk},
    store::Store,
};

/// Matches that are shown.
const SHOWN_MAX: usize = 100;
/// Occurrences looked at; newer ones come first.
const SCANNED_MAX: usize = 1_000_000;
/// Occurrences read at once.
const BATCH: usize = 500;

/// What a draft would have matched.
#[derive(Debug, Clone, Default)]
pub struct TriggerTest {
    /// How many occurrences the draft matches.
    pub matched: usize,
    /// How many the stored query matches; none when there is none.
    pub matched_by_saved: Option<usize>,
    /// How many were looked at.
    pub scanned: usize,
    /// The first matches, newest first.
    pub occurrences: Vec<Occurrence>,
}

/// Tries a draft, and the stored query beside it, on what the filter means.
///
/// # Errors
/// Those of the store.
pub async fn test_trigger(
    store: &Store,
    draft: &CompiledQuery,
    saved: Option<&CompiledQuery>,
    filter: &Filter,
) -> Result<TriggerTest, Error> {
    let mut walk = Walk::new(store, filter, NEWEST_FIRST, None);
    let mut test = TriggerTest {
        matched_by_saved: saved.map(|_| 0),
        ..TriggerTest::default()
    };
    while test.scanned < SCANNED_MAX {
        let batch = walk.next(BATCH).await?;
        if batch.is_empty() {
            break;
        }
        for occurrence in batch.into_iter().map(|(_, found)| found.value) {
            if !filter.admits(&occurrence) {
                continue;
            }
            test.scanned += 1;
            if let (Some(count), Some(saved)) = (&mut test.matched_by_saved, saved) {
                *count += usize::from(saved.matches(&occurrence));
            }
            if draft.matches(&occurrence) {
                test.matched += 1;
                if test.occurrences.len() < SHOWN_MAX {
                    test.occurrences.push(occurrence);
                }
            }
        }
        tokio::task::yield_now().await;
    }
    Ok(test)
}
