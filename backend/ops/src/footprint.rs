//! Disk and memory usage of the service.

use std::{fs, io, path::PathBuf};

use bellwether_proto::v1::Footprint;
use tokio::task::spawn_blocking;

use crate::{store::Store, wire::to_i64};

/// Measures the usage; `None` for values that cannot be determined.
pub async fn measure(store: &Store, data_dir: PathBuf) -> Footprint {
    let measured = spawn_blocking(move || (store_bytes(data_dir).ok(), memory_bytes()));
    let (store_size, memory) = measured.await.unwrap_or_default();
    // The data of a shared store is in a database, not in the folder.
    let is_in_folder = !store.engine().is_shared();
    let free = store.engine().free_space().map(|space| space.free_bytes);
    Footprint {
        store_bytes: store_size.filter(|_| is_in_folder).map(to_i64),
        free_bytes: free.map(to_i64),
        memory_bytes: memory.map(to_i64),
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
        let found = measure(&Store::in_memory(), nowhere).await;
        assert_eq!(found.store_bytes, None);
        assert_eq!(found.memory_bytes.is_some(), cfg!(target_os = "linux"));
    }
}
