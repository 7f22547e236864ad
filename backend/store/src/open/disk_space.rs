//! Free disk space, and a reserve for a full disk.
//!
//! On a full disk even a delete fails, because the replacement has to be written first. Therefore a
//! reserve file is kept, and removed when the disk is full.

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
/// Growth of the file per byte of log: pages are replaced before the old ones are free.
const GROWTH: u64 = 2;
const READING_AGE_MAX: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct DiskSpace {
    folder: PathBuf,
    floor_bytes: u64,
    state: Mutex<SpaceState>,
}

#[derive(Debug, Default)]
struct SpaceState {
    last: Option<SpaceReading>,
    /// Whether the reserve was removed, and there has not been enough space for a new one since.
    is_spent: bool,
}

#[derive(Debug, Clone, Copy)]
struct SpaceReading {
    at: Instant,
    left_for: DiskShare,
}

impl DiskSpace {
    pub(super) fn new(folder: &Folder, floor_bytes: u64) -> Self {
        let space = Self {
            folder: folder.path().into(),
            floor_bytes,
            state: Mutex::default(),
        };
        space.available_share(0);
        space
    }

    pub(super) fn free_space(&self, bytes_on_way: u64) -> Option<FreeSpace> {
        Some(FreeSpace {
            free_bytes: self.free_bytes()?,
            floor_bytes: self.floor_bytes(bytes_on_way),
        })
    }

    fn floor_bytes(&self, bytes_on_way: u64) -> u64 {
        let needed = bytes_on_way.saturating_mul(GROWTH);
        self.floor_bytes.saturating_add(needed)
    }

    pub(super) fn is_read_only(&self) -> bool {
        let disk = rustix::fs::statvfs(&self.folder);
        disk.is_ok_and(|disk| disk.f_flag.contains(StatVfsMountFlags::RDONLY))
    }

    /// Returns the share of the free space that sets may use. Reads the free space at most ten
    /// times per second.
    pub(super) fn available_share(&self, bytes_on_way: u64) -> DiskShare {
        let floor_bytes = self.floor_bytes(bytes_on_way);
        let mut state = self.lock_state();
        if let Some(reading) = state
            .last
            .filter(|reading| reading.at.elapsed() < READING_AGE_MAX)
        {
            return reading.left_for;
        }
        // If the system does not report the free space, writes continue until the disk is full.
        let free_bytes = self.free_bytes().unwrap_or(u64::MAX);
        if free_bytes >= floor_bytes.saturating_add(2 * RESERVE_BYTES) {
            self.create_reserve();
            state.is_spent = false;
        }
        let space = FreeSpace {
            free_bytes,
            floor_bytes,
        };
        let mut left_for = space.available_share();
        if state.is_spent {
            left_for = left_for.max(DiskShare::Reserve);
        }
        let at = Instant::now();
        state.last = Some(SpaceReading { at, left_for });
        left_for
    }

    pub(super) fn release_reserve(&self) -> bool {
        let mut state = self.lock_state();
        let is_released = fs::remove_file(self.reserve_path()).is_ok();
        // The released space is for changes in progress, so no data is added until there is more.
        state.is_spent |= is_released;
        state.last = Some(SpaceReading {
            at: Instant::now(),
            left_for: DiskShare::All,
        });
        is_released
    }

    fn lock_state(&self) -> MutexGuard<'_, SpaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn create_reserve(&self) {
        let path = self.reserve_path();
        // A reserve truncated by a crash is too small.
        let length = fs::metadata(&path).map(|it| it.len());
        if length.is_ok_and(|length| length >= RESERVE_BYTES) {
            return;
        }
        let reserved = private_file().create(true).truncate(true).open(&path);
        let reserved = reserved.and_then(|file| allocate_file(&file));
        if let Err(error) = reserved {
            tracing::debug!(%error, "cannot reserve disk space for use when the disk is full");
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

fn allocate_file(file: &File) -> std::io::Result<()> {
    rustix::fs::fallocate(file, FallocateFlags::empty(), 0, RESERVE_BYTES)?;
    Ok(())
}
