//! Sending: from the decision to notify to what became of every attempt.

pub mod egress;
pub mod sample;
pub mod sender;
pub mod verdict;

pub(crate) mod dial;
pub(crate) mod http;
#[cfg(test)]
pub(crate) mod receiver;
pub(crate) mod rendered;
pub(crate) mod signature;
#[cfg(test)]
pub(crate) mod smtp_receiver;
pub(crate) mod transcript;

pub use egress::Guard;
pub use sender::{EventSink, Order, Sender};
pub use verdict::{Advice, Report, Verdict};
