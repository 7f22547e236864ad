//! Stored records: their encoding, and functions to find and change them.

pub mod audit;
pub mod backup;
pub mod follow;
pub mod limits;
mod location;
pub mod metrics;
pub mod open;
pub mod pages;
pub mod record;
pub mod restore;
pub mod seal;
#[cfg(test)]
#[path = "../../../tests/src/postgres.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "end-to-end tests use more of this module"
)]
mod server;
pub mod verify;

pub use bellwether_backend_engine as engine;
use bellwether_backend_model::{decide, domain};
#[cfg(test)]
use bellwether_backend_testing::{self as testing, samples};
pub use engine::{
    Direction, Duty, Engine, EngineError, Index, Kind, Lane, LogPosition, Membership, Range,
    SilenceStanding,
};
pub use follow::LogFollower;
pub use location::{DatabaseConfig, Location, StoreConfig};
pub use open::{OpenError, open};
pub use record::{Changes, ClockFact, Record, StagedStore, Store, Stored};
pub use restore::restore;
pub use seal::{PROOF_BYTES, Sealer};
pub use verify::{verify, verify_running_store};
