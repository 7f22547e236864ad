//! The gRPC services: each method checks its input, calls one operation and translates the answer.

pub mod access;
pub mod convert;
pub mod delivery;
pub mod event_query;
pub mod overview;
pub mod status;
