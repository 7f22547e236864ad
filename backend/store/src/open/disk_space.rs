//! Space on the disk: how much is free, and a reserve for when there is none.
//!
//! On a full disk even a delete fails, because what replaces the deleted must be written first. So
//! a file of no use is kept, and given up when the disk is full.

use std::{
    fs::{self, File},
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::fs::{FallocateFlags, StatVfsMountFlags};

use super::folder::{Folder, private_file};
use crate::engine::{DiskShare, FreeSpace};

const RESERVE_BYTES: u64 = 8 * 1024 * 1024;
/// The size of a row in the file relative to the log, in bytes per byte: pages are replaced before
/// the old ones are free.
const GROWTH: u64 = 2;
/// How long a reading of the free space holds.
const READING_AGE_MAX: Duration = Duration::from_millis(100);

/// Space on the disk of a folder.
#[derive(Debug)]
pub(super) struct DiskSpace {
    folder: PathBuf,
    floor_bytes: u64,
    state: Mutex<SpaceState>,
}

#[derive(Debug, Default)]
struct SpaceState {
    last: Option<SpaceReading>,
    /// Whether the reserve was given up, and there was not room enough for another one since.
    is_spent: bool,
}

#[derive(Debug, Clone, Copy)]
struct SpaceReading {
    at: Instant,
    left_for: DiskShare,
}

impl DiskSpace {
    /// The space beside a folder, with a reserve when there is room for one.
    pub(super) fn new(folder: &Folder, floor_bytes: u64) -> Self {
        let space = Self {
            folder: folder.path().into(),
            floor_bytes,
            state: Mutex::default(),
        };
        space.left_for(0);
        space
    }

    /// How much is free; none when the system does not tell.
    pub(super) fn free_space(&self, bytes_on_way: u64) -> Option<FreeSpace> {
        Some(FreeSpace {
            free_bytes: self.free_bytes()?,
            floor_bytes: self.floor_bytes(bytes_on_way),
        })
    }

    /// What has to be free: what rows on their way from the log into the file may take there, too.
    fn floor_bytes(&self, bytes_on_way: u64) -> u64 {
        let needed = bytes_on_way.saturating_mul(GROWTH);
        self.floor_bytes.saturating_add(needed)
    }

    /// Whether the folder's file system accepts no writes.
    pub(super) fn is_read_only(&self) -> bool {
        let disk = rustix::fs::statvfs(&self.folder);
        disk.is_ok_and(|disk| disk.f_flag.contains(StatVfsMountFlags::RDONLY))
    }

    /// Returns which sets of changes there is space for; reads the free space ten times a second at most.
    pub(super) fn left_for(&self, bytes_on_way: u64) -> DiskShare {
        let floor_bytes = self.floor_bytes(bytes_on_way);
        let mut state = self.state();
        if let Some(reading) = state
            .last
            .filter(|reading| reading.at.elapsed() < READING_AGE_MAX)
        {
            return reading.left_for;
        }
        // A system that does not tell is no reason to stop: the full disk itself will.
        let free_bytes = self.free_bytes().unwrap_or(u64::MAX);
        if free_bytes >= floor_bytes.saturating_add(2 * RESERVE_BYTES) {
            self.reserve();
            state.is_spent = false;
        }
        let space = FreeSpace {
            free_bytes,
            floor_bytes,
        };
        let mut left_for = space.left_for();
        if state.is_spent {
            left_for = left_for.max(DiskShare::Reserve);
        }
        let at = Instant::now();
        state.last = Some(SpaceReading { at, left_for });
        left_for
    }

    /// Gives up the reserve; whether there was one.
    pub(super) fn release_reserve(&self) -> bool {
        let mut state = self.state();
        let is_released = fs::remove_file(self.reserve_path()).is_ok();
        // What was released is for what is under way, so nothing is added until there is more.
        state.is_spent |= is_released;
        state.last = Some(SpaceReading {
            at: Instant::now(),
            left_for: DiskShare::All,
        });
        is_released
    }

    fn state(&self) -> MutexGuard<'_, SpaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserve(&self) {
        let path = self.reserve_path();
        // One that a crash left shorter is no reserve.
        let length = fs::metadata(&path).map(|it| it.len());
        if length.is_ok_and(|length| length >= RESERVE_BYTES) {
            return;
        }
        let reserved = private_file().create(true).truncate(true).open(&path);
        let reserved = reserved.and_then(|file| allocate(&file));
        if let Err(error) = reserved {
            tracing::debug!(%error, "no reserve for a full disk");
            drop(fs::remove_file(path));
        }
    }

    fn reserve_path(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    fn free_bytes(&self) -> Option<u64> {
        let disk = rustix::fs::statvfs(&self.folder).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }
}

fn allocate(file: &File) -> std::io::Result<()> {
    rustix::fs::fallocate(file, FallocateFlags::empty(), 0, RESERVE_BYTES)?;
    Ok(())
}
