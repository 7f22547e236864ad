//! Determines the group of an occurrence for a rule.

use sha2::{Digest, Sha256};

use crate::{
    domain::{GroupKey, Grouping, Occurrence, RecordId, hold::SharedValue},
    limits::GROUP_VALUE_BYTES_MAX,
    matching::field::{Field, FieldValue},
};

pub fn shared_values(grouping: &Grouping, occurrence: &Occurrence) -> Vec<SharedValue> {
    let value = |name: &String| shared_value(&Field::parse(name).ok()?, occurrence);
    let fields = grouping.by.iter();
    fields.map(|name| (name.clone(), value(name))).collect()
}

pub(super) fn shared_value(field: &Field, occurrence: &Occurrence) -> Option<String> {
    match field {
        Field::Severity => return Some(occurrence.severity.as_str().to_owned()),
        Field::Status => return Some(occurrence.status.as_str().to_owned()),
        _ => {}
    }
    let mut first = None;
    field.any_value(occurrence, &mut |found| {
        first = Some(match found {
            FieldValue::Text(text) => compared_prefix(text),
            FieldValue::Number(number) => number.to_string(),
            FieldValue::Bool(flag) => flag.to_string(),
        });
        true
    });
    first
}

/// Truncates a text to the part that is compared.
fn compared_prefix(text: &str) -> String {
    let ends = text
        .char_indices()
        .map(|(at, letter)| at + letter.len_utf8());
    let end = ends.take_while(|end| *end <= GROUP_VALUE_BYTES_MAX).last();
    text[..end.unwrap_or_default()].to_owned()
}

/// Returns a digest of a rule and its grouping values, where a missing field differs from any
/// value. Groups of shadow and sending rules are separate.
pub fn group_key(rule: RecordId, is_shadow: bool, shared: &[SharedValue]) -> GroupKey {
    let shadow = is_shadow.then_some(("shadow", None));
    let shared = shared.iter();
    let shared = shared.map(|(field, value)| (field.as_str(), value.as_deref()));
    hash_group(rule, shared.chain(shadow))
}

/// Returns the group key for notifications that are released together although their rule has no
/// grouping.
pub fn release_key(rule: RecordId, now_ms: i64) -> GroupKey {
    let now = now_ms.to_string();
    hash_group(rule, std::iter::once(("freed", Some(now.as_str()))))
}

fn hash_group<'a>(
    rule: RecordId,
    shared: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> GroupKey {
    let mut digest = Sha256::new();
    let mut add = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_be_bytes());
        digest.update(bytes);
    };
    add(&rule.to_bytes());
    for (field, value) in shared {
        add(field.as_bytes());
        add(&[u8::from(value.is_some())]);
        add(value.unwrap_or_default().as_bytes());
    }
    let digest = digest.finalize();
    let first = digest.first_chunk().copied();
    RecordId::from_bytes(first.unwrap_or_default())
}

pub fn format_shared(by: &[SharedValue]) -> String {
    let one = |(field, value): &SharedValue| match value {
        Some(value) => format!("{field}={value}"),
        None => format!("no {field}"),
    };
    let all: Vec<_> = by.iter().map(one).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::plain::{id, occurrence};

    #[test]
    fn group_keys_distinguish_absent_and_adjacent_values() {
        let by = |names: &[&str]| Grouping {
            by: names.iter().map(|it| (*it).to_owned()).collect(),
            wait_ms: 0,
            interval_ms: 0,
        };
        let mut one = occurrence();
        one.dimensions.insert("x".into(), String::new());
        let rule = id("rule");
        let key = |names: &[&str], of: &Occurrence| {
            group_key(rule, false, &shared_values(&by(names), of))
        };
        let mut other = one.clone();
        other.dimensions.remove("x");
        assert_ne!(key(&["x"], &one), key(&["x"], &other));
        assert_eq!(key(&[], &one), key(&[], &other));
        assert_eq!(key(&["severity"], &one), key(&["severity"], &other));
        one.dimensions.insert("x".into(), "ab".into());
        one.dimensions.insert("y".into(), "c".into());
        other.dimensions.insert("x".into(), "a".into());
        other.dimensions.insert("y".into(), "bc".into());
        assert_ne!(key(&["x", "y"], &one), key(&["x", "y"], &other));
        let shared = shared_values(&by(&["x"]), &one);
        assert_ne!(
            group_key(rule, false, &shared),
            group_key(rule, true, &shared)
        );
        assert_eq!(
            format_shared(&shared_values(&by(&["severity", "z"]), &one)),
            "severity=error, no z"
        );
    }
}
