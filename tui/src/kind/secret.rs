//! Masks for the secrets of drafts.

use serde_json::Value;

use super::{FieldKind, spec};
use crate::data::{Kind, Object, get_value};

/// The service's mask of a stored secret.
pub(crate) const STORED: &str = "********";
/// Mask of a typed secret; differs from [`STORED`], so that a change is visible.
const TYPED: &str = "••••••••";
pub(crate) const HEADERS: &str = "type.webhook.headers";

pub(crate) fn with_masked_secrets(draft: &Object) -> Object {
    let mut shown = draft.clone();
    let fields = spec(draft.kind).fields.iter();
    for field in fields.filter(|field| field.kind == FieldKind::Secret) {
        mask(&mut shown, field.path);
    }
    if draft.kind == Kind::Destination {
        let headers = draft.value_at(HEADERS).and_then(Value::as_object);
        for name in headers.into_iter().flat_map(|it| it.keys()) {
            if !is_plain_header(&draft.json, name)
                && let Some(headers) = shown.json.pointer_mut("/type/webhook/headers")
            {
                mask_value(&mut headers[name.as_str()]);
            }
        }
    }
    shown
}

fn mask(shown: &mut Object, path: &str) {
    if let Some(value) = shown
        .json
        .pointer_mut(&format!("/{}", path.replace('.', "/")))
    {
        mask_value(value);
    }
}

fn mask_value(value: &mut Value) {
    if value
        .as_str()
        .is_none_or(|text| !text.is_empty() && text != STORED)
    {
        *value = TYPED.into();
    }
}

/// Masks the values of header lines, `name: value` each.
pub(crate) fn mask_header_lines(destination: &Value, lines: &str) -> String {
    let line = |line: &str| {
        let (shown, hidden) = line.split_at(visible_bytes(destination, line));
        match hidden.trim() {
            "" => line.to_owned(),
            _ => format!("{shown} {STORED}"),
        }
    };
    lines.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the length of the part of a header line that is not secret. While the line is being
/// typed, the name may end at a space.
pub(crate) fn visible_bytes(destination: &Value, line: &str) -> usize {
    match line.find(':').or_else(|| line.find(' ')) {
        Some(at) if !is_plain_header(destination, &line[..at]) => at + 1,
        _ => line.len(),
    }
}

pub(crate) fn is_plain_header(destination: &Value, name: &str) -> bool {
    let plain = get_value(destination, "type.webhook.plainHeaders").and_then(Value::as_array);
    let mut plain = plain.into_iter().flatten().filter_map(Value::as_str);
    let is_it = |it: &str| it.eq_ignore_ascii_case(name.trim());
    is_it("content-type") || plain.any(is_it)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn typed_secrets_are_masked_and_stored_ones_are_unchanged() {
        let webhook = json!({
            "url": "https://x.example",
            "secretUrl": "https://x.example/s3cret",
            "signingSecret": STORED,
            "headers": {"x-env": "prod", "Content-Type": "text/plain", "x-key": "s3cret", "x-old": STORED},
            "plainHeaders": ["X-Env"],
            "auth": {"bearer": {"token": "s3cret"}},
        });
        let json = json!({"name": "hook", "type": {"webhook": webhook}});
        let shown = with_masked_secrets(&Object {
            kind: Kind::Destination,
            json,
        });
        assert!(!shown.json.to_string().contains("s3cret"), "{}", shown.json);
        let webhook = &shown.json["type"]["webhook"];
        assert_eq!(webhook["url"], "https://x.example");
        assert_eq!(webhook["signingSecret"], STORED);
        assert_eq!(webhook["headers"]["x-env"], "prod");
        assert_eq!(webhook["headers"]["Content-Type"], "text/plain");
        assert_eq!(webhook["headers"]["x-old"], STORED);
        assert_eq!(webhook["headers"]["x-key"], TYPED);
    }
}
