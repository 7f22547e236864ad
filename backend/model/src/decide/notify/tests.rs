//! Tests of the notifications that a step causes.

mod delay;
mod flapping;
mod held;
mod model;
mod shadow;

use std::sync::Arc;

use super::*;
use crate::{
    decide::{
        LoadedTrigger, NO_ENRICHMENTS, PastDefinitions, Silences, Transition, hand_over_flapping,
    },
    domain::{
        CloseReason, IncomingEvent, Pending, RevisedResource, Revision, Rule, Severity,
        SharedSettings,
    },
    lifecycle::{Arrival, Cause, EventEffect, StateChange, apply_change, apply_event},
    limits::CHAIN_MAX,
    matching::compile,
    samples::plain::{self as samples, DISK_TRIGGER, START_MS, rule},
};

/// The history of an occurrence under rules that may be edited.
struct Life {
    rules: Vec<Rule>,
    occurrence: Option<Occurrence>,
    /// Earlier occurrences, oldest first.
    earlier: Vec<Occurrence>,
    now_ms: i64,
    last_id: u128,
    stopped: usize,
    past: PastDefinitions,
    sent: Vec<Delivery>,
    silences: Vec<Arc<LoadedSilence>>,
}

/// A notification as compared in tests: rule, destination, clear.
type Sent = (String, String, bool);

fn notification(rule: &str, destination: &str, clear: bool) -> Sent {
    (rule.into(), destination.into(), clear)
}

impl Life {
    fn under(rules: Vec<Rule>) -> Self {
        Self {
            rules,
            occurrence: None,
            earlier: Vec::new(),
            now_ms: START_MS,
            last_id: 0,
            stopped: 0,
            past: PastDefinitions::default(),
            sent: Vec::new(),
            silences: Vec::new(),
        }
    }

    fn snapshot(&self) -> Snapshot {
        let triggers = [DISK_TRIGGER, "everything", "closed", "nothing"].map(|of| {
            let trigger = samples::trigger(of);
            let query = compile(&trigger.query).ok();
            (
                trigger.name.clone(),
                Arc::new(LoadedTrigger { trigger, query }),
            )
        });
        let destinations = ["hook", "mail", "event"].map(|of| {
            let destination = samples::destination(of);
            (destination.name.clone(), Arc::new(destination))
        });
        let snapshot = Snapshot::new(
            BTreeMap::from(triggers),
            self.rules.iter().cloned().map(Arc::new).collect(),
            BTreeMap::from(destinations),
            None,
        );
        snapshot.with_silences(Arc::new(Silences::new(self.silences.clone())))
    }

    fn event(&mut self, change: impl FnOnce(&mut IncomingEvent)) -> Vec<Sent> {
        self.event_after(&[], change)
    }

    fn event_after(
        &mut self,
        chain: &[RecordId],
        change: impl FnOnce(&mut IncomingEvent),
    ) -> Vec<Sent> {
        let mut event = samples::event("a");
        event.timestamp_ms = self.now_ms;
        change(&mut event);
        let arrival = Arrival {
            enrichments: &NO_ENRICHMENTS,
            trace: None,
            event: &event,
            author: None,
            chain,
            now_ms: self.now_ms,
        };
        let lifetime = SharedSettings::default();
        let key = samples::id("occurrence");
        let (occurrence, transition) =
            match apply_event(self.occurrence.as_mut(), &arrival, &lifetime, key) {
                EventEffect::Opened(mut opened) => {
                    if let Some(mut before) = self.occurrence.take() {
                        hand_over_flapping(&mut before, &mut opened, &self.snapshot(), self.now_ms);
                        self.earlier.push(before);
                    }
                    (*opened, Transition::default())
                }
                EventEffect::Repeated(transition) => (self.occurrence.take().unwrap(), transition),
                EventEffect::Counted => return Vec::new(),
            };
        self.step(StepKind::Event, occurrence, transition)
    }

