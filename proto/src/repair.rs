//! Repairs malformed text from senders, so that one text does not invalidate the rest.
//!
//! A byte order mark is skipped; invalid UTF-8 and lone surrogates become U+FFFD.

use std::{
    borrow::Cow,
    sync::atomic::{AtomicU64, Ordering},
};

use prost::{DecodeError, Message, Name};

use crate::json::{
    self,
    plan::{Kind, MessageId},
    wire::{self, Reader, Value},
};

const DEPTH: usize = 100;
/// Package of the sender interface; strings in messages of other packages are not altered.
pub(crate) const SENDERS: &str = "zenoss.cloud";
/// Byte order mark in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";
const MARK_LITTLE: &[u8] = b"\xff\xfe";
const MARK_BIG: &[u8] = b"\xfe\xff";

static REPLACED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of malformed characters replaced by this process.
pub fn replaced_count() -> u64 {
    REPLACED.load(Ordering::Relaxed)
}

fn count_replaced(replaced: usize) {
    REPLACED.fetch_add(replaced as u64, Ordering::Relaxed);
}

/// Repairs JSON.
pub fn repair_json(body: &[u8]) -> Cow<'_, [u8]> {
    let body = match (body.strip_prefix(MARK_LITTLE), body.strip_prefix(MARK_BIG)) {
        (Some(units), _) => Cow::Owned(decode_utf16(units, u16::from_le_bytes)),
        (_, Some(units)) => Cow::Owned(decode_utf16(units, u16::from_be_bytes)),
        _ => Cow::Borrowed(body.strip_prefix(MARK).unwrap_or(body)),
    };
    let body = match body {
        Cow::Borrowed(bytes) => repair_utf8(bytes),
        owned @ Cow::Owned(_) => owned,
    };
    let lone = find_lone_surrogates(&body);
    if lone.is_empty() {
        return body;
    }
    count_replaced(lone.len());
    let mut body = body.into_owned();
    for at in lone {
        body[at..at + 6].copy_from_slice(br"\ufffd");
    }
    Cow::Owned(body)
}

fn decode_utf16(units: &[u8], unit: impl Fn([u8; 2]) -> u16) -> Vec<u8> {
    let units = units.chunks_exact(2).map(|it| unit([it[0], it[1]]));
    let mut replaced = 0;
    let characters = char::decode_utf16(units).map(|it| {
        it.unwrap_or_else(|_lone| {
            replaced += 1;
            char::REPLACEMENT_CHARACTER
        })
    });
    let text: String = characters.collect();
    count_replaced(replaced);
    text.into_bytes()
}

fn repair_utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    if std::str::from_utf8(bytes).is_ok() {
        return Cow::Borrowed(bytes);
    }
    let chunks = bytes.utf8_chunks();
    count_replaced(chunks.filter(|it| !it.invalid().is_empty()).count());
    Cow::Owned(String::from_utf8_lossy(bytes).into_owned().into_bytes())
}

fn find_lone_surrogates(body: &[u8]) -> Vec<usize> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(offset) = body[at..].iter().position(|byte| *byte == b'\\') {
        at += offset;
        let is_pair = |high| {
            (0xd800..0xdc00).contains(&high)
                && parse_escaped_unit(body, at + 6)
                    .is_some_and(|low| (0xdc00..0xe000).contains(&low))
        };
        at += match parse_escaped_unit(body, at) {
            Some(high) if is_pair(high) => 12,
            Some(unit) => {
                if (0xd800..0xe000).contains(&unit) {
                    found.push(at);
                }
                6
            }
            None => 2,
        };
        at = at.min(body.len());
    }
    found
}

/// Returns the code unit of an escape such as `\ud83d` at `at`.
fn parse_escaped_unit(body: &[u8], at: usize) -> Option<u16> {
    let digits = body.get(at..at + 6)?.strip_prefix(br"\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    let is_hex = digits.bytes().all(|it| it.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field<K> {
    Text,
    Message(K),
    /// A message that can be dropped without affecting the others.
    Item(K),
    Other,
}

pub(crate) trait Protocol: Copy {
    fn field(self, number: u32) -> Field<Self>;

    /// Returns the reason why a standalone message is unreadable; `None` if it is readable.
    fn item_error(self, _item: &[u8]) -> Option<String> {
        None
    }
}

#[derive(Debug, Default)]
pub(crate) struct RepairedJson {
    pub(crate) bytes: Vec<u8>,
    pub(crate) left_out: Vec<String>,
    replaced: usize,
}

/// Repairs the strings of a message and drops unreadable items; `None` if the message itself is
/// unreadable.
pub(crate) fn repair_message<P: Protocol>(bytes: &[u8], protocol: P) -> Option<RepairedJson> {
    let mut repaired = RepairedJson::default();
    let mut out = Vec::with_capacity(bytes.len());
    rewrite_message(bytes, protocol, &mut out, &mut repaired, 0)?;
    count_replaced(repaired.replaced);
    repaired.bytes = out;
    Some(repaired)
}

fn rewrite_message<P: Protocol>(
    bytes: &[u8],
    protocol: P,
    out: &mut Vec<u8>,
    repaired: &mut RepairedJson,
    depth: usize,
) -> Option<()> {
    if depth >= DEPTH {
        return None;
    }
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let (number, value) = reader.read_field().ok()?;
        let Value::Bytes(content) = value else {
            wire::put_field(out, number, value);
            continue;
        };
        match protocol.field(number) {
            Field::Text => {
                let chunks = content.utf8_chunks();
                repaired.replaced += chunks.filter(|it| !it.invalid().is_empty()).count();
                let text = String::from_utf8_lossy(content);
                wire::put_bytes_field(out, number, text.as_bytes());
            }
            Field::Message(inner) => {
                let mut within = Vec::with_capacity(content.len());
                rewrite_message(content, inner, &mut within, repaired, depth + 1)?;
                wire::put_bytes_field(out, number, &within);
            }
            Field::Item(inner) => {
                let mut within = Vec::with_capacity(content.len());
                let is_read =
                    rewrite_message(content, inner, &mut within, repaired, depth + 1).is_some();
                let error = if is_read {
                    inner.item_error(&within)
                } else {
                    Some("is not a message, or is nested too deeply".to_owned())
                };
                match error {
                    None => wire::put_bytes_field(out, number, &within),
                    Some(error) => repaired.left_out.push(error),
                }
            }
            Field::Other => wire::put_bytes_field(out, number, content),
        }
    }
    Some(())
}

