//! Excerpts of documents for operators, with secrets masked; no I/O.

use percent_encoding::percent_decode;
use serde_json::Value;

use crate::{
    domain::secret::MASK,
    limits::{REJECTED_DOCUMENT_BYTES_MAX, REJECTED_REASON_BYTES_MAX},
    send::{is_credential, transcript::Masker},
};

/// Parts of names of secret fields, in lower case without separators.
const SECRET_NAMES: [&str; 15] = [
    "accesskey",
    "apikey",
    "authorization",
    "cookie",
    "credential",
    "jwt",
    "integrationkey",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "routingkey",
    "secret",
    "signature",
    "token",
];
/// Minimum length at which a word after `Bearer` is a credential rather than prose.
const CREDENTIAL_BYTES_MIN: usize = 16;

/// Returns the beginning of a document, without the values of fields with secret names, credentials
/// in texts, and `secret`.
pub(super) fn excerpt_value(value: &Value, secret: &str) -> String {
    excerpt_masked(
        &mask_value(value).to_string(),
        secret,
        REJECTED_DOCUMENT_BYTES_MAX,
    )
}

/// Returns the beginning of a body that may not be JSON.
pub(super) fn excerpt_body(body: &[u8], secret: &str) -> String {
    if let Ok(value) = serde_json::from_slice::<Value>(body) {
        return excerpt_value(&value, secret);
    }
    // If a secret is cut off at the end of the excerpt, its visible part is masked.
    let start = &body[..body.len().min(2 * REJECTED_DOCUMENT_BYTES_MAX)];
    // A form is shown with its values decoded.
    let text = mask_text(&percent_decode(start).decode_utf8_lossy());
    excerpt_masked(&text, secret, REJECTED_DOCUMENT_BYTES_MAX)
}

/// Returns the beginning of a reason, which may quote the document.
pub(super) fn excerpt_reason(reason: &str, secret: &str) -> String {
    excerpt_masked(&mask_text(reason), secret, REJECTED_REASON_BYTES_MAX)
}

fn excerpt_masked(text: &str, secret: &str, limit_bytes: usize) -> String {
    let mut masker = Masker::default();
    if !secret.is_empty() {
        masker.add(secret);
    }
    masker.mask(text, limit_bytes)
}

fn mask_value(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| {
                let is_empty = value.is_null() || value.as_str() == Some("");
                let value = if is_secret_name(name) && !is_empty {
                    MASK.into()
                } else {
                    mask_value(value)
                };
                (name.clone(), value)
            });
            Value::Object(members.collect())
        }
        Value::Array(entries) => entries.iter().map(mask_value).collect(),
        Value::String(text) => mask_text(text).into(),
        other => other.clone(),
    }
}

fn is_secret_name(name: &str) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let name = letters.collect::<String>().to_ascii_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

fn is_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || "_-.".contains(char)
}

/// Masks credentials in a text: passwords in URLs, words that look like a credential, and values
/// after secret names, such as `token=…`, in forms, URLs, JSON and prose.
fn mask_text(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("://") {
            masked.push_str("://");
            rest = after;
            let end = rest.find(|it: char| it.is_whitespace() || "/?#\"'".contains(it));
            if let Some(at) = rest[..end.unwrap_or(rest.len())].rfind('@') {
                masked.push_str(MASK);
                rest = &rest[at..];
            }
            continue;
        }
        if !is_name(first) {
            masked.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(rest.find(|it| !is_name(it)).unwrap_or(rest.len()));
        rest = after;
        let assigned = text_after_separator(after).filter(|_| is_secret_name(word));
        let is_scheme = ["bearer", "basic"].contains(&word.to_ascii_lowercase().as_str());
        if let Some(value) = assigned {
            masked.push_str(word);
            masked.push_str(&after[..after.len() - value.len()]);
            let length = value_length(value);
            if length > 0 {
                masked.push_str(MASK);
            }
            rest = &value[length..];
        } else if is_scheme && let Some(value) = after.strip_prefix(' ') {
            let length = value_length(value);
            masked.push_str(word);
            masked.push(' ');
            masked.push_str(if length >= CREDENTIAL_BYTES_MIN {
                MASK
            } else {
                &value[..length]
            });
            rest = &value[length..];
        } else if is_credential(word) && word.len() >= CREDENTIAL_BYTES_MIN {
            masked.push_str(MASK);
        } else {
            masked.push_str(word);
        }
    }
    masked
}

