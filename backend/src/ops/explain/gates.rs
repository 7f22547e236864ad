//! What stands between a match and a notification, at a decision or now.

use jiff::Timestamp;

use super::{Gate, sent::Pauses, timeline::State};
use crate::domain::{Name, Notified, RecordId, Rule, Status};

/// What gates look at.
#[derive(Debug)]
pub(super) struct Around<'a> {
    pub(super) rule: &'a Rule,
    pub(super) id: RecordId,
    pub(super) state: &'a State,
    /// What the rule told before.
    pub(super) told: Option<&'a Notified>,
    /// Whether the rule told something just then; never now.
    pub(super) tells: bool,
    pub(super) pauses: &'a Pauses,
    /// The destinations in question: name, and whether it is of type `event`.
    pub(super) destinations: &'a [(Name, bool)],
    pub(super) at_ms: i64,
    pub(super) now: bool,
}

impl Around<'_> {
    fn verb(&self) -> &'static str {
        if self.now { "is" } else { "was" }
    }

    /// The gates in order. Those that few rules meet are there when they hold back only.
    pub(super) fn gates(&self) -> Vec<Gate> {
        let mut gates = vec![self.enabled(), self.suppressed()];
        if !self.tells {
            gates.extend(
                [self.destinations(), self.loop_guard()]
                    .into_iter()
                    .flatten(),
            );
        }
        gates.extend([
            self.already_notified(),
            self.repeat_interval(),
            self.destination_paused(),
        ]);
        gates
    }

    fn enabled(&self) -> Gate {
        let word = if self.rule.enabled {
            "enabled"
        } else {
            "disabled"
        };
        Gate {
            name: "enabled",
            passed: self.rule.enabled,
            detail: format!("the rule {} {word}", self.verb()),
        }
    }

    fn suppressed(&self) -> Gate {
        let status = self.state.occurrence.status;
        let transition = self.state.transition;
        if transition.closed && transition.from == Some(Status::Suppressed) && !self.now {
            return Gate {
                name: "suppressed",
                passed: self.tells,
                detail: "the occurrence was suppressed until it was closed".into(),
            };
        }
        Gate {
            name: "suppressed",
            passed: status != Status::Suppressed,
            detail: format!("the occurrence {} {}", self.verb(), status.word()),
        }
    }

    fn destinations(&self) -> Option<Gate> {
        self.destinations.is_empty().then(|| Gate {
            name: "destinations",
            passed: false,
            detail: "there is no destination of the rule to tell".into(),
        })
    }

    fn loop_guard(&self) -> Option<Gate> {
        let passes_again = self.state.occurrence.chain.contains(&self.id);
        let makes_events = self.destinations.iter().all(|(_, is_event)| *is_event);
        (passes_again && makes_events && !self.destinations.is_empty()).then(|| Gate {
            name: "loop guard",
            passed: false,
            detail: "the rule led to this event itself, and would make events of it again".into(),
        })
    }

    fn already_notified(&self) -> Gate {
        let (passed, detail) = match self.told {
            _ if self.tells => (true, "nothing it had told stood against it".into()),
            None if self.now => (true, "it has not told anybody of this occurrence".into()),
            None => (true, "it had not told anybody of this occurrence".into()),
            Some(told) if self.rule.repeat => (
                true,
                format!("it told at {} and repeats", moment(told.last_ms)),
            ),
            Some(told) => (
                false,
                format!(
                    "done already: it told at {}, and tells an occurrence once",
                    moment(told.last_ms)
                ),
            ),
        };
        Gate {
            name: "already notified",
            passed,
            detail,
        }
    }

    fn repeat_interval(&self) -> Gate {
        let interval_ms = i64::from(self.rule.repeat_interval_seconds) * 1000;
        let (passed, detail) = match self.told {
            Some(told) if self.rule.repeat && !self.tells => {
                let since_ms = self.at_ms.saturating_sub(told.last_ms);
                let left_seconds = (interval_ms - since_ms + 999).div_euclid(1000);
                match left_seconds {
                    ..=0 => (true, "the interval had passed".to_owned()),
                    left => (
                        false,
                        format!(
                            "{left} s of the interval of {} s {} left",
                            self.rule.repeat_interval_seconds,
                            if self.now { "are" } else { "were" }
                        ),
                    ),
                }
            }
            _ => (
                true,
                format!("there {} no interval to wait for", self.verb()),
            ),
        };
        Gate {
            name: "repeat interval",
            passed,
            detail,
        }
    }

    /// A paused destination holds messages back and no notification; it is told all the same.
    fn destination_paused(&self) -> Gate {
        let waiting: Vec<_> = self
            .destinations
            .iter()
            .filter(|(name, _)| self.pauses.at(name, self.at_ms))
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        Gate {
            name: "destination paused",
            passed: waiting.is_empty(),
            detail: match waiting.len() {
                0 => format!("none {} paused", self.verb()),
                1 => format!("{} {} paused; messages wait there", waiting[0], self.verb()),
                _ => format!("{} were paused; messages wait there", waiting.join(", ")),
            },
        }
    }
}

/// A moment for people.
pub(super) fn moment(at_ms: i64) -> String {
    let shown = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    Timestamp::from_millisecond(at_ms).map_or_else(|_| "?".into(), shown)
}
