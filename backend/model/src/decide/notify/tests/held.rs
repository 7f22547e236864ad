//! Invariants of notifications around silences: a receiver gets exactly one closing message for
//! each opening message, only closing messages during a silence, and the current state at its end.

use proptest::prelude::*;

use super::*;
use crate::domain::{HoldKind, LastNotified, Silence};

#[derive(Debug, Clone, Copy)]
enum Act {
    Event(Option<Severity>, Option<Status>),
    Acknowledge(bool),
    Status(Status),
    Wait(i64),
    /// Starts or ends a silence that covers all events.
    Silence(bool),
}

fn act() -> impl Strategy<Value = Act> {
    let severity = prop::option::of(prop::sample::select(vec![
        Severity::Info,
        Severity::Error,
        Severity::Critical,
    ]));
    let status = || prop::sample::select(Status::ALL.to_vec());
    prop_oneof![
        6 => (severity, prop::option::weighted(0.4, status())).prop_map(|(a, b)| Act::Event(a, b)),
        1 => any::<bool>().prop_map(Act::Acknowledge),
        2 => status().prop_map(Act::Status),
        2 => (1..90_i64).prop_map(Act::Wait),
        3 => any::<bool>().prop_map(Act::Silence),
    ]
}

pub(super) fn silence() -> Arc<LoadedSilence> {
    let silence = Silence {
        query: None,
        rule_names: Vec::new(),
        start_ms: 0,
        end_ms: i64::MAX,
        ..crate::samples::silence("quiet")
    };
    Arc::new(LoadedSilence::new(silence).unwrap())
}

/// State of the newest occurrence as last sent to the only receiver.
#[derive(Debug, Default)]
struct Receiver {
    number: u32,
    /// The last reported state, while the receiver considers the occurrence open.
    known: Option<(Severity, bool)>,
}

