//! What fields take, beyond their types, as keywords of JSON schemas.

use bellwether_proto::{
    json::{
        example,
        plan::{Behavior, Cardinality, FieldPlan, Kind},
    },
    options::{FieldLimits, field_limits::Format},
};
use serde_json::{Value, json};

/// Where blanks are in a name, and which other signs do not; letters and digits are those of every
/// language, which not every reader's patterns can name.
const NAME: &str = r"^[^\x00-\x20!-,/:-@\[-^`{-\x7f]([^\x00-\x1f!-,/:-@\[-^`{-\x7f]*[^\x00-\x20!-,/:-@\[-^`{-\x7f])?$";

/// How many entries a list or map takes.
pub(super) fn count(schema: &mut Value, field: &FieldPlan) {
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

/// What a field takes of the values of its kind.
pub(super) fn limited(mut schema: Value, field: &FieldPlan) -> Value {
    let takes = &field.takes;
    if field.kind == Kind::String {
        let is_required = match field.cardinality {
            Cardinality::Single => field.behavior == Behavior::Required,
            // What is reported of the entries of a list is reported of those that say something.
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
    if let Some(example) = example::given(field) {
        schema["examples"] = json!([example]);
    }
    schema
}

fn limit_text(schema: &mut Value, takes: &FieldLimits, is_required: bool) {
    if is_required {
        schema["minLength"] = json!(1);
    }
    // As many bytes hold no more characters.
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
        // Not `writeOnly`: that there is one is answered, as `********`.
        schema["format"] = json!("password");
    }
}
