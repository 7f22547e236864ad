//! Tests of state changes of occurrences.

mod walk;

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

/// Applies events one after another and returns all occurrences, oldest first.
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
        match receive(all.last_mut(), &arrival, &SharedSettings::default(), key) {
            EventEffect::Opened(opened) => all.push(*opened),
            EventEffect::Repeated(_) | EventEffect::Counted => {}
        }
    }
    all
}

/// Applies events with pairs of a timestamp and a time of arrival; returns the newest occurrence.
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
        let received = receive(newest.as_mut(), &arrival, &SharedSettings::default(), key);
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
fn review_ages_stale_and_forgets_long_closed_occurrences() {
    const HOUR_MS: i64 = 3_600_000;
    let lifetime = SharedSettings::default();
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
        trace: None,
        event: &event,
        author: None,
        chain: &[],
        now_ms: START_MS,
    };
    let EventEffect::Opened(opened) = receive(None, &arrival, &lifetime, RecordId::first_at(0))
    else {
        panic!("nothing existed before");
    };
    assert_eq!(opened.review_ms, REVIEW_NEVER_MS);
}

/// A reporter, and an alert with its beginning and, if it has ended, its end.
type Said = (&'static str, i64, Option<i64>);

/// A reporter, the lead of its clock and the duration of its reports of a firing alert, in seconds;
/// `None` for one that does not repeat its reports.
type Sender = (&'static str, i64, Option<i64>);

const PROMETHEUS: Sender = ("", 0, Some(240));
const ALERTMANAGER: Sender = ("", 0, None);

/// Returns the event that a sender creates for an alert at a time of the service's clock.
fn said((_, ahead, lease): Sender, (reporter, began, end): Said, now_ms: i64) -> IncomingEvent {
    let at = |seconds: i64| START_MS + (seconds + ahead) * 1_000;
    let expire_ms = lease.map(|it| now_ms + (ahead + it) * 1_000);
    let end_ms = end.map(at).or(expire_ms);
    // An end in the future means that the alert is still firing.
    let is_over = end.is_some() && (lease.is_none() || end_ms.is_some_and(|it| it <= now_ms));
    IncomingEvent {
        report: Report::new(Some(at(began)), end_ms, reporter),
        expire_ms: if is_over || lease.is_none() {
            None
        } else {
            end_ms
        },
        ..event(None, is_over.then_some(Closed), now_ms)
    }
}

/// The occurrences of one alert while its senders report it.
#[derive(Default)]
struct Alert {
    all: Vec<Occurrence>,
    opened_ms: Vec<i64>,
    /// Number of closings.
    closed: usize,
}

impl Alert {
    fn receive(&mut self, event: &IncomingEvent, now_ms: i64) {
        let arrival = Arrival {
            trace: None,
            event,
            author: None,
            chain: &[],
            now_ms,
        };
        let key = RecordId::from_parts(self.all.len() as u64, 0);
        match receive(
            self.all.last_mut(),
            &arrival,
            &SharedSettings::default(),
            key,
        ) {
            EventEffect::Opened(opened) => {
                let is_open = opened.status != Closed;
                self.all.push(*opened);
                self.opened_ms.extend(is_open.then_some(now_ms));
            }
            EventEffect::Repeated(transition) => self.closed += usize::from(transition.closed),
            EventEffect::Counted => {}
        }
    }

    /// Closes expired occurrences.
    fn review(&mut self, now_ms: i64) {
        let lifetime = SharedSettings::default();
        let newest = self.all.last_mut().filter(|it| it.status != Closed);
        let Some(newest) = newest else { return };
        if newest.review_ms <= now_ms && review(newest, now_ms, &lifetime) == Review::Expire {
            let change = StateChange {
                status: Some(Closed),
                ..StateChange::default()
            };
            let cause = Cause {
                author: None,
                reason: CloseReason::Expired,
                now_ms,
            };
            apply_change(newest, &change, cause, &lifetime);
            self.closed += 1;
        }
    }

    fn is_open(&self) -> bool {
        self.all.last().is_some_and(|it| it.status != Closed)
    }
}

/// Applies reports at each second; returns the statuses of all occurrences, and how often one was
/// opened or closed.
fn replay_reports(sender: Sender, reports: &[(i64, Said)]) -> (Vec<Status>, usize) {
    let mut alert = Alert::default();
    for (at, report) in reports {
        let now_ms = START_MS + at * 1_000;
        alert.receive(&said(sender, *report, now_ms), now_ms);
    }
    let changes = alert.opened_ms.len() + alert.closed;
    (alert.all.iter().map(|it| it.status).collect(), changes)
}

/// The case, the reports, the expected states, and the number of occurrences.
type Row<'a> = (&'a str, Vec<(i64, Said)>, &'a [Status], usize);

#[test]
fn alert_closes_when_its_last_replica_resolves() {
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
        let found = replay_reports(PROMETHEUS, &said);
        assert_eq!(found, (statuses.to_vec(), *changes), "{what}");
    }
}

#[test]
fn reports_of_one_reporter_apply_in_arrival_order() {
    for reporter in ["a", ""] {
        let fires = |at, began| (at, (reporter, began, None));
        let ends = |at, began, end| (at, (reporter, began, Some(end)));
        let table: &[Row<'_>] = &[
            (
                "it ends, fires with the same start, and ends again",
                vec![
                    fires(0, 0),
                    ends(60, 0, 60),
                    fires(61, 0),
                    ends(300, 0, 300),
                ],
                &[Closed, Closed],
                4,
            ),
            (
                "it fires again with the same start",
                vec![fires(0, 0), ends(200, 0, 200), fires(201, 0)],
                &[Closed, Open],
                3,
            ),
            (
                "its start moves ahead, as after it was started again, then it ends",
                vec![fires(0, 0), fires(60, 60), ends(120, 60, 120)],
                &[Closed],
                2,
            ),
            (
                "its start moves back, as united by an Alertmanager, then it ends",
                vec![fires(0, 0), fires(60, -15), ends(120, -15, 120)],
                &[Closed],
                2,
            ),
            (
                "only the start of its end is earlier",
                vec![fires(0, 0), ends(120, -15, 120)],
                &[Closed],
                2,
            ),
            (
                "the end of an earlier condition comes after this one began",
                vec![fires(0, 0), ends(1, -90, -10), fires(60, 0)],
                &[Open],
                1,
            ),
        ];
        for (what, reports, statuses, changes) in table {
            for lease in [PROMETHEUS.2, None] {
                for ahead in [-60, -20, 0, 20, 60] {
                    let sender = (reporter, ahead, lease);
                    // An earlier, longer expiry is only known for a named reporter.
                    if reporter.is_empty() && lease.is_some() && ahead > 0 {
                        continue;
                    }
                    let found = replay_reports(sender, reports);
                    let expected = (statuses.to_vec(), *changes);
                    assert_eq!(found, expected, "{what}: {sender:?}");
                }
            }
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn late_replica_report_neither_reopens_nor_closes() {
    let table: &[Row<'_>] = &[
        (
            "an Alertmanager reports the alert after the other one reported its end",
            vec![
                (0, ("a", 0, None)),
                (60, ("a", 0, Some(55))),
                (62, ("b", 0, None)),
                (209, ("b", 0, None)),
            ],
            &[Closed],
            2,
        ),
        (
            "and 2 min 30 s after its end",
            vec![
                (0, ("a", 0, None)),
                (60, ("a", 0, Some(55))),
                (210, ("b", 0, None)),
            ],
            &[Closed, Open],
            3,
        ),
        (
            "and of what began later",
            vec![
                (0, ("a", 0, None)),
                (60, ("a", 0, Some(55))),
                (100, ("b", 90, None)),
            ],
            &[Closed, Open],
            3,
        ),
        (
            "and after it reported the end as well",
            vec![
                (0, ("a", 0, None)),
                (60, ("a", 0, Some(55))),
                (61, ("b", 0, Some(55))),
                (62, ("b", 0, None)),
            ],
            &[Closed, Open],
            3,
        ),
        (
            "the other one reports the end alone",
            vec![(0, ("a", 0, None)), (60, ("b", 0, Some(55)))],
            &[Closed],
            2,
        ),
        (
            "it reports the same end after the alert fires again",
            vec![
                (0, ("a", 0, None)),
                (60, ("a", 0, Some(55))),
                (61, ("a", 0, None)),
                (62, ("b", 0, Some(55))),
            ],
            &[Closed, Open],
            3,
        ),
        (
            "it reports a later end after the alert fires again",
            vec![
                (0, ("a", 0, None)),
                (60, ("a", 0, Some(55))),
                (61, ("a", 0, None)),
                (120, ("b", 0, Some(115))),
            ],
            &[Closed, Closed],
            4,
        ),
    ];
    for (what, reports, statuses, changes) in table {
        let found = replay_reports(ALERTMANAGER, reports);
        assert_eq!(found, (statuses.to_vec(), *changes), "{what}");
    }
}

#[test]
fn update_never_opens_an_occurrence() {
    let mut update = event(None, None, START_MS + 2);
    update.report.is_update = true;
    let opened = event(None, None, START_MS);
    let closed = event(None, Some(Closed), START_MS + 1);
    for (events, statuses) in [
        (vec![opened.clone(), update.clone()], &[Open][..]),
        (vec![opened, closed, update.clone()], &[Closed]),
        (vec![update], &[Closed]),
    ] {
        let all = feed(&events);
        let found: Vec<_> = all.iter().map(|it| it.status).collect();
        assert_eq!(found, statuses);
        assert_eq!(all[0].summary, format!("at {}", START_MS + 2));
    }
}

#[test]
fn closing_by_operator_or_expiry_does_not_end_a_report() {
    for reason in [
        CloseReason::Operator,
        CloseReason::Expired,
        CloseReason::Aged,
    ] {
        let mut first = event(None, None, START_MS);
        first.report = Report::new(Some(START_MS - 5), None, "a");
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
        let lifetime = SharedSettings::default();
        apply_change(&mut all[0], &change, cause, &lifetime);
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
        assert!(matches!(received, EventEffect::Opened(_)), "{reason:?}");
    }
}
