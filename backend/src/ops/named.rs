//! A definition that people name.

use crate::{
    domain::{Name, RecordId, Revised},
    store::Record,
};

/// A stored resource that people name, describe and edit.
pub trait Resource: Record {
    /// What people call it.
    const WORD: &'static str;
    /// Its identity.
    fn id(&self) -> RecordId;
    /// Its name.
    fn name(&self) -> &Name;
    /// What people wrote about it.
    fn description(&self) -> &str;
    /// Its labels.
    fn tags(&self) -> &[String];
    /// Counts its edits.
    fn revision(&self) -> u64;
    /// When it was made, in milliseconds since 1970.
    fn create_ms(&self) -> i64;
    /// Time of the last edit, in milliseconds since 1970.
    fn update_ms(&self) -> i64;
    /// It as it is now, for a kind whose earlier revisions are kept.
    fn was(&self) -> Option<Revised>;
}
