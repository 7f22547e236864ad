//! What events, rules and messages are, and how they are decided: without a store, a network or a clock.
//!
//! Everything here is a function of its arguments, so that a decision can be repeated, explained and
//! replayed.

pub mod calendar;
pub mod decide;
pub mod domain;
pub mod effort;
pub mod lifecycle;
pub mod limits;
pub mod matching;
pub mod message;
#[cfg(any(test, feature = "testing"))]
#[expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "these are for tests; each name is its documentation"
)]
pub mod samples;
pub mod secret;
pub mod template;
pub mod violation;
