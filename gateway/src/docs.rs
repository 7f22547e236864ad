//! The API reference as one HTML page, generated from the OpenAPI document.

mod fields;
pub(crate) mod topic;

use std::fmt::Write as _;

use serde_json::Value;

use fields::{type_name, write_fields, write_parameters};

const INFALLIBLE: &str = "writing to memory does not fail";

const STYLE: &str = include_str!("docs/page.css");
const SEARCH: &str = include_str!("docs/search.js");

pub(crate) const ICON: &str = include_str!("docs/favicon.svg");
pub(crate) const ICON_LINK: &str =
    "<link rel=\"icon\" href=\"/favicon.svg\" type=\"image/svg+xml\">";

/// Renders the page, which loads no other resource except the icon.
pub(crate) fn render_page(document: &Value) -> String {
    let mut main = String::new();
    write_main(document, &mut main).expect(INFALLIBLE);
    let mut contents = String::new();
    write_contents(document, &mut contents).expect(INFALLIBLE);
    let title = prose_html(&document["info"]["title"]);
    html_document(
        &title,
        &contents,
        &main,
        &format!("<script>{SEARCH}</script>"),
    )
}

fn html_document(title: &str, contents: &str, main: &str, end: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title>{ICON_LINK}<style>{STYLE}</style>\
         </head><body><a class=\"skip\" href=\"#content\">Skip to the content</a><header><a \
         href=\"/\">Bellwether</a><nav aria-label=\"Pages\"><a href=\"/docs\">Interface</a><a \
         href=\"/openapi.json\">openapi.json</a></nav></header><div class=\"columns\">{contents}\
         <main id=\"content\">{main}</main></div>{end}</body></html>"
    )
}

fn write_contents(document: &Value, out: &mut String) -> std::fmt::Result {
    write!(
        out,
        "<nav class=\"contents\" aria-label=\"Contents\"><input id=\"search\" type=\"search\" \
         placeholder=\"Search\" aria-label=\"Search the contents\"><p id=\"found\" class=\"found\" \
         role=\"status\"></p><details id=\"list\" open><summary>Contents</summary><div data-group>\
         <h2>Reference</h2>{}</div>",
        topic::topic_links(None)
    )?;
    for tag in array_items(&document["tags"]) {
        let name = prose_html(&tag["name"]);
        write!(
            out,
            "<div data-group><h2><a href=\"#{}\">{name}</a></h2><ul>",
            operation_anchor(&name)
        )?;
        for (path, method, operation) in operations(document, &tag["name"]) {
            let method = method.to_uppercase();
            write!(
                out,
                "<li data-more=\"{} {}\"><span class=\"method {method}\">{method}</span> <a \
                 href=\"#{}\">{}</a></li>",
                escape_html(path),
                prose_html(&operation["operationId"]),
                prose_html(&operation["operationId"]),
                prose_html(&operation["summary"])
            )?;
        }
        out.push_str("</ul></div>");
    }
    out.push_str("<div data-group><h2><a href=\"#types\">Types</a></h2><ul>");
    for (name, _) in object_members(&document["components"]["schemas"]) {
        write!(out, "<li><a href=\"#{name}\"><code>{name}</code></a></li>")?;
    }
    out.push_str("</ul></div></details></nav>");
    Ok(())
}

fn write_main(document: &Value, out: &mut String) -> std::fmt::Result {
    write!(
        out,
        "<h1>{} {}</h1><p>{}</p><p>The same for programs: <a href=\"/openapi.json\">\
         openapi.json</a>.</p><p>A key goes into <code>authorization: Bearer KEY</code> or \
         <code>zenoss-api-key: KEY</code>. The examples take the address from <code>SERVICE</code> \
         and the key from <code>KEY</code>:</p><pre><code>SERVICE=http://127.0.0.1:8480\n\
         KEY=bw_...</code></pre>",
        prose_html(&document["info"]["title"]),
        prose_html(&document["info"]["version"]),
        prose_html(&document["info"]["description"]),
    )?;
    for tag in array_items(&document["tags"]) {
        let name = prose_html(&tag["name"]);
        write!(
            out,
            "<section><h2 id=\"{}\">{name}</h2><p>{}</p>",
            operation_anchor(&name),
            prose_html(&tag["description"])
        )?;
        for (path, method, operation) in operations(document, &tag["name"]) {
            write_operation(path, method, operation, out)?;
        }
        out.push_str("</section>");
    }
    write_failures(&document["components"]["responses"], out)?;
    out.push_str("<section><h2 id=\"types\">Types</h2>");
    for (name, schema) in object_members(&document["components"]["schemas"]) {
        write!(
            out,
            "<section id=\"{name}\"><h3><a href=\"#{name}\"><code>{name}</code></a></h3><p>{}</p>",
            prose_html(&schema["description"])
        )?;
        write_fields(schema, out)?;
        out.push_str("</section>");
    }
    out.push_str("</section>");
    Ok(())
}

