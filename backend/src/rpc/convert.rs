//! The only place that takes wire messages apart and puts them together.

pub mod backup;
pub mod bulk;
pub mod check;
pub mod client;
pub mod delivery;
pub mod destination;
pub mod event;
pub mod explain;
pub mod health;
pub mod incoming;
pub mod json;
pub mod list;
pub mod obligation;
pub mod operator;
pub mod query;
pub mod rule;
pub mod search;
pub mod time;
pub mod trigger;
pub mod trigger_test;
