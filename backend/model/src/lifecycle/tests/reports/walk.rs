//! Random walks of an alert reported by a pair of Prometheus servers and a pair of Alertmanagers.
//!
//! `BELLWETHER_TEST_REPORTS` sets the number of walks, and `BELLWETHER_TEST_SEED` the first seed.

use super::*;
use crate::testing::walks::walk_length;

const SECOND_MS: i64 = 1_000;
const WALK: i64 = 4 * 3_600;
/// Time for which Prometheus repeats an end, and the interval of its reports, in seconds.
const REPEATED: i64 = 900;
const RESEND: i64 = 60;

/// Time after which all reports of an alert have expired, in seconds: reports last 4 min by a clock
/// that may be 1 min ahead, and take time to arrive.
const SETTLED: i64 = 400;

struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn of(&mut self, range: std::ops::RangeInclusive<i64>) -> i64 {
        let width = range.end().abs_diff(*range.start()) + 1;
        let above = i64::try_from(self.next() % width).unwrap();
        range.start() + above
    }

    fn one_in(&mut self, count: i64) -> bool {
        self.of(1..=count) == 1
    }
}

/// An alert as seen by a Prometheus or an Alertmanager, with times in seconds of its clock.
#[derive(Clone, Copy, Default)]
struct LastReport {
    began: Option<i64>,
    end: Option<i64>,
}

/// A Prometheus, which evaluates every 15 s.
struct Prometheus {
    ahead: i64,
    phase: i64,
    known: LastReport,
    sent: i64,
    down_until: i64,
}

impl Prometheus {
    fn new(chance: &mut Chance) -> Self {
        Self {
            ahead: chance.of(-60..=60),
            phase: chance.of(0..=14),
            known: LastReport::default(),
            sent: i64::MIN / 2,
            down_until: 0,
        }
    }

    /// Evaluates the alert, and returns the message to send.
    fn report(&mut self, now: i64, is_true: bool) -> Option<LastReport> {
        if now < self.down_until || now % 15 != self.phase {
            return None;
        }
        let own = now + self.ahead;
        let is_firing = self.known.began.is_some() && self.known.end.is_none();
        let mut is_news = false;
        if is_true && !is_firing {
            self.known = LastReport {
                began: Some(own),
                end: None,
            };
            is_news = true;
        } else if !is_true && is_firing {
            self.known.end = Some(own);
            is_news = true;
        }
        self.known.began?;
        let is_repeated = self.known.end.is_none_or(|it| own - it < REPEATED);
        let is_due = is_news || now - self.sent >= RESEND;
        if !(is_repeated && is_due) {
            return None;
        }
        self.sent = now;
        Some(self.known)
    }
}

/// An Alertmanager, which merges the alerts that it receives and reports changes every 30 s.
struct Alertmanager {
    name: &'static str,
    phase: i64,
    /// The beginning and expiry of the alert from each Prometheus.
    known: [Option<(i64, i64)>; 2],
    /// The beginning of the alert, if this Alertmanager has reported the alert.
    began: Option<i64>,
    /// Reports of this sender in flight, by time of arrival.
    sent: Vec<(i64, Said)>,
}

impl Alertmanager {
    fn new(name: &'static str, chance: &mut Chance) -> Self {
        Self {
            name,
            phase: chance.of(0..=29),
            known: [None; 2],
            began: None,
            sent: Vec::new(),
        }
    }

    fn take(&mut self, from: usize, report: LastReport, lasts_until: i64) {
        let began = report.began.unwrap_or_default();
        self.known[from] = Some((began, report.end.unwrap_or(lasts_until)));
    }

    fn flush(&mut self, now: i64, chance: &mut Chance) {
        let known = || self.known.iter().flatten();
        let firing = known().filter(|(_, until)| *until > now);
        let firing = firing.map(|(began, _)| *began).min();
        if now % 30 != self.phase || firing.is_some() == self.began.is_some() {
            return;
        }
        let began = firing.or(self.began).unwrap_or_default();
        let until = known().map(|(_, until)| *until).max();
        let end = until.filter(|_| firing.is_none());
        self.began = firing;
        let last = self.sent.last().map_or(0, |(at, _)| *at);
        let at = last.max(now + chance.of(0..=20));
        self.sent.push((at, (self.name, began, end)));
    }
}

#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
struct WalkOptions {
    by_prometheus: bool,
    by_alertmanager: bool,
    /// Whether senders restart and lose their state.
    restarts: bool,
    losses: bool,
}

