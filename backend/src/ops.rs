//! What the service does: every change of state is one function and one commit.

pub mod notify;
pub mod occurrence;
pub mod ruleset;
#[cfg(test)]
pub(crate) mod samples;
