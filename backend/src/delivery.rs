//! Delivery of notifications, from the decision to notify to the outcome of every attempt.

pub mod dispatcher;
pub mod egress;
pub mod ping;
pub mod recovery;
pub mod retention;
mod thread;

pub(crate) mod backoff;
pub(crate) mod breaker;
pub(crate) mod concurrency;
pub(crate) mod dead_letters;
pub(crate) mod decide;
pub(crate) mod digest_cascade;
pub(crate) mod follow;
pub(crate) mod health;
#[cfg(test)]
mod journey_tests;
pub(crate) mod ledger;
pub(crate) mod notice;
pub(crate) mod notices;
pub(crate) mod ownership;
mod pace;
pub(crate) mod queue;
pub(crate) mod queues;
mod quiet;
mod rank;
pub(crate) mod rate;
mod refusals;
pub(crate) mod resync;

pub use dispatcher::{Dispatcher, DispatcherStatus};
pub use egress::EgressWatch;
pub use ping::PingTask;
pub use retention::Retention;
