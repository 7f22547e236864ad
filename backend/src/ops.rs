//! What the service does: every change of state is one function and one commit.

pub mod occurrence;
