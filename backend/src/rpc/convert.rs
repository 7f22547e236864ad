//! The only place that takes wire messages apart and puts them together.

pub mod audit;
pub mod backup;
pub mod bulk;
pub mod calendar;
pub mod check;
pub mod client;
pub mod delivery;
pub mod destination;
pub mod event;
pub mod explain;
mod fit;
pub mod group;
pub mod health;
pub mod hold;
pub mod incoming;
pub mod inhibition;
pub mod intake_mapping;
pub mod json;
pub mod list;
pub mod obligation;
pub mod operator;
pub mod pending;
pub mod rule;
pub mod saved_view;
pub mod search;
pub mod silence;
pub mod statistics;
pub mod trigger;
pub mod trigger_test;

pub use crate::ops::wire::{query, time};
