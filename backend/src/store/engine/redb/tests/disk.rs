//! A disk in memory that can lose power, fail and fill up.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rand::{Rng, rngs::StdRng, seq::SliceRandom};
use redb::StorageBackend;

use super::super::Medium;

const SECTOR_BYTES: usize = 512;

/// A disk in memory. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimulatedDisk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// What is read.
    live: Vec<u8>,
    /// What is there after a loss of power at the least.
    durable: Vec<u8>,
    /// What was written since the last sync.
    unsynced: Vec<Unsynced>,
    checksums: Option<Vec<u8>>,
    journal: Option<Vec<u8>>,
    /// Bytes that were read.
    read_bytes: usize,
    /// Operations until the power fails.
    power_left: Option<u64>,
    /// Operations until one fails.
    good_left: Option<u64>,
    /// Bytes that fit.
    capacity: Option<usize>,
    /// Bytes held back.
    reserve: usize,
    /// Files opened before belong to an earlier life.
    life: u64,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("State");
        shown
            .field("bytes", &self.live.len())
            .finish_non_exhaustive()
    }
}

enum Unsynced {
    Length(usize),
    Sector(usize, Vec<u8>),
}

/// An open file of a disk.
#[derive(Debug)]
struct OpenFile {
    disk: SimulatedDisk,
    life: u64,
}

impl SimulatedDisk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the power fail after so many more operations.
    pub(crate) fn fail_power_after(&self, operations: u64) {
        self.state().power_left = Some(operations);
    }

    /// Puts the power back: of what was not synced, any sectors are there, torn in any order.
    pub(crate) fn restore_power(&self, random: &mut StdRng) {
        let mut state = self.state();
        let mut unsynced = std::mem::take(&mut state.unsynced);
        let mut image = std::mem::take(&mut state.durable);
        match random.random_range(0..4) {
            // Everything arrived, or nothing did.
            0 => {}
            1 => unsynced.clear(),
            _ => {
                let kept = random.random_range(0.0..1.0);
                unsynced.retain(|_| random.random_bool(kept));
                if random.random_bool(0.5) {
                    unsynced.shuffle(random);
                }
            }
        }
        // A length that is lost takes what lies behind it along.
        for write in unsynced
            .iter()
            .filter(|write| matches!(write, Unsynced::Length(_)))
        {
            write.apply(&mut image);
        }
        for write in unsynced
            .iter()
            .filter(|write| matches!(write, Unsynced::Sector(..)))
        {
            write.apply(&mut image);
        }
        state.live.clone_from(&image);
        state.durable = image;
        state.journal = None;
        state.power_left = None;
        state.life += 1;
    }

    /// Ends whoever has it open as `kill -9` would: what was written is there, synced or not.
    pub(crate) fn kill(&self) {
        let mut state = self.state();
        state.power_left = None;
        state.life += 1;
    }

    /// How many bytes were read since that was last asked.
    pub(crate) fn read_bytes(&self) -> usize {
        std::mem::take(&mut self.state().read_bytes)
    }

    /// Has one operation fail after so many that do not.
    pub(crate) fn fail_after(&self, operations: u64) {
        self.state().good_left = Some(operations);
    }

    /// Lets so many bytes fit beyond those that are there, with so many held back.
    pub(crate) fn limit_room(&self, free: usize, reserve: usize) {
        let mut state = self.state();
        state.capacity = Some(state.used() + free + reserve);
        state.reserve = reserve;
    }

    /// Makes room for everything.
    pub(crate) fn free_room(&self) {
        self.state().capacity = None;
    }

    /// Has the journal of sums be lost, as when the machine was off.
    pub(crate) fn forget_journal(&self) {
        self.state().journal = None;
    }

    /// Has the sums of the blocks be lost.
    pub(crate) fn forget_checksums(&self) {
        self.state().checksums = None;
    }

    /// Another disk with the same content, one bit of it flipped.
    pub(crate) fn with_flipped_bit(&self, random: &mut StdRng) -> Self {
        let state = self.state();
        let (mut image, mut journal) = (state.live.clone(), state.journal.clone());
        let journal_bytes = journal.as_ref().map_or(0, Vec::len);
        let bit = random.random_range(0..(image.len() + journal_bytes) * 8);
        let (at, mask) = (bit / 8, 1 << (bit % 8));
        match (image.get_mut(at), &mut journal) {
            (Some(byte), _) => *byte ^= mask,
            (None, Some(journal)) => journal[at - image.len()] ^= mask,
            (None, None) => unreachable!("there is no other byte"),
        }
        Self(Arc::new(Mutex::new(State {
            live: image.clone(),
            durable: image,
            checksums: state.checksums.clone(),
            journal,
            ..State::default()
        })))
    }
}

