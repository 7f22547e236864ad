//! The service as a whole on disks and clocks that fail, and a network that misbehaves.

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
