//! Stored records: what they are in bytes, and how to find and change them.

pub mod engine;
pub mod record;
pub mod seal;

pub use engine::{Direction, Engine, EngineError, Index, Kind, Lane};
pub use record::{Changes, Record, Store, Stored};
pub use seal::Sealer;