impl State {
    /// Blocks that were ever written take room; what lies between them does not.
    fn used(&self) -> usize {
        let blocks = self.live.chunks(4096);
        let written = blocks.filter(|block| block.iter().any(|byte| *byte != 0));
        written.count() * 4096 + self.reserve
    }

    fn operate(&mut self, life: u64) -> io::Result<()> {
        if self.life != life || self.power_left == Some(0) {
            return Err(io::Error::other("the power is off"));
        }
        if let Some(left) = &mut self.power_left {
            *left -= 1;
        }
        match &mut self.good_left {
            Some(0) => {
                self.good_left = None;
                return Err(io::Error::other("the operation failed"));
            }
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }
}

impl Unsynced {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Self::Length(length) => image.resize(*length, 0),
            Self::Sector(at, data) => {
                if let Some(place) = image.get_mut(*at..*at + data.len()) {
                    place.copy_from_slice(data);
                }
            }
        }
    }
}

impl Medium for SimulatedDisk {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        let mut state = self.state();
        let life = state.life;
        state.operate(life)?;
        Ok(Box::new(OpenFile {
            disk: self.clone(),
            life,
        }))
    }

    fn is_short(&self) -> bool {
        let state = self.state();
        state.capacity.is_some() && state.reserve == 0
    }

    fn release_reserve(&self) -> bool {
        std::mem::take(&mut self.state().reserve) > 0
    }

    fn checksums(&self) -> Option<Vec<u8>> {
        self.state().checksums.clone()
    }

    fn keep_checksums(&self, checksums: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let life = state.life;
        state.operate(life)?;
        state.checksums = Some(checksums.into());
        Ok(())
    }

    fn journal(&self) -> Option<Vec<u8>> {
        self.state().journal.clone()
    }

    fn begin_journal(&self, start: &[u8]) -> io::Result<Option<Box<dyn Write + Send + Sync>>> {
        let mut state = self.state();
        let life = state.life;
        state.operate(life)?;
        state.journal = Some(start.into());
        Ok(Some(Box::new(OpenJournal {
            disk: self.clone(),
            life,
        })))
    }

    fn end_journal(&self) {
        self.state().journal = None;
    }
}

/// An open journal of a disk.
#[derive(Debug)]
struct OpenJournal {
    disk: SimulatedDisk,
    life: u64,
}

impl Write for OpenJournal {
    fn write(&mut self, note: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.operate(self.life)?;
        // Who is killed meanwhile leaves a part.
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
        let mut state = self.disk.state();
        state.operate(self.life)?;
        Ok(state.live.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operate(self.life)?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let found = state.live.get(offset..offset + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        state.read_bytes += out.len();
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operate(self.life)?;
        let length = usize::try_from(length).map_err(io::Error::other)?;
        state.live.resize(length, 0);
        state.unsynced.push(Unsynced::Length(length));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operate(self.life)?;
        for write in std::mem::take(&mut state.unsynced) {
            write.apply(&mut state.durable);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operate(self.life)?;
        let mut at = usize::try_from(offset).map_err(io::Error::other)?;
        if let Some(capacity) = state.capacity {
            let place = state.live.get(at..at + data.len()).unwrap_or_default();
            let is_new = place.iter().all(|byte| *byte == 0);
            if is_new && state.used() + data.len() > capacity {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        for sector in data.chunks(SECTOR_BYTES) {
            let write = Unsynced::Sector(at, sector.into());
            write.apply(&mut state.live);
            state.unsynced.push(write);
            at += sector.len();
        }
        Ok(())
    }
}
