//! Contacts: people and teams, and the destinations that notify them.

use std::collections::BTreeMap;

use crate::domain::{Name, RecordId, Severity};

/// A person or a team that can be notified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    /// The identity; distinguishes it from an earlier contact of the same name.
    pub id: RecordId,
    /// The name.
    pub name: Name,
    /// The description for people.
    pub description: String,
    /// The labels, in the author's order.
    pub tags: Vec<String>,
    /// The IANA name of its time zone; empty means UTC.
    pub time_zone: String,
    /// The client whose acknowledgements count as the contact's.
    pub client: Option<Name>,
    /// The user name with which it signs in; may be empty.
    pub subject: String,
    /// The methods to notify it, in the author's order; never empty.
    pub methods: Vec<ContactMethod>,
    /// The number of the current URL of its feed; 0 before the first was replaced.
    pub feed_number: u32,
    /// Revision, counted from 1; the etag is derived from it.
    pub revision: u64,
    /// Time it was created, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}

/// One way to notify a contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactMethod {
    /// The destination.
    pub destination: Name,
    /// Template variables.
    pub variables: BTreeMap<String, String>,
    /// Delay of its use after the contact is paged, in milliseconds.
    pub after_ms: i64,
    /// Minimum severity for its use; `None` means any.
    pub min_severity: Option<Severity>,
    /// The calendar in whose windows it is used; `None` means always.
    pub calendar: Option<Name>,
}

impl Contact {
    /// Returns the destinations of its methods, in order.
    pub fn destinations(&self) -> impl Iterator<Item = &Name> {
        self.methods.iter().map(|it| &it.destination)
    }

    /// Returns the calendars of its methods, in order.
    pub fn calendars(&self) -> impl Iterator<Item = &Name> {
        self.methods.iter().filter_map(|it| it.calendar.as_ref())
    }
}
