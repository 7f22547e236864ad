//! What receivers are notified of around silences, whatever happens: no closing without an opening,
//! none missing, nothing but closings while a silence holds, and the last state at its end.

use proptest::prelude::*;

use super::*;
use crate::domain::Silence;

#[derive(Debug, Clone, Copy)]
enum Act {
    Event(Option<Severity>, Option<Status>),
    Acknowledge(bool),
    Status(Status),
    Wait(i64),
    /// From now on a silence covers everything, or nothing.
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

/// What the one receiver knows of the newest occurrence.
#[derive(Debug, Default)]
struct Receiver {
    number: u32,
    /// The state it was reported last, while it takes the occurrence for open.
    known: Option<(Severity, bool)>,
    /// Whether something may have changed while it was suppressed, of which no one is notified.
    is_stale: bool,
}

impl Receiver {
    fn take(&mut self, life: &Life, is_silent: bool) -> Result<(), TestCaseError> {
        let Some(occurrence) = &life.occurrence else {
            return Ok(());
        };
        if occurrence.number != self.number {
            prop_assert_eq!(self.known, None, "the one before was closed for it");
            self.number = occurrence.number;
        }
        self.is_stale |= occurrence.status == Status::Suppressed;
        prop_assert!(life.sent.len() <= 1, "one message a step");
        for delivery in &life.sent {
            let about = &delivery.content.occurrence;
            let is_over = about.status == Status::Closed;
            prop_assert!(!is_silent || is_over, "a silence holds all but closings");
            if delivery.content.clear {
                prop_assert!(self.known.is_some(), "nothing was opened for it");
            }
            let state = (about.severity, about.acknowledged);
            self.known = (!is_over).then_some(state);
            self.is_stale = false;
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn a_receiver_is_told_the_truth_around_silences(
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
                    drop(life.look());
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
                prop_assert!(receiver.known.is_some(), "what matches is told: {:?}", act);
            }
            let known = receiver.known.filter(|_| is_open && !receiver.is_stale);
            if let Some(known) = known {
                let now = (occurrence.severity, occurrence.acknowledged);
                prop_assert_eq!(known, now, "the last state is told: {:?}", act);
            }
        }
        prop_assert_eq!(receiver.known, None, "whoever got the opening gets the closing");
    }
}
