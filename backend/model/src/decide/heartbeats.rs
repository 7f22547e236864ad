//! Which events are beats of which heartbeats.

use std::sync::Arc;

use super::grouping::{group_key, shared_value};
use crate::{
    domain::{Heartbeat, Occurrence, RecordId, hold::SharedValue},
    matching::{self, CompiledQuery, field::Field},
};

/// A heartbeat that is enabled, ready for matching.
#[derive(Debug)]
pub struct LoadedHeartbeat {
    /// The heartbeat as stored.
    pub heartbeat: Heartbeat,
    query: Option<CompiledQuery>,
    fields: Vec<(String, Field)>,
}

impl LoadedHeartbeat {
    /// Makes a heartbeat ready; none when what is stored cannot be asked: nothing is expected of it.
    pub fn new(heartbeat: Heartbeat) -> Option<Self> {
        let query = heartbeat.query.as_ref();
        let query = query.map(|query| matching::compile(query).ok());
        let by = heartbeat.by.iter();
        let fields = by.map(|name| Some((name.clone(), Field::parse(name).ok()?)));
        Some(Self {
            query: match query {
                Some(compiled) => Some(compiled?),
                None => None,
            },
            fields: fields.collect::<Option<_>>()?,
            heartbeat,
        })
    }

    /// Whether events can be beats of it.
    pub fn is_of_events(&self) -> bool {
        self.query.is_some()
    }

    /// The values of a beat that an event is; none when it is no beat.
    pub fn beat(&self, occurrence: &Occurrence) -> Option<Vec<SharedValue>> {
        let is_beat = self.query.as_ref()?.matches(occurrence);
        is_beat.then(|| self.values(|_, field| shared_value(field, occurrence)))
    }

    /// The values of its fields, as they are found.
    pub fn values(&self, find: impl Fn(&str, &Field) -> Option<String>) -> Vec<SharedValue> {
        let fields = self.fields.iter();
        fields
            .map(|(name, field)| (name.clone(), find(name, field)))
            .collect()
    }

    /// The key of what is expected of these values.
    pub fn key(&self, values: &[SharedValue]) -> RecordId {
        group_key(self.heartbeat.id, false, values)
    }
}

/// The heartbeats that are enabled, by name.
pub type Heartbeats = Arc<[Arc<LoadedHeartbeat>]>;
