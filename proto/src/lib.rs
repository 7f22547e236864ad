//! The wire: generated messages and services, and the descriptor set they come from.
//!
//! The `.proto` files beside this crate are the API reference, the files in `reference` what people
//! look up beside it; nothing else is written by hand here.
#![expect(
    clippy::doc_markdown,
    clippy::enum_variant_names,
    reason = "names and comments are taken over from the .proto files"
)]

pub mod reference;

/// Bellwether's own services.
pub mod bellwether {
    /// Version 1: fields and methods are added, never changed in meaning or removed.
    pub mod v1 {
        tonic::include_proto!("bellwether.v1");
    }
}

/// The published interface that event senders already speak.
pub mod zenoss {
    /// Events on their way in.
    pub mod cloud {
        tonic::include_proto!("zenoss.cloud");
    }
}

pub use bellwether::v1;
pub use zenoss::cloud;

/// The encoded `google.protobuf.FileDescriptorSet` of all files, with imports, comments and the
/// `google.api.http` options.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
