//! A disk in memory that can lose power, fail and fill up.
//!
//! A failed sync behaves as on Linux: some of the pages were written, all of them count as clean
//! from then on, and no later sync writes them, even one that succeeds. They stay readable, or are
//! evicted and read from the disk again ([`SimulatedDisk::evict_failed_pages`]). The length of a
//! file is metadata and survives.
//!
//! After a loss of power, a sector of the tree is old or new, and its neighbours are unchanged. A
//! sector of the log that was being written may contain anything; the mark at the start of a file
//! is old or new.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rand::{Rng, rngs::StdRng, seq::SliceRandom};
use redb::StorageBackend;

use crate::{DiskShare, redb::Medium};

const SECTOR_BYTES: usize = 512;

/// A disk in memory. Clones share the same disk.
#[derive(Debug, Clone, Default)]
pub struct SimulatedDisk(Arc<Mutex<State>>);

/// Number of files: the tree, then the log files.
const FILES: usize = 3;

#[derive(Default)]
struct State {
    /// Current content, as read.
    live: [Vec<u8>; FILES],
    /// Content that certainly survives a loss of power.
    durable: [Vec<u8>; FILES],
    /// Writes since the last sync of their file, in order across all files.
    unsynced: Vec<(usize, UnsyncedChange)>,
    checksums: Option<Vec<u8>>,
    journal: Option<Vec<u8>>,
    /// Bytes read from the tree.
    read_bytes: usize,
    power_left: Option<u64>,
    /// Number of operations that succeed before some fail.
    successes_left: Option<u64>,
    failures_left: u64,
    failure: Option<io::ErrorKind>,
    /// Whether pages are evicted after a failed sync.
    evicts: bool,
    /// Capacity in bytes; `None` means unlimited.
    capacity: Option<usize>,
    /// Reserved bytes.
    reserve: usize,
    /// Number of the current life; files opened in an earlier one no longer work.
    life: u64,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("State");
        shown
            .field("bytes", &self.live.each_ref().map(Vec::len))
            .finish_non_exhaustive()
    }
}

enum UnsyncedChange {
    Length(usize),
    Sector(usize, Vec<u8>),
}

#[derive(Debug)]
struct OpenFile {
    disk: SimulatedDisk,
    number: usize,
    life: u64,
}

impl SimulatedDisk {
    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_file(&self, number: usize) -> io::Result<Box<dyn StorageBackend>> {
        let mut state = self.lock_state();
        let life = state.life;
        state.begin_operation(life)?;
        Ok(Box::new(OpenFile {
            disk: self.clone(),
            number,
            life,
        }))
    }

    /// Fails the power after `operations` more operations.
    pub fn fail_power_after(&self, operations: u64) {
        self.lock_state().power_left = Some(operations);
    }

    /// Restores the power: of the unsynced writes, all, none or a random subset was written, in any
    /// order, and some are torn.
    pub fn restore_power(&self, random: &mut StdRng) {
        let mut state = self.lock_state();
        let mut unsynced = std::mem::take(&mut state.unsynced);
        let mut images = std::mem::take(&mut state.durable);
        match random.random_range(0..4) {
            // Either all unsynced writes were written (0), or none (1).
            0 => {}
            1 => unsynced.clear(),
            _ => {
                let retained = random.random_range(0.0..1.0);
                unsynced.retain(|_| random.random_bool(retained));
                if random.random_bool(0.5) {
                    unsynced.shuffle(random);
                }
            }
        }
        for (file, write) in &mut unsynced {
            if *file > 0 && random.random_bool(0.1) {
                write.corrupt_sector(random);
            }
        }
        // If a length is lost, the data after that offset is lost too.
        let is_length = |write: &UnsyncedChange| matches!(write, UnsyncedChange::Length(_));
        for (file, write) in unsynced.iter().filter(|(_, write)| is_length(write)) {
            write.apply(&mut images[*file]);
        }
        for (file, write) in unsynced.iter().filter(|(_, write)| !is_length(write)) {
            write.apply(&mut images[*file]);
        }
        state.live.clone_from(&images);
        state.durable = images;
        state.journal = None;
        (state.power_left, state.successes_left) = (None, None);
        state.life += 1;
    }

    /// Simulates `kill -9` of the process that uses the disk: all writes remain, synced or not.
    pub fn kill_process(&self) {
        let mut state = self.lock_state();
        (state.power_left, state.successes_left) = (None, None);
        state.life += 1;
    }

    /// Returns the number of bytes read from the tree since the last call.
    pub fn read_bytes(&self) -> usize {
        std::mem::take(&mut self.lock_state().read_bytes)
    }

    /// Fails one operation after `operations` successful ones.
    pub fn fail_after(&self, operations: u64) {
        self.fail_some_after(operations, 1);
    }

    /// Fails `failures` consecutive operations after `operations` successful ones.
    pub fn fail_some_after(&self, operations: u64, failures: u64) {
        let mut state = self.lock_state();
        (state.successes_left, state.failures_left) = (Some(operations), failures);
    }

