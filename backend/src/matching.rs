//! Which queries an occurrence matches, and why.

pub mod compile;
pub mod explain;
pub mod field;
pub mod fold;
pub mod literal;
pub mod set;

pub use compile::{CompiledQuery, compile};
pub use explain::Explained;
pub use set::TriggerSet;

#[cfg(test)]
mod tests;
