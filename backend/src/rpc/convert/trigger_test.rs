//! Conversion of trigger tests.

use bellwether_proto::v1;

use super::{event, list::to_i32};
use crate::ops::test_trigger::TestRun;

pub fn draft_from_wire(wire: v1::TestTriggerRequest) -> (v1::Trigger, (Option<i64>, Option<i64>)) {
    let span = wire.time_range.unwrap_or_default();
    let draft = v1::Trigger {
        name: wire.name,
        r#type: wire.r#type,
        ..v1::Trigger::default()
    };
    (draft, (span.start, span.end))
}

pub fn progress_to_wire(run: &TestRun) -> v1::TestTriggerWithProgressResponse {
    let test = run.results();
    v1::TestTriggerWithProgressResponse {
        matched: Some(to_i32(test.matched)),
        matched_by_saved: test.matched_by_saved.map(to_i32),
        scanned: Some(to_i32(test.scanned)),
        reached_time: test.reached_ms,
        time_range: Some(span_to_wire(run)),
        result: run.is_finished().then(|| result_to_wire(run)),
    }
}

pub fn result_to_wire(run: &TestRun) -> v1::TestTriggerResponse {
    let test = run.results();
    let occurrences = test.occurrences.iter().cloned();
    v1::TestTriggerResponse {
        matched: Some(to_i32(test.matched)),
        matched_by_saved: test.matched_by_saved.map(to_i32),
        scanned: Some(to_i32(test.scanned)),
        occurrences: occurrences.map(event::event_with_one_occurrence).collect(),
        stopped_early: test.stopped_early,
        reached_time: test.reached_ms.filter(|_| test.stopped_early),
        time_range: Some(span_to_wire(run)),
        warnings: test.warnings.clone(),
    }
}

fn span_to_wire(run: &TestRun) -> v1::TimeRange {
    let (start, end) = run.span();
    v1::TimeRange { start, end }
}