impl Receiver {
    fn take(&mut self, life: &Life, is_silent: bool) -> Result<(), TestCaseError> {
        let Some(occurrence) = &life.occurrence else {
            return Ok(());
        };
        if occurrence.number != self.number {
            prop_assert_eq!(
                self.known,
                None,
                "the receiver was sent the closing of the previous one"
            );
            self.number = occurrence.number;
        }
        prop_assert!(life.sent.len() <= 1, "one message per step");
        for delivery in &life.sent {
            let about = &delivery.content.occurrence;
            let is_over = about.status == Status::Closed;
            prop_assert!(!is_silent || is_over, "a silence holds all but closings");
            if delivery.content.clear {
                prop_assert!(self.known.is_some(), "nothing was opened for it");
            }
            let state = (about.severity, about.acknowledged);
            self.known = (!is_over).then_some(state);
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn receiver_has_the_current_state_when_a_silence_ends(
        acts in prop::collection::vec(act(), 1..40),
        repeat: bool,
    ) {
        let rule = Rule {
            send_updates: true,
            repeat,
            repeat_interval_seconds: 60,
            ..rule("page", &[DISK_TRIGGER], &["hook"])
        };
        let mut life = Life::under(vec![rule]);
        let mut receiver = Receiver::default();
        let ends = [Act::Silence(false), Act::Status(Status::Closed)];
        for act in acts.into_iter().chain(ends) {
            let is_nothing = life.occurrence.is_none();
            life.sent.clear();
            match act {
                Act::Event(severity, status) => drop(life.event(|event| {
                    event.severity = severity;
                    event.status = status;
                })),
                Act::Wait(seconds) => life.wait(seconds),
                _ if is_nothing => continue,
                Act::Acknowledge(flag) => drop(life.alter(&StateChange {
                    acknowledged: Some(flag),
                    ..StateChange::default()
                })),
                Act::Status(status) => drop(life.status(status)),
                Act::Silence(on) => {
                    life.silences = Vec::from_iter(on.then(silence));
                    drop(life.review());
                }
            }
            let is_silent = !life.silences.is_empty();
            receiver.take(&life, is_silent)?;
            let Some(occurrence) = &life.occurrence else { continue };
            let is_open = occurrence.status == Status::Open;
            if is_silent {
                prop_assert!(!is_open || !occurrence.covered_by.is_empty());
                continue;
            }
            prop_assert!(occurrence.status == Status::Suppressed || occurrence.pending.is_empty());
            if is_open && occurrence.severity >= Severity::Error {
                prop_assert!(receiver.known.is_some(), "a match is notified: {:?}", act);
            }
            let known = receiver.known.filter(|_| is_open);
            if let Some(known) = known {
                let now = (occurrence.severity, occurrence.acknowledged);
                prop_assert_eq!(known, now, "the last state is notified: {:?}", act);
            }
        }
        prop_assert_eq!(receiver.known, None, "a receiver of the opening gets the closing");
    }
}

#[test]
fn suppressed_change_is_notified_once_the_event_is_open() {
    let acknowledged = |flag| StateChange {
        acknowledged: Some(flag),
        ..StateChange::default()
    };
    let critical = StateChange {
        severity: Some(Severity::Critical),
        ..StateChange::default()
    };
    let silent = StateChange {
        without_updates: true,
        ..acknowledged(true)
    };
    let is_updated = [notification("page", "hook", true)];
    let table: [(&str, &[StateChange], &[Sent]); 5] = [
        ("critical", std::slice::from_ref(&critical), &is_updated),
        ("acknowledged", &[acknowledged(true)], &is_updated),
        (
            "twice",
            &[critical.clone(), acknowledged(true)],
            &is_updated,
        ),
        ("and back", &[acknowledged(true), acknowledged(false)], &[]),
        ("without updates", &[silent], &[]),
    ];
    for (what, changes, expected) in table {
        let mut life = Life::under(vec![with_updates()]);
        life.event(|_| {});
        assert!(life.status(Status::Suppressed).is_empty(), "{what}");
        for change in changes {
            assert!(life.alter(change).is_empty(), "{what}");
        }
        assert_eq!(life.status(Status::Open), expected, "{what}");
        let again = life.event(|it| it.severity = None);
        assert!(again.is_empty(), "{what}: once");
    }
}

#[test]
fn change_while_rule_was_disabled_is_not_notified_later() {
    let mut life = Life::under(vec![with_updates()]);
    life.event(|_| {});
    life.rules[0].enabled = false;
    assert!(
        life.event(|it| it.severity = Some(Severity::Critical))
            .is_empty()
    );
    life.rules[0].enabled = true;
    assert!(life.event(|it| it.severity = None).is_empty());
}

#[test]
fn pending_update_of_earlier_version_is_sent_if_state_differs() {
    for (known, expected) in [
        (Severity::Warning, vec![notification("page", "hook", true)]),
        (Severity::Error, Vec::new()),
    ] {
        let mut life = Life::under(vec![with_updates()]);
        life.event(|it| it.severity = Some(Severity::Error));
        let occurrence = life.occurrence.as_mut().unwrap();
        let silence = HeldBy {
            kind: HoldKind::Silence,
            id: samples::id("silence"),
            name: samples::name("silence"),
            revision: 1,
            since_ms: START_MS,
            until_ms: Some(START_MS),
            author: None,
            shared: Vec::new(),
            detail: String::new(),
        };
        occurrence.pending = vec![Pending {
            rule: occurrence.notified[0].rule,
            rule_name: occurrence.notified[0].rule_name.clone(),
            is_opening: false,
            since_ms: START_MS,
            repeat_due: false,
            last_notified: Some(LastNotified {
                severity: known,
                acknowledged: false,
            }),
            held_by: vec![silence],
            left_out: Vec::new(),
        }];
        assert_eq!(life.review(), expected, "{known:?}");
        assert!(life.occurrence.unwrap().pending.is_empty());
    }
}
