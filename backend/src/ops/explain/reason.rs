//! Reasons for decisions: the records, and the texts composed from them.

use bellwether_proto::v1::ReasonCode;

use crate::{
    decide::{Snapshot, condition::with_until},
    domain::{HeldBy, HoldChange, HoldOutcome, Name, Occurrence, Pending, RecordId, Rule},
};

/// The reason for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Kind of reason.
    pub code: ReasonCode,
    /// Time until which the notification is held or prevented, in milliseconds since the epoch.
    pub until_ms: Option<i64>,
    /// Destinations that were notified, or are notified then.
    pub destinations: Vec<Name>,
    /// Escalation policy that was started, or is started then.
    pub escalation_policy: Option<Name>,
    /// Condition under which a pending message is sent; `None` if none is pending.
    pub condition: Option<&'static str>,
    /// Details such as the holds or the trigger that matched.
    pub detail: String,
}

impl Reason {
    pub(super) fn new(code: ReasonCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            until_ms: None,
            destinations: Vec::new(),
            escalation_policy: None,
            condition: None,
            detail: detail.into(),
        }
    }

    pub(super) fn until(self, until_ms: Option<i64>) -> Self {
        Self { until_ms, ..self }
    }

    /// Adds the receivers of a rule, unless it is a dry run.
    pub(super) fn to(mut self, rule: &Rule) -> Self {
        if !rule.shadow {
            self.destinations.clone_from(&rule.destination_names);
            self.escalation_policy.clone_from(&rule.escalation_policy);
        }
        self
    }

    pub(super) fn held(held_by: &[HeldBy]) -> Option<Self> {
        let held = Self::new(ReasonCode::Held, join(held_by)).until(HeldBy::last_end_ms(held_by));
        (!held_by.is_empty()).then_some(held)
    }

    /// Returns the reason why a message is pending, and the next step.
    pub(super) fn pending(pending: &Pending, snapshot: &Snapshot) -> Self {
        let rule = snapshot.rule(pending.rule);
        let condition = if rule.is_some_and(|it| it.shadow) {
            "since the rule is a dry run"
        } else if pending.is_opening {
            "if still open and matching"
        } else if pending.is_flapping() {
            "with its state then, if it has settled"
        } else if pending.repeat_due {
            "once, with its state then"
        } else {
            "if it differs from the last notification"
        };
        let code = if pending.is_opening {
            ReasonCode::Held
        } else {
            ReasonCode::UpdateHeld
        };
        let held = Self::new(code, join(&pending.held_by)).until(pending.due_ms());
        Self {
            condition: Some(condition),
            ..rule.map_or(held.clone(), |rule| held.to(rule))
        }
    }

    /// Returns the reason why the rule's last pending message was skipped; `None` if it was sent, or
    /// none was ever pending.
    pub(super) fn skipped(occurrence: &Occurrence, rule: RecordId) -> Option<Self> {
        let mut changes = occurrence.hold_changes.iter().rev();
        let detail = describe_skip(changes.find(|it| it.rule == rule)?)?;
        Some(Self::new(ReasonCode::Skipped, detail))
    }

    /// Returns the displayed text. With `now`, the decision is the one that would be made now.
    pub fn text(&self, now: bool) -> String {
        let detail = with_until(&self.detail, self.until_ms);
        match self.code {
            ReasonCode::Notified if now => "Would notify if the same event arrived now".into(),
            ReasonCode::Notified => format!("Notified: {detail}"),
            ReasonCode::Recorded if now => "Would only record the notification (dry run)".into(),
            ReasonCode::Recorded => format!("Only recorded (dry run): {detail}"),
            ReasonCode::Held => format!("Held: {detail}{}", self.then()),
            ReasonCode::UpdateHeld => {
                format!("Notified. An update is held: {detail}{}", self.then())
            }
            ReasonCode::Skipped => format!("Skipped: {detail}"),
            ReasonCode::Prevented | ReasonCode::Edited if now => {
                format!("Would not notify: {detail}")
            }
            ReasonCode::Prevented | ReasonCode::Edited => {
                format!("A trigger matched, but nothing was sent: {detail}")
            }
            ReasonCode::NoRule => format!("The rule was {detail}"),
            ReasonCode::Unknown => format!("Unknown: {detail}"),
            ReasonCode::NoMatch | ReasonCode::Unspecified => detail,
        }
    }

    fn then(&self) -> String {
        let Some(condition) = self.condition else {
            return String::new();
        };
        let mut receivers: Vec<_> = self.destinations.iter().map(Name::to_string).collect();
        let policy = self.escalation_policy.iter();
        receivers.extend(policy.map(|it| format!("escalation policy {it}")));
        match receivers.join(", ").as_str() {
            "" => format!(". Then notifies no one, {condition}."),
            receivers => format!(". Then notifies {receivers}, {condition}."),
        }
    }
}

