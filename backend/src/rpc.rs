//! The gRPC services: each method checks its input, calls one operation and translates the answer.

pub mod access;
mod audit;
pub mod audit_log;
pub mod backup;
pub mod calendar;
pub mod check;
pub mod client;
pub mod code;
pub mod config;
pub mod convert;
pub mod data_receiver;
pub mod delivery;
pub mod destination;
pub mod event_management;
pub mod event_query;
pub mod group;
pub mod heartbeat;
pub mod inhibition;
pub mod intake_mapping;
pub mod link;
pub mod logs;
pub mod methods;
pub mod overview;
pub mod pending;
pub mod rule;
pub mod saved_view;
mod serve;
pub mod settings;
pub mod sign_in;
pub mod silence;
pub mod status;
#[cfg(test)]
mod tests;
pub mod trigger;
