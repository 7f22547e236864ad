//! Feed URLs of contacts.

use super::Contacts;
use crate::{
    commit::commit,
    domain::{AuditAction, AuditEntry, Contact},
    error::Error,
    resource,
    store::{Kind, Lane, audit},
};

impl Contacts {
    /// Returns a contact whose feed URL is issued to the caller, and records that in the audit log.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if the contact does not exist, [`Error::PermissionDenied`] if it
    /// is outside the caller's tags, and an error if the store fails.
    pub async fn issue_feed(&self, name: &str) -> Result<Contact, Error> {
        let contact = self.find_in_scope(name).await?;
        if let Some(by) = audit::current_actor() {
            let entry = AuditEntry {
                kind: Kind::Contact.as_str().into(),
                names: vec![contact.name.to_string()],
                reason: "issued its feed URL".into(),
                ..by.audit_entry(AuditAction::Read)
            };
            self.store.write_audit(vec![entry]).await?;
        }
        Ok(contact)
    }

    pub async fn rotate_feed(&self, name: &str) -> Result<Contact, Error> {
        let decide = async || {
            let found = resource::find::<Contact>(&self.store, name).await?;
            let next = Contact {
                feed_number: found.value.feed_number.saturating_add(1),
                revision: found.value.revision + 1,
                update_ms: self.clock.now_ms(),
                ..found.value.clone()
            };
            let mut changes = self.store.new_changes();
            changes.update(&found, &next);
            Ok((changes, next))
        };
        Ok(commit(&self.store, Lane::Admin, decide).await?.0)
    }
}
