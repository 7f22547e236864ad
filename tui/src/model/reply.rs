//! The responses that the console waits for.

use std::fmt;

use super::{Model, write::Write};
use crate::{
    client::{CallResult, ParseOutcome, Ticket},
    data::{Kind, Object},
};

/// Handles the response to a call, and returns whether the display changed.
pub(crate) trait ReplyHandler:
    FnOnce(&mut Model, Ticket, CallResult) -> bool + Send + 'static
{
}

impl<F: FnOnce(&mut Model, Ticket, CallResult) -> bool + Send + 'static> ReplyHandler for F {}

/// The purpose of a call in flight. Responses that affect more than the data that was read are
/// handled centrally.
pub(crate) enum Reply {
    /// A page of events, and whether it is appended to the rows read before.
    Events {
        more: bool,
    },
    /// A page of resources, and the rows read before.
    List(Kind, Vec<Object>),
    Write(Box<Write>, ParseOutcome),
    Other(Box<dyn ReplyHandler>),
}

impl fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reply").finish_non_exhaustive()
    }
}
