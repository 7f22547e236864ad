//! Conversion of calendar spans.

use bellwether_proto::v1;
use prost_types::Timestamp;

use super::time::{self, timestamp};
use crate::{
    calendar::Span,
    ops::calendar::{Expansion, ExpansionSpan},
};

pub fn requested_span(start: Option<&Timestamp>, end: Option<&Timestamp>) -> ExpansionSpan {
    ExpansionSpan {
        start_ms: start.map(time::to_millis),
        end_ms: end.map(time::to_millis),
    }
}

pub fn spans_to_wire(expansion: &Expansion) -> Vec<v1::CalendarSpan> {
    let local = |at_ms| {
        let local = expansion.prepared.to_local_time(at_ms);
        local.map_or_else(String::new, |it| it.to_string())
    };
    let span = |it: &Span| v1::CalendarSpan {
        start_time: Some(timestamp(it.start_ms)),
        end_time: Some(timestamp(it.end_ms)),
        local_start: local(it.start_ms),
        local_end: local(it.end_ms),
        longer_by: (it.longer_ms != 0).then_some(prost_types::Duration {
            seconds: it.longer_ms / 1_000,
            nanos: 0,
        }),
    };
    expansion.spans.iter().map(span).collect()
}
