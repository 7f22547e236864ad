//! The interface as one HTML page for people, made from the OpenAPI document.

pub(crate) mod topic;

use std::fmt::Write as _;

use serde_json::Value;

const INFALLIBLE: &str = "writing to memory does not fail";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
    padding:0 1rem;color:#1c2024;background:#fff}h2{margin-top:3rem;border-bottom:1px solid #ccc}\
    h3{margin:2rem 0 .2rem;font-size:1rem}code{font-family:ui-monospace,monospace;font-size:.9em}\
    .method{display:inline-block;min-width:4.5rem;font-weight:700}table{border-collapse:collapse;\
    width:100%;margin:.5rem 0}td{border-top:1px solid #ddd;padding:.3rem .8rem .3rem 0;\
    vertical-align:top}p{margin:.3rem 0}a{color:#0b5cad}\
    @media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#16181b}a{color:#7ab7ff}\
    td,h2{border-color:#444}}";

/// Makes the page; it needs no other resource.
pub(crate) fn page(document: &Value) -> String {
    let mut page = String::new();
    write_page(document, &mut page).expect(INFALLIBLE);
    page
}

fn write_page(document: &Value, out: &mut String) -> std::fmt::Result {
    let title = prose(&document["info"]["title"]);
    write!(
        out,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style></head><body>\
         <h1>{title} {}</h1><p>{}</p><p>The same for programs: <a href=\"/openapi.json\">\
         openapi.json</a>.</p><p>A key goes into <code>authorization: Bearer KEY</code> or \
         <code>zenoss-api-key: KEY</code>.</p><h2>Reference</h2>{}",
        prose(&document["info"]["version"]),
        prose(&document["info"]["description"]),
        topic::links(),
    )?;
    for tag in items(&document["tags"]) {
        write!(
            out,
            "<h2>{}</h2><p>{}</p>",
            prose(&tag["name"]),
            prose(&tag["description"])
        )?;
        for (path, item) in members(&document["paths"]) {
            for (method, operation) in members(item) {
                if operation["tags"][0] == tag["name"] {
                    write_operation(path, method, operation, out)?;
                }
            }
        }
    }
    write_failures(&document["components"]["responses"], out)?;
    out.push_str("<h2>Types</h2>");
    for (name, schema) in members(&document["components"]["schemas"]) {
        let description = prose(&schema["description"]);
        write!(
            out,
            "<h3 id=\"{name}\"><code>{name}</code></h3><p>{description}</p>"
        )?;
        write_properties(&schema["properties"], out)?;
    }
    out.push_str("</body></html>");
    Ok(())
}

fn write_operation(
    path: &str,
    method: &str,
    operation: &Value,
    out: &mut String,
) -> std::fmt::Result {
    let method = method.to_uppercase();
    write!(
        out,
        "<h3><span class=\"method\">{method}</span><code>{}</code></h3><p>{}</p>",
        escaped(path),
        prose(&operation["description"])
    )?;
    let parameters = items(&operation["parameters"]);
    if !parameters.is_empty() {
        out.push_str("<table>");
        for parameter in parameters {
            write!(
                out,
                "<tr><td><code>{}</code><td>{}<td>{}<td>{}</tr>",
                prose(&parameter["name"]),
                prose(&parameter["in"]),
                type_of(&parameter["schema"]),
                prose(&parameter["description"])
            )?;
        }
        out.push_str("</table>");
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        write!(out, "<p>Body: {}</p>", type_of(body))?;
    }
    let answer = &operation["responses"]["200"];
    let schema = &answer["content"]["application/json"]["schema"];
    let failures: Vec<_> = members(&operation["responses"])
        .filter(|(status, response)| *status != "default" && !response["$ref"].is_null())
        .map(|(status, _)| format!("<a href=\"#{status}\">{status}</a>"))
        .collect();
    write!(
        out,
        "<p>Answer: {} {}</p><p>Errors: {}</p>",
        type_of(schema),
        prose(&answer["description"]),
        failures.join(" ")
    )
}

/// What can go wrong, by status, with the headers that tell more.
fn write_failures(responses: &Value, out: &mut String) -> std::fmt::Result {
    out.push_str("<h2 id=\"errors\">Errors</h2><table>");
    for (status, response) in members(responses) {
        let headers: Vec<_> = members(&response["headers"])
            .map(|(name, _)| format!("<code>{name}</code>"))
            .collect();
        write!(
            out,
            "<tr><td id=\"{status}\">{status}<td>{}<td>{}</tr>",
            prose(&response["description"]),
            headers.join(" ")
        )?;
    }
    out.push_str("</table><p>Body: <a href=\"#Error\"><code>Error</code></a></p>");
    Ok(())
}

fn write_properties(properties: &Value, out: &mut String) -> std::fmt::Result {
    if members(properties).next().is_none() {
        return Ok(());
    }
    out.push_str("<table>");
    for (name, schema) in members(properties) {
        let (kind, description) = (type_of(schema), prose(&schema["description"]));
        write!(
            out,
            "<tr><td><code>{name}</code><td>{kind}<td>{description}</tr>"
        )?;
    }
    out.push_str("</table>");
    Ok(())
}

/// A type in a few words, with links to the types described further down.
fn type_of(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        return format!("<a href=\"#{name}\"><code>{name}</code></a>");
    }
    let name = match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "any value".to_owned(),
    };
    if !schema["items"].is_null() {
        return format!("list of {}", type_of(&schema["items"]));
    }
    if schema["additionalProperties"].is_object() {
        return format!("map of {}", type_of(&schema["additionalProperties"]));
    }
    match schema["format"].as_str() {
        Some(format) => format!("{name} ({format})"),
        None => name,
    }
}

/// Text for people as HTML: code in backticks, line breaks kept.
fn prose(text: &Value) -> String {
    let mut html = String::new();
    for (at, part) in text.as_str().unwrap_or_default().split('`').enumerate() {
        if at > 0 {
            html.push_str(if at % 2 == 1 { "<code>" } else { "</code>" });
        }
        html.push_str(&escaped(part));
    }
    html.replace("\n<code>", "<br><code>")
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn members(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (&**name, value))
}
