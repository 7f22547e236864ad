//! Conversion between wire messages and domain values.
//!
//! Read models, such as overviews, statistics and previews, are built as wire messages.

pub mod audit;
pub mod backup;
pub mod bulk;
pub mod check;
pub mod client;
pub mod delivery;
pub mod explain;
pub mod group;
pub mod incoming;
pub mod obligation;
pub mod operator;
pub mod pending;
pub mod search;
pub mod search_results;
pub mod silence;
mod truncate;

pub use crate::wire::{event, json, query, time, to_i32};
