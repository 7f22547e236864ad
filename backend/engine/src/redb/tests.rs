//! Tests of the disk engine on disks that lose data, fail, and fill up.

mod faults;
mod flips;
mod log;
mod loss;
mod power;
mod snapshot;
mod unions;

use std::sync::Arc;

use super::{Medium, RedbEngine, Settings};
use crate::error::EngineError;
use crate::testing::simulated_disk::SimulatedDisk;

const SETTINGS: Settings = Settings {
    quick_repair_from: 0,
    ..Settings::with_cache(1024 * 1024)
};

fn open(disk: &SimulatedDisk) -> Result<RedbEngine, EngineError> {
    open_with(disk, SETTINGS)
}

fn open_with(disk: &SimulatedDisk, settings: Settings) -> Result<RedbEngine, EngineError> {
    let medium: Arc<dyn Medium> = Arc::new(disk.clone());
    RedbEngine::open(medium, settings)
}

/// Little memory: every few sets are moved into the tree, and runs are merged all the time.
const NARROW: Settings = Settings {
    memory_bytes: 4 * 1024,
    log_bytes: 16 * 1024,
    fan: 2,
    ..SETTINGS
};

/// Memory for a few thousand rows.
const MIDDLE: Settings = Settings {
    memory_bytes: 1024 * 1024,
    fan: 2,
    ..SETTINGS
};

/// Runs the conformance tests with these settings.
macro_rules! conforms {
    ($name:ident, $settings:expr) => {
        mod $name {
            use super::*;
            use crate::conformance;

            conformance!({
                let disk = SimulatedDisk::default();
                (open_with(&disk, $settings).unwrap(), disk)
            });
        }
    };
}

conforms!(conforms_in_memory, SETTINGS);
conforms!(conforms_with_little_memory, NARROW);
conforms!(conforms_with_some_memory, MIDDLE);
conforms!(
    conforms_with_every_set_moved,
    Settings {
        memory_bytes: 0,
        ..NARROW
    }
);
