//! Triggers, rules and silences as they were before they were edited or deleted.

use super::{rule::RuleV1, silence::SilenceV1, trigger::TriggerV1};
use crate::domain::{Revised, Revision};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RevisionV1 {
    /// Exactly one of trigger, rule and silence is there.
    #[prost(message, optional, tag = "1")]
    trigger: Option<TriggerV1>,
    #[prost(message, optional, tag = "2")]
    rule: Option<RuleV1>,
    #[prost(int64, tag = "3")]
    until_ms: i64,
    #[prost(bool, tag = "4")]
    deleted: bool,
    #[prost(message, optional, tag = "5")]
    silence: Option<SilenceV1>,
}

impl From<&Revision> for RevisionV1 {
    fn from(revision: &Revision) -> Self {
        let (trigger, rule, silence) = match &revision.was {
            Revised::Trigger(trigger) => (Some(trigger.into()), None, None),
            Revised::Rule(rule) => (None, Some(rule.into()), None),
            Revised::Silence(silence) => (None, None, Some(silence.into())),
        };
        Self {
            trigger,
            rule,
            until_ms: revision.until_ms,
            deleted: revision.deleted,
            silence,
        }
    }
}

impl RevisionV1 {
    pub(crate) fn into_revision(self) -> Option<Revision> {
        let was = match (self.trigger, self.rule, self.silence) {
            (Some(trigger), None, None) => Revised::Trigger(trigger.into_trigger()?),
            (None, Some(rule), None) => Revised::Rule(rule.into_rule()?),
            (None, None, Some(silence)) => Revised::Silence(silence.into_silence()?),
            _ => return None,
        };
        Some(Revision {
            was,
            until_ms: self.until_ms,
            deleted: self.deleted,
        })
    }
}
