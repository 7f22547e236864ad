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
    pub(crate) fn of(path: &str, value: Value) -> Result<Self, ImportError> {
        let rest = match value {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            _ => return Err(invalid(path, "expected an object")),
        };
        Ok(Self {
            path: path.to_owned(),
            rest,
        })
    }

    pub(crate) fn at(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            // A path of a file ends with `:`.
            path if path.ends_with(':') => format!("{path} {name}"),
            path => format!("{path}.{name}"),
        }
    }

    /// Takes a field; `None` if it is absent or null.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.rest.remove(name).filter(|value| !value.is_null())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.rest.get(name).is_some_and(|value| !value.is_null())
    }

    pub(crate) fn is_list(&self, name: &str) -> bool {
        self.rest.get(name).is_some_and(Value::is_array)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.rest.keys().cloned().collect()
    }

    /// Removes and returns a string field. Numbers and booleans are accepted as strings, as in
    /// unquoted YAML.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, ImportError> {
        let path = self.at(name);
        self.take(name).map(|value| text(&path, value)).transpose()
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, ImportError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(Value::String(word)) if ["yes", "on"].contains(&&*word) => Ok(Some(true)),
            Some(Value::String(word)) if ["no", "off"].contains(&&*word) => Ok(Some(false)),
            Some(_) => Err(invalid(&self.at(name), "expected true or false")),
        }
    }

    /// Takes the items of a list, each with its path; empty if the list is absent.
    pub(crate) fn list(&mut self, name: &str) -> Result<Vec<(String, Value)>, ImportError> {
        let path = self.at(name);
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                let items = items.into_iter().enumerate();
                Ok(items
                    .map(|(at, item)| (format!("{path}[{at}]"), item))
                    .collect())
            }
            Some(_) => Err(invalid(&path, "expected a list")),
        }
    }

    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<String>, ImportError> {
        let items = self.list(name)?.into_iter();
        items.map(|(path, item)| text(&path, item)).collect()
    }

    pub(crate) fn objects(&mut self, name: &str) -> Result<Vec<Self>, ImportError> {
        let items = self.list(name)?.into_iter();
        items.map(|(path, item)| Self::of(&path, item)).collect()
    }

    /// Takes an object; an empty one if it is absent.
    pub(crate) fn object(&mut self, name: &str) -> Result<Self, ImportError> {
        let path = self.at(name);
        Self::of(&path, self.take(name).unwrap_or_default())
    }

    pub(crate) fn pairs(&mut self, name: &str) -> Result<Vec<(String, String)>, ImportError> {
        let object = self.object(name)?;
        let path = object.path;
        let pairs = object.rest.into_iter();
        pairs
            .map(|(name, value)| {
                let value = text(&format!("{path}.{name}"), value)?;
                Ok((name, value))
            })
            .collect()
    }

    pub(crate) fn finish(self, imported: &mut ImportOutput) {
        self.finish_with(imported, UNKNOWN);
    }

    pub(crate) fn finish_with(self, imported: &mut ImportOutput, why: &str) {
        for (name, value) in &self.rest {
            if !value.is_null() {
                imported.leave_out(&self.at(name), why);
            }
        }
    }
}

pub(crate) fn invalid(path: &str, why: &str) -> ImportError {
    ImportError::new(format!("{path}: {why}"))
}

fn text(path: &str, value: Value) -> Result<String, ImportError> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(number) if number.is_f64() => Err(invalid(
            path,
            "expected a string; quote the number to keep its digits",
        )),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Null => Ok(String::new()),
        _ => Err(invalid(path, "expected a string")),
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
        let mut fields = Fields::of("top", value).unwrap();
        assert_eq!(fields.text("name").unwrap().as_deref(), Some("a"));
        let items = fields.objects("list").unwrap();
        assert_eq!(items[0].path, "top.list[0]");
        let mut item = items.into_iter().next().unwrap();
        assert_eq!(item.text("n").unwrap().as_deref(), Some("1"));
        fields.finish(&mut imported);
        assert_eq!(
            imported.differences(),
            ["top.more: has no counterpart".to_owned()]
        );
    }

    #[test]
    fn mistyped_field_is_an_error_with_its_path() {
        let fields = || Fields::of("", json!({"a": [1], "b": 2})).unwrap();
        let failure = fields().text("a").unwrap_err();
        assert_eq!(failure.to_string(), "a: expected a string");
        let failure = fields().list("b").map(|_| ()).unwrap_err();
        assert_eq!(failure.to_string(), "b: expected a list");
        let mut number = Fields::of("", json!({"a": 1.5})).unwrap();
        let failure = number.text("a").unwrap_err().to_string();
        assert!(failure.starts_with("a: expected a string; quote the number"));
        let failure = fields().flag("b").unwrap_err();
        assert_eq!(failure.to_string(), "b: expected true or false");
    }
}
