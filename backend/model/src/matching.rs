//! Matches occurrences against queries, and explains the result.

pub mod compile;
pub mod document;
pub mod explain;
pub mod field;
mod field_index;
pub mod fold;
pub mod literal;
mod require;
pub mod set;
mod subject;

pub use compile::{CompiledQuery, compile};
pub use document::{Document, DocumentQuery};
pub use explain::ClauseEvaluation;
pub use literal::time_bounds;
pub use set::TriggerSet;
pub use subject::Subject;

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
