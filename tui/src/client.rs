//! The connection to the service: calls, the live stream and the link that carries them.
//!
//! The console sends [`Command`]s and receives [`News`]; it never waits for either.

mod bulk;
mod call;
mod carrier;
mod convert;
mod link;
mod protocol;
mod trial;
mod watch;

pub(crate) use link::{Link, start};
pub(crate) use protocol::{
    Answer, Chosen, Command, DeliveryFilter, EventFilter, LinkState, News, Page, Progress, Request,
    Span, StatusChange, Ticket,
};
