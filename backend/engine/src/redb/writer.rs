//! The thread that applies sets of changes. The sets that arrive while a frame syncs form the next
//! group, which is written as one frame. The thread decides the outcome of each set.

use std::{sync::Arc, time::Duration};

use super::{
    EngineState,
    batch::Batch,
    compare::compare_set,
    error::Failure,
    layers::{Layers, MovingLayer},
    log::{self, Head, Names},
    medium::Medium,
    memtable::Memtable,
    queue::QueuedSet,
    view::View,
    wal::Wal,
};
use crate::{
    change::{ApplyResult, DiskShare},
    error::EngineError,
    position::LogPosition,
};

type Verdict = Result<ApplyResult, EngineError>;

/// Size from which memory is moved into the tree while disk space is low.
const SHORT_MEMORY_BYTES: usize = 1024 * 1024;
/// Fraction of the memory limit above which groups wait for the mover, up to [`SLOWEST`] each.
const SLOW_FROM: f64 = 0.75;
/// Maximum time that a group waits for the mover.
const SLOWEST: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<EngineState>,
    medium: Arc<dyn Medium>,
    wal: Wal,
    head: Head,
    memory_bytes: usize,
    /// The oldest step of the change log, or an older position.
    oldest: u64,
    /// The newest position at which a definition changed, or a later one.
    definitions: u64,
    /// A group that may or may not be on disk. Its outcome must be determined before the next
    /// write.
    doubt: Option<Group>,
}

#[derive(Debug)]
struct Group {
    head: Head,
    /// The changed kinds, as a bit set of their numbers.
    kinds: u32,
    /// The oldest step of the change log after the group, or an older position.
    oldest: u64,
    /// The newest position at which a definition changed.
    definitions: u64,
    memory: Memtable,
}

struct WriteFailure {
    error: Failure,
    /// Whether the group may have been written anyway.
    is_open: bool,
}

impl<T: Into<Failure>> From<T> for WriteFailure {
    fn from(error: T) -> Self {
        Self {
            error: error.into(),
            is_open: false,
        }
    }
}

impl Drop for Writer {
    /// Releases waiting callers even if the writer panicked.
    fn drop(&mut self) {
        self.shared.queue.abandon();
        self.shared.commands.close();
    }
}

impl Writer {
    pub(super) fn new(
        shared: Arc<EngineState>,
        medium: Arc<dyn Medium>,
        wal: Wal,
        head: Head,
        memory_bytes: usize,
    ) -> Self {
        Self {
            shared,
            medium,
            wal,
            head,
            memory_bytes,
            oldest: 0,
            definitions: head.sequence,
            doubt: None,
        }
    }

    /// Runs until the queue is closed and empty, then moves all rows in memory.
    ///
    /// # Errors
    ///
    /// Returns an error if some rows are only in the log.
    pub(super) fn run(mut self) -> Result<(), EngineError> {
        while let Some(batch) = self.shared.queue.wait_for_batch() {
            self.write_batch(batch);
        }
        let emptied = self.rewrite_unsettled().and_then(|()| {
            self.flush_memory()?;
            Ok(self.shared.commands.wait_until_moved()?)
        });
        if let Err(error) = &emptied {
            tracing::warn!(?error, "failed to empty the log; the next start flushes it");
        }
        Ok(emptied?)
    }

    fn write_batch(&mut self, mut batch: Vec<QueuedSet>) {
        let verdicts = self.commit(&mut batch);
        let verdicts = verdicts.unwrap_or_else(|failure| {
            let verdicts = failed_verdicts(&batch, failure);
            let mut errors = verdicts.iter().filter_map(|it| it.as_ref().err());
            if let Some(error) = errors.next() {
                self.shared.observed.record_failure(error);
            }
            verdicts
        });
        for (set, verdict) in batch.into_iter().zip(verdicts) {
            // Fails if the caller no longer waits.
            drop(set.answer.send(verdict));
        }
    }

