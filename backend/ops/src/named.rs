//! The trait of named resources.

use crate::{
    domain::{Name, RecordId, RevisedResource},
    store::Record,
};

pub trait Resource: Record {
    /// Name of the kind, as displayed.
    const WORD: &'static str;
    fn id(&self) -> RecordId;
    fn name(&self) -> &Name;
    fn description(&self) -> &str;
    fn tags(&self) -> &[String];
    fn revision(&self) -> u64;
    fn create_ms(&self) -> i64;
    fn update_ms(&self) -> i64;
    fn as_revision(&self) -> Option<RevisedResource>;
}
