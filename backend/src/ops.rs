//! What the service does: every change of state is one function and one commit.

pub mod annotate;
pub mod client;
pub mod commit;
pub mod deciding;
pub mod delivery;
pub mod destination;
pub mod disk_space;
pub mod edit;
pub mod etag;
pub mod explain;
pub mod fields;
pub mod find;
pub mod intake;
pub mod loop_guard;
pub mod notify_open;
pub mod occurrence;
pub mod overview;
pub mod page;
pub mod receipt;
pub mod recent;
pub mod resource;
pub mod review;
pub mod revision;
pub mod rule;
pub mod ruleset;
#[cfg(test)]
pub(crate) mod samples;
pub mod search;
pub mod set_status;
pub mod test_trigger;
pub mod trigger;
mod users;
mod validate;
pub mod watch;
