//! The gRPC services that combine several operations, and access to all services. Each method
//! validates its input, calls one operation and converts the result.

pub mod access;
mod audit;
pub mod audit_log;
pub mod backup;
pub mod check;
pub mod client;
pub mod code;
pub mod config;
pub mod contact;
pub mod convert;
pub mod data_receiver;
pub mod delivery;
pub mod destination;
pub mod event_management;
pub mod event_query;
pub mod group;
pub mod heartbeat;
pub mod insight;
pub mod intake_mapping;
pub mod link;
pub mod logs;
pub mod methods;
pub mod overview;
pub mod pending;
pub mod response;
pub mod schedule;
pub mod settings;
pub mod sign_in;
pub mod silence;
#[cfg(test)]
mod tests;
