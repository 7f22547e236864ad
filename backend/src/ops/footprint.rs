//! Disk and memory usage of the service.

use std::{fs, io, path::PathBuf};

use tokio::task::spawn_blocking;

use crate::store::Store;

/// Disk and memory usage of the service; `None` for values that cannot be determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Size of the files in the data folder, in bytes.
    pub store: Option<u64>,
    /// Free space on its disk, in bytes.
    pub free: Option<u64>,
    pub memory: Option<u64>,
}

impl Footprint {
    pub async fn measure(store: &Store, data_dir: PathBuf) -> Self {
        let measured = spawn_blocking(move || (store_bytes(data_dir).ok(), memory_bytes()));
        let (store_size, memory) = measured.await.unwrap_or_default();
        // The data of a shared store is in a database, not in the folder.
        let is_in_folder = !store.engine().is_shared();
        Self {
            store: store_size.filter(|_| is_in_folder),
            free: store.engine().free_space().map(|space| space.free_bytes),
            memory,
        }
    }
}

pub fn store_bytes(data_dir: PathBuf) -> io::Result<u64> {
    let files = fs::read_dir(data_dir)?.filter_map(Result::ok);
    let known = files.filter_map(|file| file.metadata().ok());
    let sizes = known.filter(fs::Metadata::is_file);
    Ok(sizes.map(|file| file.len()).sum())
}

fn memory_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = resident.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unavailable_measurements_are_none() {
        let nowhere = PathBuf::from("/nowhere/at/all");
        let found = Footprint::measure(&Store::in_memory(), nowhere).await;
        assert_eq!(found.store, None);
        assert_eq!(found.memory.is_some(), cfg!(target_os = "linux"));
    }
}
