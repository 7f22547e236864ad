//! Fits an event of another dialect into the limits, without side effects.
//!
//! The sender follows the limits of another service and repeats rejected events unchanged.
//! Therefore long texts are truncated with a visible mark, and a long identity is replaced by a
//! prefix and a hash of the whole, so that equal events stay equal and distinct events stay
//! distinct.

use std::{collections::BTreeMap, fmt::Write as _};

use sha2::{Digest, Sha256};

use crate::{
    domain::{
        IncomingEvent, Value,
        value::{Fields, json_bytes},
    },
    limits::{
        EVENT_BODY_BYTES_MAX, EVENT_DIMENSION_BYTES_MAX, EVENT_DIMENSIONS_MAX,
        EVENT_METADATA_BYTES_MAX, EVENT_NAME_BYTES_MAX, EVENT_SUMMARY_BYTES_MAX,
        FITTED_DIMENSION_BYTES,
    },
};

const MORE: &str = "\u{2026}";
/// Key of the member that states how many members were dropped, and the size of this member in
/// bytes without the number.
const LEFT_OUT: &str = "\u{2026}";
const LEFT_OUT_BYTES: usize = 64;
/// Minimum bytes for a useful truncated value.
const VALUE_BYTES_MIN: usize = 32;
const HASH_BYTES: usize = 8;
/// Dimension that distinguishes events with dropped dimensions.
const IDENTITY: &str = "identity";

/// Truncates an event to the size limits; leaves the event unchanged if it already fits.
pub(super) fn truncate_event(event: &mut IncomingEvent) {
    let mut aside = Fields::new();
    truncate_name(event, &mut aside);
    truncate_dimensions(event, &mut aside);
    if event.summary.len() > EVENT_SUMMARY_BYTES_MAX {
        let cut = truncate_with_mark(&event.summary, EVENT_SUMMARY_BYTES_MAX);
        let whole = std::mem::replace(&mut event.summary, cut);
        if event.body.is_empty() {
            event.body = whole;
        } else {
            aside.insert("summary".into(), Value::Text(whole));
        }
    }
    if event.body.len() > EVENT_BODY_BYTES_MAX {
        let mark = format!("{MORE} (cut, of {} bytes)", event.body.len());
        truncate(&mut event.body, EVENT_BODY_BYTES_MAX - mark.len());
        event.body.push_str(&mark);
    }
    for (key, value) in aside {
        let mut key = key;
        while event.metadata.contains_key(&key) {
            key.insert_str(0, "event_");
        }
        event.metadata.insert(key, value);
    }
    if json_bytes(&event.metadata) > EVENT_METADATA_BYTES_MAX {
        let fields = std::mem::take(&mut event.metadata);
        event.metadata = shrink_fields(fields, EVENT_METADATA_BYTES_MAX);
    }
}

fn truncate_name(event: &mut IncomingEvent, aside: &mut Fields) {
    let is_one = event.kind == event.name;
    if let Some(escaped) = escape_control(&event.name) {
        event.name = escaped;
    }
    if event.name.len() > EVENT_NAME_BYTES_MAX {
        let short = prefix_and_hash(&event.name, EVENT_NAME_BYTES_MAX);
        let whole = std::mem::replace(&mut event.name, short);
        aside.insert("name".into(), Value::Text(whole));
    }
    if is_one {
        event.kind.clone_from(&event.name);
    } else if event.kind.len() > EVENT_NAME_BYTES_MAX {
        let cut = truncate_with_mark(&event.kind, EVENT_NAME_BYTES_MAX);
        let whole = std::mem::replace(&mut event.kind, cut);
        aside.insert("type".into(), Value::Text(whole));
    }
}

fn truncate_dimensions(event: &mut IncomingEvent, aside: &mut Fields) {
    let is_odd = |key: &String| escape_control(key).is_some() || key.len() > EVENT_NAME_BYTES_MAX;
    let bytes = |pairs: &BTreeMap<String, String>| {
        let pairs = pairs.iter().map(|(key, value)| key.len() + value.len());
        pairs.sum::<usize>()
    };
    let is_heavy = bytes(&event.dimensions) > EVENT_DIMENSION_BYTES_MAX;
    let are_many = event.dimensions.len() > EVENT_DIMENSIONS_MAX;
    if !is_heavy && !are_many && !event.dimensions.keys().any(is_odd) {
        return;
    }
    let whole = std::mem::take(&mut event.dimensions);
    let hash = are_many.then(|| hash(whole.iter().flat_map(|(key, value)| [&**key, &**value])));
    let mut left = Fields::new();
    // One dimension is reserved for the hash of all dimensions.
    let most = EVENT_DIMENSIONS_MAX - usize::from(are_many);
    for (at, (key, value)) in whole.into_iter().enumerate() {
        if at >= most {
            left.insert(key, Value::Text(value));
            continue;
        }
        let name = escape_control(&key).unwrap_or_else(|| key.clone());
        let name = if name.len() > EVENT_NAME_BYTES_MAX {
            prefix_and_hash(&name, EVENT_NAME_BYTES_MAX)
        } else {
            name
        };
        if is_heavy && value.len() > FITTED_DIMENSION_BYTES {
            let short = prefix_and_hash(&value, FITTED_DIMENSION_BYTES);
            left.insert(key, Value::Text(value));
            event.dimensions.insert(name, short);
        } else {
            event.dimensions.insert(name, value);
        }
    }
    if let Some(hash) = hash {
        event.dimensions.insert(IDENTITY.into(), hash);
    }
    if !left.is_empty() {
        aside.insert("dimensions".into(), Value::Object(left));
    }
}