    fn alter(&mut self, change: &StateChange) -> Vec<Sent> {
        let mut occurrence = self.occurrence.take().unwrap();
        let before = occurrence.clone();
        let cause = Cause {
            author: None,
            reason: CloseReason::Operator,
            now_ms: self.now_ms,
        };
        let transition = apply_change(&mut occurrence, change, cause, &SharedSettings::default());
        if occurrence == before {
            self.occurrence = Some(occurrence);
            return Vec::new();
        }
        self.step(StepKind::Change, occurrence, transition)
    }

    fn status(&mut self, status: Status) -> Vec<Sent> {
        self.alter(&StateChange {
            status: Some(status),
            ..StateChange::default()
        })
    }

    fn review(&mut self) -> Vec<Sent> {
        let Some(occurrence) = self.occurrence.take() else {
            return Vec::new();
        };
        self.step(StepKind::Check, occurrence, Transition::default())
    }

    fn step(
        &mut self,
        kind: StepKind,
        mut occurrence: Occurrence,
        transition: Transition,
    ) -> Vec<Sent> {
        let snapshot = self.snapshot();
        let matches = snapshot.matching_triggers(&occurrence);
        let step = Step {
            kind,
            transition,
            matches: &matches,
            now_ms: self.now_ms,
            past: &self.past,
        };
        let mut new_id = || {
            self.last_id += 1;
            RecordId::from_parts(1, self.last_id)
        };
        let notices = notify(&mut occurrence, &step, &snapshot, &mut new_id);
        self.stopped += notices.stopped.len();
        self.occurrence = Some(occurrence);
        self.sent.clone_from(&notices.deliveries);
        let deliveries = notices.deliveries.into_iter();
        let to_sent = |it: Delivery| {
            notification(
                &it.content.rule.name,
                &it.destination_name,
                it.content.clear,
            )
        };
        deliveries.map(to_sent).collect()
    }

    fn wait(&mut self, seconds: i64) {
        self.now_ms += seconds * 1000;
    }
}

fn with_updates() -> Rule {
    Rule {
        send_updates: true,
        ..rule("page", &[DISK_TRIGGER], &["hook"])
    }
}

fn close(event: &mut IncomingEvent) {
    event.status = Some(Status::Closed);
}

#[test]
fn matching_rule_notifies_each_destination_once_per_occurrence() {
    let mut life = Life::under(vec![rule(
        "page",
        &["nothing", DISK_TRIGGER],
        &["hook", "mail"],
    )]);
    let both = vec![
        notification("page", "hook", false),
        notification("page", "mail", false),
    ];
    assert_eq!(life.event(|_| {}), both);
    life.wait(100_000);
    assert!(life.event(|_| {}).is_empty());
    assert!(life.event(close).is_empty());
    life.wait(1);
    assert_eq!(life.event(|_| {}), both, "the next occurrence");
}

#[test]
fn rule_repeats_after_its_interval() {
    let mut repeating = rule("page", &[DISK_TRIGGER], &["hook"]);
    repeating.repeat = true;
    repeating.repeat_interval_seconds = 60;
    let mut life = Life::under(vec![repeating]);
    let sent: Vec<_> = [0, 59, 1, 1, 59]
        .map(|seconds| {
            life.wait(seconds);
            life.event(|_| {}).len()
        })
        .into();
    assert_eq!(sent, [1, 0, 1, 0, 1]);
    life.rules[0].repeat_interval_seconds = 0;
    assert_eq!(life.event(|_| {}).len(), 1);
    assert_eq!(life.event(|_| {}).len(), 1, "zero means every match");
}

#[test]
fn suppressed_occurrence_sends_no_opening_until_open() {
    let mut life = Life::under(vec![with_updates()]);
    assert!(
        life.event(|it| it.status = Some(Status::Suppressed))
            .is_empty()
    );
    assert!(life.event(|_| {}).is_empty());
    let opened = life.event(|it| it.status = Some(Status::Open));
    assert_eq!(opened, [notification("page", "hook", false)]);
    assert!(life.status(Status::Suppressed).is_empty());
    assert!(
        life.event(|it| it.severity = Some(Severity::Critical))
            .is_empty()
    );
    let closed = life.event(close);
    assert_eq!(
        closed,
        [notification("page", "hook", true)],
        "the obligation holds"
    );
}

