//! Encoding 1 of all records. Frozen: a change of meaning requires encoding 2.

pub(super) mod audit;
mod calendar;
mod client;
mod delivery;
mod destination;
mod digest;
mod drill;
mod enrichment;
mod group;
mod heartbeat;
mod hold;
mod inhibition;
mod mapping;
mod occurrence;
mod oncall;
mod query;
mod receipt;
mod revision;
mod rule;
mod settings;
mod silence;
mod trigger;
mod value;
mod view;
mod webhook;
