//! A flapping event is reported once, and again when it has settled.

use super::*;
use crate::domain::{FlappingLimits, HoldOutcome};

fn calm() -> Rule {
    Rule {
        flapping: Some(FlappingLimits {
            open_count: 5,
            window_ms: 3_600_000,
            settle_ms: 900_000,
        }),
        ..with_updates()
    }
}

impl Life {
    /// Returns for each message the displayed occurrence, whether it is flapping, and `clear`.
    fn messages(&self) -> Vec<(u32, bool, bool)> {
        let all = self.sent.iter().map(|it| &it.content);
        all.map(|it| {
            (
                it.displayed_occurrence().number,
                it.occurrence.is_notified_flapping(),
                it.clear,
            )
        })
        .collect()
    }

    /// Opens and closes the event `times` times, at intervals of a minute. Returns all messages.
    fn swing(&mut self, times: usize) -> Vec<(u32, bool, bool)> {
        let mut all = Vec::new();
        for _ in 0..times {
            self.event(|_| {});
            all.extend(self.messages());
            self.wait(60);
            self.event(close);
            all.extend(self.messages());
            self.wait(60);
        }
        all
    }

    /// Returns the messages after a time, and asserts that none is due a second earlier.
    fn settled(&mut self, seconds: i64) -> Vec<(u32, bool, bool)> {
        self.wait(seconds - 1);
        assert!(self.review().is_empty(), "it has not settled");
        self.wait(1);
        self.review();
        self.messages()
    }
}

/// The first four openings with their closings, and the fifth opening.
fn flapping_start() -> Vec<(u32, bool, bool)> {
    let each = |number| [(number, false, false), (number, false, true)];
    let mut all: Vec<_> = (1..5).flat_map(each).collect();
    all.push((5, true, false));
    all
}

#[test]
fn flapping_that_ends_closed_sends_one_closing_in_the_thread() {
    let mut life = Life::under(vec![calm()]);
    assert_eq!(life.swing(10), flapping_start());
    assert_eq!(life.settled(900 - 60), [(5, false, true)]);
    assert!(life.review().is_empty());
    life.wait(3_600);
    assert_eq!(life.swing(1), [(11, false, false), (11, false, true)]);
    let waits = |it: &Occurrence| !it.pending.is_empty() || !it.notified[0].cleared;
    assert!(!life.earlier.iter().any(waits), "nothing remains");
}

#[test]
fn flapping_that_ends_open_sends_one_settled_update() {
    let mut life = Life::under(vec![calm()]);
    assert_eq!(life.swing(9), flapping_start());
    life.event(|_| {});
    assert!(life.messages().is_empty());
    assert_eq!(life.settled(900), [(5, false, true)]);
    let notified = &life.sent[0].content.occurrence;
    assert_eq!((notified.status, notified.number), (Status::Open, 10));
    assert!(notified.is_notified_settled());
    life.wait(60);
    assert!(life.review().is_empty(), "once");
    assert!(life.event(|_| {}).is_empty());
    life.event(close);
    assert_eq!(life.messages(), [(5, false, true)], "the same thread ends");
}

#[test]
fn flapping_may_start_with_the_last_change() {
    let mut life = Life::under(vec![calm()]);
    life.swing(4);
    life.event(|_| {});
    assert_eq!(life.messages(), [(5, true, false)]);
    assert_eq!(life.settled(900), [(5, false, true)]);
}

#[test]
fn severity_change_while_flapping_notifies_once_immediately() {
    let mut life = Life::under(vec![calm()]);
    life.swing(5);
    life.event(|_| {});
    assert!(life.messages().is_empty());
    let critical = |it: &mut IncomingEvent| it.severity = Some(Severity::Critical);
    life.event(critical);
    assert_eq!(life.messages(), [(5, true, true)]);
    life.wait(60);
    assert!(life.event(critical).is_empty());
    assert_eq!(life.settled(900 - 60), [(5, false, true)]);
}

