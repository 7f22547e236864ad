//! The operations of the service. Every state change is one function and one commit.

pub mod annotate;
pub mod audit;
pub mod beats;
pub mod calendar;
pub mod cause_lookup;
pub mod certificate;
pub mod client;
pub mod clock_watch;
pub mod commit;
pub mod config;
pub mod contact;
pub mod decision_context;
pub mod delivery;
pub mod destination;
pub mod drill;
pub mod edit;
mod ended_uses;
pub mod enrichment;
pub mod escalation_policy;
pub mod etag;
pub mod explain;
pub mod fields;
pub mod find;
pub mod footprint;
pub mod from_domain;
pub mod group;
pub mod heartbeat;
pub mod hold_watch;
mod identity;
pub mod inhibition;
pub mod intake;
pub mod intake_mapping;
pub mod link;
pub mod loop_guard;
#[cfg(test)]
mod modes_tests;
pub mod named;
pub mod noise;
pub mod notify_open;
pub mod oncall_watch;
pub mod overview;
pub mod page;
pub mod page_cancel;
pub mod pending;
pub mod reach;
pub mod receipt;
pub mod recent;
pub mod recent_messages;
mod references;
mod refers;
pub mod repeat;
pub mod replay;
pub mod resource;
pub mod response;
pub mod review;
pub mod revision;
pub mod route;
pub mod rule;
pub mod ruleset;
#[cfg(test)]
#[path = "../../testing/service/samples.rs"]
#[expect(dead_code, reason = "other crates use more of this module")]
mod samples;
pub mod saved_view;
pub mod schedule;
pub mod search;
#[cfg(test)]
#[path = "../../testing/service/sender.rs"]
#[expect(dead_code, reason = "other crates use more of this module")]
mod sending;
pub mod serve;
pub mod set_status;
pub mod settings;
pub mod sign_in;
pub mod silence;
pub mod statistics;
pub mod store_loss;
pub mod store_watch;
pub mod subject;
mod tag_scope;
pub mod test_trigger;
pub mod trigger;
mod unanswered;
pub mod watch;

#[cfg(test)]
extern crate self as bellwether_backend_ops;

use bellwether_backend_base::{error, limits, scan, trace, validate, wire};
use bellwether_backend_engine::clock;
use bellwether_backend_model::{decide, domain, lifecycle, matching, message, template};
use bellwether_backend_send as send;
use bellwether_backend_store::{self as store, metrics};
#[cfg(test)]
use bellwether_backend_testing as testing;
