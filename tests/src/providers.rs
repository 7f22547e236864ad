//! Fake providers, as strict as the published rules of the real ones.
//!
//! A fake provider rejects the same messages as the real one, with the same errors, and records
//! accepted and rejected messages. On demand, it misbehaves as providers and networks do.

pub mod certificates;
pub mod connections;
pub mod desk;
pub mod incidents;
pub mod mail;
pub mod msteams;
pub mod pagerduty;
pub mod servicenow;
pub mod shape;
pub mod slack;
pub mod stand_in;
pub mod standard_webhooks;

pub use stand_in::{Answer, Mischief, Rules, StandIn};