    pub fn evict_failed_pages(&self) {
        self.lock_state().evicts = true;
    }

    /// Sets the error that failing operations return, instead of the default.
    pub fn fail_with(&self, kind: io::ErrorKind) {
        self.lock_state().failure = Some(kind);
    }

    /// Limits the space to `free` bytes beyond the current content, plus a reserve.
    pub fn limit_space(&self, free: usize, reserve: usize) {
        let mut state = self.lock_state();
        state.capacity = Some(state.used_blocks() + free + reserve);
        state.reserve = reserve;
    }

    /// Removes the space limit.
    pub fn free_space(&self) {
        self.lock_state().capacity = None;
    }

    /// Deletes the journal of checksums, as a reboot does.
    pub fn forget_journal(&self) {
        self.lock_state().journal = None;
    }

    pub fn forget_checksums(&self) {
        self.lock_state().checksums = None;
    }

    /// Returns a copy of the disk with one bit flipped: in the tree, in its journal or in the
    /// written part of the log.
    #[must_use]
    pub fn with_flipped_bit(&self, random: &mut StdRng) -> Self {
        let other = self.copy();
        {
            let mut state = other.lock_state();
            let State { live, journal, .. } = &mut *state;
            let mut parts: Vec<&mut [u8]> = live.iter_mut().map(|file| trim_zeros(file)).collect();
            parts.extend(journal.as_deref_mut());
            parts.retain(|part| !part.is_empty());
            let is_of_tree = random.random_bool(0.5);
            let at = if is_of_tree {
                0
            } else {
                random.random_range(0..parts.len())
            };
            let part = &mut parts[at];
            let bit = random.random_range(0..part.len() * 8);
            part[bit / 8] ^= 1 << (bit % 8);
        }
        other.make_durable();
        other
    }

    #[must_use]
    pub fn copy(&self) -> Self {
        let state = self.lock_state();
        Self(Arc::new(Mutex::new(State {
            live: state.live.clone(),
            durable: state.live.clone(),
            checksums: state.checksums.clone(),
            journal: state.journal.clone(),
            ..State::default()
        })))
    }

    /// Returns a copy of the disk as if the power failed now and no unsynced write arrived.
    #[must_use]
    pub fn without_unsynced(&self) -> Self {
        let state = self.lock_state();
        Self(Arc::new(Mutex::new(State {
            live: state.durable.clone(),
            durable: state.durable.clone(),
            ..State::default()
        })))
    }

    pub fn edit_bytes(&self, file: usize, edit: impl FnOnce(&mut Vec<u8>)) {
        edit(&mut self.lock_state().live[file]);
        self.make_durable();
    }

    /// Makes all current content durable.
    fn make_durable(&self) {
        let mut state = self.lock_state();
        let live = state.live.clone();
        state.durable = live;
        state.unsynced.clear();
    }
}

fn trim_zeros(file: &mut [u8]) -> &mut [u8] {
    let end = file.iter().rposition(|byte| *byte != 0);
    &mut file[..end.map_or(0, |end| end + 1)]
}

impl State {
    /// Returns the number of allocated blocks: those ever written. Holes between them take no
    /// space.
    fn used_blocks(&self) -> usize {
        let blocks = self.live[0].chunks(4096);
        let written = blocks.filter(|block| block.iter().any(|byte| *byte != 0));
        // The log is allocated in full, as it is filled with zeros.
        let log: usize = self.live[1..].iter().map(Vec::len).sum();
        written.count() * 4096 + log + self.reserve
    }

    fn has_power(&self, life: u64) -> bool {
        self.life == life && self.power_left != Some(0)
    }

    fn begin_operation(&mut self, life: u64) -> io::Result<()> {
        if !self.has_power(life) {
            return Err(io::Error::other("the power is off"));
        }
        if let Some(left) = &mut self.power_left {
            *left -= 1;
        }
        match &mut self.successes_left {
            Some(0) => {
                self.failures_left = self.failures_left.saturating_sub(1);
                if self.failures_left == 0 {
                    self.successes_left = None;
                }
                let kind = self.failure.unwrap_or(io::ErrorKind::Other);
                return Err(io::Error::new(kind, "the operation failed"));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }

    fn take_unsynced(&mut self, file: usize) -> Vec<UnsyncedChange> {
        let unsynced = std::mem::take(&mut self.unsynced).into_iter();
        let (drained, others): (Vec<_>, _) = unsynced.partition(|(number, _)| *number == file);
        self.unsynced = others;
        drained.into_iter().map(|(_, write)| write).collect()
    }

    /// Fails to sync a file: every other page is written, and all are marked clean.
    fn fail_sync(&mut self, file: usize) {
        let mut is_written = false;
        for write in self.take_unsynced(file) {
            if let UnsyncedChange::Length(_) = write {
                // Written later, with the metadata of the file.
                write.apply(&mut self.durable[file]);
                continue;
            }
            is_written = !is_written;
            if is_written {
                write.apply(&mut self.durable[file]);
            }
        }
        if self.evicts {
            self.live[file].clone_from(&self.durable[file]);
        }
    }
}

impl UnsyncedChange {
    /// Replaces a sector with arbitrary bytes, unless it has the mark of a file.
    fn corrupt_sector(&mut self, random: &mut StdRng) {
        if let Self::Sector(1.., data) = self {
            random.fill(data.as_mut_slice());
        }
    }

    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Self::Length(length) => resize_buffer(image, *length),
            Self::Sector(at, data) => {
                if let Some(position) = image.get_mut(*at..*at + data.len()) {
                    position.copy_from_slice(data);
                }
            }
        }
    }
}

