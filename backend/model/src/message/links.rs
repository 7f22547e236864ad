//! Where the links in messages lead.

use std::{fmt, sync::Arc};

use crate::domain::{Content, GroupId, Name, PagedContact};

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

/// Signs links, so that they can be followed without a key.
pub trait SignLinks: fmt::Debug + Send + Sync {
    /// The query of a link to a thread, that is followed from a moment on in milliseconds since 1970;
    /// the same for the same thread and moment.
    fn query(&self, thread: &str, since_ms: i64) -> String;

    /// The query of a link by which a contact acknowledges a thread, as long as that response lasts.
    fn acknowledge(&self, thread: &str, response: &str, contact: &Name) -> String;
}

impl Links {
    /// Where to read about what a content is about, decided at that moment; empty without a base.
    pub(super) fn to(&self, content: &Content, since_ms: i64) -> String {
        if self.base.is_empty() {
            return String::new();
        }
        let (place, thread) = match &content.group {
            Some(group) => ("groups", GroupId(group.id).to_string()),
            None => ("events", content.occurrence.id().to_string()),
        };
        let link = format!("{}/{place}/{thread}", self.url());
        match &self.signer {
            Some(signer) => format!("{link}?{}", signer.query(&thread, since_ms)),
            None => link,
        }
    }

    /// Where a contact acknowledges what a content is about; empty without a base.
    pub(super) fn acknowledge(&self, content: &Content, contact: &PagedContact) -> String {
        let Some(signer) = self
            .acknowledging
            .as_ref()
            .filter(|_| !self.base.is_empty())
        else {
            return String::new();
        };
        let thread = content.occurrence.id().to_string();
        let query = signer.acknowledge(&thread, &contact.response.to_string(), &contact.name);
        format!("{}/acknowledge/{thread}?{query}", self.url())
    }

    /// The address of the installation.
    pub(super) fn url(&self) -> &str {
        self.base.trim_end_matches('/')
    }
}
