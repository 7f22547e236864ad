//! Limits of requests with many events of another dialect, shared by gateway and backend.

use prost::Message as _;
use prost_types::{Struct, Value, value::Kind};

use crate::zenoss::cloud::{Event, Events};

/// Maximum events per request. Senders use fewer; an OpenTelemetry collector sends 8,192 log
/// records.
pub const EVENTS_MAX: usize = 20_000;
/// Maximum bytes of the message with these events.
pub const BYTES_MAX: usize = 16 * 1024 * 1024;

const TRUNCATED: &str = "truncated";

/// Shrinks the message of a request to [`BYTES_MAX`]: starting at the last event, drops metadata
/// fields, then bodies, then events. Returns the number of dropped events.
pub fn shrink(request: &mut Events) -> usize {
    let mut bytes = request.encoded_len();
    let strip: [fn(&mut Event); 2] = [
        |event| {
            let why = "metadata fields omitted: the request was too large";
            event.metadata_fields = Some(truncation_mark(why));
        },
        |event| event.body.clear(),
    ];
    for strip in strip {
        for event in request.events.iter_mut().rev() {
            if bytes <= BYTES_MAX {
                return 0;
            }
            let before = event.encoded_len();
            let mut stripped = event.clone();
            strip(&mut stripped);
            if stripped.encoded_len() < before {
                bytes -= before - stripped.encoded_len();
                *event = stripped;
            }
        }
    }
    let mut left_out = 0;
    while bytes > BYTES_MAX
        && let Some(event) = request.events.pop()
    {
        bytes -= event.encoded_len();
        left_out += 1;
    }
    left_out
}

fn truncation_mark(why: &str) -> Struct {
    let kind = Some(Kind::StringValue(why.to_owned()));
    Struct {
        fields: [(TRUNCATED.to_owned(), Value { kind })].into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(events: usize, metadata: usize, body: usize, name: usize) -> Events {
        let event = Event {
            name: "n".repeat(name),
            body: "b".repeat(body),
            metadata_fields: (metadata > 0).then(|| truncation_mark(&"m".repeat(metadata))),
            ..Event::default()
        };
        Events {
            events: vec![event; events],
            ..Events::default()
        }
    }

    #[test]
    fn oversized_request_drops_the_least_important_parts() {
        let mut small = request(1_000, 10_000, 1_000, 10);
        let whole = small.clone();
        assert_eq!(shrink(&mut small), 0);
        assert_eq!(small, whole);
        for (bytes, least) in [
            ((2_000, 10_000, 100, 10), 2_000),
            ((2_000, 0, 10_000, 10), 2_000),
            ((2_000, 5_000, 5_000, 10_000), 1_600),
        ] {
            let (events, metadata, body, name) = bytes;
            let mut large = request(events, metadata, body, name);
            let left_out = shrink(&mut large);
            assert!(large.encoded_len() <= BYTES_MAX);
            assert_eq!(large.events.len() + left_out, events);
            assert!(large.events.len() >= least, "{}", large.events.len());
            let first = &large.events[0];
            assert_eq!(first.body.is_empty(), least < events, "{bytes:?}");
        }
    }
}