impl Protocol for MessageId {
    fn field(self, number: u32) -> Field<Self> {
        let message = &json::shared_plan().messages[self];
        let field = message.field_index_by_number(number);
        match field.map(|at| message.fields[at].kind) {
            Some(Kind::String) => Field::Text,
            Some(Kind::Message(inner)) => Field::Message(inner),
            _ => Field::Other,
        }
    }
}

/// Decodes a sender's message, replacing malformed strings.
pub fn decode_repaired<U: Message + Name + Default>(bytes: &[u8]) -> Result<U, DecodeError> {
    let again = || {
        let kind = json::shared_plan().by_name.get(&*U::full_name())?;
        U::decode(&*repair_message(bytes, *kind)?.bytes).ok()
    };
    U::decode(bytes).or_else(|error| again().ok_or(error))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cloud::{Event, Events};

    #[test]
    fn invalid_utf8_in_json_is_replaced() {
        let table: &[(&[u8], &str)] = &[
            (br#"{"a": "b"}"#, r#"{"a": "b"}"#),
            (b"\xef\xbb\xbf{}", "{}"),
            (b"\xff\xfe{\0}\0", "{}"),
            (b"\xfe\xff\0{\0}", "{}"),
            (b"\xff\xfe\"\0\x3d\xd8\"\0", "\"\u{fffd}\""),
            (b"\"a\xff\xfeb\"", "\"a\u{fffd}\u{fffd}b\""),
            (b"\"\xf0\x9f\x98\"", "\"\u{fffd}\""),
            (br#""\ud83d""#, r#""\ufffd""#),
            (br#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (br#""\ud83d\u0041""#, r#""\ufffd\u0041""#),
            (br#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (br#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (br#""\UD83D""#, r#""\UD83D""#),
            (br#""\uD83D""#, r#""\ufffd""#),
            (br#""\\ud83d""#, r#""\\ud83d""#),
            (br#""\\\ud83d""#, r#""\\\ufffd""#),
            (br#""\ud83"#, r#""\ud83"#),
            (br"\", r"\"),
            (b"", ""),
        ];
        for (body, expected) in table {
            let found = repair_json(body);
            assert_eq!(String::from_utf8_lossy(&found), *expected, "{body:?}");
        }
    }

    #[test]
    fn invalid_utf8_in_a_message_is_replaced_at_any_depth() {
        let event = |name: &str| Event {
            name: name.into(),
            dimensions: [("host".into(), name.into())].into(),
            metadata_fields: Some(prost_types::Struct {
                fields: [("key".into(), name.into())].into(),
            }),
            timestamp: 7,
            ..Event::default()
        };
        let events = |middle: &str| Events {
            detailed_response: true,
            events: vec![event("first"), event(middle), event("last")],
        };
        let mut bytes = events("a#b").encode_to_vec();
        for byte in &mut bytes {
            if *byte == b'#' {
                *byte = 0xff;
            }
        }
        assert!(Events::decode(&*bytes).is_err());
        let before = replaced_count();
        let kind = json::shared_plan().by_name["zenoss.cloud.Events"];
        let repaired = repair_message(&bytes, kind).unwrap();
        // The replacement is longer than the malformed byte, so the lengths of the enclosing
        // messages change.
        assert_eq!(
            Events::decode(&*repaired.bytes).unwrap(),
            events("a\u{fffd}b")
        );
        assert_eq!(
            decode_repaired::<Events>(&bytes).unwrap(),
            events("a\u{fffd}b")
        );
        assert!(replaced_count() >= before + 3);
        assert!(repair_message(&bytes[..bytes.len() - 1], kind).is_none());
    }

    proptest! {
        #[test]
        fn repair_never_panics(body: Vec<u8>, text in "[\\\\ud8cD0-9a-f\"]{0,40}") {
            repair_json(&body);
            let repaired = repair_json(text.as_bytes());
            prop_assert_eq!(find_lone_surrogates(&repaired), Vec::<usize>::new());
            let kind = json::shared_plan().by_name["zenoss.cloud.Events"];
            drop(repair_message(&body, kind));
        }
    }
}
