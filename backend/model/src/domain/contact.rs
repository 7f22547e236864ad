//! Contacts: people and teams, and the destinations that notify them.

use std::collections::BTreeMap;

use crate::domain::{Name, RecordId, Severity};

/// A person or a team, and how they are notified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    /// Distinguishes it from an earlier contact of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Labels, in the author's order.
    pub tags: Vec<String>,
    /// Its time zone, by its IANA name; empty for UTC.
    pub time_zone: String,
    /// The client whose acknowledgements are its own.
    pub client: Option<Name>,
    /// The user name with which it signs in; empty for none.
    pub subject: String,
    /// How it is notified, in the author's order; never empty.
    pub methods: Vec<ContactMethod>,
    /// Number of the current address of its feed; 0 before the first was replaced.
    pub feed_number: u32,
    /// Counts its edits from 1; the etag is derived from it.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}

/// One way to notify a contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactMethod {
    /// The destination.
    pub destination: Name,
    /// Variables for templates.
    pub variables: BTreeMap<String, String>,
    /// How long after the contact is paged it is used, in milliseconds.
    pub after_ms: i64,
    /// The least severity for which it is used; none for any.
    pub min_severity: Option<Severity>,
    /// The calendar inside whose windows it is used; none for at any time.
    pub calendar: Option<Name>,
}

impl Contact {
    /// The destinations of its methods, in their order.
    pub fn destinations(&self) -> impl Iterator<Item = &Name> {
        self.methods.iter().map(|it| &it.destination)
    }

    /// The calendars of its methods, in their order.
    pub fn calendars(&self) -> impl Iterator<Item = &Name> {
        self.methods.iter().filter_map(|it| it.calendar.as_ref())
    }
}
