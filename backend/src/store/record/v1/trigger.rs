//! Triggers.

use super::query::ClauseV1;
use crate::domain::{Name, RecordId, Trigger};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TriggerV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    description: String,
    #[prost(string, repeated, tag = "4")]
    tags: Vec<String>,
    #[prost(message, optional, tag = "5")]
    clause: Option<ClauseV1>,
    #[prost(uint64, tag = "6")]
    revision: u64,
    #[prost(int64, tag = "7")]
    create_ms: i64,
    #[prost(int64, tag = "8")]
    update_ms: i64,
}

impl From<&Trigger> for TriggerV1 {
    fn from(trigger: &Trigger) -> Self {
        Self {
            id: trigger.id.to_bytes().into(),
            name: trigger.name.as_str().into(),
            description: trigger.description.clone(),
            tags: trigger.tags.clone(),
            clause: Some((&trigger.query).into()),
            revision: trigger.revision,
            create_ms: trigger.create_ms,
            update_ms: trigger.update_ms,
        }
    }
}

impl TriggerV1 {
    pub(crate) fn into_trigger(self) -> Option<Trigger> {
        Some(Trigger {
            id: RecordId::from_bytes(self.id.try_into().ok()?),
            name: Name::parse(&self.name).ok()?,
            description: self.description,
            tags: self.tags,
            query: self.clause?.into_query()?,
            revision: self.revision,
            create_ms: self.create_ms,
            update_ms: self.update_ms,
        })
    }
}