    fn commit(&mut self, batch: &mut [QueuedSet]) -> Result<Vec<Verdict>, WriteFailure> {
        self.rewrite_unsettled()?;
        let mut layers = self.shared.layers.get();
        if layers.tree.is_err() {
            self.shared.commands.reopen();
            layers = self.shared.layers.get();
        }
        layers.tree.as_ref().map_err(EngineError::from)?;
        let left_for = self.medium.available_share(layers.bytes() as u64);
        let mut group = Group {
            head: self.head,
            kinds: 0,
            oldest: self.oldest,
            definitions: self.definitions,
            memory: layers.active.clone(),
        };
        let laid = self.add_sets(batch, &layers, &mut group, left_for);
        if matches!(laid, Err(Failure::File(_))) {
            self.shared.commands.reopen();
        }
        let verdicts = laid?;
        if group.head == self.head {
            return Ok(verdicts);
        }
        self.write_group(group, &layers, left_for > DiskShare::AboveFloor)?;
        Ok(verdicts)
    }

    fn add_sets(
        &mut self,
        batch: &mut [QueuedSet],
        layers: &Layers,
        group: &mut Group,
        left_for: DiskShare,
    ) -> Result<Vec<Verdict>, Failure> {
        let sequence = self.head.sequence + 1;
        let mut names = Names::default();
        let mut verdicts = Vec::with_capacity(batch.len());
        self.wal.begin_frame(sequence);
        for QueuedSet { set, .. } in batch {
            if set.space < left_for {
                verdicts.push(Err(EngineError::Full("not enough free space".into())));
                continue;
            }
            let view = View::with_active(&group.memory, layers);
            let following = match compare_set(set, &view, group.definitions) {
                Ok(following) => following,
                Err(Failure::Request(error)) => {
                    verdicts.push(Err(error));
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.add(set.finish(sequence, &following), group);
            names.append(&set.names);
            group.kinds |= set.kinds;
            if set.defines {
                group.definitions = sequence;
            }
            verdicts.push(Ok(ApplyResult {
                position: LogPosition::from_number(sequence),
                version: sequence,
            }));
        }
        if verdicts.iter().any(Result::is_ok) {
            group.head = self.head.with_commit(&names);
            let steps = log_changes(layers, group, &names)?;
            self.add(steps, group);
            self.wal.end_frame();
        }
        Ok(verdicts)
    }

    fn add(&mut self, rows: Batch, group: &mut Group) {
        self.wal.push(rows.bytes());
        group.memory.add(rows.into_bytes());
    }

    fn write_group(
        &mut self,
        mut group: Group,
        layers: &Layers,
        is_short: bool,
    ) -> Result<(), WriteFailure> {
        let mut bytes_max = self.memory_bytes;
        if is_short {
            bytes_max = bytes_max.min(SHORT_MEMORY_BYTES);
        }
        let is_due = group.memory.bytes() > bytes_max || !self.wal.frame_fits();
        if is_due && !layers.active.is_empty() {
            match self.switch_log(&mut group) {
                // If the switch fails, memory may grow up to the size of the log.
                Err(_) if self.wal.frame_fits() => {}
                turned => turned?,
            }
        } else if layers.moving.is_some() {
            self.throttle(&group);
        }
        let Err(failure) = self.append_to_log() else {
            self.publish(group);
            return Ok(());
        };
        tracing::debug!(error = ?failure.error, "failed to write to the log");
        if failure.error.is_full() {
            // The released space is for sets that do not add data.
            self.medium.release_reserve();
        }
        // The other file has no part of the group, so the group is in it completely or not at all.
        let turned = self.switch_log(&mut group).map_err(WriteFailure::from);
        let Err(again) = turned.and_then(|()| self.append_to_log()) else {
            self.publish(group);
            return Ok(());
        };
        let is_open = failure.is_open || again.is_open;
        if is_open {
            self.doubt = Some(group);
        }
        let error = again.error;
        Err(WriteFailure { error, is_open })
    }

    fn append_to_log(&mut self) -> Result<(), WriteFailure> {
        self.wal.append().map_err(|unwritten| WriteFailure {
            error: Failure::File(redb::Error::Io(unwritten.error)),
            is_open: unwritten.is_open,
        })
    }

    /// Slows intake down to the speed of the mover before memory is full.
    fn throttle(&self, group: &Group) {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let memory = group.memory.bytes() as f64 / self.memory_bytes as f64;
        let over = (memory.max(self.wal.fill_ratio()) - SLOW_FROM) / (1.0 - SLOW_FROM);
        if over > 0.0 {
            std::thread::sleep(SLOWEST.mul_f64(over.min(1.0)));
        }
    }

    fn switch_log(&mut self, group: &mut Group) -> Result<(), Failure> {
        self.flush_memory()?;
        self.wal.switch_file();
        group.memory = Memtable::default();
        group.memory.add(self.wal.frame_rows().to_vec());
        Ok(())
    }

    /// Moves all rows published in memory, once the previous move has ended.
    fn flush_memory(&self) -> Result<(), Failure> {
        self.shared.commands.wait_until_moved()?;
        let through = self.head.sequence;
        let mut is_moving = false;
        self.shared.layers.update(|layers| {
            let memory = std::mem::take(&mut layers.active);
            is_moving = !memory.is_empty();
            layers.moving = is_moving.then_some(MovingLayer { memory, through });
        });
        if is_moving {
            self.shared.commands.begin_move();
        }
        Ok(())
    }

    fn publish(&mut self, group: Group) {
        self.shared.observed.record_success();
        (self.head, self.oldest) = (group.head, group.oldest);
        self.definitions = group.definitions;
        self.shared
            .publish_positions(group.kinds, group.head.sequence);
        self.shared
            .layers
            .update(|layers| layers.active = group.memory);
        let head = LogPosition::from_number(group.head.sequence);
        self.shared.head.send_replace(head);
    }

    fn rewrite_unsettled(&mut self) -> Result<(), Failure> {
        let Some(mut group) = self.doubt.take() else {
            return Ok(());
        };
        let turned = self.switch_log(&mut group).map_err(WriteFailure::from);
        if let Err(failure) = turned.and_then(|()| self.append_to_log()) {
            self.doubt = Some(group);
            return Err(failure.error);
        }
        self.publish(group);
        Ok(())
    }
}

/// Returns the changes of the change log itself: one new step, and occasionally some old ones
/// removed.
fn log_changes(layers: &Layers, group: &mut Group, names: &Names) -> Result<Batch, Failure> {
    let mut steps = Batch::default();
    let (key, cell) = log::log_row(group.head, names);
    steps.add_sealed(&key, &cell);
    for position in log::outdated_steps(&View::from_layers(layers), group.head, group.oldest)? {
        steps.add_removal(&log::log_key(position));
        group.oldest = position + 1;
    }
    Ok(steps)
}

fn failed_verdicts(batch: &[QueuedSet], failure: WriteFailure) -> Vec<Verdict> {
    if failure.is_open {
        return repeat_error(batch, || indeterminate_error(&failure.error));
    }
    let error = EngineError::from(failure.error);
    repeat_error(batch, || match &error {
        EngineError::Full(_) | EngineError::Corrupt(_) | EngineError::Unavailable(_) => {
            error.copy_for_caller()
        }
        other => EngineError::Unavailable(other.to_string()),
    })
}

fn repeat_error(batch: &[QueuedSet], error: impl Fn() -> EngineError) -> Vec<Verdict> {
    batch.iter().map(|_| Err(error())).collect()
}

fn indeterminate_error(error: &Failure) -> EngineError {
    EngineError::Indeterminate(format!("{error:?}").into())
}
