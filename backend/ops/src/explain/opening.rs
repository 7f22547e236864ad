//! The decision that caused a rule to report an occurrence for the first time.

use std::sync::Arc;

use super::{
    DecisionBasis, Definition, Judgement, Reason, TriggerExplanation,
    definitions::FoundDefinition,
    gates::{destination_paused_gate, evaluate_gates},
    judge::{Judge, Subject},
    timeline::{DecisionPoint, PastState, state_at},
};
use crate::{
    decide::{Case, LoadedTrigger, Tense},
    domain::{Delivery, DeliveryState, Name, Opening, Rule},
};

impl Judge<'_> {
    /// Explains the decision that caused the rule to report the occurrence for the first time;
    /// `None` if it is unknown.
    pub(super) fn judge_opening(&mut self, subject: &Subject<'_>) -> Option<Judgement> {
        let opening = recorded_opening(subject)?;
        let point = DecisionPoint {
            at_ms: opening.at_ms,
            rules_ms: opening.at_ms,
            last: false,
        };
        let mut sent = subject.sent.iter().map(|it| &it.delivery);
        let sent = sent.find(|it| it.create_ms == opening.at_ms && !it.content.clear);
        let own = self.now.1.occurrence.id();
        let reported = sent.and_then(|it| it.content.occurrences().find(|it| it.id() == own));
        let state = match reported {
            Some(reported) => PastState::from_current(reported.clone()),
            None => state_at(&self.now.1.occurrence, point),
        };
        let found = self.rule_at_opening(subject, &opening, point);
        let names = match &found {
            Some((rule, _)) => rule.trigger_names.clone(),
            None => vec![opening.trigger.name.clone()],
        };
        let triggers = names
            .iter()
            .map(|name| self.trigger_at_opening(name, &opening, sent, (point, &state)))
            .collect();
        let notified = subject
            .notified
            .map_or(&[][..], |notified| &notified.destinations);
        let destinations: Vec<_> = notified.iter().map(|(_, name)| name.clone()).collect();
        let gates = found.as_ref().map(|(rule, _)| {
            let case = Case {
                rule,
                occurrence: &state.occurrence,
                notified: None,
                by_event: true,
                snapshot: self.snapshot,
                repeat_waits: false,
                now_ms: opening.at_ms,
            };
            let mut gates = evaluate_gates(&case, Tense::Then, true, self.now.0.at_ms);
            let at = (opening.at_ms, Tense::Then);
            gates.push(destination_paused_gate(&destinations, &self.pauses, at));
            gates
        });
        let is_shadow = subject.notified.is_some_and(|it| it.shadow);
        let is_shadow = sent.map_or(is_shadow, |it| it.state == DeliveryState::Shadowed);
        let thread = subject.notified.and_then(|it| Some(it.thread?.number));
        let thread = thread.map_or(String::new(), |number| {
            format!(". Continues occurrence {number}: the event is flapping")
        });
        let unstored = match found {
            None => ". The rule's revision is no longer stored",
            Some(_) => "",
        };
        let trigger = &opening.trigger.name;
        let detail = format!("trigger `{trigger}` matched{thread}{unstored}");
        let mut reason = Reason::new_notified(is_shadow, detail);
        if !is_shadow {
            let rule = found.as_ref().map(|(rule, _)| rule);
            reason.escalation_policy = rule.and_then(|it| it.escalation_policy.clone());
            reason.destinations = destinations;
        }
        Some(Judgement {
            basis: DecisionBasis::Notification,
            at_ms: opening.at_ms,
            notifies: !is_shadow,
            held_back: false,
            reason,
            definition: found.map(|(_, definition)| definition),
            triggers,
            gates: gates.unwrap_or_default(),
        })
    }

    fn rule_at_opening(
        &self,
        subject: &Subject<'_>,
        opening: &Opening,
        point: DecisionPoint,
    ) -> Option<(Arc<Rule>, Definition)> {
        let (name, id) = (subject.name, subject.id);
        let exact = self
            .definitions
            .rule_revision(name, id, opening.rule_revision);
        exact.or_else(|| match self.definitions.rule(name, id, point) {
            FoundDefinition::InForce(rule, definition) => Some((rule, definition)),
            _ => None,
        })
    }

    /// Returns the result of a trigger. The trigger that matched is evaluated in the revision
    /// recorded in the messages, any other one in the revision in force at the time.
    fn trigger_at_opening(
        &mut self,
        name: &Name,
        opening: &Opening,
        sent: Option<&Delivery>,
        (point, state): (DecisionPoint, &PastState),
    ) -> TriggerExplanation {
        if *name == opening.trigger.name {
            let exact = self.definitions.trigger_revision(&opening.trigger);
            if let Some((loaded, definition)) = exact {
                return self.explain_trigger(&loaded, Some(definition), state);
            }
            if let Some(trigger) = sent.and_then(|it| it.content.trigger.clone()) {
                let query = None;
                return self.explain_trigger(&LoadedTrigger { trigger, query }, None, state);
            }
        }
        self.trigger(name, point, state)
    }
}

fn recorded_opening(subject: &Subject<'_>) -> Option<Opening> {
    if let Some(opening) = subject
        .notified
        .and_then(|notified| notified.opening.as_ref())
    {
        return Some(opening.clone());
    }
    let mut sent = subject.sent.iter().map(|it| &it.delivery);
    let first = sent.find(|it| !it.content.clear && it.retry_of.is_none())?;
    Some(Opening {
        at_ms: first.create_ms,
        trigger: first.content.trigger.as_ref()?.into(),
        rule_revision: 0,
    })
}