#[test]
fn infrequent_openings_are_not_flapping() {
    let mut life = Life::under(vec![calm()]);
    for _ in 0..12 {
        let notified = life.swing(1);
        assert_eq!(notified.len(), 2);
        assert!(!notified[0].1);
        life.wait(800);
    }
}

#[test]
fn late_events_neither_start_nor_extend_flapping() {
    let mut life = Life::under(vec![calm()]);
    life.swing(6);
    for _ in 0..5 {
        let late = life.now_ms - 3_600_000;
        assert!(life.event(|it| it.timestamp_ms = late).is_empty());
    }
    assert_eq!(life.settled(900 - 60), [(5, false, true)]);
}

#[test]
fn disabling_flapping_or_rule_sends_the_outstanding_closing() {
    let edits: [fn(&mut Rule); 2] = [|it| it.flapping = None, |it| it.enabled = false];
    for edit in edits {
        let mut life = Life::under(vec![calm()]);
        life.swing(7);
        edit(&mut life.rules[0]);
        assert_eq!(life.review().len(), 1);
        assert_eq!(life.messages(), [(5, false, true)]);
    }
}

#[test]
fn without_updates_flapping_notifies_once_until_settled() {
    let mut life = Life::under(vec![Rule {
        send_updates: false,
        ..calm()
    }]);
    let openings = [1, 2, 3, 4].map(|number| (number, false, false));
    let mut all = openings.to_vec();
    all.push((5, true, false));
    assert_eq!(life.swing(9), all);
    life.wait(3_600);
    assert!(life.review().is_empty());
    life.event(|_| {});
    assert_eq!(life.messages(), [(10, false, false)]);
}

#[test]
fn flapping_is_first_notified_by_an_opening_that_outlasts_the_delay() {
    let mut life = Life::under(vec![Rule {
        delay_ms: 90_000,
        ..calm()
    }]);
    assert!(life.swing(6).is_empty(), "each closes before the delay");
    life.event(|_| {});
    life.wait(90);
    life.review();
    assert_eq!(life.messages(), [(7, true, false)]);
    life.event(close);
    assert!(life.messages().is_empty());
    assert_eq!(life.settled(900), [(7, false, true)]);
}

#[test]
fn operator_can_end_flapping() {
    let mut life = Life::under(vec![calm()]);
    life.swing(6);
    let id = life.rules[0].id;
    let occurrence = life.occurrence.take().unwrap();
    let closed = life.step(StepKind::Release(id), occurrence, Transition::default());
    assert_eq!(closed, [notification("page", "hook", true)]);
    life.wait(3_600);
    assert!(life.review().is_empty());
}

#[test]
fn pending_notification_moves_to_the_next_occurrence() {
    let mut life = Life::under(vec![calm()]);
    life.swing(5);
    let waits = &life.occurrence.as_ref().unwrap().pending[0];
    let until_ms = life.now_ms - 60_000 + 900_000;
    assert_eq!(waits.due_ms(), Some(until_ms));
    assert!(waits.is_flapping() && !waits.is_opening);
    life.event(|_| {});
    let last = |it: &Occurrence| it.hold_changes.last().map(|it| it.what);
    assert_eq!(
        life.earlier.last().and_then(last),
        Some(HoldOutcome::HandedOver)
    );
    let waits = &life.occurrence.as_ref().unwrap().pending[0];
    assert_eq!(waits.due_ms(), Some(life.now_ms + 900_000));
}

#[test]
fn repeat_is_immediate_and_leaves_flapping_unchanged() {
    let mut life = Life::under(vec![Rule {
        repeat: true,
        repeat_interval_seconds: 60,
        ..calm()
    }]);
    life.swing(4);
    life.event(|_| {});
    life.wait(61);
    assert_eq!(life.event(|_| {}), [notification("page", "hook", false)]);
    assert_eq!(life.settled(900 - 61), [(5, false, true)]);
}
