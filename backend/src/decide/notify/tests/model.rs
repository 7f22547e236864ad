//! An independent model of one rule's notifications, held against the real decisions.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, Copy)]
enum Act {
    /// An event; it matches when its severity is at least error.
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

/// What the contract says about one rule and one destination, in the fewest words.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, Copy)]
struct Model {
    repeat: Option<i64>,
    updates: bool,
    enabled: bool,
    severity: Severity,
    status: Option<Status>,
    acknowledged: bool,
    now: i64,
    opened_at: Option<i64>,
    owes_close: bool,
}

impl Model {
    /// Answers the `clear` of the message that goes out, if one does.
    fn act(&mut self, act: Act) -> Option<bool> {
        let before = *self;
        let is_event = matches!(act, Act::Event(..));
        match act {
            Act::Wait(seconds) => self.now += seconds,
            Act::Enable(on) => self.enabled = on,
            Act::Acknowledge(flag) => self.acknowledged = flag,
            Act::Status(status) => self.status = Some(status),
            Act::Event(severity, status) => {
                let ended = self.status == Some(Status::Closed) && status != Some(Status::Closed);
                if self.status.is_none() || ended {
                    self.status = Some(status.unwrap_or(Status::Open));
                    self.severity = severity.unwrap_or(Severity::Info);
                    (self.acknowledged, self.opened_at, self.owes_close) = (false, None, false);
                    return self.open(is_event, None);
                }
                self.severity = severity.unwrap_or(self.severity);
                self.status = status.or(self.status);
            }
        }
        if matches!(act, Act::Wait(_) | Act::Enable(_)) || self.status == Some(Status::Suppressed) {
            return None;
        }
        let closed = self.status == Some(Status::Closed) && before.status != self.status;
        let news = self.severity != before.severity || self.acknowledged && !before.acknowledged;
        if closed && self.owes_close {
            self.owes_close = false;
            let unheard = before.status == Some(Status::Suppressed);
            self.stand_for_repeat(is_event && !unheard);
            return Some(true);
        }
        let open = self.status == Some(Status::Open);
        if open && news && self.opened_at.is_some() && self.updates && self.enabled {
            self.stand_for_repeat(is_event);
            self.owes_close = true;
            return Some(true);
        }
        if closed && before.status == Some(Status::Suppressed) {
            return None;
        }
        self.open(is_event, Some(before))
    }

    fn matches(&self) -> bool {
        self.enabled && self.severity >= Severity::Error
    }

    fn repeat_is_due(&self, is_event: bool) -> bool {
        let passed = |every| self.opened_at.is_some_and(|at| self.now - at >= every);
        is_event && self.matches() && self.repeat.is_some_and(passed)
    }

    fn stand_for_repeat(&mut self, is_event: bool) {
        if self.repeat_is_due(is_event) {
            self.opened_at = Some(self.now);
        }
    }

    fn open(&mut self, is_event: bool, before: Option<Self>) -> Option<bool> {
        let lifted = |it: Self| it.status == Some(Status::Suppressed);
        let new = is_event || before.is_some_and(|it| !it.matches() || lifted(it));
        let first = self.opened_at.is_none() && new && self.matches();
        let goes =
            self.status != Some(Status::Suppressed) && (first || self.repeat_is_due(is_event));
        if goes {
            self.opened_at = Some(self.now);
            self.owes_close = self.updates;
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

fn carry_out(life: &mut Life, act: Act) -> Vec<Told> {
    match act {
        Act::Event(severity, status) => life.event(|event| {
            event.severity = severity;
            event.status = status;
        }),
        Act::Acknowledge(flag) => life.alter(Wish {
            acknowledged: Some(flag),
            ..Wish::default()
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
            now: 0,
            opened_at: None,
            owes_close: false,
        };
        for act in acts {
            if model.status.is_none() && matches!(act, Act::Acknowledge(_) | Act::Status(_)) {
                continue;
            }
            let sent = carry_out(&mut life, act);
            let expected = model.act(act).map(|clear| told("page", "hook", clear));
            prop_assert_eq!(sent, Vec::from_iter(expected), "after {:?}", act);
        }
    }
}
