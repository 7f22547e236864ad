//! Tests of the whole service with failing disks and clocks, and a misbehaving network.

mod cells;
mod clock_walk;
mod counting;
mod errors;
mod escalations;
mod flips;
mod ground;
mod invariants;
#[path = "../../tests/src/postgres.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "end-to-end tests use more of this module"
)]
pub(crate) mod postgres;
mod service;
mod simulation;
