//! Conversion between wire messages and domain values.
//!
//! Read models, such as overviews, statistics and previews, are built as wire messages.

pub mod backup;
pub mod bulk;
pub mod check;
pub mod delivery;
pub mod explain;
pub mod group;
pub mod incoming;
pub mod obligation;
pub mod operator;
pub mod pending;
pub mod search;
pub mod search_results;
mod truncate;

pub use crate::wire::{event, json, query, time, to_i32};
