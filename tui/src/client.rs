//! The connection to the service: calls, the live stream and the link that carries them.
//!
//! The console sends [`Command`]s and receives [`News`]; it never waits for either.

mod call;
mod carrier;
mod failure;
mod keys;
mod link;
mod listing;
mod protocol;
mod trial;
mod watch;

pub(crate) use carrier::Reach;
pub(crate) use failure::{failure, unfit};
pub use failure::{why_broken, why_failed, why_unreachable};
pub(crate) use keys::Keys;
pub(crate) use link::{Link, connect, start};
pub use listing::{Unlisted, listing};
pub(crate) use protocol::{
    Answer, Chosen, Command, EventFilter, LinkState, News, Note, Page, Progress, Request, Span,
    StatusChange, Taken, Ticket,
};