fn escape_control(text: &str) -> Option<String> {
    text.contains(char::is_control).then(|| {
        let mut escaped = String::with_capacity(text.len() + 8);
        for char in text.chars() {
            if char.is_control() {
                escaped.extend(char.escape_default());
            } else {
                escaped.push(char);
            }
        }
        escaped
    })
}

fn prefix_and_hash(text: &str, bytes: usize) -> String {
    let mark = format!("{MORE}#{}", hash([text]));
    let mut short = text.to_owned();
    truncate(&mut short, bytes - mark.len());
    short + &mark
}

fn hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_be_bytes());
        hash.update(text);
    }
    let digest = hash.finalize();
    digest[..HASH_BYTES]
        .iter()
        .fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to memory does not fail");
            text
        })
}

fn truncate_with_mark(text: &str, bytes: usize) -> String {
    let mut cut = text.to_owned();
    truncate(&mut cut, bytes - MORE.len());
    cut + MORE
}

fn truncate(text: &mut String, bytes: usize) {
    text.truncate(bellwether_language::text::longest_prefix(text, bytes).len());
}

/// Shrinks an object to at most `bytes` of JSON. Small members are kept; large ones share the
/// remaining bytes.
fn shrink_fields(fields: Fields, bytes: usize) -> Fields {
    let overhead = |key: &str| Value::Text(key.into()).json_bytes() + 2;
    let mut by_size: Vec<_> = fields.into_iter().collect();
    by_size.sort_by_cached_key(|(key, value)| overhead(key) + value.json_bytes());
    let mut left = bytes.saturating_sub(2 + LEFT_OUT_BYTES);
    let (mut shrunk, mut left_out, count) = (Fields::new(), 0_usize, by_size.len());
    for (at, (key, value)) in by_size.into_iter().enumerate() {
        let share = left / (count - at);
        let room = share.saturating_sub(overhead(&key));
        if value.json_bytes() > room && room < VALUE_BYTES_MIN {
            left_out += 1;
            continue;
        }
        let value = shrink(value, room);
        left -= overhead(&key) + value.json_bytes();
        shrunk.insert(key, value);
    }
    if left_out > 0 {
        shrunk.insert(LEFT_OUT.into(), Value::Text(omission_note(left_out)));
    }
    shrunk
}

/// Shrinks a value to at most `bytes` of JSON. A larger value requires at least
/// [`VALUE_BYTES_MIN`].
fn shrink(value: Value, bytes: usize) -> Value {
    if value.json_bytes() <= bytes {
        return value;
    }
    match value {
        Value::Text(text) => Value::Text(shrink_text(&text, bytes)),
        Value::Object(fields) if bytes >= 2 * LEFT_OUT_BYTES => {
            Value::Object(shrink_fields(fields, bytes))
        }
        Value::List(values) if bytes >= 2 * LEFT_OUT_BYTES => {
            Value::List(shrink_list(values, bytes))
        }
        _ => Value::Text(MORE.into()),
    }
}

fn shrink_list(values: Vec<Value>, bytes: usize) -> Vec<Value> {
    let mut left = bytes - 2 - LEFT_OUT_BYTES;
    let count = values.len();
    let mut shrunk = Vec::new();
    for value in values {
        let (size, room) = (value.json_bytes() + 1, left.saturating_sub(1));
        if size > left && room < VALUE_BYTES_MIN {
            break;
        }
        let value = shrink(value, room);
        left = left.saturating_sub(value.json_bytes() + 1);
        shrunk.push(value);
        if size > room {
            break;
        }
    }
    if shrunk.len() < count {
        shrunk.push(Value::Text(omission_note(count - shrunk.len())));
    }
    shrunk
}

fn omission_note(left_out: usize) -> String {
    format!("{MORE} {left_out} more omitted")
}

