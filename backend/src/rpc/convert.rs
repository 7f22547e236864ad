//! The only place that takes wire messages apart and puts them together.

pub mod query;
pub mod time;
