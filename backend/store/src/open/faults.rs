//! Disk failures for tests: some calls in a folder fail after a number of successful ones.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use redb::StorageBackend;

static PLANS: Mutex<Vec<FaultPlan>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct FaultPlan {
    folder: PathBuf,
    successes_left: u64,
    failures_left: u64,
    error: i32,
    was_hit: bool,
}

#[derive(Debug)]
pub(crate) struct Faults(PathBuf);

impl Faults {
    /// Fails `failures` calls in a folder with a system error, after `calls` successful ones.
    pub(crate) fn fail_after(folder: &Path, calls: u64, failures: u64, error: i32) -> Self {
        lock_plans().push(FaultPlan {
            folder: folder.into(),
            successes_left: calls,
            failures_left: failures,
            error,
            was_hit: false,
        });
        Self(folder.into())
    }

    pub(crate) fn was_hit(&self) -> bool {
        lock_plans()
            .iter()
            .any(|it| it.folder == self.0 && it.was_hit)
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        lock_plans().retain(|it| it.folder != self.0);
    }
}

fn lock_plans() -> MutexGuard<'static, Vec<FaultPlan>> {
    PLANS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn call(path: &Path) -> io::Result<()> {
    let mut plans = lock_plans();
    let Some(plan) = plans.iter_mut().find(|it| path.starts_with(&it.folder)) else {
        return Ok(());
    };
    if plan.successes_left > 0 {
        plan.successes_left -= 1;
        return Ok(());
    }
    if plan.failures_left == 0 {
        return Ok(());
    }
    plan.failures_left -= 1;
    plan.was_hit = true;
    Err(io::Error::from_raw_os_error(plan.error))
}

/// A file whose calls can fail; a failed write is partial.
#[derive(Debug)]
pub(super) struct FaultyFile {
    pub(super) file: Box<dyn StorageBackend>,
    pub(super) path: PathBuf,
}

impl StorageBackend for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        call(&self.path)?;
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        call(&self.path)?;
        self.file.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        call(&self.path)?;
        self.file.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        call(&self.path)?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let allowed = call(&self.path);
        let part = if allowed.is_ok() {
            data.len()
        } else {
            data.len() / 2
        };
        self.file.write(offset, &data[..part])?;
        allowed
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}
