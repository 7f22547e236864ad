//! Adds rejected list entries to the response, so that none is dropped silently.
//!
//! An entry that is not a valid message cannot be forwarded to the backend. It is rejected here,
//! and reported as if the backend had rejected it.

use bellwether_proto::{
    cloud::{Event, EventError, EventStatusResult, Events},
    json::{
        read::{Read, RefusedEntry},
        violation::Violations,
        wire::{self, WireType},
    },
};
use bytes::Bytes;
use prost::{DecodeError, Message as _};
use tonic::Code;

/// Field numbers of `Events.detailed_response` and `EventStatusResult.ignored_fields`.
const DETAILED_RESPONSE: u32 = 1;
const IGNORED_FIELDS: u32 = 1_000;

#[derive(Debug)]
pub(crate) struct OmittedInput {
    ignored: Vec<String>,
    refused: Vec<RefusedEntry>,
    detailed: bool,
}

impl OmittedInput {
    pub(crate) fn split_read(read: Read) -> (Vec<u8>, Self) {
        let mut message = read.wire;
        let mut detailed = false;
        if !read.refused.is_empty() {
            // The details are always requested, because only they contain indexes. Decoding cannot
            // fail, because the message was just encoded.
            detailed = Events::decode(&*message).is_ok_and(|events| events.detailed_response);
            wire::put_tag(&mut message, DETAILED_RESPONSE, WireType::Varint);
            wire::put_varint(&mut message, 1);
        }
        let left_out = Self {
            ignored: read.ignored,
            refused: read.refused,
            detailed,
        };
        (message, left_out)
    }

    pub(crate) fn add_to_response(self, answer: Bytes) -> Result<Bytes, DecodeError> {
        if self.ignored.is_empty() && self.refused.is_empty() {
            return Ok(answer);
        }
        let mut encoded = if self.refused.is_empty() {
            answer.to_vec()
        } else {
            let answer = EventStatusResult::decode(answer)?;
            merge_rejected(answer, self.refused, self.detailed).encode_to_vec()
        };
        for path in self.ignored {
            wire::put_bytes_field(&mut encoded, IGNORED_FIELDS, path.as_bytes());
        }
        Ok(encoded.into())
    }
}

/// Merges the entries rejected here with those rejected by the backend, in the order of the list.
fn merge_rejected(
    mut answer: EventStatusResult,
    refused: Vec<RefusedEntry>,
    detailed: bool,
) -> EventStatusResult {
    let here: Vec<usize> = refused.iter().map(|entry| entry.index).collect();
    for (at, failed) in answer.failed_events.iter_mut().enumerate() {
        let index = failed.index.and_then(|index| usize::try_from(index).ok());
        let index = index.unwrap_or(at);
        let place = original_index(&here, index);
        if let Some(why) = failed.error.strip_prefix(&position_prefix(index)) {
            failed.error = position_prefix(place) + why;
        }
        failed.index = Some(to_count(place));
    }
    answer.failed = answer.failed.saturating_add(to_count(refused.len()));
    let of_here = refused.into_iter().map(|entry| EventError {
        error: position_prefix(entry.index) + &to_sentence(&entry.violations),
        event: Event::decode(&*entry.wire).ok(),
        index: Some(to_count(entry.index)),
        code: Code::InvalidArgument.into(),
    });
    answer.failed_events.extend(of_here);
    answer.failed_events.sort_by_key(|failed| failed.index);
    if let Some(first) = answer.failed_events.first() {
        let (failed, total) = (
            answer.failed,
            answer.failed.saturating_add(answer.succeeded),
        );
        let error = &first.error;
        answer.message = format!("{failed} of {total} events were rejected; {error}");
    }
    if !detailed {
        answer.failed_events.clear();
    }
    answer
}

/// Converts an index among the forwarded entries to the index in the original list.
fn original_index(refused: &[usize], index: usize) -> usize {
    let before = |place: usize| refused.partition_point(|refused| *refused <= place);
    let mut place = index;
    while place < index + before(place) {
        place = index + before(place);
    }
    place
}

fn position_prefix(index: usize) -> String {
    format!("events[{index}]: ")
}

fn to_sentence(violations: &Violations) -> String {
    let each = violations.as_slice().iter().map(|one| match &*one.field {
        "" => one.description.clone(),
        field => format!("{field}: {}", one.description),
    });
    each.collect::<Vec<_>>().join("; ")
}

fn to_count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarded_entry_maps_back_to_its_original_index() {
        let refused = [0, 1, 4, 6];
        let places: Vec<_> = (0..5)
            .map(|index| original_index(&refused, index))
            .collect();
        assert_eq!(places, [2, 3, 5, 7, 8]);
        assert_eq!(original_index(&[], 3), 3);
    }
}
