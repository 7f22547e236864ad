//! What the processes of the product share beside the wire: listening, sign-in, metrics and files.

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
