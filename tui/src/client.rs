//! The connection to the service: calls, the live stream and the transport.
//!
//! The console sends [`Command`]s and receives [`ServerUpdate`]s. It never waits for the
//! connection.

mod call;
mod carrier;
pub(crate) mod deliveries;
pub(crate) mod events;
mod failure;
mod keys;
mod line;
mod link;
mod listing;
mod outcome;
mod protocol;
pub(crate) mod resources;
mod trial;
mod watch;

pub(crate) use call::{Call, CallResult, ParseOutcome, message, parse_empty};
pub(crate) use carrier::Transport;
pub(crate) use failure::{failure, malformed_response, unreachable};
pub(crate) use keys::Keys;
pub(crate) use link::{Link, connect, start};
pub use listing::{ListError, read_list_json};
pub(crate) use outcome::{Note, WriteOutcome};
pub(crate) use protocol::{
    Command, DeliverySelection, EventFilter, LinkState, Progress, ServerUpdate, Span, StatusChange,
    Ticket,
};