/// Returns the spans in which the condition of the alert is true, in seconds.
fn spans(chance: &mut Chance) -> Vec<(i64, i64)> {
    let mut spans = Vec::new();
    let mut at = chance.of(60..=300);
    while at < WALK - 3_600 {
        let end = at + chance.of(300..=2_400);
        spans.push((at, end));
        at = end + chance.of(SETTLED + 30..=2_400);
    }
    spans
}

#[expect(
    clippy::too_many_lines,
    reason = "a walk with the checks after each step"
)]
fn walk(seed: u64, way: WalkOptions) {
    let chance = &mut Chance(seed);
    let spans = spans(chance);
    let mut pair = [Prometheus::new(chance), Prometheus::new(chance)];
    let mut alertmanagers = [
        Alertmanager::new("am-a", chance),
        Alertmanager::new("am-b", chance),
    ];
    let mut alert = Alert::default();
    let mut interruptions = 0;
    for now in 0..WALK {
        let now_ms = START_MS + now * SECOND_MS;
        let is_true = spans
            .iter()
            .any(|(start, end)| (*start..*end).contains(&now));
        alert.review(now_ms);
        for (at, name) in ["a", "b"].into_iter().enumerate() {
            let one = &mut pair[at];
            if way.restarts && chance.one_in(3_000) {
                one.known = LastReport::default();
                one.down_until = now + chance.of(0..=120);
                interruptions += 1;
            }
            let Some(report) = one.report(now, is_true) else {
                continue;
            };
            let ahead = one.ahead;
            for to in &mut alertmanagers {
                if way.losses && chance.one_in(5) {
                    interruptions += 1;
                } else {
                    to.take(at, report, now + ahead + 240);
                }
            }
            if way.by_prometheus {
                if way.losses && chance.one_in(5) {
                    interruptions += 1;
                    continue;
                }
                let began = report.began.unwrap_or_default() - ahead;
                let end = report.end.map(|it| it - ahead);
                let sender = (name, ahead, Some(240));
                alert.receive(&reported_event(sender, (name, began, end), now_ms), now_ms);
            }
        }
        for one in &mut alertmanagers {
            one.flush(now, chance);
            let arrived = one.sent.iter().take_while(|(at, _)| *at <= now).count();
            for (_, report) in one.sent.drain(..arrived) {
                if way.by_alertmanager {
                    let sender = (one.name, 0, None);
                    alert.receive(&reported_event(sender, report, now_ms), now_ms);
                }
            }
        }
        let context = || format!("seed {seed}, {way:?}, at {now} s: {spans:?}");
        let is_settled = |is_in: bool| {
            let mut all = spans.iter();
            if is_in {
                all.any(|(start, end)| (*start + 180..*end).contains(&now))
            } else {
                all.all(|(start, end)| now < *start || now > *end + SETTLED)
            }
        };
        if !way.losses && !way.restarts && is_settled(true) {
            assert!(alert.is_open(), "an opening was missed: {}", context());
        }
        if is_settled(false) {
            assert!(
                !alert.is_open(),
                "it stays open after its end: {}",
                context()
            );
        }
    }
    let opened = alert.opened_ms.iter().map(|it| (it - START_MS) / SECOND_MS);
    let opened: Vec<_> = opened.collect();
    for (start, end) in &spans {
        let count = opened
            .iter()
            .filter(|at| (*start..=*end + SETTLED).contains(*at))
            .count();
        let context = format!("seed {seed}, {way:?}: {start}..{end} in {opened:?}");
        assert!(count > 0, "an opening was missed: {context}");
        if !way.losses && !way.restarts {
            assert_eq!(count, 1, "an opening was notified twice: {context}");
        }
    }
    assert!(
        opened.len() <= spans.len() + interruptions,
        "seed {seed}, {way:?}: {opened:?}"
    );
}

#[test]
fn alert_from_redundant_pairs_opens_once_and_closes() {
    let first = walk_length("BELLWETHER_TEST_SEED");
    let flags = [false, true];
    for seed in first..first + walk_length("BELLWETHER_TEST_REPORTS") {
        for (by_prometheus, by_alertmanager) in [(true, false), (false, true), (true, true)] {
            for restarts in flags {
                for losses in flags {
                    let way = WalkOptions {
                        by_prometheus,
                        by_alertmanager,
                        restarts,
                        losses,
                    };
                    walk(seed, way);
                }
            }
        }
    }
}
