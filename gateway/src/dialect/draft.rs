//! An event as it is put together from what a sender sent.

use std::collections::BTreeMap;

use super::{
    Severity,
    json::{self, Value},
};
use crate::{label, limits};
use bellwether_proto::cloud::{Event, Status};
use prost_types::{Struct, Value as WireValue};

/// An event on its way to the backend.
#[derive(Debug)]
pub(super) struct Draft {
    event: Event,
    metadata: BTreeMap<String, WireValue>,
}

impl Draft {
    /// An event of that name, from now, of which nothing else is stated.
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

    /// Adds to what names the thing. The key `name`, which an event cannot have, becomes
    /// `label_name`.
    pub(super) fn dimension(&mut self, key: &str, value: impl Into<String>) {
        let key = label::dimension(key, &self.event.dimensions);
        self.event.dimensions.insert(key, value.into());
    }

    /// Whether nothing but its severity names the thing yet.
    pub(super) fn is_about_nothing(&self) -> bool {
        self.event
            .dimensions
            .keys()
            .all(|key| key == label::SEVERITY)
    }

    /// States the kind of event.
    pub(super) fn kind(&mut self, kind: &str) {
        kind.clone_into(&mut self.event.r#type);
    }

    /// States how bad it is.
    pub(super) fn severity(&mut self, severity: Severity) {
        self.event.severity = severity.number();
    }

    /// States that it is over.
    pub(super) fn closed(&mut self) {
        self.event.status = Status::Closed.into();
    }

    /// States that no one is to be notified.
    pub(super) fn suppressed(&mut self) {
        self.event.status = Status::Suppressed.into();
    }

    /// States whether a user looks after it.
    pub(super) fn acknowledged(&mut self, is_acknowledged: bool) {
        self.event.acknowledged = Some(is_acknowledged);
    }

    /// States when it happened, in milliseconds since 1970.
    pub(super) fn timestamp_ms(&mut self, timestamp_ms: i64) {
        self.event.timestamp = timestamp_ms;
    }

    /// States until when it is open without news, in milliseconds since 1970.
    pub(super) fn expires_ms(&mut self, expires_ms: i64) {
        self.event.expire_time = Some(expires_ms);
    }

    /// States since when and until when what it reports is so, in milliseconds since 1970 by the clock of
    /// its sender, and which of several senders reports it.
    pub(super) fn report(&mut self, began_ms: Option<i64>, end_ms: Option<i64>, reporter: &str) {
        self.event.start_time = began_ms;
        self.event.end_time = end_ms;
        head(reporter, limits::REPORTER_BYTES).clone_into(&mut self.event.reporter);
    }

    /// States that it only changes what is open.
    pub(super) fn update_only(&mut self) {
        self.event.update_only = true;
    }

    /// States the line for people.
    pub(super) fn summary(&mut self, summary: &str) {
        summary.clone_into(&mut self.event.summary);
    }

    /// States the details for people.
    pub(super) fn body(&mut self, body: &str) {
        body.clone_into(&mut self.event.body);
    }

    /// Keeps a further value; nothing for null, and for what is empty.
    pub(super) fn keep<'a>(&mut self, key: &str, value: impl Into<Value<'a>>) {
        self.keep_one(key, &value.into());
    }

    fn keep_one(&mut self, key: &str, value: &Value<'_>) {
        let is_empty = match value {
            Value::Null => true,
            Value::Str(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        };
        if !is_empty {
            self.metadata.insert(key.to_owned(), json::wire(value));
        }
    }

    /// Keeps those of an object's members that have these names.
    pub(super) fn keep_members(&mut self, object: &json::Object<'_>, names: &[&str]) {
        for name in names {
            if let Some(value) = object.get(name) {
                self.keep_one(name, value);
            }
        }
    }

    /// Keeps those texts of an object around many events that have these names, as far as each event
    /// can bear them.
    pub(super) fn keep_around(&mut self, object: &json::Object<'_>, names: &[&str]) {
        for name in names {
            if let Some(Value::Str(text)) = object.get(name) {
                self.keep(name, head(text, limits::REPEATED_TEXT_BYTES));
            }
        }
    }

    /// The event. A summary that is longer than an event's continues in the body, or whole into the
    /// metadata when there is a body.
    pub(super) fn finish(mut self) -> Event {
        if self.event.summary.len() > limits::SUMMARY_BYTES {
            let whole = std::mem::take(&mut self.event.summary);
            self.event.summary = cut(&whole);
            if self.event.body.is_empty() {
                self.event.body = whole;
            } else {
                self.keep("summary", whole);
            }
        }
        if !self.metadata.is_empty() {
            let fields = self.metadata;
            self.event.metadata_fields = Some(Struct { fields });
        }
        self.event
    }
}

/// As much of a text as a summary holds, with a sign that it continues.
fn cut(text: &str) -> String {
    const MORE: &str = "\u{2026}";
    format!("{}{MORE}", head(text, limits::SUMMARY_BYTES - MORE.len()))
}

/// The beginning of a text, of at most that many bytes.
fn head(text: &str, bytes: usize) -> &str {
    bellwether_proto::text::start(text, bytes)
}
