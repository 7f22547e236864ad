//! Code shared by all processes in addition to the wire types: listening, sign-in, metrics and
//! files.

#[cfg(feature = "cause")]
pub mod cause;
#[cfg(feature = "listen")]
pub mod listen;
#[cfg(feature = "listen")]
pub mod metrics;
#[cfg(feature = "oidc")]
pub mod oidc;
pub mod plain_file;
#[cfg(feature = "cause")]
pub mod verifier;
