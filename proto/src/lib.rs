//! The wire: generated messages and services, and their descriptor set.
//!
//! The `.proto` files of this crate are the API reference; the files in `reference` supplement it.
//! All conversion between the wire and JSON is in [`json`].

#![warn(missing_docs)]

pub mod bulk;
pub mod clause;
pub mod codec;
pub mod csv;
pub mod json;
pub mod otlp;
pub mod reference;
pub mod repair;
pub mod server;
pub mod severity;

/// The services of Bellwether.
#[expect(
    unused_qualifications,
    clippy::pedantic,
    clippy::enum_variant_names,
    clippy::large_enum_variant,
    clippy::allow_attributes_without_reason,
    reason = "generated from the .proto files"
)]
pub mod bellwether {
    /// Options of fields and methods.
    pub mod options {
        tonic::include_proto!("bellwether.options");
    }

    /// Version 1: fields and methods are added, but never removed or changed in meaning.
    pub mod v1 {
        tonic::include_proto!("bellwether.v1");
    }
}

/// The published interface that existing event senders use.
#[expect(
    unused_qualifications,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated from the .proto files"
)]
pub mod zenoss {
    /// The interface for sending events.
    pub mod cloud {
        tonic::include_proto!("zenoss.cloud");
    }
}

pub use self::bellwether::{options, v1};
pub use self::zenoss::cloud;

/// The `domain` of every `google.rpc.ErrorInfo`. `docs/troubleshooting.md` explains each `reason`.
pub const ERROR_DOMAIN: &str = "bellwether";

/// The metadata key and header in which a program such as an AI agent names itself. The audit log
/// records the name beside the client.
pub const AGENT_KEY: &str = "bellwether-agent";

/// The encoded `google.protobuf.FileDescriptorSet` of all files, with imports, comments and the
/// `google.api.http` options.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
