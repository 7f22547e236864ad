//! The wire: generated messages and services, and the descriptor set they come from.
//!
//! The `.proto` files beside this crate are the API reference, the files in `reference` what people
//! look up beside it. [`json`] is the one way between the wire and JSON, [`filter`] the one between
//! conditions and the text in which people write them.

pub mod bulk;
pub mod csv;
pub mod filter;
pub mod json;
pub mod matcher;
pub mod otlp;
pub mod reference;
pub mod repair;
pub mod severity;
pub mod text;

/// Bellwether's own services.
#[expect(
    unused_qualifications,
    clippy::pedantic,
    clippy::enum_variant_names,
    clippy::large_enum_variant,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated from the .proto files"
)]
pub mod bellwether {
    /// What fields and methods are, beyond their types.
    pub mod options {
        tonic::include_proto!("bellwether.options");
    }

    /// Version 1: fields and methods are added, never changed in meaning or removed.
    pub mod v1 {
        tonic::include_proto!("bellwether.v1");
    }
}

/// The published interface that event senders already speak.
#[expect(
    unused_qualifications,
    clippy::pedantic,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated from the .proto files"
)]
pub mod zenoss {
    /// Events on their way in.
    pub mod cloud {
        tonic::include_proto!("zenoss.cloud");
    }
}

pub use self::bellwether::{options, v1};
pub use self::zenoss::cloud;

/// The encoded `google.protobuf.FileDescriptorSet` of all files, with imports, comments and the
/// `google.api.http` options.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
