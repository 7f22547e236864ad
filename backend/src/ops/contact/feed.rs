//! The addresses of the feeds of contacts.

use super::Contacts;
use crate::{
    domain::{AuditAction, AuditEntry, Contact},
    error::Error,
    ops::{commit::commit, resource},
    store::{Kind, Lane, audit},
};

impl Contacts {
    /// Returns a contact whose address is issued to the caller, and records that.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::PermissionDenied`] outside of the caller's tags, and those of the store.
    pub async fn issue_feed(&self, name: &str) -> Result<Contact, Error> {
        let contact = self.find_own(name).await?;
        if let Some(by) = audit::current() {
            let entry = AuditEntry {
                kind: Kind::Contact.word().into(),
                names: vec![contact.name.to_string()],
                reason: "the address of its feed was issued".into(),
                ..by.entry(AuditAction::Read)
            };
            self.store.write_audit(vec![entry]).await?;
        }
        Ok(contact)
    }

    /// Revokes the address of the feed of a contact, and gives it another one.
    ///
    /// # Errors
    /// [`Error::NotFound`], and those of the store.
    pub async fn rotate_feed(&self, name: &str) -> Result<Contact, Error> {
        let decide = async || {
            let found = resource::find::<Contact>(&self.store, name).await?;
            let next = Contact {
                feed_number: found.value.feed_number.saturating_add(1),
                revision: found.value.revision + 1,
                update_ms: self.clock.now_ms(),
                ..found.value.clone()
            };
            let mut changes = self.store.changes();
            changes.update(&found, &next);
            Ok((changes, next))
        };
        Ok(commit(&self.store, Lane::Admin, decide).await?.0)
    }
}
