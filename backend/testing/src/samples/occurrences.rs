//! Occurrences with every field set.

use std::collections::BTreeMap;

use super::{AT_MS, id, name, notified, trigger};
use crate::domain::{
    Annotation, Close, CloseReason, EarlierOccurrence, Evaluation, EventId, Field, HistoryEntry,
    Occurrence, Opening, Report, Reporter, Reports, Severity, Status, TraceContext, Value,
};

/// Returns a closed occurrence with every field set.
pub fn occurrence(number: u32) -> Occurrence {
    let metadata = BTreeMap::from([
        (
            "list".into(),
            Value::List(vec![Value::Null, Value::Bool(true)]),
        ),
        (
            "object".into(),
            Value::Object(BTreeMap::from([("n".into(), Value::Number(-1.5))])),
        ),
        ("text".into(), Value::Text("t".into())),
    ]);
    let dimensions = BTreeMap::from([("host".to_owned(), "db-1".to_owned())]);
    Occurrence {
        key: id(50 + u64::from(number)),
        event: EventId::derive("disk", &dimensions),
        number,
        name: "disk".into(),
        kind: "full".into(),
        dimensions,
        metadata,
        summary: "disk is full".into(),
        body: "99 %".into(),
        severity: Severity::Error,
        status: Status::Closed,
        acknowledged: true,
        start_ms: AT_MS,
        last_seen_ms: AT_MS + 10,
        close: Some(Close {
            at_ms: AT_MS + 20,
            reason: CloseReason::Operator,
        }),
        count: 4,
        prior_count: 2,
        annotations: vec![Annotation {
            id: "abcdefghij0123456789".into(),
            text: "looking".into(),
            author: name("admin"),
            create_ms: AT_MS + 11,
            update_ms: AT_MS + 12,
        }],
        history: vec![HistoryEntry {
            at_ms: AT_MS + 20,
            author: Some(name("admin")),
            field: Field::Status,
            from: "open".into(),
            to: "closed".into(),
        }],
        notified: vec![notified()],
        chain: vec![id(32)],
        review_ms: AT_MS + 2_592_000_000,
        content_ms: None,
        evaluation: None,
        received_ms: None,
        reopened: None,
        earlier: Vec::new(),
        causes: Vec::new(),
        covered_by: Vec::new(),
        pending: Vec::new(),
        hold_changes: Vec::new(),
        expire_ms: None,
        reports: Reports::default(),
        flapping: Vec::new(),
        assignee: None,
        trace: None,
        acknowledged_until_ms: None,
        acknowledged_severity: None,
        enriched: Vec::new(),
        age_shift_ms: 0,
        informed: Vec::new(),
    }
}

/// Returns an occurrence whose newest event has a timestamp in the future, and whose predecessor
/// was reopened after this one began.
pub fn reopened_occurrence() -> Occurrence {
    Occurrence {
        received_ms: Some(AT_MS + 6),
        reopened: Some(1),
        ..occurrence(3)
    }
}

/// Returns an occurrence that a destination closed.
pub fn informed_occurrence() -> Occurrence {
    Occurrence {
        informed: vec![id(33)],
        ..occurrence(12)
    }
}

pub fn enriched_occurrence() -> Occurrence {
    Occurrence {
        enriched: vec!["parent".into(), "team".into()],
        ..occurrence(13)
    }
}

pub fn assigned_occurrence() -> Occurrence {
    let mut assigned = Occurrence {
        assignee: Some(name("ben")),
        ..occurrence(7)
    };
    assigned.history.push(HistoryEntry {
        at_ms: AT_MS + 30,
        author: Some(name("ann")),
        field: Field::Assignee,
        from: String::new(),
        to: "ben".into(),
    });
    assigned
}

pub fn traced_occurrence() -> Occurrence {
    Occurrence {
        trace: TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ..occurrence(8)
    }
}

/// Returns an occurrence with several reporters.
pub fn reported_occurrence() -> Occurrence {
    let reporter = |name: &str, until_ms| Reporter {
        id: Report::new(None, None, name).reporter.unwrap(),
        until_ms,
        began_ms: None,
        is_over: false,
    };
    Occurrence {
        reports: Reports {
            began_ms: Some((AT_MS - 60_000, AT_MS - 45_000)),
            ended_ms: None,
            reporters: vec![
                reporter("a", AT_MS + 240_000),
                reporter("b", AT_MS + 255_000),
            ],
        },
        ..occurrence(8)
    }
}

/// Returns an occurrence that follows one which its reporters ended.
pub fn reported_again_occurrence() -> Occurrence {
    let mut occurrence = reported_occurrence();
    occurrence.reports.ended_ms = Some(AT_MS - 90_000);
    occurrence.reports.reporters[0].began_ms = Some(AT_MS - 60_000);
    occurrence.reports.reporters[1].is_over = true;
    occurrence
}

/// Returns an occurrence that expires unless it is sent again.
pub fn expiring_occurrence() -> Occurrence {
    Occurrence {
        status: Status::Open,
        close: None,
        expire_ms: Some(AT_MS + 240_000),
        ..occurrence(4)
    }
}

/// Returns an occurrence with the data on which its decisions were based.
pub fn evaluated_occurrence() -> Occurrence {
    let mut occurrence = occurrence(2);
    occurrence.content_ms = Some(AT_MS + 4);
    occurrence.evaluation = Some(Evaluation {
        at_ms: AT_MS + 5,
        rules_ms: AT_MS + 3,
        by_event: true,
    });
    occurrence.notified[0].opening = Some(Opening {
        at_ms: AT_MS + 1,
        trigger: (&trigger("disk")).into(),
        rule_revision: 5,
    });
    occurrence
}

/// Returns an occurrence of an event that had earlier occurrences.
pub fn returned_occurrence() -> Occurrence {
    let earlier = |end_ms, by_sender| EarlierOccurrence {
        end_ms,
        length_ms: 90_000,
        by_sender,
    };
    Occurrence {
        earlier: vec![
            earlier(AT_MS - 7_200_000, false),
            earlier(AT_MS - 3_600_000, true),
        ],
        ..occurrence(5)
    }
}
