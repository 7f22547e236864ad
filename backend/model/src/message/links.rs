//! Where the links in messages lead.

use std::{fmt, sync::Arc};

use bellwether_proto::text::percent_encoded;

use crate::domain::{Content, GroupId, Name, PagedContact, Secret, secret::MASK};

/// Where the links in messages lead.
#[derive(Debug, Clone, Default)]
pub struct Links {
    /// The address that `url` is and `link` starts with; empty leaves both empty.
    pub base: String,
    /// A template for `link`, for a separate page; empty leads to this service.
    pub template: String,
    /// What lets a link be followed without a key; none leaves that to who has one.
    pub signer: Option<Arc<dyn SignLinks>>,
    /// What lets a contact acknowledge without a key; none where no message offers that.
    pub acknowledging: Option<Arc<dyn SignLinks>>,
}

/// Signs links, so that they can be followed without a key. Anyone who has a signature has access: it is
/// shown to the receiver of the message only.
pub trait SignLinks: fmt::Debug + Send + Sync {
    /// Returns until when a link to a thread can be followed, in milliseconds since 1970, and its signature;
    /// the same for the same thread and the same start.
    fn read(&self, thread: &str, since_ms: i64) -> (i64, Secret);

    /// Returns the signature of a link by which a contact acknowledges a thread, as long as that response
    /// lasts.
    fn acknowledge(&self, thread: &str, response: &str, contact: &Name) -> Secret;

    /// Records that a message to a contact contains a link to acknowledge a thread.
    fn issued(&self, _thread: &str, _contact: &Name) {}
}

/// Links as readers of the API see them: in place of each signature is the mask.
#[derive(Debug)]
struct Masked(Arc<dyn SignLinks>);

impl SignLinks for Masked {
    fn read(&self, thread: &str, since_ms: i64) -> (i64, Secret) {
        (self.0.read(thread, since_ms).0, Secret::new(MASK))
    }

    fn acknowledge(&self, _thread: &str, _response: &str, _contact: &Name) -> Secret {
        Secret::new(MASK)
    }
}

impl Links {
    /// Returns the same links with the mask in place of each signature, for texts that are not sent but shown.
    #[must_use]
    pub fn masked(&self) -> Self {
        let masked = |signer: &Option<Arc<dyn SignLinks>>| {
            let signer = signer.as_ref().map(|it| Masked(Arc::clone(it)));
            signer.map(|it| Arc::new(it) as Arc<dyn SignLinks>)
        };
        Self {
            signer: masked(&self.signer),
            acknowledging: masked(&self.acknowledging),
            ..self.clone()
        }
    }

    /// Returns every signature that a message of a content can contain.
    pub fn signatures(&self, content: &Content, since_ms: i64) -> Vec<Secret> {
        let contact = content.contact.as_ref();
        let acknowledging = contact.and_then(|it| self.acknowledgement(content, it));
        let reading = self.signer.as_ref().map(|signer| {
            let (_, thread) = place_of(content);
            signer.read(&thread, since_ms).1
        });
        acknowledging.into_iter().chain(reading).collect()
    }

    /// Where to read about what a content is about, decided at that moment; empty without a base.
    pub(super) fn to(&self, content: &Content, since_ms: i64) -> String {
        if self.base.is_empty() {
            return String::new();
        }
        let (place, thread) = place_of(content);
        let link = format!("{}/{place}/{thread}", self.url());
        match &self.signer {
            Some(signer) => {
                let (until_ms, signature) = signer.read(&thread, since_ms);
                format!("{link}?until={until_ms}&sign={}", signature.reveal())
            }
            None => link,
        }
    }

    /// Where a contact acknowledges what a content is about; empty without a base.
    pub(super) fn acknowledge(&self, content: &Content, contact: &PagedContact) -> String {
        let signature = self.acknowledgement(content, contact);
        let Some(signature) = signature.filter(|_| !self.base.is_empty()) else {
            return String::new();
        };
        let (thread, response) = (content.occurrence.id(), contact.response);
        if let Some(signer) = &self.acknowledging {
            signer.issued(&thread.to_string(), &contact.name);
        }
        let name = percent_encoded(contact.name.as_str());
        let (url, signature) = (self.url(), signature.reveal());
        format!("{url}/acknowledge/{thread}?response={response}&contact={name}&sign={signature}")
    }

    fn acknowledgement(&self, content: &Content, contact: &PagedContact) -> Option<Secret> {
        let signer = self.acknowledging.as_ref()?;
        let thread = content.occurrence.id().to_string();
        Some(signer.acknowledge(&thread, &contact.response.to_string(), &contact.name))
    }

    /// The address of the installation.
    pub(super) fn url(&self) -> &str {
        self.base.trim_end_matches('/')
    }
}

/// The place and the thread of a link.
fn place_of(content: &Content) -> (&'static str, String) {
    match &content.group {
        Some(group) => ("groups", GroupId(group.id).to_string()),
        None => ("events", content.occurrence.id().to_string()),
    }
}
