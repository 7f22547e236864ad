//! Decodes JSON inside the texts of a document, plain or in base64; no I/O.

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bellwether_proto::repair;
use serde_json::Value;

use crate::{domain::value::list_index, limits::MAPPING_DEPTH_MAX};

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64: [GeneralPurpose; 2] = [
    GeneralPurpose::new(&STANDARD, LENIENT),
    GeneralPurpose::new(&URL_SAFE, LENIENT),
];

/// Replaces the texts at these paths with the JSON that they contain, one path after the other. A
/// path through a list applies to each of its entries. Texts without a JSON object or list remain
/// unchanged.
pub(super) fn decode_parts(document: &mut Value, paths: &[String]) {
    for path in paths {
        decode_at_path(document, path, 0);
    }
}

fn decode_at_path(value: &mut Value, path: &str, depth: usize) {
    match value {
        Value::Array(entries) => {
            let (first, rest) = path.split_once('.').unwrap_or((path, ""));
            if let Some(at) = list_index(first) {
                if let Some(entry) = entries.get_mut(at) {
                    decode_at_path(entry, rest, depth + 1);
                }
            } else {
                for entry in entries {
                    decode_at_path(entry, path, depth + 1);
                }
            }
        }
        Value::Object(members) if !path.is_empty() => {
            // Names may contain dots, so the longest prefix that is a name is used.
            let ends = path.rmatch_indices('.').map(|(at, _)| at);
            let mut ends = std::iter::once(path.len()).chain(ends);
            let end = ends.find(|end| members.contains_key(&path[..*end]));
            if let Some((end, member)) =
                end.and_then(|it| Some((it, members.get_mut(&path[..it])?)))
            {
                let rest = path[end..].strip_prefix('.').unwrap_or_default();
                decode_at_path(member, rest, depth + 1);
            }
        }
        Value::String(text) if path.is_empty() => {
            if let Some(decoded) = decode(text).filter(|it| fits_nesting_limit(it, depth)) {
                *value = decoded;
            }
        }
        _ => {}
    }
}

fn decode(text: &str) -> Option<Value> {
    let text = text.trim();
    if text.starts_with(['{', '[']) {
        return parse_json(text.as_bytes());
    }
    let decoded = BASE64.iter().find_map(|it| it.decode(text).ok())?;
    parse_json(&decoded)
}

fn parse_json(json: &[u8]) -> Option<Value> {
    let json = repair::repair_json(json);
    let value: Value = serde_json::from_slice(&json).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}

/// Whether a value at a depth stays within the nesting limit of parsed documents.
fn fits_nesting_limit(value: &Value, depth: usize) -> bool {
    depth <= MAPPING_DEPTH_MAX
        && match value {
            Value::Array(entries) => entries.iter().all(|it| fits_nesting_limit(it, depth + 1)),
            Value::Object(members) => members.values().all(|it| fits_nesting_limit(it, depth + 1)),
            _ => true,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_in_texts_is_decoded_in_order() {
        let encoded = |value: &Value| BASE64[0].encode(value.to_string());
        let inner = json!({"a": {"b": 1}});
        let nested = json!({"detail": inner.to_string()}).to_string();
        let table: Vec<(Value, &[&str], Value)> = vec![
            (json!({"m": inner.to_string()}), &["m"], json!({"m": inner})),
            (json!({"m": encoded(&inner)}), &["m"], json!({"m": inner})),
            (
                json!({"m": encoded(&inner).trim_end_matches('=')}),
                &["m"],
                json!({"m": inner}),
            ),
            (
                json!({"m": BASE64[1].encode(r#"{"a":"\u00ff\u00ff>>??"}"#)}),
                &["m"],
                json!({"m": {"a": "\u{ff}\u{ff}>>??"}}),
            ),
            (
                json!({"Message": nested}),
                &["Message", "Message.detail"],
                json!({"Message": {"detail": inner}}),
            ),
            (
                json!({"records": [{"data": encoded(&inner)}, {"data": "x"}, 7]}),
                &["records.data"],
                json!({"records": [{"data": inner}, {"data": "x"}, 7]}),
            ),
            (
                json!({"list": ["[1]", "[2]"], "a.b": "[3]"}),
                &["list.1", "a.b"],
                json!({"list": ["[1]", [2]], "a.b": [3]}),
            ),
            // Any other text remains as it is.
            (
                json!({"m": "plain text", "n": "5", "o": "{", "p": 7}),
                &["m", "n", "o", "p", "q.r"],
                json!({"m": "plain text", "n": "5", "o": "{", "p": 7}),
            ),
            (json!([{"m": "[]"}]), &["m"], json!([{"m": []}])),
        ];
        for (mut document, paths, expected) in table {
            let paths: Vec<_> = paths.iter().map(|it| (*it).to_owned()).collect();
            let shown = document.to_string();
            decode_parts(&mut document, &paths);
            assert_eq!(document, expected, "{shown} {paths:?}");
        }
    }

    #[test]
    fn decoded_documents_are_no_deeper_than_parsed_ones() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        let mut document = json!({"m": deep(100)});
        decode_parts(&mut document, &["m".to_owned()]);
        assert!(document["m"].is_array());
        let outside = (0..100).fold(json!({"m": deep(100)}), |inner, _| json!({"n": inner}));
        let path = "n.".repeat(100) + "m";
        let mut document = outside.clone();
        decode_parts(&mut document, &[path]);
        assert_eq!(document, outside);
    }
}
