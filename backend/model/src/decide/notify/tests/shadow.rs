//! A shadow rule decides and records, but makes no closing message due.

use super::*;
use crate::domain::DeliveryState::{Pending, Shadowed};

fn shadow(is_shadow: bool) -> Rule {
    Rule {
        shadow: is_shadow,
        ..with_updates()
    }
}

fn delivery_states(life: &Life) -> Vec<DeliveryState> {
    life.sent.iter().map(|it| it.state).collect()
}

fn pending(life: &Life) -> DeliveryState {
    Pending {
        due_ms: life.now_ms,
    }
}

#[test]
fn shadow_rule_records_deliveries_without_sending() {
    let mut life = Life::under(vec![shadow(true)]);
    assert_eq!(life.event(|_| {}), [notification("page", "hook", false)]);
    assert_eq!(delivery_states(&life), [Shadowed]);
    assert_eq!(life.sent[0].end_ms, Some(START_MS));
    life.wait(1);
    assert!(life.event(|_| {}).is_empty(), "once for an occurrence");
    life.event(|it| it.severity = Some(Severity::Critical));
    assert_eq!(delivery_states(&life), [Shadowed]);
    assert_eq!(life.event(close), [notification("page", "hook", true)]);
    assert_eq!(delivery_states(&life), [Shadowed]);
}

#[test]
fn rule_leaving_shadow_notifies_at_the_next_match() {
    let mut life = Life::under(vec![shadow(true)]);
    life.event(|_| {});
    life.rules = vec![shadow(false)];
    life.wait(1);
    assert!(life.review().is_empty(), "an edit alone notifies no one");
    assert_eq!(life.event(|_| {}), [notification("page", "hook", false)]);
    assert_eq!(delivery_states(&life), [pending(&life)]);
    assert_eq!(life.event(close), [notification("page", "hook", true)]);
    assert_eq!(delivery_states(&life), [pending(&life)]);
}

#[test]
fn shadow_opening_gets_no_closing() {
    for rules in [vec![shadow(false)], Vec::new()] {
        let mut life = Life::under(vec![shadow(true)]);
        life.event(|_| {});
        life.rules = rules;
        life.wait(1);
        assert!(life.event(close).is_empty());
    }
}

#[test]
fn rule_switched_to_shadow_sends_only_outstanding_closings() {
    let mut life = Life::under(vec![Rule {
        repeat: true,
        repeat_interval_seconds: 0,
        ..shadow(false)
    }]);
    life.event(|_| {});
    life.rules[0].shadow = true;
    life.rules[0].destination_names.push(samples::name("mail"));
    life.wait(1);
    let both = [
        notification("page", "hook", false),
        notification("page", "mail", false),
    ];
    assert_eq!(life.event(|_| {}), both);
    assert_eq!(delivery_states(&life), [Shadowed, Shadowed]);
    life.event(|it| it.severity = Some(Severity::Critical));
    assert!(delivery_states(&life).iter().all(|it| *it == Shadowed));
    life.wait(1);
    assert_eq!(
        life.event(close),
        [notification("page", "hook", true)],
        "a receiver of dry runs is owed nothing"
    );
    assert_eq!(delivery_states(&life), [pending(&life)]);
    life.wait(1);
    life.status(Status::Open);
    assert!(delivery_states(&life).iter().all(|it| *it == Shadowed));
    life.wait(1);
    life.event(close);
    assert!(
        delivery_states(&life).iter().all(|it| *it == Shadowed),
        "the reopening was not notified"
    );
}

#[test]
fn held_shadow_delivery_is_recorded_when_hold_ends() {
    let mut life = Life::under(vec![Rule {
        delay_ms: 60_000,
        ..shadow(true)
    }]);
    assert!(life.event(|_| {}).is_empty());
    life.wait(60);
    assert_eq!(life.review(), [notification("page", "hook", false)]);
    assert_eq!(delivery_states(&life), [Shadowed]);
}
