//! Writes an occurrence as the bytes of its record, without a copy of it: intake does little else
//! as often.

use std::collections::BTreeMap;

use prost::{
    Message,
    encoding::{self, WireType, encode_key, encode_varint, encoded_len_varint, key_len},
};

use super::{
    AnnotationV1, EarlierV1, EvaluationV1, FieldV1, FlappingV1, HistoryEntryV1, LeaseV1,
    NotifiedV1, close_reason,
};
use crate::{
    domain::{HistoryEntry, Occurrence},
    store::record::v1::{
        hold::{CauseMarkV1, HoldChangeV1, PendingV1},
        value::FieldsV1,
    },
};

/// Adds the bytes that the same occurrence has as [`super::OccurrenceV1`].
#[expect(clippy::too_many_lines, reason = "a row for each field")]
pub(crate) fn write(occurrence: &Occurrence, to: &mut Vec<u8>) {
    bytes(1, &occurrence.key.to_bytes(), to);
    bytes(2, &occurrence.event.to_bytes(), to);
    number(3, u64::from(occurrence.number), to);
    bytes(4, occurrence.name.as_bytes(), to);
    bytes(5, occurrence.kind.as_bytes(), to);
    pairs(6, &occurrence.dimensions, to);
    if !occurrence.metadata.is_empty() {
        message(7, &FieldsV1::from(&occurrence.metadata), to);
    }
    bytes(8, occurrence.summary.as_bytes(), to);
    bytes(9, occurrence.body.as_bytes(), to);
    number(10, occurrence.severity as u64, to);
    number(11, occurrence.status as u64, to);
    number(12, u64::from(occurrence.acknowledged), to);
    signed(13, occurrence.start_ms, to);
    signed(14, occurrence.last_seen_ms, to);
    signed(15, occurrence.close.map_or(0, |close| close.at_ms), to);
    signed(16, i64::from(i32::from(close_reason(occurrence))), to);
    number(17, occurrence.count, to);
    number(18, occurrence.prior_count, to);
    for annotation in &occurrence.annotations {
        message(19, &AnnotationV1::from(annotation), to);
    }
    for entry in &occurrence.history {
        history_entry(20, entry, to);
    }
    for notified in &occurrence.notified {
        message(21, &NotifiedV1::from(notified), to);
    }
    for rule in &occurrence.chain {
        bytes(22, &rule.to_bytes(), to);
    }
    signed(23, occurrence.review_ms, to);
    moment(24, occurrence.content_ms, to);
    if let Some(evaluation) = &occurrence.evaluation {
        message(25, &EvaluationV1::from(evaluation), to);
    }
    moment(26, occurrence.received_ms, to);
    if let Some(reopened) = occurrence.reopened {
        encoding::uint32::encode(27, &reopened, to);
    }
    for silence in &occurrence.covered_by {
        bytes(28, &silence.to_bytes(), to);
    }
    for pending in &occurrence.pending {
        message(29, &PendingV1::from(pending), to);
    }
    for change in &occurrence.hold_changes {
        message(30, &HoldChangeV1::from(change), to);
    }
    for earlier in &occurrence.earlier {
        message(31, &EarlierV1::from(earlier), to);
    }
    for cause in &occurrence.causes {
        message(32, &CauseMarkV1::from(cause), to);
    }
    moment(33, occurrence.expire_ms, to);
    for flapping in &occurrence.flapping {
        message(34, &FlappingV1::from(flapping), to);
    }
    if let Some(assignee) = &occurrence.assignee {
        bytes(35, assignee.as_str().as_bytes(), to);
    }
    if let Some(trace) = occurrence.trace {
        bytes(36, &trace.to_bytes(), to);
    }
    let began_ms = occurrence.reports.began_ms;
    moment(37, began_ms.map(|(first, _)| first), to);
    moment(38, began_ms.map(|(_, last)| last), to);
    for lease in &occurrence.reports.leases {
        message(39, &LeaseV1::from(lease), to);
    }
}

/// Texts and bytes; nothing when there are none.
fn bytes(tag: u32, bytes: &[u8], to: &mut Vec<u8>) {
    if !bytes.is_empty() {
        delimited(tag, bytes.len(), to);
        to.extend_from_slice(bytes);
    }
}

