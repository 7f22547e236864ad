//! The contents of messages for all kinds of destinations: variables, templates and truncation.

mod check;
pub mod digest;
pub mod domain_json;
pub mod facts;
mod labels;
mod links;
pub mod members;
pub mod sample;

use std::sync::Arc;

use crate::domain::{Content, RecordId, Secret, Snippets, destination::KeptValues};
pub use crate::template::cut;

pub use check::template_violation;
pub use check::{check_message, check_snippets, message_warnings};
pub use facts::ExceededLimit;
pub use facts::{Facts, is_blank, simplify};
pub use links::{Links, SignLinks};

/// The context of a message other than its content.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The identity of the delivery. Its creation time is the `timestamp` of the message.
    pub delivery_id: RecordId,
    /// The name of the destination; empty for the test of a draft without a name.
    pub destination_name: &'a str,
    pub tenant: &'a str,
    pub links: &'a Links,
    /// The templates that templates of messages include.
    pub snippets: &'a Arc<Snippets>,
    /// The content of the first delivery of the thread, if this delivery reports a change and the
    /// destination shows both as one conversation.
    pub opening: Option<&'a Content>,
    /// The values kept for the thread; `None` for its first message.
    pub kept: Option<&'a KeptValues>,
}

impl Context<'_> {
    pub(crate) fn timestamp_ms(&self) -> i64 {
        i64::try_from(self.delivery_id.time_ms()).unwrap_or(i64::MAX)
    }

    /// Returns the signatures of the links in a message, which give access without a key.
    pub fn signatures(&self, content: &Content) -> Vec<Secret> {
        self.links.signatures(content, self.timestamp_ms())
    }
}
