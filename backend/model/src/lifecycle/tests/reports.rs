//! Tests of alerts that a sender and its replicas report repeatedly.

mod walk;

use super::*;

/// A report: the reporter, the beginning of the alert, and its end; `None` while it is firing.
type Said = (&'static str, i64, Option<i64>);

/// A reporter, the seconds by which its clock is ahead, and the seconds for which its report of a
/// firing alert is valid; `None` if it does not repeat its reports.
type Sender = (&'static str, i64, Option<i64>);

const PROMETHEUS: Sender = ("", 0, Some(240));
const ALERTMANAGER: Sender = ("", 0, None);

/// Returns the event that a sender creates for an alert at a time by the service's clock.
fn reported_event(
    (_, ahead, lease): Sender,
    (reporter, began, end): Said,
    now_ms: i64,
) -> IncomingEvent {
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
            enrichments: &NO_ENRICHMENTS,
            trace: None,
            event,
            author: None,
            chain: &[],
            now_ms,
        };
        let key = RecordId::from_parts(self.all.len() as u64, 0);
        match apply_event(
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
        if newest.review_ms <= now_ms
            && review_occurrence(newest, now_ms, &lifetime) == Review::Expire
        {
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

/// Applies each report at its second. Returns the statuses of all occurrences, and the number of
/// openings and closings.
fn replay_reports(sender: Sender, reports: &[(i64, Said)]) -> (Vec<Status>, usize) {
    let mut alert = Alert::default();
    for (at, report) in reports {
        let now_ms = START_MS + at * 1_000;
        alert.receive(&reported_event(sender, *report, now_ms), now_ms);
    }
    let changes = alert.opened_ms.len() + alert.closed;
    (alert.all.iter().map(|it| it.status).collect(), changes)
}

/// The case, the reports, the expected statuses, and the number of openings and closings.
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
                    // An earlier and longer expiry is known only if the reporter has a name.
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
            enrichments: &NO_ENRICHMENTS,
            trace: None,
            event: &first,
            author: None,
            chain: &[],
            now_ms: START_MS + 2,
        };
        let received = apply_event(
            all.last_mut(),
            &arrival,
            &lifetime,
            RecordId::from_parts(1, 0),
        );
        assert!(matches!(received, EventEffect::Opened(_)), "{reason:?}");
    }
}
