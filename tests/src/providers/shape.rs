//! Collects what is wrong with a JSON document, field by field.

use serde_json::{Map, Value};

/// What is wrong with a document so far.
#[derive(Debug, Default)]
pub struct Faults(pub Vec<String>);

impl Faults {
    /// Notes what is wrong, unless it is right.
    pub fn unless(&mut self, right: bool, wrong: impl Into<String>) {
        if !right {
            self.0.push(wrong.into());
        }
    }

    /// An object; fields of other names than these are wrong.
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

    /// A required text of so many characters.
    pub fn text<'a>(&mut self, path: &str, value: &'a Value, characters_max: usize) -> &'a str {
        let Some(text) = value.as_str() else {
            self.0.push(format!("{path} is not a text: {value}"));
            return "";
        };
        let count = text.chars().count();
        self.unless(count > 0, format!("{path} is empty"));
        let long = format!("{path} has {count} characters; at most {characters_max} are taken");
        self.unless(count <= characters_max, long);
        text
    }

    /// A text that may be absent or empty.
    pub fn optional_text(&mut self, path: &str, value: &Value, characters_max: usize) {
        if !value.is_null() && value != "" {
            self.text(path, value, characters_max);
        }
    }

    /// A required word of a list.
    pub fn word(&mut self, path: &str, value: &Value, words: &[&str]) {
        let known = value.as_str().is_some_and(|word| words.contains(&word));
        self.unless(known, format!("{path} is {value}, none of {words:?}"));
    }

    /// A list of so many items.
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

    /// An address of the web.
    pub fn web_address(&mut self, path: &str, value: &Value) {
        let url = value.as_str().and_then(|text| url::Url::parse(text).ok());
        let right = url.is_some_and(|url| matches!(url.scheme(), "http" | "https"));
        self.unless(right, format!("{path} is no address of the web: {value}"));
    }
}

/// The fields of an object; those that are absent are null.
#[derive(Debug, Default, Clone, Copy)]
pub struct Fields<'a>(Option<&'a Map<String, Value>>);

impl<'a> Fields<'a> {
    /// A field.
    pub fn get(self, name: &str) -> &'a Value {
        self.0
            .and_then(|fields| fields.get(name))
            .unwrap_or(&Value::Null)
    }

    /// Whether there is such a field.
    pub fn has(self, name: &str) -> bool {
        self.0.is_some_and(|fields| fields.contains_key(name))
    }
}
