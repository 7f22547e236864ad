//! The REST gateway: translates `/v1` paths to gRPC calls, based on the descriptor set.
//!
//! [`Gateway::bind`] compiles the descriptors into tables. For each request, the path selects the
//! operation, JSON is converted to wire bytes, the backend is called, and its response is converted
//! to JSON. A new RPC with an HTTP rule requires no code here.

mod alertmanager;
mod binding;
mod config;
mod dialect;
mod docs;
mod etag;
mod feed;
mod intake;
mod label;
mod limits;
mod linked;
mod metrics;
mod openapi;
mod operation;
mod owner;
mod problem;
mod query;
mod refusal;
mod request;
mod response_body;
mod route;
mod server;
mod upstream;

pub use config::{Config, ConfigError};
pub use dialect::{Settings as SenderSettings, Severity};
pub use server::{Gateway, StartError};
pub use upstream::{Direct, UnaryResult, Upstream, UpstreamError};
