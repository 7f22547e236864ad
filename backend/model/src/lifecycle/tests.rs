//! Tests of state changes of occurrences.

mod enrichment;
mod reports;

use std::collections::BTreeMap;

use super::*;
use crate::{
    decide::NO_ENRICHMENTS,
    domain::{
        Report,
        Severity::{Critical, Error, Info},
        Status::{Closed, Open, Suppressed},
    },
};

const START_MS: i64 = 1_000_000;

fn event(severity: Option<Severity>, status: Option<Status>, timestamp_ms: i64) -> IncomingEvent {
    IncomingEvent {
        name: "disk-full".into(),
        kind: "disk".into(),
        dimensions: BTreeMap::from([("host".into(), "a".into())]),
        metadata: BTreeMap::new(),
        summary: format!("at {timestamp_ms}"),
        body: String::new(),
        severity,
        status,
        acknowledged: None,
        timestamp_ms,
        expire_ms: None,
        report: Report::default(),
    }
}

/// Applies events in sequence and returns all occurrences, oldest first.
fn feed(events: &[IncomingEvent]) -> Vec<Occurrence> {
    let mut all: Vec<Occurrence> = Vec::new();
    let mut now_ms = 0;
    for event in events {
        now_ms = event.timestamp_ms.max(now_ms);
        let arrival = Arrival {
            enrichments: &NO_ENRICHMENTS,
            trace: None,
            event,
            author: None,
            chain: &[],
            now_ms,
        };
        let key = RecordId::from_parts(all.len() as u64, 0);
        match apply_event(all.last_mut(), &arrival, &SharedSettings::default(), key) {
            EventEffect::Opened(opened) => all.push(*opened),
            EventEffect::Repeated(_) | EventEffect::Counted => {}
        }
    }
    all
}

/// Applies one event per pair of a timestamp and a time of arrival. Returns the newest occurrence.
fn feed_as_received(times: &[(i64, i64)]) -> Occurrence {
    let mut newest: Option<Occurrence> = None;
    for (stated_ms, now_ms) in times {
        let event = event(None, None, START_MS + stated_ms);
        let arrival = Arrival {
            enrichments: &NO_ENRICHMENTS,
            trace: None,
            event: &event,
            author: None,
            chain: &[],
            now_ms: START_MS + now_ms,
        };
        let key = RecordId::from_parts(1, 0);
        let received = apply_event(newest.as_mut(), &arrival, &SharedSettings::default(), key);
        if let EventEffect::Opened(opened) = received {
            newest = Some(*opened);
        }
    }
    newest.unwrap()
}

#[test]
fn order_uses_earlier_of_stated_and_received_time() {
    let hour = 3_600_000;
    for (times, shown) in [
        (&[(hour, 0), (5, 5)][..], 5),
        (&[(hour, 0), (hour - 1, 5)], hour - 1),
        (&[(-5, 0), (hour, 1)], hour),
        (&[(hour, 10), (9, 20)], hour),
        (&[(hour, 10), (10, 20)], 10),
        (&[(0, 0), (-1, 20)], 0),
    ] {
        let occurrence = feed_as_received(times);
        assert_eq!(occurrence.last_seen_ms - START_MS, shown, "{times:?}");
        let last_ms = START_MS + shown;
        assert_eq!(occurrence.summary, format!("at {last_ms}"), "{times:?}");
        assert_eq!(occurrence.number, 1, "{times:?}");
    }
}

