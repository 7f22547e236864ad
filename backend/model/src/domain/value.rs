//! JSON values, as in the metadata of events.

use std::collections::BTreeMap;

/// A JSON value; numbers are doubles, objects are sorted by key.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    /// A number; always finite.
    Number(f64),
    Text(String),
    List(Vec<Value>),
    Object(BTreeMap<String, Value>),
}

pub type Fields = BTreeMap<String, Value>;

/// Returns the size of an object as compact JSON, in bytes.
pub fn json_bytes(fields: &Fields) -> usize {
    let each = |(name, value): (&String, &Value)| text_bytes(name) + 1 + value.json_bytes();
    listed_bytes(fields.iter().map(each))
}

impl Value {
    /// Returns the size of the value as compact JSON, in bytes; the nesting must be bounded.
    pub fn json_bytes(&self) -> usize {
        match self {
            Self::Null | Self::Bool(true) => 4,
            Self::Bool(false) => 5,
            Self::Number(number) => number.to_string().len(),
            Self::Text(text) => text_bytes(text),
            Self::List(values) => listed_bytes(values.iter().map(Self::json_bytes)),
            Self::Object(fields) => json_bytes(fields),
        }
    }
}

fn listed_bytes(items: impl ExactSizeIterator<Item = usize>) -> usize {
    2 + items.len().saturating_sub(1) + items.sum::<usize>()
}

fn text_bytes(text: &str) -> usize {
    let escape_bytes = |byte: u8| match byte {
        b'"' | b'\\' | 8 | 9 | 10 | 12 | 13 => 1,
        0..=31 => 5,
        _ => 0,
    };
    2 + text.len() + text.bytes().map(escape_bytes).sum::<usize>()
}

/// Parses a part of a dotted path as the index of a list entry: digits without leading zeros.
pub fn list_index(part: &str) -> Option<usize> {
    let is_index =
        part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
    part.parse().ok().filter(|_| is_index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_bytes_equals_compact_json_length() {
        let text = r#"{"a":[1,-2.5,true,false,null,"q\"\\\n\u0001\u00e9"],"b":{},"c":[]}"#;
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        let list = vec![
            Value::Number(1.0),
            Value::Number(-2.5),
            Value::Bool(true),
            Value::Bool(false),
            Value::Null,
            Value::Text("q\"\\\n\u{1}\u{e9}".into()),
        ];
        let fields = Fields::from([
            ("a".into(), Value::List(list)),
            ("b".into(), Value::Object(Fields::new())),
            ("c".into(), Value::List(Vec::new())),
        ]);
        assert_eq!(json_bytes(&fields), json.to_string().len());
    }
}
