//! The service: a tonic gRPC server over redb that ingests events and sends messages.

pub mod calendar;
pub mod config;
pub mod decide;
pub mod delivery;
pub mod destination;
pub mod domain;
pub mod error;
pub mod limits;
pub mod matching;
pub mod message;
pub mod metrics;
pub mod oidc;
pub mod ops;
#[cfg(test)]
mod reference_tests;
pub mod rpc;
pub mod scan;
pub mod secret;
pub mod server;
pub mod store;
pub mod template;
#[cfg(test)]
mod tests;
pub mod trace;

pub use bellwether_backend_engine::clock;
pub use config::Config;
pub use server::{Backend, ServeError, StartError};
