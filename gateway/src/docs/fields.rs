//! Tables of fields and parameters.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;

use super::{array_items, escape_html, object_members, prose_html};

pub(super) fn write_parameters(parameters: &[Value], out: &mut String) -> std::fmt::Result {
    if parameters.is_empty() {
        return Ok(());
    }
    out.push_str("<div class=\"scroll\"><table class=\"fields\">");
    for parameter in parameters {
        write!(
            out,
            "<tr><td><code>{}</code><td class=\"dim\">{}<td>{}<td>{}</tr>",
            prose_html(&parameter["name"]),
            prose_html(&parameter["in"]),
            type_name(&parameter["schema"]),
            prose_html(&parameter["description"])
        )?;
    }
    out.push_str("</table></div>");
    Ok(())
}

pub(super) fn write_fields(schema: &Value, out: &mut String) -> std::fmt::Result {
    let variants = array_items(&schema["oneOf"]);
    let single = [schema.clone()];
    let objects = if variants.is_empty() {
        &single[..]
    } else {
        variants
    };
    let mut fields = BTreeMap::new();
    for object in objects {
        for (name, field) in object_members(&object["properties"]) {
            let is_in =
                |object: &Value| array_items(&object["required"]).iter().any(|it| it == name);
            fields.insert(name, (field, objects.iter().all(is_in)));
        }
    }
    if fields.is_empty() {
        return Ok(());
    }
    out.push_str("<div class=\"scroll\"><table class=\"fields\">");
    for (name, (field, is_required)) in fields {
        let required = if is_required {
            " <span class=\"dim\">required</span>"
        } else {
            ""
        };
        write!(
            out,
            "<tr><td><code>{name}</code>{required}<td>{}<td>{}</tr>",
            type_name(field),
            prose_html(&field["description"])
        )?;
    }
    out.push_str("</table></div>");
    Ok(())
}

pub(super) fn type_name(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        return format!("<a href=\"#{name}\"><code>{name}</code></a>");
    }
    let name = match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| *name != "null")
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "any value".to_owned(),
    };
    if schema["items"].is_object() {
        return format!("list of {}", type_name(&schema["items"]));
    }
    if schema["additionalProperties"].is_object() {
        return format!("map of {}", type_name(&schema["additionalProperties"]));
    }
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().filter_map(Value::as_str);
        let words: Vec<_> = words
            .filter(|word| !word.is_empty())
            .map(|word| format!("<code>{}</code>", escape_html(word)))
            .collect();
        return words.join(" or ");
    }
    match schema["format"].as_str() {
        Some(format) => format!("{name} ({format})"),
        None => name,
    }
}
