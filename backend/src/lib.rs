//! The service: a tonic gRPC server that ingests events and sends messages.

mod background;
pub mod config;
pub mod delivery;
pub mod destination;
pub mod error;
pub mod limits;
pub mod oidc;
pub mod ops;
#[cfg(test)]
mod reference_tests;
pub mod rpc;
pub mod scan;
pub mod server;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod wire;

pub use bellwether_backend_engine::clock;
pub use bellwether_backend_model::{
    calendar, decide, domain, lifecycle, matching, message, secret, template,
};
pub use bellwether_backend_store::{self as store, metrics};
#[cfg(test)]
use bellwether_backend_testing as testing;
pub use config::Config;
pub use server::{Backend, ServeError, StartError};
