//! Merging of runs: the runs of one level become one run of the next level, or all runs become one,
//! in slices.

use std::{ops::Bound, sync::Arc};

use redb::WriteTransaction;

use super::{
    error::Failure,
    filter::{self, Filter},
    merge::Merge,
    runs::{self, Run, cursor_failure, run_name, run_table},
    tree::Tree,
};

/// Entries merged in one transaction.
const SLICE: usize = 50_000;

#[derive(Debug)]
pub(super) struct Union {
    sources: Vec<Arc<Run>>,
    id: u64,
    level: u8,
    filter: Filter,
    count: u64,
    tombstones: u64,
    last: Option<Vec<u8>>,
}

impl Union {
    /// Starts merging all runs if half of their entries are garbage, otherwise the oldest runs of a
    /// full level. Returns `None` if no level is full.
    pub(super) fn start(tree: &Tree, fan: usize, id: u64) -> Option<Self> {
        let runs = tree.run_list();
        let highest = runs.iter().map(|run| run.level).max()?;
        let of_level = |level| {
            let of_level = runs.iter().filter(move |run| run.level == level);
            of_level.rev().take(fan).cloned().collect::<Vec<_>>()
        };
        let (mut sources, level) = if is_half_garbage(&runs) {
            (runs, highest)
        } else {
            let mut levels = (0..=highest).map(of_level);
            let sources = levels.find(|sources| sources.len() >= fan)?;
            let level = sources[0].level + 1;
            (sources, level)
        };
        // The newest first, as in the tree.
        sources.sort_by_key(|run| std::cmp::Reverse(run.order));
        Some(Self {
            id,
            level,
            filter: Filter::for_events(sources.iter().map(|run| run.count).sum()),
            sources,
            count: 0,
            tombstones: 0,
            last: None,
        })
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Merges the next entries. Returns the replaced runs once the new one is complete.
    pub(super) fn merge_slice(
        &mut self,
        transaction: &WriteTransaction,
        tree: &Tree,
    ) -> Result<Option<Vec<u64>>, Failure> {
        let is_source = |run: &Run| self.sources.iter().any(|source| source.id == run.id);
        let sources = tree.runs.iter().filter(|(run, _)| is_source(run));
        let older = tree.runs.iter().rev().map(|(run, _)| run);
        let older: Vec<_> = older.take_while(|run| !is_source(run)).collect();
        let start = self
            .last
            .as_deref()
            .map_or(Bound::Unbounded, Bound::Excluded);
        let mut merge = Merge::default();
        for (_, entries) in sources {
            merge.add_table(entries, (start, Bound::Unbounded))?;
        }
        let mut processed = 0;
        let mut last = None;
        {
            let name = run_name(self.id);
            let mut into = transaction.open_table(run_table(&name))?;
            let mut cursor = into.upper_bound_mut(Bound::<&[u8]>::Unbounded)?;
            while processed < SLICE {
                let Some(found) = merge.next()? else { break };
                processed += 1;
                let key = found.key();
                let event = filter::event_prefix(key);
                let is_tombstone = found.cell().is_none();
                // A tombstone is only needed if an older run may have its entry.
                if !is_tombstone || older.iter().any(|run| run.filter.may_contain(event)) {
                    self.filter.add(event);
                    self.count += 1;
                    self.tombstones += u64::from(is_tombstone);
                    let put = cursor.insert_before(key, found.cell().unwrap_or_default());
                    put.map_err(cursor_failure)?;
                }
                if processed == SLICE {
                    last = Some(key.to_vec());
                }
            }
            cursor.close()?;
        }
        if let Some(last) = last {
            self.last = Some(last);
            return Ok(None);
        }
        self.replace_sources(transaction).map(Some)
    }

    fn replace_sources(&self, transaction: &WriteTransaction) -> Result<Vec<u64>, Failure> {
        let ids: Vec<_> = self.sources.iter().map(|run| run.id).collect();
        runs::remove_from_list(transaction, &ids)?;
        let run = Run {
            id: self.id,
            level: self.level,
            order: self.sources[0].order,
            count: self.count,
            tombstones: self.tombstones,
            filter: self.filter.clone(),
        };
        run.add_to_list(transaction)?;
        Ok(ids)
    }
}

/// Whether half of the entries are tombstones or entries deleted by tombstones. Merging by level
/// drops a tombstone only when the oldest run is merged, which becomes rarer the older a store is.
fn is_half_garbage(runs: &[Arc<Run>]) -> bool {
    let sum = |of: fn(&Run) -> u64| runs.iter().map(|run| of(run)).sum::<u64>();
    let tombstones = sum(|run| run.tombstones);
    tombstones > 0 && tombstones * 4 >= sum(|run| run.count)
}
