//! The parameters of a preset: fields of its document whose values differ between users.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Placeholder for the signing secret in a mapping.
const SECRET: &str = "SECRET";
const URLS: [&str; 2] = ["/type/webhook/url", "/type/webhook/secretUrl"];
const HEADERS: &str = "/type/webhook/headers";
const PAYLOAD: &str = "/type/webhook/payload";

#[derive(Debug)]
pub struct Parameter {
    pub name: String,
    /// Whether the field still holds a placeholder, so that a value is required.
    pub is_open: bool,
    place: ParameterLocation,
}

#[derive(Debug)]
enum ParameterLocation {
    /// A field, identified by a JSON pointer.
    Field(String),
    /// A constant in the payload, from the first to the second byte offset.
    Payload(usize, usize, Syntax),
}

#[derive(Debug, Clone, Copy)]
enum Syntax {
    Json,
    Form,
}

fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

fn payload_constants(payload: &str) -> Vec<(&str, ParameterLocation)> {
    let start = |part: &str| part.as_ptr() as usize - payload.as_ptr() as usize;
    let place = |value: &str, syntax| {
        let start = start(value);
        ParameterLocation::Payload(start, start + value.len(), syntax)
    };
    let is_constant = |value: &str| !value.is_empty() && !is_template(value);
    if !payload.trim_start().starts_with('{') {
        let pairs = payload.split('&').filter_map(|pair| pair.split_once('='));
        let pairs = pairs.filter(|(_, value)| is_constant(value));
        return pairs
            .map(|(name, value)| (name, place(value, Syntax::Form)))
            .collect();
    }
    let parts: Vec<_> = payload.split('"').collect();
    let triples = parts.windows(3).skip(1).step_by(2);
    let pairs = triples.filter(|it| it[1].trim() == ":" && is_constant(it[2]));
    pairs
        .map(|it| (it[0], place(it[2], Syntax::Json)))
        .collect()
}

fn find_secret(value: &Value, pointer: &str) -> Option<String> {
    match value {
        Value::String(text) => (text == SECRET).then(|| pointer.to_owned()),
        Value::Object(fields) => {
            let mut fields = fields.iter();
            fields.find_map(|(name, value)| find_secret(value, &format!("{pointer}/{name}")))
        }
        _ => None,
    }
}

impl Parameter {
    /// Returns the parameters of a document: its scalar fields, the address, the headers, the constants
    /// of the payload, and a signing secret.
    pub fn from_document(body: &Value) -> Vec<Self> {
        let mut found = Vec::new();
        let mut add = |name: &str, is_open, place| {
            found.push(Self {
                name: name.to_owned(),
                is_open,
                place,
            });
        };
        let is_template = |value: &Value| value.as_str().is_some_and(is_template);
        let fields = |pointer: &str| body.pointer(pointer).and_then(Value::as_object);
        add("name", false, ParameterLocation::Field("/name".into()));
        for (name, value) in fields("").into_iter().flatten() {
            let is_other = ["name", "description", "templateLanguage"].contains(&&**name);
            let is_scalar = !value.is_object() && !value.is_array();
            if is_scalar && !is_other {
                add(name, false, ParameterLocation::Field(format!("/{name}")));
            }
        }
        for pointer in URLS {
            if body.pointer(pointer).is_some_and(|it| !is_template(it)) {
                add("url", false, ParameterLocation::Field(pointer.into()));
            }
        }
        for (name, value) in fields(HEADERS).into_iter().flatten() {
            if name != "content-type" && !is_template(value) {
                add(
                    name,
                    false,
                    ParameterLocation::Field(format!("{HEADERS}/{name}")),
                );
            }
        }
        let payload = body.pointer(PAYLOAD).and_then(Value::as_str);
        for (name, place) in payload_constants(payload.unwrap_or_default()) {
            add(name, false, place);
        }
        if let Some(pointer) = find_secret(body, "") {
            add("secret", true, ParameterLocation::Field(pointer));
        }
        found
    }

    pub fn set_value(&self, body: &mut Value, value: &str) {
        match &self.place {
            ParameterLocation::Field(pointer) => {
                let field = body.pointer_mut(pointer).expect("it was found there");
                *field = match field {
                    Value::Bool(_) | Value::Number(_) => {
                        serde_json::from_str(value).unwrap_or_else(|_other| json!(value))
                    }
                    _ => json!(value),
                };
            }
            ParameterLocation::Payload(start, end, syntax) => {
                let payload = body.pointer_mut(PAYLOAD).expect("it was found there");
                let text = payload.as_str().unwrap_or_default();
                let value = syntax.encode(value);
                *payload = json!(format!("{}{value}{}", &text[..*start], &text[*end..]));
            }
        }
    }
}

impl Syntax {
    fn encode(self, text: &str) -> String {
        match self {
            Self::Json => {
                let quoted = Value::from(text).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            }
            Self::Form => {
                let mut encoded = String::new();
                for byte in text.bytes() {
                    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                        encoded.push(char::from(byte));
                    } else {
                        let _ = write!(encoded, "%{byte:02X}");
                    }
                }
                encoded
            }
        }
    }
}
