//! Test code shared by the backend's crates: samples of every record, failing engines and disks,
//! and the conformance tests for engines.
//!
//! The engine and the model also compile parts of this crate into their own tests, so `crate::` in
//! those parts is either this crate or theirs. The files in `service` need the operations or the
//! destination types, so only the crates above this one compile them.
#![expect(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test helpers whose names document them"
)]

pub mod audit;
pub mod conformance;
pub mod faulty_engine;
pub mod samples;
pub mod simulated_disk;
#[path = "../../../tests/src/walks.rs"]
pub mod walks;

use bellwether_backend_engine::{
    Action, ApplyResult, Change, ChangeSet, Delta, Direction, DiskShare, Engine, EngineError,
    Entry, Expect, Index, IndexedRecord, Kind, Lane, LogPosition, LogStep, Range, RecordName, Row,
    decode_numbers, memory, redb,
};
use bellwether_backend_model::{decide, domain, lifecycle};
