//! Inhibitions.

use super::{occurrence::record_id, query::ClauseV1};
use crate::domain::{EqualFields, Inhibition, Name};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InhibitionV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    description: String,
    #[prost(string, repeated, tag = "4")]
    tags: Vec<String>,
    #[prost(bool, tag = "5")]
    enabled: bool,
    #[prost(message, optional, tag = "6")]
    source: Option<ClauseV1>,
    #[prost(message, optional, tag = "7")]
    target: Option<ClauseV1>,
    #[prost(message, repeated, tag = "8")]
    equal: Vec<EqualFieldsV1>,
    #[prost(int64, tag = "9")]
    linger_ms: i64,
    #[prost(uint64, tag = "10")]
    counted_revision: u64,
    #[prost(uint64, tag = "11")]
    revision: u64,
    #[prost(int64, tag = "12")]
    create_ms: i64,
    #[prost(int64, tag = "13")]
    update_ms: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct EqualFieldsV1 {
    #[prost(string, tag = "1")]
    source: String,
    #[prost(string, tag = "2")]
    target: String,
}

impl From<&Inhibition> for InhibitionV1 {
    fn from(inhibition: &Inhibition) -> Self {
        let equal = |it: &EqualFields| EqualFieldsV1 {
            source: it.source.clone(),
            target: it.target.clone(),
        };
        Self {
            id: inhibition.id.to_bytes().into(),
            name: inhibition.name.to_string(),
            description: inhibition.description.clone(),
            tags: inhibition.tags.clone(),
            enabled: inhibition.enabled,
            source: Some(ClauseV1::from(&inhibition.source)),
            target: Some(ClauseV1::from(&inhibition.target)),
            equal: inhibition.equal.iter().map(equal).collect(),
            linger_ms: inhibition.linger_ms,
            counted_revision: inhibition.counted_revision,
            revision: inhibition.revision,
            create_ms: inhibition.create_ms,
            update_ms: inhibition.update_ms,
        }
    }
}

impl InhibitionV1 {
    pub(crate) fn into_inhibition(self) -> Option<Inhibition> {
        let equal = |it: EqualFieldsV1| EqualFields {
            source: it.source,
            target: it.target,
        };
        Some(Inhibition {
            id: record_id(self.id)?,
            name: Name::parse(&self.name).ok()?,
            description: self.description,
            tags: self.tags,
            enabled: self.enabled,
            source: self.source?.into_query()?,
            target: self.target?.into_query()?,
            equal: self.equal.into_iter().map(equal).collect(),
            linger_ms: self.linger_ms,
            counted_revision: self.counted_revision,
            revision: self.revision,
            create_ms: self.create_ms,
            update_ms: self.update_ms,
        })
    }
}