#[test]
fn repeat_keeps_omitted_fields() {
    let mut full = event(None, None, START_MS);
    full.body = "all of it".into();
    full.metadata = BTreeMap::from([("a".into(), crate::domain::Value::Bool(true))]);
    let bare = IncomingEvent {
        kind: String::new(),
        metadata: BTreeMap::new(),
        summary: String::new(),
        body: String::new(),
        ..event(None, Some(Closed), START_MS + 1)
    };
    let all = feed(&[full.clone(), bare.clone()]);
    let closed = &all[0];
    assert_eq!(
        (
            &closed.summary,
            &closed.body,
            &closed.kind,
            &closed.metadata
        ),
        (&full.summary, &full.body, &full.kind, &full.metadata)
    );
    assert_eq!(closed.content_ms, Some(START_MS), "nothing was replaced");
    let next = IncomingEvent {
        status: None,
        ..bare
    };
    let all = feed(&[full, next]);
    assert_eq!((all.len(), all[0].kind.as_str()), (1, "disk"));
    let alone = IncomingEvent {
        kind: String::new(),
        ..event(None, None, START_MS)
    };
    assert_eq!(
        feed(&[alone])[0].kind,
        "disk-full",
        "the name is used as the summary"
    );
}

type Sent = (Option<Severity>, Option<Status>, i64);
type Shown = (Status, Severity, u64, i64);

const TABLE: &[(&str, &[Sent], &[Shown])] = &[
    (
        "first sight with defaults",
        &[(None, None, 0)],
        &[(Open, Info, 1, 0)],
    ),
    (
        "a repeat moves on and replaces",
        &[
            (Some(Error), None, 0),
            (Some(Critical), Some(Suppressed), 5),
        ],
        &[(Suppressed, Critical, 2, 5)],
    ),
    (
        "defaults on a repeat leave what is stored",
        &[(Some(Error), Some(Suppressed), 0), (None, None, 5)],
        &[(Suppressed, Error, 2, 5)],
    ),
    (
        "a late event only counts",
        &[(Some(Error), None, 5), (Some(Info), Some(Closed), 4)],
        &[(Open, Error, 2, 5)],
    ),
    (
        "an event of the same moment is not late",
        &[(Some(Error), None, 5), (Some(Info), None, 5)],
        &[(Open, Info, 2, 5)],
    ),
    (
        "a close, then the next occurrence with defaults",
        &[
            (Some(Error), None, 0),
            (None, Some(Closed), 1),
            (None, None, 2),
        ],
        &[(Closed, Error, 2, 1), (Open, Info, 1, 2)],
    ),
    (
        "an event older than the close counts for the closed occurrence",
        &[
            (None, None, 0),
            (None, Some(Closed), 9),
            (None, Some(Open), 8),
        ],
        &[(Closed, Info, 3, 9)],
    ),
    (
        "a second close counts for the closed occurrence",
        &[
            (None, None, 0),
            (None, Some(Closed), 1),
            (None, Some(Closed), 2),
        ],
        &[(Closed, Info, 3, 2)],
    ),
    (
        "a close of something never seen",
        &[(None, Some(Closed), 0)],
        &[(Closed, Info, 1, 0)],
    ),
];

#[test]
fn events_produce_expected_occurrences() {
    for (case, sent, expected) in TABLE {
        let events: Vec<_> = sent
            .iter()
            .map(|(severity, status, offset)| event(*severity, *status, START_MS + offset))
            .collect();
        let all = feed(&events);
        let shown: Vec<Shown> = all
            .iter()
            .map(|it| (it.status, it.severity, it.count, it.last_seen_ms - START_MS))
            .collect();
        assert_eq!(&shown, expected, "{case}");
        for (at, occurrence) in all.iter().enumerate() {
            assert_eq!(occurrence.number as usize, at + 1, "{case}");
            assert_eq!(
                occurrence.close.is_some(),
                occurrence.status == Closed,
                "{case}"
            );
            let before: u64 = all[..at].iter().map(|it| it.count).sum();
            assert_eq!(occurrence.prior_count, before, "{case}");
        }
    }
}

#[test]
fn event_acknowledgement_sets_flag_and_history() {
    let mut first = event(None, None, START_MS);
    first.acknowledged = Some(true);
    let mut second = event(None, None, START_MS + 1);
    second.acknowledged = Some(false);
    let occurrence = feed(&[first, event(None, None, START_MS), second]).remove(0);
    assert!(!occurrence.acknowledged);
    let last = occurrence.history.last().unwrap();
    assert_eq!(
        (last.field, last.from.as_str(), last.to.as_str()),
        (Field::Acknowledged, "true", "false")
    );
}

