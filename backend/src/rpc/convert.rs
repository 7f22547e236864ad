//! Conversion between wire messages and domain values, which is only done in this module.

pub mod audit;
pub mod backup;
pub mod bulk;
pub mod calendar;
pub mod check;
pub mod client;
pub mod delivery;
pub mod event;
pub mod explain;
pub mod group;
pub mod hold;
pub mod incoming;
pub mod inhibition;
pub mod json;
pub mod list;
pub mod obligation;
pub mod operator;
pub mod pending;
pub mod rule;
pub mod search;
pub mod silence;
pub mod statistics;
pub mod trigger_test;
mod truncate;

pub use crate::ops::wire::{query, time};