#[test]
fn closing_a_suppressed_occurrence_notifies_nobody() {
    let mut life = Life::under(vec![rule("page", &["everything", "closed"], &["hook"])]);
    life.event(|it| it.status = Some(Status::Suppressed));
    for _ in 0..3 {
        assert!(life.event(close).is_empty());
        life.wait(1);
    }
    let opened = life.status(Status::Open);
    assert_eq!(
        opened,
        [notification("page", "hook", false)],
        "it was reopened"
    );
}

#[test]
fn receivers_of_a_closing_get_reopening_and_next_closing() {
    let once = rule("once", &["everything"], &["mail"]);
    let mut life = Life::under(vec![with_updates(), once]);
    life.event(|_| {});
    for round in 0..3 {
        let closed = [notification("page", "hook", true)];
        assert_eq!(life.status(Status::Closed), closed, "round {round}");
        life.rules[0].trigger_names = vec![samples::name("nothing")];
        assert!(life.status(Status::Suppressed).is_empty(), "round {round}");
        let opened = [notification("page", "hook", false)];
        assert_eq!(life.status(Status::Open), opened, "round {round}");
    }
    life.rules.clear();
    assert_eq!(life.event(close), [notification("page", "hook", true)]);
}

#[test]
fn current_rule_decides_whether_a_closing_is_sent() {
    let mut life = Life::under(vec![rule("page", &[DISK_TRIGGER], &["hook"])]);
    life.event(|_| {});
    life.rules[0].send_updates = true;
    assert_eq!(
        life.event(close),
        [notification("page", "hook", true)],
        "since on"
    );
    life.wait(1);
    life.event(|_| {});
    life.past.add(Revision {
        was: RevisedResource::Rule(Rule {
            send_updates: false,
            ..life.rules.remove(0)
        }),
        until_ms: life.now_ms,
        deleted: true,
    });
    assert!(life.event(close).is_empty(), "off when it was deleted");
}

#[test]
fn late_event_only_increments_the_count() {
    let mut repeating = rule("page", &["everything"], &["hook"]);
    repeating.repeat = true;
    repeating.repeat_interval_seconds = 0;
    let mut life = Life::under(vec![repeating]);
    life.event(|_| {});
    let before = life.occurrence.clone().unwrap();
    life.wait(5);
    assert!(life.event(|it| it.timestamp_ms -= 6_000).is_empty());
    let after = life.occurrence.clone().unwrap();
    let counted = Occurrence { count: 2, ..before };
    assert_eq!(after, counted);
}

#[test]
fn updates_are_sent_for_severity_acknowledgement_and_closing() {
    let mut life = Life::under(vec![with_updates()]);
    life.event(|_| {});
    let again = [notification("page", "hook", true)];
    assert_eq!(
        life.event(|it| it.severity = Some(Severity::Critical)),
        again
    );
    let acknowledge = StateChange {
        acknowledged: Some(true),
        ..StateChange::default()
    };
    assert_eq!(life.alter(&acknowledge), again);
    assert!(life.alter(&acknowledge).is_empty(), "nothing changed");
    let withdrawn = StateChange {
        acknowledged: Some(false),
        ..StateChange::default()
    };
    assert_eq!(life.alter(&withdrawn), again);
    assert_eq!(
        life.event(|it| it.severity = Some(Severity::Info)),
        again,
        "it no longer matches"
    );
    assert_eq!(life.event(close), again);
    assert!(life.event(close).is_empty(), "only once");
}

#[test]
fn message_contains_the_state_of_the_previous_message() {
    let reported = |life: &Life| {
        let content = &life.sent.last().unwrap().content;
        let previous = content.previous?;
        Some((previous.severity, previous.status))
    };
    let severity = |severity: Severity| move |it: &mut IncomingEvent| it.severity = Some(severity);
    let mut life = Life::under(vec![with_updates()]);
    life.event(severity(Severity::Error));
    assert_eq!(reported(&life), None, "the first one");
    life.event(severity(Severity::Critical));
    let error = Some((Severity::Error, Status::Open));
    assert_eq!(reported(&life), error);
    life.status(Status::Suppressed);
    life.event(severity(Severity::Info));
    life.event(severity(Severity::Error));
    life.status(Status::Open);
    let critical = Some((Severity::Critical, Status::Open));
    assert_eq!(
        reported(&life),
        critical,
        "nothing is sent while suppressed"
    );
    life.event(|it| {
        close(it);
        it.severity = Some(Severity::Error);
    });
    assert_eq!(reported(&life), error);
    life.status(Status::Open);
    let closed = Some((Severity::Error, Status::Closed));
    assert_eq!(reported(&life), closed, "reopened");
}

