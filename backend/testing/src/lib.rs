//! Test code that several crates of the backend use: samples of every record, engines and disks that
//! fail, and the tests that every engine must pass.
//!
//! The engine and the model build parts of it again for their own tests, against themselves; so
//! `crate::` in those parts is either this crate or theirs.
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
    Action, Applied, Change, ChangeSet, Delta, Direction, DiskShare, Engine, EngineError, Entry,
    Expect, Index, IndexedRecord, Kind, Lane, LogPosition, LogStep, Range, RecordName, Row, memory,
    numbers, redb,
};
use bellwether_backend_model::{domain, lifecycle};
