//! The service: a tonic gRPC server that ingests events and sends messages.

pub mod delivery;
pub mod oidc;
#[cfg(test)]
mod reference_tests;
pub mod rpc;
#[cfg(test)]
#[path = "../testing/service/samples.rs"]
#[expect(dead_code, reason = "other crates use more of this module")]
mod samples;
#[cfg(test)]
#[path = "../testing/service/sender.rs"]
#[expect(dead_code, reason = "other crates use more of this module")]
mod sending;
pub mod server;
#[cfg(test)]
mod tests;

pub use bellwether_backend_base::{
    Config, background, config, error, limits, scan, trace, validate, wire,
};
pub use bellwether_backend_engine::clock;
pub use bellwether_backend_model::{
    calendar, decide, domain, lifecycle, matching, message, secret, template,
};
pub use bellwether_backend_ops as ops;
pub use bellwether_backend_send as send;
pub use bellwether_backend_store::{self as store, metrics};
#[cfg(test)]
use bellwether_backend_testing as testing;
pub use server::{Backend, ServeError, StartError};
