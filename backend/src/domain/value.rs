//! A JSON value, as events carry it in their metadata fields.

use std::collections::BTreeMap;

/// A JSON value; numbers are doubles, objects are sorted by key.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; always finite.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// An object.
    Object(BTreeMap<String, Value>),
}

/// The fields of a JSON object.
pub type Fields = BTreeMap<String, Value>;
