//! What there is to tell, as every kind of destination writes it: variables, templates, texts that fit.

mod check;
pub mod digest;
pub mod domain_json;
pub mod facts;
mod labels;
mod links;
pub mod members;
pub mod sample;

use crate::domain::{Content, RecordId, Secret};
pub use crate::template::cut;

pub use check::fault;
pub use check::{check_message, message_warnings};
pub use facts::Exceeded;
pub use facts::Facts;
pub use links::{Links, SignLinks};

/// What a message tells beside its content.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The delivery; the time in it is the message's `timestamp`.
    pub delivery_id: RecordId,
    /// The destination's name; empty for the test of a draft without a name.
    pub destination_name: &'a str,
    /// The installation's name.
    pub tenant: &'a str,
    /// Where `link` and `url` lead.
    pub links: &'a Links,
}

impl Context<'_> {
    /// When the notification was decided, in milliseconds since 1970.
    pub(crate) fn timestamp_ms(&self) -> i64 {
        i64::try_from(self.delivery_id.time_ms()).unwrap_or(i64::MAX)
    }

    /// Returns what gives access without a key in a message of a content: the signatures of its links.
    pub fn signatures(&self, content: &Content) -> Vec<Secret> {
        self.links.signatures(content, self.timestamp_ms())
    }
}
