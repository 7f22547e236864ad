//! What the service does: every change of state is one function and one commit.

#[cfg(test)]
pub mod notify;
pub mod occurrence;
pub mod overview;
pub mod page;
pub mod recent;
pub mod ruleset;
pub(crate) mod samples;
pub mod search;
pub mod watch;
