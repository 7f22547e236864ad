//! Converts query parameters to fields of the request.

use bellwether_proto::json::{
    plan::{Cardinality, Kind, Plan},
    read,
    violation::{Violations, nearest_name, quote_for_message},
};
use percent_encoding::percent_decode_str;

use crate::{limits, operation::Operation, route};

pub(crate) fn read(
    plan: &Plan,
    operation: &Operation,
    query: &str,
    violations: &mut Violations,
) -> Vec<u8> {
    let message = &plan.messages[operation.input];
    let mut out = Vec::new();
    let mut seen = 0_u128;
    let pairs = || query.split('&').filter(|pair| !pair.is_empty());
    for (at, pair) in pairs().enumerate() {
        if at == limits::QUERY_PAIRS {
            let (count, limit) = (pairs().count(), limits::QUERY_PAIRS);
            violations.add(format!(
                "the query has {count} parameters; the limit is {limit}"
            ));
            break;
        }
        let (raw_name, raw_value) = pair.split_once('=').unwrap_or((pair, ""));
        let Some((name, value)) = decode(raw_name).zip(decode(raw_value)) else {
            let name = String::from_utf8_lossy(&percent_decode_str(raw_name).collect::<Vec<_>>())
                .into_owned();
            violations.add(format!(
                "the query parameter {} is not valid percent-encoding",
                quote_for_message(&name)
            ));
            continue;
        };
        let index = message.field_index(&name);
        let Some(index) = index.filter(|at| operation.accepts_query(plan, &message.fields[*at]))
        else {
            if !operation.lenient {
                let field = quote_for_message(&name);
                violations.add_at(
                    field.trim_matches('`'),
                    rejection_message(plan, operation, &name),
                );
            }
            continue;
        };
        let field = &message.fields[index];
        if field.cardinality == Cardinality::Single && seen & 1 << index != 0 {
            violations.add_at(&*field.json_name, "is set twice");
            continue;
        }
        seen |= 1 << index;
        // On script-friendly paths, a flag without a value means true (`?start`). On all other
        // paths the value is required (`?force=true`).
        let is_flag = operation.is_silent && field.kind == Kind::Bool && !pair.contains('=');
        let value = if is_flag { "true".into() } else { value };
        if let Err(description) = read::read_text_field(plan, field, &value, &mut out) {
            violations.add_at(&*field.json_name, description);
        }
    }
    out
}

fn rejection_message(plan: &Plan, operation: &Operation, name: &str) -> String {
    let message = &plan.messages[operation.input];
    if let Some(index) = message.field_index(name) {
        let number = message.fields[index].number;
        let in_path = operation
            .path_bindings
            .iter()
            .any(|binding| !binding.in_body_field && binding.number == number);
        let place = if in_path { "path" } else { "body" };
        return format!("belongs in the {place}, not in the query");
    }
    let known = message
        .fields
        .iter()
        .filter(|field| operation.accepts_query(plan, field));
    match nearest_name(name, known.map(|field| &*field.json_name)) {
        Some(nearest) => format!("is not a query parameter here; the nearest is `{nearest}`"),
        None => "is not a query parameter of this operation".to_owned(),
    }
}

/// Decodes a name or value: unlike in a path, `+` is a space.
fn decode(text: &str) -> Option<String> {
    route::decode_segment(&text.replace('+', " "))
}
