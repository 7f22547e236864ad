//! Tests of all destination types with test servers that are as strict as the providers.

mod bound;
mod connections;
mod email;
mod event;
mod inward;
mod limits;
mod msteams;
mod order;
mod pagerduty;
mod render;
mod servicenow;
mod slack;
mod stage;
pub(crate) mod tls;
mod verdicts;
mod webhook;
