//! Values of responses that later messages of a thread can use.

use std::collections::BTreeMap;

use http::HeaderName;
use serde_json::Value;

use crate::{
    SettingsChecker,
    domain::{
        Secret,
        destination::{Keep, KeptValue, KeptValues, Webhook},
        value::list_index,
    },
    http::HttpResponse,
    limits::{KEPT_BYTES_MAX, KEPT_MAX, SETTING_BYTES_MAX, VALUE_NAME_MAX},
    transcript::Masker,
};

const HEADER: &str = "header:";

#[derive(Debug)]
pub(super) struct FoundValues {
    pub(super) values: Vec<KeptValue>,
    pub(super) missing: Vec<String>,
}

/// Reads the values from a response. A value that contains a secret of the destination is secret.
pub(super) fn find_values(
    keep: &BTreeMap<String, Keep>,
    answer: &HttpResponse,
    masker: &Masker,
) -> FoundValues {
    let body = if keep.is_empty() || answer.is_web_page() {
        None
    } else {
        serde_json::from_slice(&answer.body).ok()
    };
    let (mut values, mut missing) = (Vec::new(), Vec::new());
    for (name, Keep { from, is_secret }) in keep {
        match find_value(from, answer, body.as_ref()) {
            Ok(text) => values.push(KeptValue {
                name: name.clone(),
                is_secret: *is_secret || masker.mask(&text, KEPT_BYTES_MAX) != text,
                text: Secret::new(text),
            }),
            Err(reason) => missing.push(format!("`{name}` ({reason})")),
        }
    }
    FoundValues { values, missing }
}

fn find_value(from: &str, answer: &HttpResponse, body: Option<&Value>) -> Result<String, String> {
    let text = if let Some(header) = from.strip_prefix(HEADER) {
        let value = answer.headers.get(header);
        let value = value.ok_or_else(|| format!("the response has no header `{header}`"))?;
        String::from_utf8_lossy(value.as_bytes()).into_owned()
    } else {
        let body = body.ok_or("the response is not JSON")?;
        match value_at_path(body, from) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => return Err(format!("`{from}` is not a string or a number")),
            None => return Err(format!("the response has no `{from}`")),
        }
    };
    let bytes = text.len();
    match bytes {
        0 => Err(format!("`{from}` is empty")),
        1..=KEPT_BYTES_MAX if text.chars().any(char::is_control) => {
            Err(format!("`{from}` contains control characters"))
        }
        1..=KEPT_BYTES_MAX => Ok(text),
        _ => Err(format!(
            "`{from}` has {bytes} bytes; the limit is {KEPT_BYTES_MAX}"
        )),
    }
}

/// Returns the value at a dotted path. Since keys may contain dots, the longest prefix of the path
/// that is a key is used. In a list, a number selects an entry.
fn value_at_path<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let ends = path.rmatch_indices('.').map(|(at, _)| at);
    std::iter::once(path.len()).chain(ends).find_map(|end| {
        let found = match value {
            Value::Object(fields) => fields.get(&path[..end]),
            Value::Array(entries) => entries.get(list_index(&path[..end])?),
            _ => None,
        }?;
        match path.get(end + 1..) {
            None => Some(found),
            Some(rest) => value_at_path(found, rest),
        }
    })
}

/// Returns the values of the thread after a response: those found replace earlier ones.
pub(super) fn merge(
    webhook: &Webhook,
    before: Option<&KeptValues>,
    found: Vec<KeptValue>,
    origin: String,
) -> KeptValues {
    let is_replaced = |it: &KeptValue| found.iter().any(|new| new.name == it.name);
    let before = before.into_iter().flat_map(|it| &it.values);
    let before = before.filter(|it| webhook.keep.contains_key(&it.name) && !is_replaced(it));
    let mut values: Vec<_> = before.cloned().collect();
    values.extend(found);
    values.sort_by(|one, other| one.name.cmp(&other.name));
    KeptValues { origin, values }
}

pub(super) fn check(webhook: &Webhook, checks: &mut SettingsChecker<'_>) {
    if webhook.keep.len() > KEPT_MAX {
        let count = webhook.keep.len();
        checks.add(
            "keep",
            format!("has {count} entries; the limit is {KEPT_MAX}"),
        );
    }
    for (name, Keep { from, .. }) in webhook.keep.iter().take(KEPT_MAX) {
        let shown: String = name.chars().take(VALUE_NAME_MAX).collect();
        let path = format!("keep[{shown}]");
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || name.len() > VALUE_NAME_MAX || !name.chars().all(is_word) {
            checks.add(
                &path,
                format!("needs a name of 1 to {VALUE_NAME_MAX} letters, digits and `_`"),
            );
        }
        let header = from.strip_prefix(HEADER);
        if header.is_some_and(|it| HeaderName::try_from(it).is_err()) {
            checks.add(
                &path,
                "is not `header:` followed by the name of an HTTP header",
            );
        } else if header.is_none() && from.split('.').any(str::is_empty) {
            checks.add(
                &path,
                "is not a path in the JSON response, such as `data.id`, or a header, such as \
                 `header:etag`",
            );
        } else if from.len() > SETTING_BYTES_MAX {
            checks.check_one_line(&path, from);
        }
    }
}
