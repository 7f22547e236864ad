//! A stored resource or draft, as canonical JSON.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Kind;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    pub(crate) json: Value,
}

impl Object {
    pub(crate) fn name(&self) -> &str {
        self.text("name")
    }

    pub(crate) fn etag(&self) -> &str {
        self.text("etag")
    }

    pub(crate) fn value_at(&self, path: &str) -> Option<&Value> {
        get_value(&self.json, path)
    }

    pub(crate) fn text(&self, path: &str) -> &str {
        self.value_at(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Returns the integer at a path; canonical JSON writes 64-bit integers as text.
    pub(crate) fn number(&self, path: &str) -> Option<i64> {
        let value = self.value_at(path)?;
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    }

    pub(crate) fn flag(&self, path: &str) -> bool {
        self.value_at(path)
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    pub(crate) fn texts(&self, path: &str) -> impl ExactSizeIterator<Item = &str> {
        let items = self.value_at(path).and_then(Value::as_array);
        let items = items.map(Vec::as_slice).unwrap_or_default().iter();
        items.map(|item| item.as_str().unwrap_or_default())
    }

    pub(crate) fn timestamp_ms(&self, path: &str) -> Option<i64> {
        let moment: Timestamp = self.text(path).parse().ok()?;
        Some(moment.as_millisecond())
    }

    /// Returns the name of the type that is set, such as `webhook`; empty if none is.
    pub(crate) fn type_word(&self) -> &str {
        let kind = self.value_at("type").and_then(Value::as_object);
        kind.and_then(|kind| kind.keys().next())
            .map_or("", String::as_str)
    }

    pub(crate) fn set(&mut self, path: &str, value: Option<Value>) {
        set_value(&mut self.json, path, value);
    }

    pub(crate) fn with_only_fields(&self, fields: &[&str]) -> Value {
        let pairs = fields.iter().filter_map(|field| {
            let value = self.json.get(field)?;
            Some(((*field).to_owned(), value.clone()))
        });
        Value::Object(pairs.collect())
    }

    pub(crate) fn without_fields(mut self, fields: &[&str]) -> Self {
        if let Some(object) = self.json.as_object_mut() {
            object.retain(|name, _| !fields.contains(&name.as_str()));
        }
        self
    }
}

pub(crate) fn get_value<'a>(json: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(json, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    })
}

/// Sets or removes the value at a dotted path, creating missing objects.
pub(crate) fn set_value(json: &mut Value, path: &str, value: Option<Value>) {
    let first = path.split_once('.').map_or(path, |(first, _)| first);
    if let Ok(at) = first.parse() {
        return set_item(json, at, path, value);
    }
    if !json.is_object() {
        *json = json!({});
    }
    let Some(object) = json.as_object_mut() else {
        return;
    };
    match (path.split_once('.'), value) {
        (None, Some(value)) => {
            object.insert(path.to_owned(), value);
        }
        (None, None) => {
            object.remove(path);
        }
        (Some((key, rest)), Some(value)) => {
            set_value(object.entry(key).or_insert(Value::Null), rest, Some(value));
        }
        (Some((key, rest)), None) => {
            if let Some(inner) = object.get_mut(key) {
                set_value(inner, rest, None);
            }
        }
    }
}

fn set_item(json: &mut Value, at: usize, path: &str, value: Option<Value>) {
    if !json.is_array() {
        *json = json!([]);
    }
    let Some(items) = json.as_array_mut() else {
        return;
    };
    if at == items.len() && value.is_some() {
        items.push(Value::Null);
    }
    match (items.get_mut(at), path.split_once('.')) {
        (Some(item), Some((_, rest))) => set_value(item, rest, value),
        (Some(item), None) => *item = value.unwrap_or_default(),
        (None, _) => {}
    }
}

/// Whether canonical JSON omits the value.
pub(crate) fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => Map::is_empty(fields),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
