//! Limits of fields, in addition to their types, as JSON schema keywords.

use bellwether_proto::{
    json::{
        example,
        plan::{Behavior, Cardinality, FieldPlan, Kind},
    },
    options::{FieldLimits, field_limits::Format},
};
use serde_json::{Value, json};

/// Pattern of a name: no leading or trailing blank, no reserved ASCII characters. Letters of all
/// scripts are allowed; since not every regular expression engine can name them, the pattern lists
/// excluded characters instead.
const NAME: &str = r"^[^\x00-\x20!-,/:-@\[-^`{-\x7f]([^\x00-\x1f!-,/:-@\[-^`{-\x7f]*[^\x00-\x20!-,/:-@\[-^`{-\x7f])?$";

pub(super) fn add_item_limits(schema: &mut Value, field: &FieldPlan) {
    let (least, most) = match field.cardinality {
        Cardinality::Single => return,
        Cardinality::Repeated { .. } => ("minItems", "maxItems"),
        Cardinality::Map => ("minProperties", "maxProperties"),
    };
    if field.behavior == Behavior::Required {
        schema[least] = json!(1);
    }
    if field.takes.max_items > 0 {
        schema[most] = json!(field.takes.max_items);
    }
}

pub(super) fn with_limits(mut schema: Value, field: &FieldPlan) -> Value {
    let takes = &field.takes;
    if field.kind == Kind::String {
        let is_required = match field.cardinality {
            Cardinality::Single => field.behavior == Behavior::Required,
            // A list entry must not be empty if it has one of these limits.
            _ => takes.max_length > 0 || takes.format() != Format::Unspecified,
        };
        limit_text(&mut schema, takes, is_required);
    }
    if let Some(minimum) = takes.minimum {
        schema["minimum"] = json!(minimum);
    }
    if let Some(maximum) = takes.maximum {
        schema["maximum"] = json!(maximum);
    }
    if let Some(example) = example::declared_example(field) {
        schema["examples"] = json!([example]);
    }
    schema
}

fn limit_text(schema: &mut Value, takes: &FieldLimits, is_required: bool) {
    if is_required {
        schema["minLength"] = json!(1);
    }
    // A text of at most n bytes has at most n characters.
    let limits = [takes.max_length, takes.max_bytes];
    if let Some(most) = limits.into_iter().filter(|limit| *limit > 0).min() {
        schema["maxLength"] = json!(most);
    }
    match takes.format() {
        Format::Unspecified => {}
        Format::Name => {
            schema["maxLength"] = json!(100);
            let name = if is_required {
                NAME.to_owned()
            } else {
                format!("^$|{NAME}")
            };
            schema["pattern"] = json!(name);
        }
        Format::Url => schema["format"] = json!("uri"),
    }
    if !takes.words.is_empty() {
        schema["enum"] = json!(takes.words);
    }
    if takes.secret {
        // Not `writeOnly`: a stored secret is returned as `********`.
        schema["format"] = json!("password");
    }
}
