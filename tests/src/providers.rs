//! Fake providers that messages go to, as strict as the providers' published rules.
//!
//! Each refuses what its provider would refuse, in its provider's words, and keeps apart what it
//! took and what it refused. On demand it misbehaves as providers and networks do.

pub mod certificates;
pub mod connections;
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
