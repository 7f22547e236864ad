//! A rule with a delay notifies of events that last that long.

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
    vec![told("page", "hook", false)]
}

fn waits(life: &Life) -> &[Pending] {
    &life.occurrence.as_ref().unwrap().pending
}

#[test]
fn what_is_closed_within_the_delay_is_never_told_of_and_what_lasts_is_when_it_has_passed() {
    let mut life = Life::under(vec![patient()]);
    assert!(life.event(|_| {}).is_empty());
    assert_eq!(waits(&life)[0].due_ms(), Some(START_MS + 5 * MINUTE_MS));
    life.wait(299);
    assert!(life.look().is_empty());
    assert!(life.event(close).is_empty());
    life.wait(1);
    assert!(life.look().is_empty());
    life.wait(1);
    assert!(
        life.event(|_| {}).is_empty(),
        "the next occurrence waits anew"
    );
    life.wait(299);
    assert!(life.event(|_| {}).is_empty());
    life.wait(1);
    assert_eq!(life.look(), opening());
    assert!(waits(&life).is_empty());
    life.wait(1);
    assert_eq!(
        life.event(close),
        [told("page", "hook", true)],
        "a closing waits for nothing"
    );
}

#[test]
fn an_event_that_comes_when_the_delay_has_passed_needs_no_look() {
    let mut life = Life::under(vec![patient()]);
    life.event(|_| {});
    life.wait(300);
    assert_eq!(life.event(|_| {}), opening());
}

#[test]
fn a_moment_without_a_match_starts_the_delay_anew() {
    let mut life = Life::under(vec![patient()]);
    life.event(|_| {});
    life.wait(200);
    life.event(|it| it.severity = Some(Severity::Info));
    assert!(waits(&life).is_empty());
    life.event(|it| it.severity = Some(Severity::Error));
    life.wait(299);
    assert!(life.look().is_empty());
    life.wait(1);
    assert_eq!(life.look(), opening());
}

#[test]
fn an_edited_delay_counts_from_the_first_match() {
    let mut life = Life::under(vec![patient()]);
    life.event(|_| {});
    life.wait(180);
    life.rules[0].delay_ms = MINUTE_MS;
    assert_eq!(life.look(), opening());
    life.wait(1);
    life.event(close);
    life.rules[0].delay_ms = MINUTE_MS;
    life.wait(1);
    life.event(|_| {});
    life.rules[0].delay_ms = 0;
    assert_eq!(life.look(), opening(), "without a delay nothing waits");
}

#[test]
fn repeats_and_updates_know_no_delay() {
    let mut life = Life::under(vec![Rule {
        repeat: true,
        repeat_interval_seconds: 10,
        ..patient()
    }]);
    life.event(|_| {});
    life.wait(300);
    assert_eq!(life.look(), opening());
    life.wait(10);
    assert_eq!(life.event(|_| {}), opening());
    life.wait(1);
    let rises = life.event(|it| it.severity = Some(Severity::Critical));
    assert_eq!(rises, [told("page", "hook", true)]);
}

#[test]
fn a_delay_and_a_silence_are_asked_each_time_and_both_have_to_end() {
    let mut life = Life::under(vec![patient()]);
    life.silences = vec![held::silence()];
    life.event(|_| {});
    let kinds: Vec<_> = waits(&life)[0]
        .held_by
        .iter()
        .map(|it| it.kind.word())
        .collect();
    assert_eq!(kinds, ["silence", "delay"]);
    life.wait(400);
    assert!(life.look().is_empty());
    let kinds: Vec<_> = waits(&life)[0]
        .held_by
        .iter()
        .map(|it| it.kind.word())
        .collect();
    assert_eq!(kinds, ["silence"]);
    life.silences.clear();
    assert_eq!(life.look(), opening(), "the delay passed meanwhile");
}