fn shrink_text(text: &str, bytes: usize) -> String {
    let room = bytes.saturating_sub(2 + MORE.len());
    let mut used = 0;
    let fitting = text.char_indices().find(|(_, char)| {
        used += match char {
            '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => 2,
            '\0'..='\u{1f}' => 6,
            other => other.len_utf8(),
        };
        used > room
    });
    let end = fitting.map_or(text.len(), |(at, _)| at);
    format!("{}{MORE}", &text[..end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        ops::intake::check::check,
        samples::{self, START_MS},
    };

    fn event(change: impl FnOnce(&mut IncomingEvent)) -> IncomingEvent {
        let mut event = samples::event("a");
        change(&mut event);
        truncate_event(&mut event);
        let violations = check(&event, START_MS);
        assert!(violations.is_empty(), "{violations:?}");
        event
    }

    fn event_named(name: &str) -> IncomingEvent {
        event(|it| name.clone_into(&mut it.name))
    }

    #[test]
    fn fitting_event_is_unchanged() {
        let whole = samples::event("a");
        let mut fitted = whole.clone();
        truncate_event(&mut fitted);
        assert_eq!(fitted, whole);
        let name = "x".repeat(EVENT_NAME_BYTES_MAX);
        assert_eq!(event_named(&name).name, name);
    }

    #[test]
    fn long_names_truncate_deterministically_and_stay_distinct() {
        // 90 characters of 3 bytes each.
        let long = "\u{78c1}".repeat(90);
        let (one, other) = (event_named(&long), event_named(&format!("{long}!")));
        assert_eq!(one.id(), event_named(&long).id());
        assert_ne!(one.id(), other.id());
        assert!(one.name.starts_with("\u{78c1}\u{78c1}") && one.name.contains(MORE));
        assert_eq!(one.metadata["name"], Value::Text(long));
        assert_ne!(
            event_named("disk\nfull").id(),
            event_named("disk\tfull").id()
        );
        assert_eq!(event_named("disk\nfull").name, "disk\\nfull");
    }

    #[test]
    fn excess_dimensions_move_to_metadata_and_keep_identity() {
        let labels = |last: &str| {
            event(|it| {
                let more = (0..80).map(|at| (format!("label_{at:02}"), "x".to_owned()));
                it.dimensions.extend(more);
                it.dimensions.insert("zone".into(), last.into());
            })
        };
        let (one, other) = (labels("a"), labels("b"));
        assert_eq!(one.dimensions.len(), EVENT_DIMENSIONS_MAX);
        assert_eq!(one.id(), labels("a").id());
        assert_ne!(one.id(), other.id());
        let Value::Object(left) = &one.metadata["dimensions"] else {
            panic!("{:?}", one.metadata)
        };
        assert_eq!(left["zone"], Value::Text("a".into()));
        assert_eq!(one.dimensions.len() - 1 + left.len(), 82);
        let heavy = |end: &str| {
            event(|it| {
                it.dimensions
                    .insert("path".into(), "p".repeat(70_000) + end);
            })
        };
        assert_ne!(heavy("a").id(), heavy("b").id());
        assert_eq!(heavy("a").dimensions["host"], "a");
    }

    #[test]
    fn long_texts_are_truncated_with_a_marker() {
        let cut = event(|it| {
            it.summary = "s".repeat(2_000);
            it.body = "b".repeat(70_000);
            it.kind = "k".repeat(300);
            it.metadata.insert("small".into(), Value::Number(1.0));
            let details = Value::Text("\"d\"\n".repeat(30_000));
            it.metadata.insert("details".into(), details);
        });
        assert!(cut.summary.ends_with(MORE) && cut.kind.ends_with(MORE));
        assert!(cut.body.ends_with("(cut, of 70000 bytes)"), "{}", cut.body);
        assert_eq!(cut.metadata["small"], Value::Number(1.0));
        assert_eq!(cut.metadata["summary"], Value::Text("s".repeat(2_000)));
        let Value::Text(details) = &cut.metadata["details"] else {
            panic!("{:?}", cut.metadata)
        };
        assert!(details.len() > 30_000 && details.ends_with(MORE));
        let alone = event(|it| {
            it.summary = "s".repeat(100_000);
            it.body.clear();
        });
        assert!(alone.body.starts_with("sss"));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i32>().prop_map(|it| Value::Number(it.into())),
            "(\\PC|[\"\n\u{1}]){0,40}".prop_map(Value::Text),
        ];
        leaf.prop_recursive(4, 200, 12, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..12).prop_map(Value::List),
                proptest::collection::btree_map("\\PC{0,12}", inner, 0..12).prop_map(Value::Object),
            ]
        })
    }

    proptest! {
        #[test]
        fn fields_shrink_to_the_byte_limit(
            fields in proptest::collection::btree_map("\\PC{0,12}", value(), 0..20),
            bytes in 100_usize..3_000,
        ) {
            let fitted = shrink_fields(fields, bytes);
            prop_assert!(json_bytes(&fitted) <= bytes, "{} {bytes}", json_bytes(&fitted));
        }
    }
}
