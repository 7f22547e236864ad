//! The thread that writes the tree: it moves rows from memory into it, reopens it after errors, and
//! merges runs when idle.

use std::sync::Arc;

use redb::{Database, WriteTransaction};

use super::{
    EngineState,
    blocks::Blocks,
    cell::ROWS,
    closed::ClosedReason,
    error::Failure,
    file::{self, File, OpenedFile},
    filter,
    layers::{Layers, MovingLayer},
    legacy_entries::{LegacyEntries, Scan},
    log,
    memtable::Memtable,
    mover_commands::MoverCommand,
    put::put_rows,
    runs,
    tree::Tree,
    union::Union,
    view::TableRows,
};
use crate::{change::DiskShare, error::EngineError, read::Direction};

/// Sorts after every key.
const END: &[u8] = &[u8::MAX];

/// The owner of the tree's database.
#[derive(Debug)]
pub(super) struct Mover {
    file: File,
    /// `None` while it cannot be opened.
    database: Option<Database>,
    blocks: Arc<Blocks>,
    old: Arc<LegacyEntries>,
    scan: Option<Scan>,
    union: Option<Union>,
    garbage: Vec<u64>,
    next_run: u64,
}

impl Mover {
    pub(super) fn new(file: File, opened: OpenedFile) -> Self {
        Self {
            file,
            database: Some(opened.database),
            blocks: opened.blocks,
            old: Arc::default(),
            scan: None,
            union: None,
            garbage: Vec::new(),
            next_run: 0,
        }
    }

    /// Starts a generation of the store, unless `life` is
    /// [`NO_GENERATION`](super::file::NO_GENERATION). Moves the rows in the log of the previous
    /// generation, and removes the unfinished work of that generation. From then on, only frames of
    /// the new generation are valid.
    pub(super) fn begin_generation(
        &mut self,
        memory: &Memtable,
        life: u64,
    ) -> Result<Tree, Failure> {
        let error = match self.try_to_begin(memory, life) {
            Err(error) if error.is_full() && self.file.medium().release_reserve() => error,
            begun => return begun,
        };
        tracing::warn!(?error, "the disk is full; using the reserved space");
        self.reopen_file()?;
        self.try_to_begin(memory, life)
    }

    fn try_to_begin(&mut self, memory: &Memtable, life: u64) -> Result<Tree, Failure> {
        let before = self.read(None)?;
        let transaction = self.transaction()?;
        self.next_run = runs::delete_unlisted(&transaction)?;
        self.write_rows(&transaction, &before, memory)?;
        file::set_generation(&transaction, life)?;
        transaction.commit()?;
        self.read(Some(&before))
    }

    /// Runs until the mover is asked to close.
    ///
    /// # Errors
    ///
    /// Returns an error if the file was not closed cleanly, or is incomplete without the log.
    pub(super) fn run(mut self, shared: &Arc<EngineState>) -> Result<(), EngineError> {
        // Releases waiting callers even if the mover panics.
        let shared = ExitNotice(shared);
        let shared = shared.0;
        loop {
            let layers = shared.layers.get();
            match shared
                .commands
                .next_command(self.has_background_work(&layers))
            {
                MoverCommand::Reopen => {
                    self.reopen(shared);
                    shared.commands.report_reopened();
                }
                MoverCommand::Move => self.run_move(shared),
                MoverCommand::Spare => {
                    if let Err(error) = self.do_background_work(shared) {
                        tracing::warn!(?error, "failed to compact");
                        shared.commands.report_background_failure();
                        self.reopen(shared);
                    }
                }
                MoverCommand::Close => break,
            }
        }
        let ended = self.mark_complete(&shared.layers.get());
        if let Err(error) = &ended {
            tracing::warn!(
                ?error,
                "failed to record the end of the log; the next start scans it"
            );
        }
        shared.layers.set_tree(Err(ClosedReason::closed()));
        self.database = None;
        Ok(ended?)
    }

    /// Marks the file as complete without the log, if no rows are left in memory.
    fn mark_complete(&self, layers: &Layers) -> Result<(), Failure> {
        layers.tree.as_ref().map_err(Clone::clone)?;
        if layers.moving.is_some() || !layers.active.is_empty() {
            let why = "entries in memory were not flushed to the file";
            return Err(EngineError::Unavailable(why.into()).into());
        }
        let transaction = self.transaction()?;
        file::set_generation(&transaction, file::NO_GENERATION)?;
        Ok(transaction.commit()?)
    }

    fn transaction(&self) -> Result<WriteTransaction, Failure> {
        let Some(database) = &self.database else {
            return Err(ClosedReason::reopening().into());
        };
        let settings = self.file.settings();
        let mut transaction = database.begin_write()?;
        // A one-phase commit would trust a failed sync.
        transaction.set_two_phase_commit(true);
        // For a small file the allocator state is quickly recomputed; for a large one it is saved.
        let length = self.blocks.len();
        let is_large = length.is_ok_and(|length| length >= settings.quick_repair_from);
        transaction.set_quick_repair(is_large);
        Ok(transaction)
    }

    fn read(&self, before: Option<&Tree>) -> Result<Tree, Failure> {
        let Some(database) = &self.database else {
            return Err(ClosedReason::reopening().into());
        };
        let known = before.map(Tree::run_list).unwrap_or_default();
        Tree::read(database, &known, &self.old)
    }