fn operations<'d>(
    document: &'d Value,
    tag: &'d Value,
) -> impl Iterator<Item = (&'d str, &'d str, &'d Value)> {
    object_members(&document["paths"]).flat_map(move |(path, item)| {
        object_members(item)
            .filter(move |(_, operation)| operation["tags"][0] == *tag)
            .map(move |(method, operation)| (path, method, operation))
    })
}

fn operation_anchor(title: &str) -> String {
    title.to_lowercase().replace(' ', "-")
}

fn write_operation(
    path: &str,
    method: &str,
    operation: &Value,
    out: &mut String,
) -> std::fmt::Result {
    let method = method.to_uppercase();
    let id = prose_html(&operation["operationId"]);
    write!(
        out,
        "<section id=\"{id}\"><h3><a href=\"#{id}\"><span class=\"method {method}\">{method}</span>\
         <code>{}</code></a></h3><p>{}</p>",
        escape_html(path),
        prose_html(&operation["description"]).replace("\n\n", "</p><p>")
    )?;
    write_parameters(array_items(&operation["parameters"]), out)?;
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        write!(out, "<p>Body: {}</p>", type_name(body))?;
    }
    let answer = &operation["responses"]["200"];
    let schema = &answer["content"]["application/json"]["schema"];
    if !schema.is_null() {
        let failures: Vec<_> = object_members(&operation["responses"])
            .filter(|(status, response)| *status != "default" && !response["$ref"].is_null())
            .map(|(status, _)| format!("<a href=\"#error-{status}\">{status}</a>"))
            .collect();
        write!(
            out,
            "<p>Answer: {} {}</p><p>Errors: {}</p>",
            type_name(schema),
            prose_html(&answer["description"]),
            failures.join(" ")
        )?;
    }
    for sample in array_items(&operation["x-codeSamples"]) {
        let (label, source) = (prose_html(&sample["label"]), sample["source"].as_str());
        write!(
            out,
            "<details class=\"example\"><summary>Example with <code>{label}</code></summary><pre \
             tabindex=\"0\"><code>{}</code></pre></details>",
            escape_html(source.unwrap_or_default())
        )?;
    }
    out.push_str("</section>");
    Ok(())
}

fn write_failures(responses: &Value, out: &mut String) -> std::fmt::Result {
    out.push_str(
        "<section><h2 id=\"errors\">Errors</h2><div class=\"scroll\"><table class=\"fields\">",
    );
    for (status, response) in object_members(responses) {
        let headers: Vec<_> = object_members(&response["headers"])
            .map(|(name, _)| format!("<code>{name}</code>"))
            .collect();
        write!(
            out,
            "<tr id=\"error-{status}\"><td>{status}<td>{}<td>{}</tr>",
            prose_html(&response["description"]),
            headers.join(" ")
        )?;
    }
    out.push_str("</table></div><p>Body: <a href=\"#Error\"><code>Error</code></a></p></section>");
    Ok(())
}

fn prose_html(text: &Value) -> String {
    let mut html = String::new();
    for (at, part) in text.as_str().unwrap_or_default().split('`').enumerate() {
        if at > 0 {
            html.push_str(if at % 2 == 1 { "<code>" } else { "</code>" });
        }
        html.push_str(&escape_html(part));
    }
    html.replace("\n<code>", "<br><code>")
}

pub(crate) fn escape_html(text: &str) -> String {
    bellwether_language::text::escape_invisible(text, true)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn array_items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn object_members(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (&**name, value))
}
