//! Encoding 1 of all records. Frozen: what changes its meaning becomes encoding 2.

pub(super) mod audit;
pub(super) mod calendar;
pub(super) mod client;
pub(super) mod delivery;
pub(super) mod destination;
pub(super) mod digest;
pub(super) mod group;
pub(super) mod hold;
pub(super) mod inhibition;
pub(super) mod mapping;
pub(super) mod occurrence;
pub(super) mod query;
pub(super) mod receipt;
pub(super) mod revision;
pub(super) mod rule;
pub(super) mod silence;
pub(super) mod trigger;
pub(super) mod value;
pub(super) mod view;
pub(super) mod webhook;
