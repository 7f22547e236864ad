//! An object of a file, read field by field; unread fields are reported with their paths.

use serde_json::{Map, Value};

use super::imported::ImportOutput;
use crate::error::ImportError;

const UNKNOWN: &str = "has no counterpart";

pub(crate) struct Fields {
    pub(crate) path: String,
    rest: Map<String, Value>,
}

impl Fields {
    /// Wraps an object; null counts as an empty one.
    pub(crate) fn from_value(path: &str, value: Value) -> Result<Self, ImportError> {
        let rest = match value {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            _ => return Err(invalid_field_error(path, "expected an object")),
        };
        Ok(Self {
            path: path.to_owned(),
            rest,
        })
    }

    pub(crate) fn path_of(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            // If the object is the whole file, its path is the file name followed by `:`.
            path if path.ends_with(':') => format!("{path} {name}"),
            path => format!("{path}.{name}"),
        }
    }

    pub(crate) fn take_value(&mut self, name: &str) -> Option<Value> {
        self.rest.remove(name).filter(|value| !value.is_null())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.rest.get(name).is_some_and(|value| !value.is_null())
    }

    pub(crate) fn is_list(&self, name: &str) -> bool {
        self.rest.get(name).is_some_and(Value::is_array)
    }

    pub(crate) fn field_names(&self) -> Vec<String> {
        self.rest.keys().cloned().collect()
    }

    /// Removes and returns a string field. Numbers and booleans are accepted as strings, as in
    /// unquoted YAML.
    pub(crate) fn take_text(&mut self, name: &str) -> Result<Option<String>, ImportError> {
        let path = self.path_of(name);
        self.take_value(name)
            .map(|value| scalar_text(&path, value))
            .transpose()
    }

    /// Removes and returns a string field; `None` if it is absent or empty.
    pub(crate) fn take_nonempty_text(&mut self, name: &str) -> Result<Option<String>, ImportError> {
        Ok(self.take_text(name)?.filter(|text| !text.is_empty()))
    }

    pub(crate) fn require(&mut self, name: &str) -> Result<String, ImportError> {
        let text = self.take_nonempty_text(name)?;
        text.ok_or_else(|| invalid_field_error(&self.path_of(name), "is required"))
    }

    /// Removes and returns an integer; `None` if the field is absent or its text is not an integer.
    pub(crate) fn take_integer(&mut self, name: &str) -> Result<Option<i64>, ImportError> {
        Ok(self.take_text(name)?.and_then(|text| text.parse().ok()))
    }

    /// Removes fields without reporting them.
    pub(crate) fn ignore(&mut self, names: &[&str]) {
        self.rest.retain(|name, _| !names.contains(&name.as_str()));
    }

    /// Removes a field, and reports it as omitted if it is set.
    pub(crate) fn omit(&mut self, name: &str, why: &str, imported: &mut ImportOutput) {
        if self.take_value(name).is_some() {
            imported.record_omission(&self.path_of(name), why);
        }
    }

    pub(crate) fn take_flag(&mut self, name: &str) -> Result<Option<bool>, ImportError> {
        match self.take_value(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(Value::String(word)) if ["yes", "on"].contains(&&*word) => Ok(Some(true)),
            Some(Value::String(word)) if ["no", "off"].contains(&&*word) => Ok(Some(false)),
            Some(_) => Err(invalid_field_error(
                &self.path_of(name),
                "expected true or false",
            )),
        }
    }

    /// Removes a list and returns its items, each with its path; empty if the list is absent.
    pub(crate) fn take_list(&mut self, name: &str) -> Result<Vec<(String, Value)>, ImportError> {
        let path = self.path_of(name);
        match self.take_value(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                let items = items.into_iter().enumerate();
                Ok(items
                    .map(|(at, item)| (format!("{path}[{at}]"), item))
                    .collect())
            }
            Some(_) => Err(invalid_field_error(&path, "expected a list")),
        }
    }

    pub(crate) fn take_texts(&mut self, name: &str) -> Result<Vec<String>, ImportError> {
        let items = self.take_list(name)?.into_iter();
        items.map(|(path, item)| scalar_text(&path, item)).collect()
    }

    pub(crate) fn take_objects(&mut self, name: &str) -> Result<Vec<Self>, ImportError> {
        let items = self.take_list(name)?.into_iter();
        items
            .map(|(path, item)| Self::from_value(&path, item))
            .collect()
    }

    /// Removes and returns an object; an empty object if it is absent.
    pub(crate) fn take_object(&mut self, name: &str) -> Result<Self, ImportError> {
        let path = self.path_of(name);
        Self::from_value(&path, self.take_value(name).unwrap_or_default())
    }

    pub(crate) fn take_pairs(&mut self, name: &str) -> Result<Vec<(String, String)>, ImportError> {
        let object = self.take_object(name)?;
        let path = object.path;
        let pairs = object.rest.into_iter();
        pairs
            .map(|(name, value)| {
                let value = scalar_text(&format!("{path}.{name}"), value)?;
                Ok((name, value))
            })
            .collect()
    }

    pub(crate) fn finish(self, imported: &mut ImportOutput) {
        self.finish_with_reason(imported, UNKNOWN);
    }

    pub(crate) fn finish_with_reason(self, imported: &mut ImportOutput, why: &str) {
        for (name, value) in &self.rest {
            if !value.is_null() {
                imported.record_omission(&self.path_of(name), why);
            }
        }
    }
}

pub(crate) fn invalid_field_error(path: &str, why: &str) -> ImportError {
    ImportError::new(format!("{path}: {why}"))
}

fn scalar_text(path: &str, value: Value) -> Result<String, ImportError> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(number) if number.is_f64() => Err(invalid_field_error(
            path,
            "expected a string; quote the number to keep its digits",
        )),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Null => Ok(String::new()),
        _ => Err(invalid_field_error(path, "expected a string")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unsupported_fields_are_reported_with_their_path() {
        let value = json!({"name": "a", "list": [{"n": 1}], "more": {"x": 1}, "none": null});
        let mut imported = ImportOutput::new("test", false);
        let mut fields = Fields::from_value("top", value).unwrap();
        assert_eq!(fields.take_text("name").unwrap().as_deref(), Some("a"));
        let items = fields.take_objects("list").unwrap();
        assert_eq!(items[0].path, "top.list[0]");
        let mut item = items.into_iter().next().unwrap();
        assert_eq!(item.take_text("n").unwrap().as_deref(), Some("1"));
        fields.finish(&mut imported);
        assert_eq!(
            imported.differences(),
            ["top.more: has no counterpart".to_owned()]
        );
    }

    #[test]
    fn mistyped_field_is_an_error_with_its_path() {
        let fields = || Fields::from_value("", json!({"a": [1], "b": 2})).unwrap();
        let failure = fields().take_text("a").unwrap_err();
        assert_eq!(failure.to_string(), "a: expected a string");
        let failure = fields().take_list("b").map(|_| ()).unwrap_err();
        assert_eq!(failure.to_string(), "b: expected a list");
        let mut number = Fields::from_value("", json!({"a": 1.5})).unwrap();
        let failure = number.take_text("a").unwrap_err().to_string();
        assert!(failure.starts_with("a: expected a string; quote the number"));
        let failure = fields().take_flag("b").unwrap_err();
        assert_eq!(failure.to_string(), "b: expected true or false");
    }
}
