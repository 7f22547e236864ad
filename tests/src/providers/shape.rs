//! Collects the faults of a JSON document, field by field.

use serde_json::{Map, Value};

/// The faults found in a document so far.
#[derive(Debug, Default)]
pub struct Violations(pub Vec<String>);

impl Violations {
    /// Adds a fault unless `right` holds.
    pub fn unless(&mut self, right: bool, wrong: impl Into<String>) {
        if !right {
            self.0.push(wrong.into());
        }
    }

    /// Checks that the value is an object with known fields only, and returns its fields.
    pub fn object<'a>(&mut self, path: &str, value: &'a Value, known: &[&str]) -> Fields<'a> {
        let Value::Object(object) = value else {
            self.0.push(format!("{path} is not an object: {value}"));
            return Fields::default();
        };
        for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
            self.0.push(format!("{path} has an unknown field `{name}`"));
        }
        Fields(Some(object))
    }

    /// Checks for a non-empty string of at most this many characters, and returns it.
    pub fn text<'a>(&mut self, path: &str, value: &'a Value, characters_max: usize) -> &'a str {
        let Some(text) = value.as_str() else {
            self.0.push(format!("{path} is not a text: {value}"));
            return "";
        };
        let count = text.chars().count();
        self.unless(count > 0, format!("{path} is empty"));
        let long = format!("{path} has {count} characters; the limit is {characters_max}");
        self.unless(count <= characters_max, long);
        text
    }

    /// Checks a string that may be absent or empty.
    pub fn optional_text(&mut self, path: &str, value: &Value, characters_max: usize) {
        if !value.is_null() && value != "" {
            self.text(path, value, characters_max);
        }
    }

    /// Checks that the value is one of these words.
    pub fn one_of(&mut self, path: &str, value: &Value, words: &[&str]) {
        let known = value.as_str().is_some_and(|word| words.contains(&word));
        self.unless(known, format!("{path} is {value}, none of {words:?}"));
    }

    /// Checks for a list of at most `max` items, and returns them.
    pub fn list<'a>(&mut self, path: &str, value: &'a Value, max: usize) -> &'a [Value] {
        let Some(items) = value.as_array() else {
            self.0.push(format!("{path} is not a list: {value}"));
            return &[];
        };
        let right = (1..=max).contains(&items.len());
        self.unless(
            right,
            format!("{path} has {} items, not 1 to {max}", items.len()),
        );
        items
    }

    /// Checks for an HTTP or HTTPS URL.
    pub fn web_address(&mut self, path: &str, value: &Value) {
        let url = value.as_str().and_then(|text| url::Url::parse(text).ok());
        let right = url.is_some_and(|url| matches!(url.scheme(), "http" | "https"));
        self.unless(right, format!("{path} is not a web address: {value}"));
    }
}

/// The fields of an object; absent ones read as null.
#[derive(Debug, Default, Clone, Copy)]
pub struct Fields<'a>(Option<&'a Map<String, Value>>);

impl<'a> Fields<'a> {
    /// Returns the field's value.
    pub fn get(self, name: &str) -> &'a Value {
        self.0
            .and_then(|fields| fields.get(name))
            .unwrap_or(&Value::Null)
    }

    /// Returns whether the field is present.
    pub fn has(self, name: &str) -> bool {
        self.0.is_some_and(|fields| fields.contains_key(name))
    }
}
