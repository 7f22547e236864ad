//! Tests of what happens to occurrences.

use std::collections::BTreeMap;

use super::*;
use crate::domain::{
    Report,
    Severity::{Critical, Error, Info},
    Status::{Closed, Open, Suppressed},
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

/// Takes events in one after the other and answers all occurrences, oldest first.
fn feed(events: &[IncomingEvent]) -> Vec<Occurrence> {
    let mut all: Vec<Occurrence> = Vec::new();
    let mut now_ms = 0;
    for event in events {
        now_ms = event.timestamp_ms.max(now_ms);
        let arrival = Arrival {
            trace: None,
            event,
            author: None,
            chain: &[],
            now_ms,
        };
        let key = RecordId::from_parts(all.len() as u64, 0);
        match receive(all.last_mut(), &arrival, &LifetimeConfig::default(), key) {
            Received::Opened(opened) => all.push(*opened),
            Received::Repeated(_) | Received::Counted => {}
        }
    }
    all
}

/// Processes what was stated at the first time of each pair and came at the second; answers the
/// newest occurrence.
fn feed_as_received(times: &[(i64, i64)]) -> Occurrence {
    let mut newest: Option<Occurrence> = None;
    for (stated_ms, now_ms) in times {
        let event = event(None, None, START_MS + stated_ms);
        let arrival = Arrival {
            trace: None,
            event: &event,
            author: None,
            chain: &[],
            now_ms: START_MS + now_ms,
        };
        let key = RecordId::from_parts(1, 0);
        let received = receive(newest.as_mut(), &arrival, &LifetimeConfig::default(), key);
        if let Received::Opened(opened) = received {
            newest = Some(*opened);
        }
    }
    newest.unwrap()
}

#[test]
fn what_counts_for_order_is_the_earlier_of_what_is_stated_and_when_it_came() {
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
fn what_a_repeat_is_silent_about_stays() {
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
        "the name serves for it"
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
fn events_make_occurrences_of_this_status_severity_and_count() {
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
fn a_stated_acknowledged_sets_the_flag_and_is_kept_in_the_history() {
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
fn the_history_keeps_the_newest_hundred_changes() {
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
fn an_operator_may_set_any_status_and_a_reopened_occurrence_has_no_close() {
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
            let transition = alter(&mut occurrence, &change, cause, &LifetimeConfig::default());
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
fn a_review_ages_what_had_no_news_and_forgets_what_was_closed_long_ago() {
    const HOUR_MS: i64 = 3_600_000;
    let lifetime = LifetimeConfig::default();
    let open = feed(&[event(None, None, START_MS)]).remove(0);
    assert_eq!(open.review_ms, START_MS + 4 * HOUR_MS);
    assert_eq!(review(&open, open.review_ms, &lifetime), Review::Age);

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
    assert_eq!(review(&repeated, repeated.review_ms, &lifetime), later);

    let closed = feed(&[event(None, Some(Closed), START_MS)]).remove(0);
    assert_eq!(closed.review_ms, START_MS + 30 * 24 * HOUR_MS);
    assert_eq!(review(&closed, closed.review_ms, &lifetime), Review::Forget);
    assert_eq!(
        review(&closed, closed.review_ms - 1, &lifetime),
        Review::Later(closed.review_ms)
    );
}

#[test]
fn a_milder_severity_brings_the_review_forward() {
    let events = [
        event(Some(Critical), None, START_MS),
        event(Some(Info), None, START_MS + 1),
    ];
    assert_eq!(feed(&events)[0].review_ms, START_MS + 1 + 4 * 3_600_000);
}

#[test]
fn a_zero_duration_is_never_reviewed() {
    let lifetime = LifetimeConfig {
        info_age_max: Duration::ZERO,
        ..LifetimeConfig::default()
    };
    let event = event(None, None, START_MS);
    let arrival = Arrival {
        trace: None,
        event: &event,
        author: None,
        chain: &[],
        now_ms: START_MS,
    };
    let Received::Opened(opened) = receive(None, &arrival, &lifetime, RecordId::first_at(0)) else {
        panic!("nothing was there before");
    };
    assert_eq!(opened.review_ms, REVIEW_NEVER_MS);
}

/// What a replica says of an alert that began then: firing, or over since then.
type Said = (&'static str, i64, Option<i64>);

/// Processes what replicas say at each second; answers the statuses of all occurrences and how
/// often one was opened or closed.
fn replicas(said: &[(i64, Said)]) -> (Vec<Status>, usize) {
    const LEASE_MS: i64 = 240_000;
    let (mut all, mut changes): (Vec<Occurrence>, _) = (Vec::new(), 0);
    for (at, (replica, began, end)) in said {
        let now_ms = START_MS + at * 1_000;
        let mut event = event(None, end.map(|_| Closed), now_ms);
        event.report = Report::new(Some(START_MS + began * 1_000), replica);
        match end {
            Some(end) => event.timestamp_ms = START_MS + end * 1_000,
            None => event.expire_ms = Some(now_ms + LEASE_MS),
        }
        let arrival = Arrival {
            trace: None,
            event: &event,
            author: None,
            chain: &[],
            now_ms,
        };
        let key = RecordId::from_parts(all.len() as u64, 0);
        match receive(all.last_mut(), &arrival, &LifetimeConfig::default(), key) {
            Received::Opened(opened) => {
                changes += 1;
                all.push(*opened);
            }
            Received::Repeated(transition) => changes += usize::from(transition.closed),
            Received::Counted => {}
        }
    }
    (all.iter().map(|it| it.status).collect(), changes)
}

/// What is reported, the reports, the states they lead to, and the occurrences.
type Row<'a> = (&'a str, Vec<(i64, Said)>, &'a [Status], usize);

#[test]
fn an_alert_of_several_replicas_ends_with_the_last_of_them() {
    let fires = |replica, began| (replica, began, None);
    let ends = |replica, began, end| (replica, began, Some(end));
    let minute = 60;
    let both = [(0, fires("a", 0)), (1, fires("b", 1))];
    let table: &[Row<'_>] = &[
        (
            "one ends, and repeats that; the other still fires",
            (1..=15)
                .flat_map(|it| {
                    [
                        (it * minute, ends("a", 0, 59)),
                        (it * minute + 1, fires("b", 1)),
                    ]
                })
                .collect(),
            &[Open],
            1,
        ),
        (
            "both end, and repeat that",
            vec![
                (60, ends("a", 0, 60)),
                (75, ends("b", 1, 75)),
                (120, ends("a", 0, 60)),
                (135, ends("b", 1, 75)),
            ],
            &[Closed],
            2,
        ),
        (
            "one is gone, the other ends after what it said of the first has passed",
            vec![(250, fires("a", 0)), (300, ends("a", 0, 300))],
            &[Closed],
            2,
        ),
        (
            "it fires again after both ended",
            vec![
                (60, ends("a", 0, 60)),
                (61, ends("b", 1, 61)),
                (62, fires("b", 1)),
                (90, fires("a", 90)),
                (91, ends("b", 1, 61)),
            ],
            &[Closed, Open],
            3,
        ),
        (
            "what was ended is still reported after a while",
            vec![
                (60, ends("a", 0, 60)),
                (61, ends("b", 1, 61)),
                (61 + 15 * minute, fires("b", 1)),
            ],
            &[Closed, Open],
            3,
        ),
    ];
    for (what, said, statuses, changes) in table {
        let said = [&both[..], &said[..]].concat();
        assert_eq!(replicas(&said), (statuses.to_vec(), *changes), "{what}");
    }
}

#[test]
fn replicas_without_names_are_told_apart_by_their_times() {
    let fires = |at| (at, ("", 0, None));
    let ends = |at, end| (at, ("", 0, Some(end)));
    // The rounds of one that repeats an old end while the other one still fires.
    let rounds: Vec<_> = (0..5)
        .flat_map(|it| [fires(60 * it), ends(60 * it + 1, -30)])
        .collect();
    assert_eq!(replicas(&rounds), (vec![Open], 1));
    let late = [fires(0), ends(60, 60), fires(61), ends(62, 60)];
    assert_eq!(replicas(&late), (vec![Closed], 2));
    let (before, after) = (("", -90, Some(-10)), ("", 0, None));
    assert_eq!(replicas(&[(0, after), (1, before)]), (vec![Open], 1));
}

#[test]
fn an_operator_or_a_lapse_that_closes_is_not_the_end_of_a_report() {
    for reason in [
        CloseReason::Operator,
        CloseReason::Expired,
        CloseReason::Aged,
    ] {
        let mut first = event(None, None, START_MS);
        first.report = Report::new(Some(START_MS - 5), "a");
        let mut all = feed(&[first.clone()]);
        let change = StateChange {
            status: Some(Closed),
            ..StateChange::default()
        };
        let cause = Cause {
            author: None,
            reason,
            now_ms: START_MS + 1,
        };
        let lifetime = LifetimeConfig::default();
        alter(&mut all[0], &change, cause, &lifetime);
        first.timestamp_ms += 2;
        let arrival = Arrival {
            trace: None,
            event: &first,
            author: None,
            chain: &[],
            now_ms: START_MS + 2,
        };
        let received = receive(
            all.last_mut(),
            &arrival,
            &lifetime,
            RecordId::from_parts(1, 0),
        );
        assert!(matches!(received, Received::Opened(_)), "{reason:?}");
    }
}
