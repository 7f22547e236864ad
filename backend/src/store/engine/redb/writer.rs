//! The one thread that writes: a batch is one transaction, and forms itself while the last syncs.

use std::sync::Arc;

use redb::WriteTransaction;

use super::{
    Closed, Shared,
    blocks::Blocks,
    cell::ROWS,
    fault::Fault,
    file::File,
    log::{self, Head, Names},
    queue::Waiting,
    transaction,
};
use crate::store::engine::EngineError;

/// What becomes of a set: the place in the log, or why not.
type Verdict = Result<u64, EngineError>;

/// The writer's own state.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    file: File,
    head: Head,
    blocks: Arc<Blocks>,
}

/// How far a batch came before it failed.
struct Failure {
    fault: Fault,
    /// Whether it may have been written all the same.
    is_open: bool,
}

impl<T: Into<Fault>> From<T> for Failure {
    fn from(fault: T) -> Self {
        Self {
            fault: fault.into(),
            is_open: false,
        }
    }
}

impl Drop for Writer {
    /// Also a writer that panicked leaves nobody waiting.
    fn drop(&mut self) {
        self.shared.queue.abandon();
        self.shared.set_database(Err(Closed::for_good()));
    }
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, file: File, head: Head, blocks: Arc<Blocks>) -> Self {
        Self {
            shared,
            file,
            head,
            blocks,
        }
    }

    /// Works until the queue is closed and empty, then closes the file.
    pub(super) fn run(mut self) {
        while let Some(batch) = self.shared.queue.take() {
            if batch.is_empty() {
                self.reopen();
            } else {
                self.carry_out(batch);
            }
        }
    }

    /// Commits a batch and answers everybody in it.
    fn carry_out(&mut self, mut batch: Vec<Waiting>) {
        let verdicts = match self.commit(&mut batch) {
            Err(failure) if failure.fault.is_full() && self.file.medium().release_reserve() => {
                // There is room again, for what does not add to the store.
                let sequence = self.head.sequence;
                self.reopen();
                if self.head.sequence == sequence {
                    self.commit(&mut batch)
                } else {
                    Err(failure)
                }
            }
            other => other,
        };
        let verdicts = verdicts.unwrap_or_else(|failure| self.give_up(&batch, failure));
        for (set, verdict) in batch.into_iter().zip(verdicts) {
            // Whoever dropped the call does not want to know.
            drop(set.answer.send(verdict));
        }
    }

    fn commit(&mut self, batch: &mut [Waiting]) -> Result<Vec<Verdict>, Failure> {
        if !self.shared.is_open() {
            self.reopen();
        }
        let settings = self.file.settings();
        let database = self.shared.database();
        let database = database.as_ref().map_err(EngineError::from)?;
        let mut transaction = database.begin_write()?;
        transaction.set_two_phase_commit(settings.two_phase_commit);
        // Of a small file the allocator's state is found soon, of a large one it is saved.
        let is_large = self
            .blocks
            .len()
            .is_ok_and(|length| length >= settings.quick_repair_from);
        transaction.set_quick_repair(settings.two_phase_commit && is_large);
        let (head, verdicts) = self.write(&transaction, batch)?;
        if head == self.head {
            transaction.abort()?;
            return Ok(verdicts);
        }
        transaction.commit().map_err(|error| Failure {
            fault: error.into(),
            is_open: true,
        })?;
        self.head = head;
        self.shared.head.send_replace(head.sequence);
        Ok(verdicts)
    }

    /// Writes what can be written of a batch; answers where the log then ends.
    fn write(
        &self,
        transaction: &WriteTransaction,
        batch: &mut [Waiting],
    ) -> Result<(Head, Vec<Verdict>), Fault> {
        let is_short = self.file.medium().is_short();
        let sequence = self.head.sequence + 1;
        let mut rows = transaction.open_table(ROWS)?;
        let mut verdicts = Vec::with_capacity(batch.len());
        let mut names = Names::default();
        for waiting in batch {
            let set = &mut waiting.set;
            if is_short && set.adds {
                verdicts.push(Err(EngineError::Full("too little room is left".into())));
                continue;
            }
            match transaction::apply(&mut rows, sequence, set) {
                Ok(()) => verdicts.push(Ok(sequence)),
                Err(Fault::Asked(error)) => {
                    verdicts.push(Err(error));
                    continue;
                }
                Err(fault) => return Err(fault),
            }
            names.append(&set.names);
        }
        if verdicts.iter().all(Result::is_err) {
            return Ok((self.head, verdicts));
        }
        let head = self.head.after(&names);
        log::append(&mut rows, head, &names)?;
        Ok((head, verdicts))
    }

    /// Opens the file again after a failure, and says what became of the batch.
    fn give_up(&mut self, batch: &[Waiting], failure: Failure) -> Vec<Verdict> {
        let sequence = self.head.sequence + 1;
        if matches!(failure.fault, Fault::File(_)) {
            tracing::error!(fault = ?failure.fault, "a write failed; the store is opened again");
            self.reopen();
        }
        if failure.is_open {
            // On a full disk the sync did not fail, so what is found now is what is on disk.
            let was_written = self.head.sequence == sequence;
            return match (failure.fault.is_full(), was_written) {
                (true, false) => repeat(batch, || EngineError::Full("no room is left".into())),
                _ => repeat(batch, || indeterminate(&failure.fault)),
            };
        }
        let error = EngineError::from(failure.fault);
        repeat(batch, || match &error {
            EngineError::Full(why) => EngineError::Full(why.clone()),
            EngineError::Corrupt(why) => EngineError::Corrupt(why.clone()),
            other => EngineError::Unavailable(other.to_string()),
        })
    }

    fn reopen(&mut self) {
        self.shared.set_database(Err(Closed::for_now()));
        match self.file.open() {
            Ok(opened) => {
                self.head = opened.head;
                self.blocks = opened.blocks;
                self.shared.set_database(Ok(opened.database));
                self.shared.head.send_replace(opened.head.sequence);
            }
            Err(fault) => {
                tracing::error!(?fault, "the store cannot be opened again");
                self.shared.set_database(Err(Closed::by(fault)));
            }
        }
    }
}

fn repeat(batch: &[Waiting], error: impl Fn() -> EngineError) -> Vec<Verdict> {
    batch.iter().map(|_| Err(error())).collect()
}

fn indeterminate(fault: &Fault) -> EngineError {
    EngineError::Indeterminate(format!("{fault:?}").into())
}
