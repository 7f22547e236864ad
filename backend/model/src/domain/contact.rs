//! Contacts: people and teams, and the destinations that notify them.

use std::collections::BTreeMap;

use crate::domain::{Name, RecordId, Severity};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    pub tags: Vec<String>,
    /// The IANA name of the time zone; empty means UTC.
    pub time_zone: String,
    /// The client whose acknowledgements count as the contact's.
    pub client: Option<Name>,
    /// The user name with which the contact signs in; may be empty.
    pub subject: String,
    /// The methods of notifying the contact, in the author's order; never empty.
    pub methods: Vec<ContactMethod>,
    /// The number of the current URL of the feed; 0 before the first URL was replaced.
    pub feed_number: u32,
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactMethod {
    /// The identity, unique within the contact; stable over edits.
    pub id: String,
    pub destination: Name,
    pub variables: BTreeMap<String, String>,
    /// Delay before the method is used when the contact is paged, in milliseconds.
    pub after_ms: i64,
    /// Minimum severity for which the method is used; `None` means any.
    pub min_severity: Option<Severity>,
    /// The calendar in whose windows the method is used; `None` means always.
    pub calendar: Option<Name>,
}

impl Contact {
    pub fn destinations(&self) -> impl Iterator<Item = &Name> {
        self.methods.iter().map(|it| &it.destination)
    }

    pub fn method(&self, id: &str) -> Option<&ContactMethod> {
        self.methods.iter().find(|it| it.id == id)
    }

    pub fn calendars(&self) -> impl Iterator<Item = &Name> {
        self.methods.iter().filter_map(|it| it.calendar.as_ref())
    }
}

/// Returns an unused identity for a method to a destination.
pub fn new_method_id(destination: &Name, is_used: impl Fn(&str) -> bool) -> String {
    let base: String = destination.as_str().chars().take(ID_CHARACTERS).collect();
    let base = base.trim_end();
    let mut id = base.to_owned();
    let mut number = 1;
    while is_used(&id) {
        number += 1;
        id = format!("{base}-{number}");
    }
    id
}

/// Number of characters of a destination's name in an identity, so that the identity with its
/// number is not longer than a name.
const ID_CHARACTERS: usize = 96;

/// Returns the identities of methods that were stored without any.
pub fn default_method_ids(methods: &[ContactMethod]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::with_capacity(methods.len());
    for method in methods {
        let id = new_method_id(&method.destination, |it| ids.iter().any(|id| id == it));
        ids.push(id);
    }
    ids
}
