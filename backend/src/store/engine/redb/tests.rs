//! Tests of the engine on a disk, on disks that lose, break and fill up.

mod disk;
mod faults;
mod flips;
mod power;

use std::sync::Arc;

pub(crate) use self::disk::SimulatedDisk;
use super::{Medium, RedbEngine, Settings};
use crate::store::engine::EngineError;

const SETTINGS: Settings = Settings {
    cache_bytes: 1024 * 1024,
    two_phase_commit: true,
    quick_repair_from: 0,
    first_place: 0,
};

fn open(disk: &SimulatedDisk) -> Result<RedbEngine, EngineError> {
    open_with(disk, SETTINGS)
}

fn open_with(disk: &SimulatedDisk, settings: Settings) -> Result<RedbEngine, EngineError> {
    let medium: Arc<dyn Medium> = Arc::new(disk.clone());
    RedbEngine::open(medium, settings)
}

mod conforms_in_memory {
    use super::{SimulatedDisk, open};
    use crate::store::engine::conformance::conformance;

    conformance!({
        let disk = SimulatedDisk::default();
        (open(&disk).unwrap(), disk)
    });
}

mod conforms_without_two_phase_commit {
    use super::{SETTINGS, Settings, SimulatedDisk, open_with};
    use crate::store::engine::conformance::conformance;

    conformance!({
        let disk = SimulatedDisk::default();
        let settings = Settings {
            two_phase_commit: false,
            ..SETTINGS
        };
        (open_with(&disk, settings).unwrap(), disk)
    });
}
