//! Conditions on events, as written by their author.

pub use bellwether_language::filter::{Clause, Literal};

/// A condition on events, to be compiled and validated by `matching`.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub clause: Clause,
}