/// Returns the displayed text for a change of a hold.
pub fn describe(change: &HoldChange) -> String {
    let held = describe_holds(&change.held_by);
    match change.what {
        HoldOutcome::Waits => format!("the notification is held: {held}"),
        HoldOutcome::Released => format!("the notification was sent; it was held: {held}"),
        HoldOutcome::ReleasedByHand => {
            format!("an operator sent the notification despite {held}")
        }
        HoldOutcome::HandedOver => {
            format!("the notification stays held for the next occurrence: {held}")
        }
        _ => {
            let why = describe_skip(change).unwrap_or_default();
            format!("the notification was skipped: {why}")
        }
    }
}

fn describe_skip(change: &HoldChange) -> Option<String> {
    let why = change.what.skipped_reason()?;
    let held = describe_holds(&change.held_by);
    Some(format!("{why}, while held by {held}"))
}

fn describe_holds(held_by: &[HeldBy]) -> String {
    with_until(&join(held_by), HeldBy::last_end_ms(held_by))
}

fn join(held_by: &[HeldBy]) -> String {
    let reasons: Vec<_> = held_by.iter().map(HeldBy::reason).collect();
    reasons.join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_states_the_code_end_and_receivers_of_the_record() {
        let hook = || vec![Name::parse("hook").unwrap()];
        let matching = "if still open and matching";
        let delay = "delay (the event must match for 1 h)";
        let reason = |code, detail| Reason::new(code, detail);
        let held = |until_ms, destinations, policy| Reason {
            destinations,
            escalation_policy: policy,
            condition: Some(matching),
            ..reason(ReasonCode::Held, delay).until(until_ms)
        };
        let policy = || Some(Name::parse("nights").unwrap());
        let disabled = || reason(ReasonCode::Prevented, "the rule was disabled");
        let cases = [
            (
                held(Some(0), hook(), None),
                "Held: delay (the event must match for 1 h), until 1970-01-01 00:00:00 UTC. Then \
                 notifies hook, if still open and matching.",
            ),
            (
                held(None, hook(), policy()),
                "Held: delay (the event must match for 1 h). Then notifies hook, escalation policy \
                 nights, if still open and matching.",
            ),
            (
                held(None, Vec::new(), None),
                "Held: delay (the event must match for 1 h). Then notifies no one, if still open \
                 and matching.",
            ),
            (
                reason(ReasonCode::UpdateHeld, delay).until(Some(1_000)),
                "Notified. An update is held: delay (the event must match for 1 h), until \
                 1970-01-01 00:00:01 UTC",
            ),
            (
                reason(ReasonCode::Notified, "trigger `disk` matched"),
                "Notified: trigger `disk` matched",
            ),
            (
                reason(ReasonCode::Recorded, "trigger `disk` matched"),
                "Only recorded (dry run): trigger `disk` matched",
            ),
            (
                reason(ReasonCode::Skipped, "the rule was deleted"),
                "Skipped: the rule was deleted",
            ),
            (
                disabled(),
                "A trigger matched, but nothing was sent: the rule was disabled",
            ),
            (
                reason(ReasonCode::NoRule, "deleted at noon"),
                "The rule was deleted at noon",
            ),
            (
                reason(ReasonCode::Unknown, "later events replaced `summary`"),
                "Unknown: later events replaced `summary`",
            ),
            (
                reason(ReasonCode::NoMatch, "The trigger did not match"),
                "The trigger did not match",
            ),
        ];
        for (reason, text) in cases {
            assert_eq!(reason.text(false), text, "{reason:?}");
        }
        for (reason, text) in [
            (
                reason(ReasonCode::Notified, ""),
                "Would notify if the same event arrived now",
            ),
            (
                reason(ReasonCode::Recorded, ""),
                "Would only record the notification (dry run)",
            ),
            (
                disabled().until(Some(0)),
                "Would not notify: the rule was disabled, until 1970-01-01 00:00:00 UTC",
            ),
        ] {
            assert_eq!(reason.text(true), text, "{reason:?}");
        }
    }
}
