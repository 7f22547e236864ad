//! What all parts of the service share: configuration, limits, errors, conversion between wire and
//! domain types, scans and tracing.

pub mod background;
pub mod config;
pub mod error;
pub mod limits;
pub mod scan;
pub mod trace;
pub mod validate;
pub mod wire;

pub use bellwether_backend_engine::clock;
use bellwether_backend_model::{domain, matching, secret};
pub use config::Config;