#[test]
fn repeat_contains_the_severity_of_the_previous_message() {
    let mut repeating = rule("page", &[DISK_TRIGGER], &["hook"]);
    repeating.repeat = true;
    repeating.repeat_interval_seconds = 60;
    let mut life = Life::under(vec![repeating]);
    let mut reported = Vec::new();
    for (wait_seconds, severity) in [
        (0, Severity::Error),
        (10, Severity::Critical),
        (60, Severity::Critical),
        (60, Severity::Critical),
        (60, Severity::Error),
    ] {
        life.wait(wait_seconds);
        if !life.event(|it| it.severity = Some(severity)).is_empty() {
            let previous = life.sent.last().unwrap().content.previous;
            reported.push(previous.map(|it| it.severity));
        }
    }
    let (error, critical) = (Some(Severity::Error), Some(Severity::Critical));
    assert_eq!(reported, [None, error, critical, critical]);
}

#[test]
fn closing_is_sent_even_if_the_rule_changed() {
    type Edit = fn(&mut Vec<Rule>);
    let edits: [(&str, Edit); 5] = [
        ("deleted", |rules| rules.clear()),
        ("disabled", |rules| rules[0].enabled = false),
        ("other triggers", |rules| {
            rules[0].trigger_names = vec![samples::name("nothing")];
        }),
        ("no triggers", |rules| rules[0].trigger_names.clear()),
        ("other destinations", |rules| {
            rules[0].destination_names = vec![samples::name("mail")];
        }),
    ];
    for (case, edit) in edits {
        let mut life = Life::under(vec![with_updates()]);
        assert_eq!(
            life.event(|_| {}),
            [notification("page", "hook", false)],
            "{case}"
        );
        edit(&mut life.rules);
        assert_eq!(
            life.event(close),
            [notification("page", "hook", true)],
            "{case}"
        );
    }
}

#[test]
fn closing_message_keeps_trigger_of_opening_message() {
    let mut life = Life::under(vec![with_updates()]);
    life.event(|_| {});
    life.rules[0].trigger_names = vec![samples::name("everything"), samples::name("closed")];
    assert_eq!(life.event(close), [notification("page", "hook", true)]);
    assert_eq!(
        life.sent[0].content.trigger,
        Some(samples::trigger(DISK_TRIGGER))
    );
    life.wait(1);
    life.event(|_| {});
    life.event(close);
    let trigger = life.sent[0].content.trigger.as_ref().unwrap();
    assert_eq!(trigger.name.as_str(), "everything", "the next occurrence");
}

#[test]
fn closing_message_shows_deleted_rule_and_trigger() {
    let mut rule = with_updates();
    rule.message = "as it was".into();
    rule.revision = 7;
    rule.trigger_names = vec![samples::name("everything")];
    let mut life = Life::under(vec![rule.clone()]);
    life.event(|_| {});
    let opening = life.occurrence.as_mut().unwrap().notified[0]
        .opening
        .as_mut();
    // The trigger in force differs from that of the opening message.
    opening.unwrap().trigger.revision = 3;
    let mut trigger = samples::trigger("everything");
    trigger.revision = 3;
    trigger.description = "as it was".into();
    for was in [
        RevisedResource::Rule(rule),
        RevisedResource::Trigger(trigger.clone()),
    ] {
        life.past.add(Revision {
            was,
            until_ms: START_MS,
            deleted: true,
        });
    }
    life.rules.clear();
    assert_eq!(life.event(close), [notification("page", "hook", true)]);
    assert_eq!(life.sent[0].content.rule.message, "as it was");
    assert_eq!(life.sent[0].content.trigger, Some(trigger));
}

