//! The trait of named resources.

use crate::{
    domain::{Name, RecordId, RevisedResource},
    store::Record,
};

/// A stored resource with a name, description and tags.
pub trait Resource: Record {
    /// Displayed name of the kind.
    const WORD: &'static str;
    /// Returns the id.
    fn id(&self) -> RecordId;
    /// Returns the name.
    fn name(&self) -> &Name;
    /// Returns the description.
    fn description(&self) -> &str;
    /// Returns the tags.
    fn tags(&self) -> &[String];
    /// Returns the number of edits.
    fn revision(&self) -> u64;
    /// Returns the creation time, in milliseconds since the epoch.
    fn create_ms(&self) -> i64;
    /// Returns the time of the last edit, in milliseconds since the epoch.
    fn update_ms(&self) -> i64;
    /// Returns the current state as a revision, for kinds that keep past revisions.
    fn as_revision(&self) -> Option<RevisedResource>;
}