    /// Writes rows into the tree: entries by event as a run, all others in place.
    fn write_rows(
        &mut self,
        transaction: &WriteTransaction,
        tree: &Tree,
        memory: &Memtable,
    ) -> Result<(), Failure> {
        let (start, end) = filter::SPACE.bounds();
        let entries = || memory.iter_range(&start, &end, Direction::Ascending);
        let mut rows = transaction.open_table(ROWS)?;
        put_rows(
            &mut rows,
            memory.iter_range(b"", &start, Direction::Ascending),
        )?;
        put_rows(
            &mut rows,
            memory.iter_range(&end, END, Direction::Ascending),
        )?;
        let gone = entries().filter(|(_, slot)| slot.is_none());
        for (key, _) in gone {
            if tree.may_have_legacy_entries(Some(filter::event_prefix(key))) {
                rows.remove(key)?;
            }
        }
        drop(rows);
        let id = self.next_run;
        self.next_run += 1;
        runs::write_run(transaction, id, entries())
    }

    fn run_move(&mut self, shared: &EngineState) {
        let layers = shared.layers.get();
        let Some(moving) = &layers.moving else {
            shared.commands.report_moved();
            return;
        };
        let Err(error) = self.move_memory(shared, &layers, moving) else {
            shared.commands.report_moved();
            return;
        };
        tracing::debug!(?error, "failed to flush the log into the tree");
        // The released space is for sets that do not add data.
        let fits = error.is_full() && self.file.medium().release_reserve();
        self.reopen(shared);
        if shared.layers.get().moving.is_none() {
            shared.commands.report_moved();
        } else if fits {
            self.run_move(shared);
        } else {
            shared.commands.report_stuck(&error.into());
        }
    }

    fn move_memory(
        &mut self,
        shared: &EngineState,
        layers: &Layers,
        moving: &MovingLayer,
    ) -> Result<(), Failure> {
        let tree = layers.tree.as_ref().map_err(Clone::clone)?;
        let transaction = self.transaction()?;
        self.write_rows(&transaction, tree, &moving.memory)?;
        transaction.commit()?;
        let tree = Arc::new(self.read(Some(tree))?);
        shared.layers.update(|layers| {
            layers.tree = Ok(tree);
            layers.moving = None;
        });
        Ok(())
    }

    fn reopen_file(&mut self) -> Result<(), Failure> {
        self.database = None;
        let opened = self.file.open()?;
        self.database = Some(opened.database);
        self.blocks = opened.blocks;
        Ok(())
    }

    /// Reopens the file, and determines whether the rows being moved are in it.
    fn reopen(&mut self, shared: &EngineState) {
        shared.layers.set_tree(Err(ClosedReason::reopening()));
        self.discard_union();
        let opened = self.reopen_file().and_then(|()| {
            let tree = self.read(None)?;
            let head = log::log_head(&TableRows(&tree.rows))?.sequence;
            Ok((tree, head))
        });
        match opened {
            Ok((tree, head)) => shared.layers.update(|layers| {
                layers.tree = Ok(Arc::new(tree));
                layers.moving.take_if(|moving| moving.through <= head);
            }),
            Err(error) => {
                tracing::debug!(?error, "failed to reopen the store");
                self.database = None;
                shared
                    .layers
                    .set_tree(Err(ClosedReason::from_error(error.into())));
            }
        }
        shared.openings.send_modify(|count| *count += 1);
    }

    fn has_background_work(&self, layers: &Layers) -> bool {
        let Ok(tree) = &layers.tree else { return false };
        let is_begun = self.union.is_some() || !self.garbage.is_empty();
        is_begun || tree.unfiltered_entries().is_some() || self.choose_union(tree).is_some()
    }

    fn choose_union(&self, tree: &Tree) -> Option<Union> {
        Union::start(tree, self.file.settings().fan, self.next_run)
    }

    fn do_background_work(&mut self, shared: &EngineState) -> Result<(), Failure> {
        let layers = shared.layers.get();
        let tree = layers.tree.as_ref().map_err(Clone::clone)?;
        if let Some(old) = tree.unfiltered_entries() {
            let scan = self.scan.take();
            let mut scan = scan.map_or_else(|| Scan::start(&tree.rows), Ok)?;
            if scan.scan_slice(&tree.rows, old)? {
                self.scan = Some(scan);
            }
            return Ok(());
        }
        if self.file.medium().available_share(layers.bytes() as u64) > DiskShare::AboveFloor {
            shared.commands.report_background_failure();
            return Ok(());
        }
        let transaction = self.transaction()?;
        if let Some(id) = self.garbage.pop() {
            // A commit with an unknown outcome may have left the run listed.
            if tree.runs.iter().all(|(run, _)| run.id != id) {
                runs::delete_run(&transaction, id)?;
            }
        } else if let Some(union) = self.union.take().or_else(|| self.choose_union(tree)) {
            self.next_run = self.next_run.max(union.id() + 1);
            let union = self.union.insert(union);
            if let Some(replaced) = union.merge_slice(&transaction, tree)? {
                self.union = None;
                self.garbage.extend(replaced);
            }
        }
        transaction.commit()?;
        let tree = self.read(Some(tree))?;
        shared.layers.set_tree(Ok(tree));
        Ok(())
    }

    fn discard_union(&mut self) {
        self.garbage
            .extend(self.union.take().map(|union| union.id()));
    }
}

/// Reports on drop that the mover has ended.
struct ExitNotice<'a>(&'a Arc<EngineState>);

impl Drop for ExitNotice<'_> {
    fn drop(&mut self) {
        self.0.commands.report_ended();
        self.0.layers.set_tree(Err(ClosedReason::closed()));
    }
}