fn moment(tag: u32, at_ms: Option<i64>, to: &mut Vec<u8>) {
    if let Some(at_ms) = at_ms {
        encoding::int64::encode(tag, &at_ms, to);
    }
}

fn number(tag: u32, number: u64, to: &mut Vec<u8>) {
    if number != 0 {
        encoding::uint64::encode(tag, &number, to);
    }
}

fn signed(tag: u32, number: i64, to: &mut Vec<u8>) {
    if number != 0 {
        encoding::int64::encode(tag, &number, to);
    }
}

fn message(tag: u32, message: &impl Message, to: &mut Vec<u8>) {
    delimited(tag, message.encoded_len(), to);
    message.encode_raw(to);
}

fn delimited(tag: u32, length: usize, to: &mut Vec<u8>) {
    encode_key(tag, WireType::LengthDelimited, to);
    encode_varint(length as u64, to);
}

/// How many bytes [`bytes()`] adds.
fn length(tag: u32, bytes: &[u8]) -> usize {
    if bytes.is_empty() {
        return 0;
    }
    key_len(tag) + encoded_len_varint(bytes.len() as u64) + bytes.len()
}

fn pairs(tag: u32, pairs: &BTreeMap<String, String>, to: &mut Vec<u8>) {
    for (key, value) in pairs {
        let (key, value) = (key.as_bytes(), value.as_bytes());
        delimited(tag, length(1, key) + length(2, value), to);
        bytes(1, key, to);
        bytes(2, value, to);
    }
}

fn history_entry(tag: u32, entry: &HistoryEntry, to: &mut Vec<u8>) {
    let author = entry.author.as_ref().map_or("", |author| author.as_str());
    // All but the author, which is the same again and again.
    let rest = HistoryEntryV1 {
        at_ms: entry.at_ms,
        author: String::new(),
        field: FieldV1::from(entry.field).into(),
        from: String::new(),
        to: String::new(),
    };
    let texts = [
        (2, author),
        (4, entry.from.as_str()),
        (5, entry.to.as_str()),
    ];
    let text_bytes = texts.map(|(tag, text)| length(tag, text.as_bytes()));
    delimited(
        tag,
        rest.encoded_len() + text_bytes.iter().sum::<usize>(),
        to,
    );
    signed(1, rest.at_ms, to);
    bytes(2, author.as_bytes(), to);
    signed(3, i64::from(rest.field), to);
    bytes(4, entry.from.as_bytes(), to);
    bytes(5, entry.to.as_bytes(), to);
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::write;
    use crate::{
        domain::{Close, CloseReason, Occurrence, RecordId, value::Value},
        store::{record::v1::occurrence::OccurrenceV1, samples},
    };

    fn differs(occurrence: &Occurrence) -> bool {
        let mut written = Vec::new();
        write(occurrence, &mut written);
        written != OccurrenceV1::from(occurrence).encode_to_vec()
    }

    #[test]
    fn the_bytes_are_those_of_the_message() {
        let mut full = samples::evaluated_occurrence();
        full.acknowledged = true;
        full.close = Some(Close {
            at_ms: -5,
            reason: CloseReason::Aged,
        });
        full.chain = vec![RecordId::from_bytes([3; 16]); 2];
        full.dimensions.insert(String::new(), "no key".into());
        full.dimensions.insert("no value".into(), String::new());
        full.metadata
            .insert("list".into(), Value::List(vec![Value::Null]));
        full.body = "longer than a byte can count ".repeat(10);
        full.history[0].author = None;
        full.start_ms = i64::MIN;
        let mut empty = samples::occurrence(0);
        empty.summary.clear();
        empty.dimensions.clear();
        empty.history.clear();
        empty.content_ms = Some(0);
        for occurrence in [
            samples::occurrence(1),
            samples::held_occurrence(),
            samples::grouped_occurrence(),
            samples::returned_occurrence(),
            samples::cause(),
            samples::expiring_occurrence(),
            samples::assigned_occurrence(),
            samples::traced_occurrence(),
            samples::reported_occurrence(),
            full,
            empty,
        ] {
            assert!(!differs(&occurrence), "{occurrence:?}");
        }
    }
}
