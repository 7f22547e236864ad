//! Tests of the engine on a disk, on disks that lose, break and fill up.

mod disk;
mod faults;
mod flips;
mod power;

use std::sync::Arc;

use self::disk::SimulatedDisk;
use super::{Medium, RedbEngine, Settings};
use crate::store::engine::EngineError;

const SETTINGS: Settings = Settings {
    cache_bytes: 1024 * 1024,
    two_phase_commit: true,
};

fn open(disk: &SimulatedDisk) -> Result<RedbEngine, EngineError> {
    let medium: Arc<dyn Medium> = Arc::new(disk.clone());
    RedbEngine::open(medium, SETTINGS)
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
    use std::sync::Arc;

    use super::{RedbEngine, SETTINGS, Settings, SimulatedDisk};
    use crate::store::engine::conformance::conformance;

    conformance!({
        let disk = SimulatedDisk::default();
        let settings = Settings {
            two_phase_commit: false,
            ..SETTINGS
        };
        (
            RedbEngine::open(Arc::new(disk.clone()), settings).unwrap(),
            disk,
        )
    });
}
