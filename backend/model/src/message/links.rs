//! Links in messages.

use std::{fmt, sync::Arc};

use bellwether_language::text::percent_encode;

use crate::domain::{Content, GroupId, Name, PagedContact, Secret, secret::MASK};

#[derive(Debug, Clone, Default)]
pub struct Links {
    /// The base URL, used for `url` and as the start of `link`. If empty, both are empty.
    pub base: String,
    /// The template of `link` for a page elsewhere; empty links to this service.
    pub template: String,
    /// Signs links so that they work without a key; `None` requires a key.
    pub signer: Option<Arc<dyn SignLinks>>,
    /// Signs acknowledgement links for contacts; `None` omits these links.
    pub acknowledging: Option<Arc<dyn SignLinks>>,
}

/// Signs links so that they work without a key. A signature gives access to anyone who has it, so
/// it is only shown to the receiver of the message.
pub trait SignLinks: fmt::Debug + Send + Sync {
    /// Returns the expiry of a link to a thread, in milliseconds since 1970, and its signature.
    /// Both are the same for the same thread and start.
    fn read_signature(&self, thread: &str, since_ms: i64) -> (i64, Secret);

    /// Returns the signature of a link with which a contact acknowledges a thread until the
    /// response ends.
    fn acknowledgement_signature(&self, thread: &str, response: &str, contact: &Name) -> Secret;

    /// Records that a message to a contact contains an acknowledgement link for a thread.
    fn record_issued(&self, _thread: &str, _contact: &Name) {}
}

/// A signer for links shown to readers of the API, with the mask in place of signatures.
#[derive(Debug)]
struct MaskedSigner(Arc<dyn SignLinks>);

impl SignLinks for MaskedSigner {
    fn read_signature(&self, thread: &str, since_ms: i64) -> (i64, Secret) {
        (self.0.read_signature(thread, since_ms).0, Secret::new(MASK))
    }

    fn acknowledgement_signature(&self, _thread: &str, _response: &str, _contact: &Name) -> Secret {
        Secret::new(MASK)
    }
}

impl Links {
    #[must_use]
    pub fn with_masked_signatures(&self) -> Self {
        let masked = |signer: &Option<Arc<dyn SignLinks>>| {
            let signer = signer.as_ref().map(|it| MaskedSigner(Arc::clone(it)));
            signer.map(|it| Arc::new(it) as Arc<dyn SignLinks>)
        };
        Self {
            signer: masked(&self.signer),
            acknowledging: masked(&self.acknowledging),
            ..self.clone()
        }
    }

    /// Returns every signature that a message can contain.
    pub fn signatures(&self, content: &Content, since_ms: i64) -> Vec<Secret> {
        let contact = content.contact.as_ref();
        let acknowledging = contact.and_then(|it| self.acknowledgement_link(content, it));
        let reading = self.signer.as_ref().map(|signer| {
            let (_, thread) = link_path(content);
            signer.read_signature(&thread, since_ms).1
        });
        acknowledging.into_iter().chain(reading).collect()
    }

    /// Returns the link to the event or group of a content, decided at `since_ms`; empty without a
    /// base URL.
    pub(super) fn content_link(&self, content: &Content, since_ms: i64) -> String {
        if self.base.is_empty() {
            return String::new();
        }
        let (place, thread) = link_path(content);
        let link = format!("{}/{place}/{thread}", self.url());
        match &self.signer {
            Some(signer) => {
                let (until_ms, signature) = signer.read_signature(&thread, since_ms);
                format!("{link}?until={until_ms}&sign={}", signature.reveal())
            }
            None => link,
        }
    }

    /// Returns the link with which a contact acknowledges the event or group of a content; empty
    /// without a base URL.
    pub(super) fn acknowledge(&self, content: &Content, contact: &PagedContact) -> String {
        let signature = self.acknowledgement_link(content, contact);
        let Some(signature) = signature.filter(|_| !self.base.is_empty()) else {
            return String::new();
        };
        let (thread, response) = (content.occurrence.id(), contact.response);
        if let Some(signer) = &self.acknowledging {
            signer.record_issued(&thread.to_string(), &contact.name);
        }
        let name = percent_encode(contact.name.as_str());
        let (url, signature) = (self.url(), signature.reveal());
        format!("{url}/acknowledge/{thread}?response={response}&contact={name}&sign={signature}")
    }

    fn acknowledgement_link(&self, content: &Content, contact: &PagedContact) -> Option<Secret> {
        let signer = self.acknowledging.as_ref()?;
        let thread = content.occurrence.id().to_string();
        Some(signer.acknowledgement_signature(
            &thread,
            &contact.response.to_string(),
            &contact.name,
        ))
    }

    pub(super) fn url(&self) -> &str {
        self.base.trim_end_matches('/')
    }
}

fn link_path(content: &Content) -> (&'static str, String) {
    match &content.group {
        Some(group) => ("groups", GroupId(group.id).to_string()),
        None => ("events", content.occurrence.id().to_string()),
    }
}
