//! Reasons for decisions: the records, and the texts composed from them.

use bellwether_proto::v1::{NotificationOutcome as Outcome, ReasonCode};

use crate::{
    decide::{Snapshot, condition::with_until},
    domain::{HeldBy, HoldChange, HoldOutcome, Name, Occurrence, Pending, RecordId, Rule},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    pub code: ReasonCode,
    /// Time until which the notification is held or not sent, in milliseconds since the epoch.
    pub until_ms: Option<i64>,
    /// Whether the holds have ended, so that the notification is evaluated now.
    pub is_due: bool,
    /// The best outcome of the deliveries; `None` if there were none.
    pub delivered: Option<Outcome>,
    pub destinations: Vec<Name>,
    /// The escalation policy that was started, or that will be started at `until_ms`.
    pub escalation_policy: Option<Name>,
    /// Condition under which a pending message is sent; `None` if no message is pending.
    pub condition: Option<&'static str>,
    /// Details, such as the holds or the trigger that matched.
    pub detail: String,
}

impl Reason {
    pub(super) fn new(code: ReasonCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            until_ms: None,
            is_due: false,
            delivered: None,
            destinations: Vec::new(),
            escalation_policy: None,
            condition: None,
            detail: detail.into(),
        }
    }

    pub(super) fn new_notified(is_shadow: bool, detail: impl Into<String>) -> Self {
        let code = if is_shadow {
            ReasonCode::Recorded
        } else {
            ReasonCode::Notified
        };
        Self::new(code, detail)
    }

    pub(super) fn with_end(self, until_ms: Option<i64>) -> Self {
        Self { until_ms, ..self }
    }

    pub(super) fn drop_passed_end(&mut self, now_ms: i64) {
        if self
            .until_ms
            .take_if(|until_ms| *until_ms <= now_ms)
            .is_some()
        {
            self.is_due = matches!(self.code, ReasonCode::Held | ReasonCode::UpdateHeld);
        }
    }

    /// Returns the state of the notification.
    pub fn outcome(&self) -> Outcome {
        match self.code {
            ReasonCode::Notified | ReasonCode::UpdateHeld => {
                self.delivered.unwrap_or(Outcome::Sent)
            }
            ReasonCode::Recorded => Outcome::Recorded,
            ReasonCode::Held => Outcome::Waiting,
            ReasonCode::Unknown | ReasonCode::Unspecified => Outcome::Unknown,
            ReasonCode::Skipped
            | ReasonCode::Prevented
            | ReasonCode::Edited
            | ReasonCode::NoMatch
            | ReasonCode::NoRule => Outcome::NotSent,
        }
    }

    /// Adds the receivers of a rule, unless it is a shadow rule.
    pub(super) fn with_receivers(mut self, rule: &Rule) -> Self {
        if !rule.shadow {
            self.destinations.clone_from(&rule.destination_names);
            self.escalation_policy.clone_from(&rule.escalation_policy);
        }
        self
    }

    pub(super) fn from_holds(held_by: &[HeldBy]) -> Option<Self> {
        let held =
            Self::new(ReasonCode::Held, join(held_by)).with_end(HeldBy::last_end_ms(held_by));
        (!held_by.is_empty()).then_some(held)
    }

    pub(super) fn from_pending(pending: &Pending, snapshot: &Snapshot) -> Self {
        let rule = snapshot.rule(pending.rule);
        let condition = if rule.is_some_and(|it| it.shadow) {
            "only recorded (dry run)"
        } else if pending.is_opening {
            "if still open and matching"
        } else if pending.is_flapping() {
            "with the state at that time, if settled"
        } else if pending.repeat_due {
            "once, with the state at that time"
        } else {
            "if changed since the last notification"
        };
        let code = if pending.is_opening {
            ReasonCode::Held
        } else {
            ReasonCode::UpdateHeld
        };
        let held = Self::new(code, join(&pending.held_by)).with_end(pending.due_ms());
        Self {
            condition: Some(condition),
            ..rule.map_or(held.clone(), |rule| held.with_receivers(rule))
        }
    }

    /// Returns the reason why the rule's last pending message was skipped; `None` if it was sent,
    /// or if there was none.
    pub(super) fn from_skipped(occurrence: &Occurrence, rule: RecordId) -> Option<Self> {
        let mut changes = occurrence.hold_changes.iter().rev();
        let detail = describe_skip(changes.find(|it| it.rule == rule)?)?;
        Some(Self::new(ReasonCode::Skipped, detail))
    }

    /// Returns the displayed text. With `now`, it describes the decision that would be made now.
    pub fn text(&self, now: bool) -> String {
        let mut detail = with_until(&self.detail, self.until_ms);
        if self.is_due {
            detail.push_str(", due now");
        }
        match self.code {
            ReasonCode::Notified if now => "Would notify if the same event arrived now".into(),
            ReasonCode::Notified => format!("Notified: {detail}"),
            ReasonCode::Recorded if now => "Would only record the notification (dry run)".into(),
            ReasonCode::Recorded => format!("Only recorded (dry run): {detail}"),
            ReasonCode::Held => format!("Held: {detail}{}", self.next_text()),
            ReasonCode::UpdateHeld => {
                format!("Notified. An update is held: {detail}{}", self.next_text())
            }
            ReasonCode::Skipped => format!("Skipped: {detail}"),
            ReasonCode::Prevented | ReasonCode::Edited if now => {
                format!("Would not notify: {detail}")
            }
            ReasonCode::Prevented | ReasonCode::Edited => {
                format!("A trigger matched, but no message was sent: {detail}")
            }
            ReasonCode::NoRule => format!("The rule was {detail}"),
            ReasonCode::Unknown => format!("Unknown: {detail}"),
            ReasonCode::NoMatch | ReasonCode::Unspecified => detail,
        }
    }

    fn next_text(&self) -> String {
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

pub fn describe(change: &HoldChange) -> String {
    let held = join(&change.held_by);
    // An end that had passed by then says nothing about the hold.
    let end_ms = HeldBy::last_end_ms(&change.held_by).filter(|end_ms| *end_ms > change.at_ms);
    let held_until = || with_until(&held, end_ms);
    match change.what {
        HoldOutcome::Waits => format!("held by {}", held_until()),
        HoldOutcome::Released => format!("sent after being held by {held}"),
        HoldOutcome::ReleasedByHand => format!("sent by an operator despite {held}"),
        HoldOutcome::HandedOver => {
            format!("also held for the next occurrence, by {}", held_until())
        }
        _ => format!("skipped: {}", describe_skip(change).unwrap_or_default()),
    }
}

fn describe_skip(change: &HoldChange) -> Option<String> {
    let why = change.what.skipped_reason()?;
    Some(format!("{why}, while held by {}", join(&change.held_by)))
}

fn join(held_by: &[HeldBy]) -> String {
    let reasons: Vec<_> = held_by.iter().map(HeldBy::kind_with_details).collect();
    reasons.join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    use ReasonCode as Code;

    #[test]
    fn reason_text_contains_outcome_end_and_receivers() {
        const DELAY: &str = "delay (the event must match for 1 h)";
        const DISABLED: &str = "the rule was disabled";
        const MATCHED: &str = "trigger `disk` matched";
        let name = |text: &str| Name::parse(text).unwrap();
        let hook = || vec![name("hook")];
        let held = |until_ms, destinations, policy: Option<&str>| Reason {
            destinations,
            escalation_policy: policy.map(&name),
            condition: Some("if still open and matching"),
            ..Reason::new(Code::Held, DELAY).with_end(until_ms)
        };
        let of = Reason::new;
        #[rustfmt::skip]
        let cases = [
            (held(Some(0), hook(), None), false, "Held: delay (the event must match for 1 h), until \
                1970-01-01 00:00:00 UTC. Then notifies hook, if still open and matching."),
            (held(None, hook(), Some("nights")), false, "Held: delay (the event must match for 1 h). \
                Then notifies hook, escalation policy nights, if still open and matching."),
            (held(None, Vec::new(), None), false, "Held: delay (the event must match for 1 h). Then \
                notifies no one, if still open and matching."),
            (of(Code::UpdateHeld, DELAY).with_end(Some(1_000)), false, "Notified. An update is held: \
                delay (the event must match for 1 h), until 1970-01-01 00:00:01 UTC"),
            (of(Code::Notified, MATCHED), false, "Notified: trigger `disk` matched"),
            (of(Code::Notified, MATCHED), true, "Would notify if the same event arrived now"),
            (of(Code::Recorded, MATCHED), false, "Only recorded (dry run): trigger `disk` matched"),
            (of(Code::Recorded, MATCHED), true, "Would only record the notification (dry run)"),
            (of(Code::Skipped, DISABLED), false, "Skipped: the rule was disabled"),
            (of(Code::Prevented, DISABLED), false,
                "A trigger matched, but no message was sent: the rule was disabled"),
            (of(Code::Prevented, DISABLED).with_end(Some(0)), true,
                "Would not notify: the rule was disabled, until 1970-01-01 00:00:00 UTC"),
            (of(Code::NoRule, "deleted at noon"), false, "The rule was deleted at noon"),
            (of(Code::Unknown, "later events replaced `summary`"), false,
                "Unknown: later events replaced `summary`"),
            (of(Code::NoMatch, "The trigger did not match"), false, "The trigger did not match"),
        ];
        for (reason, now, text) in cases {
            assert_eq!(reason.text(now), text, "{reason:?}");
        }
    }

    #[test]
    fn end_in_the_past_is_not_shown() {
        let reason = |code, end_ms, now_ms| {
            let mut reason = Reason::new(code, "delay").with_end(end_ms);
            reason.drop_passed_end(now_ms);
            (reason.text(false), reason.until_ms, reason.is_due)
        };
        let until = "Held: delay, until 1970-01-01 00:00:01 UTC".to_owned();
        for (code, end_ms, now_ms, expected) in [
            (Code::Held, Some(1_000), 999, (until, Some(1_000), false)),
            (
                Code::Held,
                Some(1_000),
                1_000,
                ("Held: delay, due now".to_owned(), None, true),
            ),
            (
                Code::Held,
                None,
                1_000,
                ("Held: delay".to_owned(), None, false),
            ),
            (
                Code::Prevented,
                Some(1_000),
                1_001,
                (
                    "A trigger matched, but no message was sent: delay".to_owned(),
                    None,
                    false,
                ),
            ),
        ] {
            assert_eq!(
                reason(code, end_ms, now_ms),
                expected,
                "{code:?} at {now_ms}"
            );
        }
    }

    #[test]
    fn outcome_follows_the_code_and_the_deliveries() {
        let outcome = |code, delivered| {
            let reason = Reason::new(code, "");
            Reason {
                delivered,
                ..reason
            }
            .outcome()
        };
        for (code, delivered, expected) in [
            (Code::Notified, None, Outcome::Sent),
            (Code::Notified, Some(Outcome::Waiting), Outcome::Waiting),
            (Code::Notified, Some(Outcome::NotSent), Outcome::NotSent),
            (Code::UpdateHeld, Some(Outcome::Sent), Outcome::Sent),
            (Code::Recorded, Some(Outcome::Recorded), Outcome::Recorded),
            (Code::Held, None, Outcome::Waiting),
            (Code::Skipped, None, Outcome::NotSent),
            (Code::Prevented, None, Outcome::NotSent),
            (Code::NoMatch, None, Outcome::NotSent),
            (Code::Unknown, None, Outcome::Unknown),
        ] {
            assert_eq!(outcome(code, delivered), expected, "{code:?}");
        }
    }
}