/// Returns the text after the separator of a name and its value; `None` without one.
fn text_after_separator(text: &str) -> Option<&str> {
    let quotes = |it: char| matches!(it, '"' | '\'' | '\\');
    let text = text.trim_start_matches(quotes).trim_start();
    let value = text.strip_prefix([':', '='])?;
    Some(value.trim_start().trim_start_matches(quotes))
}

/// Returns the length of a value: a list or object, or up to a quote, blank or separator, with the
/// word after an authentication scheme.
fn value_length(text: &str) -> usize {
    if text.starts_with(['[', '{']) {
        let mut depth = 0_usize;
        let ends = text.char_indices().find(|(_, char)| {
            match char {
                '[' | '{' => depth += 1,
                ']' | '}' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        return ends.map_or(text.len(), |(at, _)| at + 1);
    }
    let is_end = |it: char| it.is_whitespace() || "\"'\\&,;}])<>".contains(it);
    let end = text.find(is_end).unwrap_or(text.len());
    let is_scheme = ["bearer", "basic", "token", "apikey", "digest"]
        .contains(&text[..end].to_ascii_lowercase().as_str());
    match text[end..].strip_prefix(' ') {
        Some(next) if is_scheme => end + 1 + next.find(is_end).unwrap_or(next.len()),
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CANARY: &str = "canary-4d1e8b7c55";

    #[test]
    fn secrets_are_masked_in_documents_and_texts() {
        let jwt = format!("eyJhbGciOi.{CANARY}.c2ln");
        let documents = [
            json!({"password": CANARY, "host": "db-1"}),
            json!({"a": {"API_Key": CANARY}, "client-secret": [CANARY], "host": "db-1"}),
            json!({"url": format!("https://db-1/x?token={CANARY}&y=1")}),
            json!({"url": format!("https://user:{CANARY}@db-1/")}),
            json!({"text": format!("db-1: Authorization: Bearer {CANARY}")}),
            json!({"text": format!("db-1 sent bearer {CANARY}")}),
            json!({"text": format!("db-1 {jwt}")}),
            json!({"Message": json!({"password": CANARY, "host": "db-1"}).to_string()}),
            json!({"text": format!("db-1 with {CANARY}-of-mapping")}),
        ];
        let secret = format!("{CANARY}-of-mapping");
        for document in documents {
            for shown in [
                excerpt_value(&document, &secret),
                excerpt_body(document.to_string().as_bytes(), &secret),
                excerpt_body(format!("{document},").as_bytes(), &secret),
                excerpt_reason(&document.to_string(), &secret),
            ] {
                assert!(!shown.contains(CANARY), "{document}: {shown}");
                assert!(shown.contains(MASK), "{document}: {shown}");
                assert!(shown.contains("db-1"), "{document}: {shown}");
            }
        }
        let form =
            format!("host=db-1&token={CANARY}&payload=%7B%22password%22%3A%22{CANARY}%22%7D");
        let shown = excerpt_body(form.as_bytes(), "");
        assert!(
            !shown.contains(CANARY) && shown.starts_with("host=db-1"),
            "{shown}"
        );
    }

    #[test]
    fn texts_without_secrets_are_shown_and_truncated() {
        let document = json!({
            "title": "Basic checks failed: bearer of bad news at 10:00",
            "author": "ada",
            "token": "",
            "url": "https://example.com/a?b=c@d",
        });
        assert_eq!(excerpt_value(&document, ""), document.to_string());
        let long = json!({"text": "\u{e4}".repeat(5_000)});
        for shown in [
            excerpt_value(&long, ""),
            excerpt_body(&long.to_string().as_bytes()[1..], ""),
        ] {
            assert!(shown.len() <= REJECTED_DOCUMENT_BYTES_MAX);
            assert!(shown.len() > REJECTED_DOCUMENT_BYTES_MAX - 4);
        }
        for cut in 0..60 {
            let body = format!("{}\"password\": \"{CANARY}\"", " ".repeat(4_040 + cut));
            assert!(!excerpt_body(body.as_bytes(), "").contains("canary"));
        }
    }
}
