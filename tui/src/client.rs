//! The connection to the service: calls, the live stream and the transport.
//!
//! The console sends [`Command`]s and receives [`News`]; it never waits for either.

mod call;
mod carrier;
pub(crate) mod deliveries;
pub(crate) mod events;
mod failure;
mod keys;
mod line;
mod link;
mod listing;
mod protocol;
pub(crate) mod resources;
mod trial;
mod watch;
mod written;

pub(crate) use call::{Answer, Call, ReadTaken, message, whole};
pub(crate) use carrier::Reach;
pub(crate) use failure::{failure, unfit};
pub use failure::{why_broken, why_failed, why_unreachable};
pub(crate) use keys::Keys;
pub(crate) use link::{Link, connect, start};
pub use listing::{Unlisted, listing};
pub(crate) use protocol::{
    Chosen, Command, EventFilter, LinkState, News, Page, Progress, Span, StatusChange, Ticket,
};
pub(crate) use written::{Note, Taken};
