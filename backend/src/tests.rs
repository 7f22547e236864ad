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
    reason = "journeys use it too, and more of it"
)]
pub(crate) mod postgres;
mod service;
mod simulation;
