//! Compares decisions with an independent model of one rule's notifications.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, Copy)]
enum Act {
    /// An event; it matches if its severity is at least error.
    Event(Option<Severity>, Option<Status>),
    Acknowledge(bool),
    Status(Status),
    Wait(i64),
    Enable(bool),
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
        1 => any::<bool>().prop_map(Act::Enable),
    ]
}

/// The expected behavior of one rule with one destination.
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[derive(Debug, Clone, Copy, PartialEq)]
struct Model {
    repeat: Option<i64>,
    updates: bool,
    enabled: bool,
    severity: Severity,
    status: Option<Status>,
    acknowledged: bool,
    /// The severity at the last acknowledgement. Acknowledging a higher one again is a change.
    acknowledged_severity: Option<Severity>,
    now: i64,
    opened_at: Option<i64>,
    closing_sent: bool,
    /// The last notified severity and acknowledged flag.
    known: (Severity, bool),
}

impl Model {
    /// Returns the `clear` flag of the message, or `None` if no message is sent.
    fn act(&mut self, act: Act) -> Option<bool> {
        let sent = self.sent_by(act);
        if !matches!(act, Act::Wait(_) | Act::Enable(_)) && self.status != Some(Status::Suppressed)
        {
            self.known = (self.severity, self.acknowledged);
        }
        sent
    }

    fn sent_by(&mut self, act: Act) -> Option<bool> {
        let before = *self;
        let is_event = matches!(act, Act::Event(..));
        match act {
            Act::Wait(seconds) => self.now += seconds,
            Act::Enable(on) => self.enabled = on,
            Act::Acknowledge(flag) => {
                self.acknowledged = flag;
                self.acknowledged_severity = flag.then_some(self.severity);
            }
            Act::Status(status) => self.status = Some(status),
            Act::Event(severity, status) => {
                let ended = self.status == Some(Status::Closed) && status != Some(Status::Closed);
                if self.status.is_none() || ended {
                    self.status = Some(status.unwrap_or(Status::Open));
                    self.severity = severity.unwrap_or(Severity::Info);
                    (self.acknowledged, self.acknowledged_severity) = (false, None);
                    (self.opened_at, self.closing_sent) = (None, false);
                    return self.open(is_event);
                }
                self.severity = severity.unwrap_or(self.severity);
                self.status = status.or(self.status);
            }
        }
        let is_change = is_event || *self != before;
        if matches!(act, Act::Wait(_) | Act::Enable(_)) || !is_change || self.opened_at.is_none() {
            let is_evaluated = is_change && !matches!(act, Act::Wait(_) | Act::Enable(_));
            return if is_evaluated {
                self.open(is_event)
            } else {
                None
            };
        }
        let closed = self.status == Some(Status::Closed) && before.status != self.status;
        if closed && !self.closing_sent && self.updates {
            self.closing_sent = true;
            return Some(true);
        }
        if self.status == Some(Status::Open) && self.closing_sent {
            self.closing_sent = false;
            self.opened_at = Some(self.now);
            return Some(false);
        }
        let news = self.known != (self.severity, self.acknowledged);
        if self.status == Some(Status::Open) && news && self.updates && self.enabled {
            if self.repeat_is_due(is_event) {
                self.opened_at = Some(self.now);
            }
            return Some(true);
        }
        self.open(is_event)
    }

    fn matches(&self) -> bool {
        let is_open = self.status == Some(Status::Open);
        is_open && self.enabled && self.severity >= Severity::Error
    }

    fn repeat_is_due(&self, is_event: bool) -> bool {
        let passed = |every| self.opened_at.is_some_and(|at| self.now - at >= every);
        is_event && self.matches() && self.repeat.is_some_and(passed)
    }

    fn open(&mut self, is_event: bool) -> Option<bool> {
        let first = self.opened_at.is_none() && self.matches();
        let goes = first || self.repeat_is_due(is_event);
        if goes {
            self.opened_at = Some(self.now);
        }
        goes.then_some(false)
    }
}

fn rule_of(repeat: Option<u32>, send_updates: bool) -> Rule {
    Rule {
        repeat: repeat.is_some(),
        repeat_interval_seconds: repeat.unwrap_or(60),
        send_updates,
        ..rule("page", &[DISK_TRIGGER], &["hook"])
    }
}

fn perform(life: &mut Life, act: Act) -> Vec<Sent> {
    match act {
        Act::Event(severity, status) => life.event(|event| {
            event.severity = severity;
            event.status = status;
        }),
        Act::Acknowledge(flag) => life.alter(&StateChange {
            acknowledged: Some(flag),
            ..StateChange::default()
        }),
        Act::Status(status) => life.status(status),
        Act::Wait(seconds) => {
            life.wait(seconds);
            Vec::new()
        }
        Act::Enable(on) => {
            life.rules[0].enabled = on;
            Vec::new()
        }
    }
}

proptest! {
    #[test]
    fn decisions_follow_the_model(
        acts in prop::collection::vec(act(), 1..30),
        repeat in prop::option::of(0..60_u32),
        updates: bool,
    ) {
        let mut life = Life::under(vec![rule_of(repeat, updates)]);
        let mut model = Model {
            repeat: repeat.map(i64::from),
            updates,
            enabled: true,
            severity: Severity::Info,
            status: None,
            acknowledged: false,
            acknowledged_severity: None,
            now: 0,
            opened_at: None,
            closing_sent: false,
            known: (Severity::Info, false),
        };
        for act in acts {
            if model.status.is_none() && matches!(act, Act::Acknowledge(_) | Act::Status(_)) {
                continue;
            }
            let sent = perform(&mut life, act);
            let expected = model.act(act).map(|clear| notification("page", "hook", clear));
            prop_assert_eq!(sent, Vec::from_iter(expected), "after {:?}", act);
        }
    }
}
