//! A builder for events from sender data.

use std::collections::BTreeMap;

use super::{
    Severity,
    json::{self, Value},
};
use crate::{label, limits};
use bellwether_proto::cloud::{Event, Status};
use prost_types::{Struct, Value as WireValue};

#[derive(Debug)]
pub(super) struct EventDraft {
    event: Event,
    metadata: BTreeMap<String, WireValue>,
}

impl EventDraft {
    pub(super) fn new(name: impl Into<String>) -> Self {
        let event = Event {
            name: name.into(),
            ..Event::default()
        };
        Self {
            event,
            metadata: BTreeMap::new(),
        }
    }

    /// Adds a dimension. The key `name`, which is reserved, becomes `label_name`.
    pub(super) fn add_dimension(&mut self, key: &str, value: impl Into<String>) {
        let key = label::from_label(key, &self.event.dimensions);
        self.event.dimensions.insert(key, value.into());
    }

    pub(super) fn lacks_dimensions(&self) -> bool {
        self.event
            .dimensions
            .keys()
            .all(|key| key == label::SEVERITY)
    }

    pub(super) fn set_kind(&mut self, kind: &str) {
        kind.clone_into(&mut self.event.r#type);
    }

    pub(super) fn set_severity(&mut self, severity: Severity) {
        self.event.severity = severity.number();
    }

    pub(super) fn set_closed(&mut self) {
        self.event.status = Status::Closed.into();
    }

    pub(super) fn set_suppressed(&mut self) {
        self.event.status = Status::Suppressed.into();
    }

    pub(super) fn set_acknowledged(&mut self, is_acknowledged: bool) {
        self.event.acknowledged = Some(is_acknowledged);
    }

    pub(super) fn set_timestamp_ms(&mut self, timestamp_ms: i64) {
        self.event.timestamp = timestamp_ms;
    }

    pub(super) fn set_expires_ms(&mut self, expires_ms: i64) {
        self.event.expire_time = Some(expires_ms);
    }

    /// Sets the reported start and end, in milliseconds since 1970 by the sender's clock, and the
    /// reporter. Several reporters can report the same event.
    pub(super) fn set_report(
        &mut self,
        began_ms: Option<i64>,
        end_ms: Option<i64>,
        reporter: &str,
    ) {
        self.event.start_time = began_ms;
        self.event.end_time = end_ms;
        prefix(reporter, limits::REPORTER_BYTES).clone_into(&mut self.event.reporter);
    }

    pub(super) fn set_update_only(&mut self) {
        self.event.update_only = true;
    }

    pub(super) fn set_summary(&mut self, summary: &str) {
        summary.clone_into(&mut self.event.summary);
    }

    pub(super) fn set_body(&mut self, body: &str) {
        body.clone_into(&mut self.event.body);
    }

    pub(super) fn store_field<'a>(&mut self, key: &str, value: impl Into<Value<'a>>) {
        self.store_value(key, &value.into());
    }

    fn store_value(&mut self, key: &str, value: &Value<'_>) {
        let is_empty = match value {
            Value::Null => true,
            Value::Str(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        };
        if !is_empty {
            self.metadata.insert(key.to_owned(), json::to_wire(value));
        }
    }

    pub(super) fn store_members(&mut self, object: &json::Object<'_>, names: &[&str]) {
        for name in names {
            if let Some(value) = object.get(name) {
                self.store_value(name, value);
            }
        }
    }

    /// Stores the named strings and numbers of a document that encloses many events. Strings are
    /// truncated, because they are repeated in each event.
    pub(super) fn store_envelope_fields(&mut self, object: &json::Object<'_>, names: &[&str]) {
        for name in names {
            match object.get(name) {
                Some(Value::Str(text)) => {
                    self.store_field(name, prefix(text, limits::REPEATED_TEXT_BYTES));
                }
                Some(number @ Value::Number(_)) => self.store_value(name, number),
                _ => {}
            }
        }
    }

    /// Returns the event. A summary above the limit is truncated. The whole summary is stored in
    /// the body or, if the event has a body, in the metadata.
    pub(super) fn finish(mut self) -> Event {
        if self.event.summary.len() > limits::SUMMARY_BYTES {
            let whole = std::mem::take(&mut self.event.summary);
            self.event.summary = truncate_summary(&whole);
            if self.event.body.is_empty() {
                self.event.body = whole;
            } else {
                self.store_field("summary", whole);
            }
        }
        if !self.metadata.is_empty() {
            let fields = self.metadata;
            self.event.metadata_fields = Some(Struct { fields });
        }
        self.event
    }
}

fn truncate_summary(text: &str) -> String {
    const MORE: &str = "\u{2026}";
    format!("{}{MORE}", prefix(text, limits::SUMMARY_BYTES - MORE.len()))
}

fn prefix(text: &str, bytes: usize) -> &str {
    bellwether_language::text::longest_prefix(text, bytes)
}
