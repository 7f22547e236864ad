//! Sending: from the decision to notify to what became of every attempt.

pub mod egress;

pub(crate) mod dial;
pub(crate) mod http;
#[cfg(test)]
pub(crate) mod receiver;
pub(crate) mod transcript;
pub(crate) mod verdict;
