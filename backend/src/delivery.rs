//! Sending: from the decision to notify to what became of every attempt.

pub mod dispatcher;
pub mod egress;
pub mod retention;
pub mod sender;
pub mod tester;
pub mod verdict;

pub(crate) mod breaker;
pub(crate) mod dead_letters;
pub(crate) mod decide;
pub(crate) mod dial;
pub(crate) mod health;
pub(crate) mod http;
#[cfg(test)]
mod journey_tests;
pub(crate) mod lane;
pub(crate) mod notice;
pub(crate) mod rate;
#[cfg(test)]
pub(crate) mod receiver;
pub mod recovery;
pub(crate) mod schedule;
pub(crate) mod signature;
#[cfg(test)]
pub(crate) mod smtp_receiver;
pub(crate) mod tls;
pub(crate) mod transcript;

pub use crate::message::sample;
pub use dispatcher::{Dispatcher, Standing};
pub use egress::Guard;
pub use retention::Retention;
pub use sender::{EventSink, Order, Sender};
pub use tester::{About, Target, Test, Tester};
pub use verdict::{Advice, Report, Verdict};