#[test]
fn history_keeps_newest_hundred_changes() {
    let severities = [Error, Info];
    let events: Vec<_> = (START_MS..START_MS + 250)
        .zip(severities.into_iter().cycle())
        .map(|(at_ms, severity)| event(Some(severity), None, at_ms))
        .collect();
    let occurrence = feed(&events).remove(0);
    assert_eq!(occurrence.history.len(), HISTORY_MAX);
    assert_eq!(occurrence.history.last().unwrap().at_ms, START_MS + 249);
    assert_eq!(occurrence.history[0].at_ms, START_MS + 150);
}

#[test]
fn operator_sets_any_status_and_reopening_clears_close() {
    let author = Name::parse("ann").unwrap();
    for from in Status::ALL {
        for to in Status::ALL {
            let mut occurrence = feed(&[event(None, Some(from), START_MS)]).remove(0);
            let change = StateChange {
                status: Some(to),
                ..StateChange::default()
            };
            let cause = Cause {
                author: Some(&author),
                reason: CloseReason::Operator,
                now_ms: START_MS + 7,
            };
            let transition =
                apply_change(&mut occurrence, &change, cause, &SharedSettings::default());
            assert_eq!(transition.from, Some(from));
            assert_eq!(transition.closed, from != to && to == Closed);
            assert_eq!(occurrence.status, to);
            assert_eq!(occurrence.close.is_some(), to == Closed);
            let by_author = occurrence.history.iter().filter(|it| it.author.is_some());
            assert_eq!(by_author.count(), usize::from(from != to));
        }
    }
}

#[test]
fn review_closes_stale_and_deletes_long_closed_occurrences() {
    const HOUR_MS: i64 = 3_600_000;
    let lifetime = SharedSettings::default();
    let open = feed(&[event(None, None, START_MS)]).remove(0);
    assert_eq!(open.review_ms, START_MS + 4 * HOUR_MS);
    assert_eq!(
        review_occurrence(&open, open.review_ms, &lifetime),
        Review::Age
    );

    let repeated = feed(&[
        event(None, None, START_MS),
        event(None, None, START_MS + 60),
    ])
    .remove(0);
    assert_eq!(
        repeated.review_ms, open.review_ms,
        "a repeat does not move the review"
    );
    let later = Review::Later(START_MS + 60 + 4 * HOUR_MS);
    assert_eq!(
        review_occurrence(&repeated, repeated.review_ms, &lifetime),
        later
    );

    let closed = feed(&[event(None, Some(Closed), START_MS)]).remove(0);
    assert_eq!(closed.review_ms, START_MS + 30 * 24 * HOUR_MS);
    assert_eq!(
        review_occurrence(&closed, closed.review_ms, &lifetime),
        Review::Forget
    );
    assert_eq!(
        review_occurrence(&closed, closed.review_ms - 1, &lifetime),
        Review::Later(closed.review_ms)
    );
}

#[test]
fn lower_severity_brings_review_forward() {
    let events = [
        event(Some(Critical), None, START_MS),
        event(Some(Info), None, START_MS + 1),
    ];
    assert_eq!(feed(&events)[0].review_ms, START_MS + 1 + 4 * 3_600_000);
}

#[test]
fn zero_maximum_age_disables_review() {
    let lifetime = SharedSettings {
        info_age_max: Duration::ZERO,
        ..SharedSettings::default()
    };
    let event = event(None, None, START_MS);
    let arrival = Arrival {
        enrichments: &NO_ENRICHMENTS,
        trace: None,
        event: &event,
        author: None,
        chain: &[],
        now_ms: START_MS,
    };
    let EventEffect::Opened(opened) =
        apply_event(None, &arrival, &lifetime, RecordId::first_at_time(0))
    else {
        panic!("nothing existed before");
    };
    assert_eq!(opened.review_ms, REVIEW_NEVER_MS);
}
