//! A condition over events, as its author wrote it.

pub use bellwether_proto::filter::{Clause, Literal};

/// A condition over events. `matching` compiles it, and shows what is wrong with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The outermost clause.
    pub clause: Clause,
}
