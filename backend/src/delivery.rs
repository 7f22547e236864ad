//! Sending: from the decision to notify to what became of every attempt.

pub mod dispatcher;
pub mod retention;

pub(crate) mod breaker;
pub(crate) mod dead_letters;
pub(crate) mod decide;
pub(crate) mod health;
#[cfg(test)]
mod journey_tests;
pub(crate) mod lane;
pub(crate) mod notice;
pub(crate) mod rate;
pub mod recovery;
pub(crate) mod schedule;

pub use dispatcher::{Dispatcher, Standing};
pub use retention::Retention;
