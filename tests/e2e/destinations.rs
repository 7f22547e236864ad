//! Every type of destination against a stand-in that is as strict as its provider.

mod email;
mod event;
mod msteams;
mod pagerduty;
mod servicenow;
mod slack;
mod stage;
mod webhook;
