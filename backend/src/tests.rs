//! The service as a whole on disks and clocks that fail, and a network that misbehaves.

mod cells;
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

/// A number that long runs set from outside.
#[expect(
    clippy::disallowed_methods,
    reason = "long runs are asked for from outside"
)]
pub(crate) fn number_of(variable: &str, default: u64) -> u64 {
    let asked = std::env::var(variable).ok();
    asked.map_or(default, |asked| asked.parse().unwrap())
}