/// Like `Vec::resize`, which is slow for bytes without optimization.
fn resize_buffer(bytes: &mut Vec<u8>, length: usize) {
    let added = length.saturating_sub(bytes.len());
    bytes.extend_from_slice(&vec![0; added]);
    bytes.truncate(length);
}

impl Medium for SimulatedDisk {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        self.open_file(0)
    }

    fn open_log(&self, number: usize) -> io::Result<Box<dyn StorageBackend>> {
        self.open_file(1 + number)
    }

    fn available_share(&self, _bytes_on_way: u64) -> DiskShare {
        let state = self.lock_state();
        match state.capacity {
            Some(_) if state.reserve == 0 => DiskShare::All,
            _ => DiskShare::AboveFloor,
        }
    }

    fn release_reserve(&self) -> bool {
        std::mem::take(&mut self.lock_state().reserve) > 0
    }

    fn checksums(&self) -> Option<Vec<u8>> {
        self.lock_state().checksums.clone()
    }

    fn store_checksums(&self, checksums: &[u8]) -> io::Result<()> {
        let mut state = self.lock_state();
        let life = state.life;
        state.begin_operation(life)?;
        state.checksums = Some(checksums.into());
        Ok(())
    }

    fn journal(&self) -> Option<Vec<u8>> {
        self.lock_state().journal.clone()
    }

    fn begin_journal(&self, start: &[u8]) -> io::Result<Option<Box<dyn Write + Send + Sync>>> {
        let mut state = self.lock_state();
        let life = state.life;
        state.begin_operation(life)?;
        state.journal = Some(start.into());
        Ok(Some(Box::new(OpenJournal {
            disk: self.clone(),
            life,
        })))
    }

    fn end_journal(&self) {
        self.lock_state().journal = None;
    }
}

#[derive(Debug)]
struct OpenJournal {
    disk: SimulatedDisk,
    life: u64,
}

impl Write for OpenJournal {
    fn write(&mut self, note: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.lock_state();
        state.begin_operation(self.life)?;
        // A process killed during the write leaves a part of it.
        let part = note.len().div_ceil(2);
        if let Some(journal) = &mut state.journal {
            journal.extend_from_slice(&note[..part]);
        }
        Ok(part)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StorageBackend for OpenFile {
    fn len(&self) -> io::Result<u64> {
        let mut state = self.disk.lock_state();
        state.begin_operation(self.life)?;
        Ok(state.live[self.number].len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.lock_state();
        state.begin_operation(self.life)?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let found = state.live[self.number].get(offset..offset + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        if self.number == 0 {
            state.read_bytes += out.len();
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.lock_state();
        state.begin_operation(self.life)?;
        let length = usize::try_from(length).map_err(io::Error::other)?;
        let growth = length.saturating_sub(state.live[self.number].len());
        let is_over = |capacity| state.used_blocks() + growth > capacity;
        if self.number > 0 && growth > 0 && state.capacity.is_some_and(is_over) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        resize_buffer(&mut state.live[self.number], length);
        state
            .unsynced
            .push((self.number, UnsyncedChange::Length(length)));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.lock_state();
        let is_on = state.has_power(self.life);
        if let Err(error) = state.begin_operation(self.life) {
            if is_on {
                state.fail_sync(self.number);
            }
            return Err(error);
        }
        for write in state.take_unsynced(self.number) {
            write.apply(&mut state.durable[self.number]);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.disk.lock_state();
        let is_on = state.has_power(self.life);
        let operated = state.begin_operation(self.life);
        // A failed write writes a part of its data if there is power.
        let data = match operated {
            Ok(()) => data,
            Err(_) if is_on => &data[..data.len() / 2 / SECTOR_BYTES * SECTOR_BYTES],
            Err(_) => &[],
        };
        let mut at = usize::try_from(offset).map_err(io::Error::other)?;
        if let Some(capacity) = state.capacity.filter(|_| self.number == 0) {
            let position = state.live[self.number]
                .get(at..at + data.len())
                .unwrap_or_default();
            let is_new = position.iter().all(|byte| *byte == 0);
            if is_new && state.used_blocks() + data.len() > capacity {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        for sector in data.chunks(SECTOR_BYTES) {
            let write = UnsyncedChange::Sector(at, sector.into());
            write.apply(&mut state.live[self.number]);
            state.unsynced.push((self.number, write));
            at += sector.len();
        }
        operated
    }
}
