//! The only place that takes wire messages apart and puts them together.

pub mod delivery;
pub mod event;
pub mod health;
pub mod query;
pub mod search;
pub mod time;
