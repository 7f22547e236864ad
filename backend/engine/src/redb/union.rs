//! Runs of one level become one of the next, a slice of their entries at a time.

use std::{ops::Bound, sync::Arc};

use redb::WriteTransaction;

use super::{
    fault::Fault,
    filter::{self, Filter},
    merge::Merge,
    runs::{RUNS, Run, name_of, out_of_order, table},
    tree::Tree,
};

/// Entries that are united in one transaction.
const SLICE: usize = 50_000;

/// Runs that are being made one, a slice at a time.
#[derive(Debug)]
pub(super) struct Union {
    sources: Vec<Arc<Run>>,
    id: u64,
    filter: Filter,
    count: u64,
    /// The last key that was taken over.
    last: Option<Vec<u8>>,
    /// Whether nothing older is left, so that removals have done their work.
    is_oldest: bool,
}

impl Union {
    /// Begins with the oldest of a level that is full; none when no level is.
    pub(super) fn begin(tree: &Tree, fan: usize, id: u64) -> Option<Self> {
        let runs = tree.run_list();
        let highest = runs.iter().map(|run| run.level).max()?;
        let of_level = |level| {
            let of_level = runs.iter().filter(move |run| run.level == level);
            of_level.rev().take(fan).cloned().collect::<Vec<_>>()
        };
        let mut levels = (0..=highest).map(of_level);
        let mut sources = levels.find(|sources| sources.len() >= fan)?;
        let is_oldest = runs.last().is_some_and(|oldest| oldest.id == sources[0].id);
        // The newest first, as the tree has them.
        sources.reverse();
        Some(Self {
            id,
            filter: Filter::for_events(sources.iter().map(|run| run.count).sum()),
            sources,
            count: 0,
            last: None,
            is_oldest,
        })
    }

    /// The number of the run that it makes.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Takes the next entries over; answers the runs that the new one stands for once it is whole.
    pub(super) fn slice(
        &mut self,
        transaction: &WriteTransaction,
        tree: &Tree,
    ) -> Result<Option<Vec<u64>>, Fault> {
        let is_source = |run: &Run| self.sources.iter().any(|source| source.id == run.id);
        let sources = tree.runs.iter().filter(|(run, _)| is_source(run));
        let start = self
            .last
            .as_deref()
            .map_or(Bound::Unbounded, Bound::Excluded);
        let mut merge = Merge::default();
        for (_, entries) in sources {
            merge.table(entries, (start, Bound::Unbounded))?;
        }
        let mut taken = 0;
        let mut last = None;
        {
            let name = name_of(self.id);
            let mut into = transaction.open_table(table(&name))?;
            let mut cursor = into.upper_bound_mut(Bound::<&[u8]>::Unbounded)?;
            while taken < SLICE {
                let Some(found) = merge.next()? else { break };
                taken += 1;
                let key = found.key();
                if found.cell().is_some() || !self.is_oldest {
                    self.filter.add(filter::event_of(key));
                    self.count += 1;
                    let put = cursor.insert_before(key, found.cell().unwrap_or_default());
                    put.map_err(out_of_order)?;
                }
                if taken == SLICE {
                    last = Some(key.to_vec());
                }
            }
            cursor.close()?;
        }
        if let Some(last) = last {
            self.last = Some(last);
            return Ok(None);
        }
        self.name(transaction).map(Some)
    }

    /// Puts the new run in the place of those that it was built from.
    fn name(&self, transaction: &WriteTransaction) -> Result<Vec<u64>, Fault> {
        let ids: Vec<_> = self.sources.iter().map(|run| run.id).collect();
        {
            let mut list = transaction.open_table(RUNS)?;
            for id in &ids {
                list.remove(id)?;
            }
        }
        let newest = &self.sources[0];
        let run = Run {
            id: self.id,
            level: newest.level + 1,
            order: newest.order,
            count: self.count,
            filter: self.filter.clone(),
        };
        run.name(transaction)?;
        Ok(ids)
    }
}