#[test]
fn rules_are_evaluated_on_every_change() {
    let closes = rule("closes", &["closed"], &["mail"]);
    let mut late = rule("late", &["everything"], &["hook"]);
    late.enabled = false;
    let mut life = Life::under(vec![closes, late]);
    assert!(life.event(|_| {}).is_empty());
    life.rules[1].enabled = true;
    let acknowledge = StateChange {
        acknowledged: Some(true),
        ..StateChange::default()
    };
    assert_eq!(
        life.alter(&acknowledge),
        [notification("late", "hook", false)]
    );
    assert_eq!(
        life.status(Status::Closed),
        [notification("closes", "mail", true)]
    );
}

#[test]
fn acknowledgement_neither_repeats_nor_notifies_after_closing() {
    let acknowledge = |flag| StateChange {
        acknowledged: Some(flag),
        ..StateChange::default()
    };
    for interval in [0, 60] {
        let repeating = Rule {
            repeat: true,
            repeat_interval_seconds: interval,
            ..rule("page", &["everything", "closed"], &["hook"])
        };
        let mut late = rule("late", &["closed"], &["mail"]);
        late.enabled = false;
        let mut life = Life::under(vec![repeating, late]);
        assert_eq!(life.event(|_| {}).len(), 1);
        life.wait(100);
        assert!(life.alter(&acknowledge(true)).is_empty(), "{interval}");
        life.status(Status::Closed);
        life.wait(100);
        life.rules[1].enabled = true;
        for flag in [false, true] {
            assert!(life.alter(&acknowledge(flag)).is_empty(), "{interval}");
        }
        assert_eq!(life.status(Status::Open).len(), 0, "{interval}");
    }
}

#[test]
fn closed_events_match_only_triggers_on_status() {
    let all = rule("all", &["everything"], &["hook"]);
    let mut life = Life::under(vec![rule("closes", &["closed"], &["mail"]), all]);
    assert_eq!(life.event(close), [notification("closes", "mail", true)]);
    assert!(life.event(close).is_empty(), "once");
}

#[test]
fn loop_guard_stops_an_event_that_returns_to_a_rule() {
    let mut life = Life::under(vec![rule("page", &[DISK_TRIGGER], &["event", "hook"])]);
    let first = life.event_after(&[samples::id("page")], |_| {});
    assert_eq!(first, [notification("page", "hook", false)]);
    assert_eq!(life.stopped, 1);
    let mut other = Life::under(vec![rule("page", &[DISK_TRIGGER], &["event"])]);
    assert_eq!(other.event_after(&[samples::id("other")], |_| {}).len(), 1);
    let mut long = Life::under(vec![rule("page", &[DISK_TRIGGER], &["event"])]);
    assert!(
        long.event_after(&[samples::id("other"); CHAIN_MAX], |_| {})
            .is_empty()
    );
}

#[test]
fn recreated_rule_sends_one_closing_per_receiver() {
    // Destinations of the first and second definition, and the receivers of the closing message.
    let table: [(&[&str], &[&str], &[&str]); 3] = [
        (&["hook"], &["hook"], &["hook"]),
        (&["hook", "mail"], &["hook"], &["mail", "hook"]),
        (&["mail"], &["hook"], &["mail", "hook"]),
    ];
    for (first, second, closed) in table {
        let defined = |id: &str, destinations: &[&str]| Rule {
            id: samples::id(id),
            send_updates: true,
            ..rule("page", &[DISK_TRIGGER], destinations)
        };
        let mut life = Life::under(vec![defined("one", first)]);
        assert_eq!(life.event(|_| {}).len(), first.len());
        life.rules = vec![defined("two", second)];
        life.wait(1);
        assert_eq!(life.event(|_| {}).len(), second.len());
        let sent = life.event(close);
        let expected: Vec<_> = closed
            .iter()
            .map(|it| notification("page", it, true))
            .collect();
        assert_eq!(sent, expected);
    }
    // Rules with other names are independent.
    let named = |name: &str| Rule {
        send_updates: true,
        ..rule(name, &[DISK_TRIGGER], &["hook"])
    };
    let mut life = Life::under(vec![named("one"), named("two")]);
    life.event(|_| {});
    life.rules.remove(0);
    assert_eq!(life.event(close).len(), 2);
}
