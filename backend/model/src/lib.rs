//! The domain model of events, rules and messages, and its decisions, without a store, network or
//! clock.
//!
//! Every function depends only on its arguments, so that decisions can be repeated, explained and
//! replayed.

pub mod calendar;
pub mod decide;
pub mod domain;
pub mod effort;
pub mod lifecycle;
pub mod limits;
pub mod matching;
pub mod message;
pub mod secret;
pub mod template;
/// Samples from `bellwether-backend-testing`, built against this crate.
#[cfg(test)]
#[path = "../../testing/src"]
#[expect(
    missing_docs,
    clippy::missing_panics_doc,
    reason = "test helpers whose names document them"
)]
pub mod testing {
    pub mod samples;
    #[path = "../../../tests/src/walks.rs"]
    pub mod walks;
}
pub mod violation;

#[cfg(test)]
use self::testing::samples;
