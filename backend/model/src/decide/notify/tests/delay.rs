//! Tests that a rule with a delay notifies only about events that last that long.

use super::*;

const MINUTE_MS: i64 = 60_000;

fn patient() -> Rule {
    Rule {
        send_updates: true,
        delay_ms: 5 * MINUTE_MS,
        ..rule("page", &[DISK_TRIGGER], &["hook"])
    }
}

fn opening() -> Vec<Sent> {
    vec![notification("page", "hook", false)]
}

fn waits(life: &Life) -> &[Pending] {
    &life.occurrence.as_ref().unwrap().pending
}

#[test]
fn closing_within_the_delay_prevents_notification() {
    let mut life = Life::under(vec![patient()]);
    assert!(life.event(|_| {}).is_empty());
    assert_eq!(waits(&life)[0].due_ms(), Some(START_MS + 5 * MINUTE_MS));
    life.wait(299);
    assert!(life.review().is_empty());
    assert!(life.event(close).is_empty());
    life.wait(1);
    assert!(life.review().is_empty());
    life.wait(1);
    assert!(
        life.event(|_| {}).is_empty(),
        "the next occurrence waits again"
    );
    life.wait(299);
    assert!(life.event(|_| {}).is_empty());
    life.wait(1);
    assert_eq!(life.review(), opening());
    assert!(waits(&life).is_empty());
    life.wait(1);
    assert_eq!(
        life.event(close),
        [notification("page", "hook", true)],
        "a closing is never held"
    );
}

#[test]
fn event_after_the_delay_notifies_immediately() {
    let mut life = Life::under(vec![patient()]);
    life.event(|_| {});
    life.wait(300);
    assert_eq!(life.event(|_| {}), opening());
}

#[test]
fn interrupted_match_restarts_the_delay() {
    let mut life = Life::under(vec![patient()]);
    life.event(|_| {});
    life.wait(200);
    life.event(|it| it.severity = Some(Severity::Info));
    assert!(waits(&life).is_empty());
    life.event(|it| it.severity = Some(Severity::Error));
    life.wait(299);
    assert!(life.review().is_empty());
    life.wait(1);
    assert_eq!(life.review(), opening());
}

#[test]
fn edited_delay_counts_from_the_first_match() {
    let mut life = Life::under(vec![patient()]);
    life.event(|_| {});
    life.wait(180);
    life.rules[0].delay_ms = MINUTE_MS;
    assert_eq!(life.review(), opening());
    life.wait(1);
    life.event(close);
    life.rules[0].delay_ms = MINUTE_MS;
    life.wait(1);
    life.event(|_| {});
    life.rules[0].delay_ms = 0;
    assert_eq!(life.review(), opening(), "without a delay, nothing is held");
}

#[test]
fn repeats_and_updates_are_not_delayed() {
    let mut life = Life::under(vec![Rule {
        repeat: true,
        repeat_interval_seconds: 10,
        ..patient()
    }]);
    life.event(|_| {});
    life.wait(300);
    assert_eq!(life.review(), opening());
    life.wait(10);
    assert_eq!(life.event(|_| {}), opening());
    life.wait(1);
    let rises = life.event(|it| it.severity = Some(Severity::Critical));
    assert_eq!(rises, [notification("page", "hook", true)]);
}

#[test]
fn notification_waits_for_both_delay_and_silence() {
    let mut life = Life::under(vec![patient()]);
    life.silences = vec![held::silence()];
    life.event(|_| {});
    let kinds: Vec<_> = waits(&life)[0]
        .held_by
        .iter()
        .map(|it| it.kind.as_str())
        .collect();
    assert_eq!(kinds, ["silence", "delay"]);
    life.wait(400);
    assert!(life.review().is_empty());
    let kinds: Vec<_> = waits(&life)[0]
        .held_by
        .iter()
        .map(|it| it.kind.as_str())
        .collect();
    assert_eq!(kinds, ["silence"]);
    life.silences.clear();
    assert_eq!(life.review(), opening(), "the delay has passed meanwhile");
}
