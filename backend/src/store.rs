//! Stored records: what they are in bytes, and how to find and change them.

pub mod audit;
pub mod backup;
pub mod follow;
pub mod open;
pub mod pages;
pub mod record;
pub mod restore;
#[cfg(test)]
pub(crate) mod samples;
pub mod seal;
pub mod verify;

pub use bellwether_backend_engine as engine;
pub use engine::{
    Direction, Duty, Engine, EngineError, Index, Kind, Lane, Membership, Range, SilenceStanding,
};
pub use follow::LogFollower;
pub use open::{OpenError, open};
pub use record::{Changes, Record, StagedStore, Store, Stored};
pub use restore::restore;
pub use seal::Sealer;
pub use verify::{verify, verify_in_use};
