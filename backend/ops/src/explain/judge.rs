//! Evaluates a rule for an occurrence at one decision, or now.

use std::collections::{BTreeSet, HashMap};

use bellwether_proto::v1::{DecisionBasis, Definition, ReasonCode};

use super::{
    Judgement, Reason, SentDelivery, TriggerExplanation,
    definitions::{Definitions, FoundDefinition},
    gates::{destination_paused_gate, evaluate_gates},
    holds,
    sent::PauseHistory,
    timeline::{DecisionPoint, PastState},
};
use crate::{
    decide::{
        Case, LoadedTrigger, OutgoingNotification, SendKind, Snapshot, Tense, Verdict,
        condition::format_time,
    },
    domain::{HeldBy, HoldKind, Name, Notified, RecordId, RevisionId, Rule, Status},
    matching::ClauseEvaluation,
};

#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) name: &'a Name,
    pub(super) id: RecordId,
    pub(super) notified: Option<&'a Notified>,
    pub(super) sent: &'a [SentDelivery],
}

impl Subject<'_> {
    fn was_sent_at(&self, at_ms: i64) -> bool {
        let mut sent = self.sent.iter();
        sent.any(|it| it.delivery.create_ms == at_ms)
    }
}

#[derive(Debug)]
pub(super) struct Judge<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) definitions: Definitions,
    pub(super) pauses: PauseHistory,
    pub(super) states: Vec<(DecisionPoint, PastState)>,
    pub(super) now: (DecisionPoint, PastState),
    /// Cached results of triggers at decisions; `None` if a result is unknown.
    pub(super) verdicts: HashMap<(RevisionId, i64), Option<bool>>,
}

impl Judge<'_> {
    /// Evaluates the rule at a decision; decisions are numbered from the newest.
    pub(super) fn judge_decision(&mut self, subject: &Subject<'_>, at: usize) -> Judgement {
        let (point, state) = self.states[at].clone();
        let basis = if point.last {
            DecisionBasis::Last
        } else {
            DecisionBasis::Earlier
        };
        match self.definitions.rule(subject.name, subject.id, point) {
            FoundDefinition::InForce(rule, definition) => {
                let found = (rule.as_ref(), definition);
                self.evaluate(subject, found, (point, &state), basis)
            }
            absent => Judgement {
                basis,
                at_ms: point.at_ms,
                notifies: false,
                held_back: false,
                reason: match absent {
                    FoundDefinition::NotYet(create_ms) => {
                        let at = format_time(create_ms);
                        let detail =
                            format!("created at {at}, after the last change of the occurrence");
                        Reason::new(ReasonCode::NoRule, detail)
                    }
                    FoundDefinition::Deleted(until_ms) => {
                        let detail = format!("deleted at {}", format_time(until_ms));
                        Reason::new(ReasonCode::NoRule, detail)
                    }
                    _ => {
                        let detail = "the rule's revision is no longer stored";
                        Reason::new(ReasonCode::Unknown, detail)
                    }
                },
                definition: None,
                triggers: Vec::new(),
                gates: Vec::new(),
            },
        }
    }

    /// Returns whether the rule was in force at a decision and a matching trigger was held. Such a
    /// decision is worth explaining.
    pub(super) fn was_held(&mut self, subject: &Subject<'_>, at: usize) -> bool {
        let point = self.states[at].0;
        let FoundDefinition::InForce(rule, _) =
            self.definitions.rule(subject.name, subject.id, point)
        else {
            return false;
        };
        let names = rule.trigger_names.iter();
        { names }.any(|name| self.trigger_matched(name, at) == Some(true))
    }

    pub(super) fn rule_existed(&self, subject: &Subject<'_>, at: usize) -> bool {
        let point = self.states[at].0;
        let then = self.definitions.rule(subject.name, subject.id, point);
        matches!(then, FoundDefinition::InForce(..))
    }

    fn trigger_matched(&mut self, name: &Name, at: usize) -> Option<bool> {
        let point = self.states[at].0;
        let FoundDefinition::InForce(loaded, _) = self.definitions.trigger(name, point) else {
            return Some(false);
        };
        let key = (RevisionId::from(&loaded.trigger), point.at_ms);
        if let Some(verdict) = self.verdicts.get(&key) {
            return *verdict;
        }
        let state = &self.states[at].1;
        let matches_only_open = matches_only_open(&mut self.definitions, &loaded, state);
        let explained = explain_query(&mut self.definitions, &loaded, state);
        let explained = explained.filter(|_| !matches_only_open);
        let verdict = explained.map_or(Some(false), |it| it.verdict());
        self.verdicts.insert(key, verdict);
        verdict
    }

    pub(super) fn evaluate_current(&mut self, subject: &Subject<'_>) -> Option<Judgement> {
        let (rule, definition) = self.definitions.current_rule(subject.name, subject.id)?;
        let (point, state) = self.now.clone();
        Some(self.evaluate(
            subject,
            (&rule, definition),
            (point, &state),
            DecisionBasis::Now,
        ))
    }

    fn evaluate(
        &mut self,
        subject: &Subject<'_>,
        (rule, definition): (&Rule, Definition),
        (point, state): (DecisionPoint, &PastState),
        basis: DecisionBasis,
    ) -> Judgement {
        let names = &rule.trigger_names;
        let triggers: Vec<_> = names
            .iter()
            .map(|name| match basis {
                DecisionBasis::Now => match self.definitions.current_trigger(name) {
                    Some((loaded, definition)) => {
                        self.explain_trigger(&loaded, Some(definition), state)
                    }
                    None => TriggerExplanation::for_missing_trigger(name),
                },
                _ => self.trigger(name, point, state),
            })
            .collect();
        let now = basis == DecisionBasis::Now;
        let has_sent = !now && subject.was_sent_at(point.at_ms);
        let case = Case {
            rule,
            occurrence: &state.occurrence,
            notified: subject.notified,
            by_event: state.by_event,
            snapshot: self.snapshot,
            repeat_waits: false,
            now_ms: point.at_ms,
        };
        let tense = if now { Tense::Now } else { Tense::Then };
        let now_ms = self.now.0.at_ms;
        let mut gates = evaluate_gates(&case, tense, has_sent, now_ms);
        let held_by = self.evaluate_holds(subject, rule, (point, state), now);
        if !has_sent {
            gates.extend(holds::hold_gates(&held_by, now_ms));
        }
        let destinations: Vec<_> = case.destinations().map(|it| it.name.clone()).collect();
        let at = (point.at_ms, tense);
        gates.push(destination_paused_gate(&destinations, &self.pauses, at));
        let matched = triggers.iter().any(|it| it.verdict() == Some(true));
        let (held, is_repeat) = match case.verdict() {
            Verdict::Notifies => (Reason::from_holds(&held_by), false),
            Verdict::Held { by, hold, .. } => {
                let detail = (by.detail)(&case, Some(hold), tense);
                let reason = Reason::new(ReasonCode::Prevented, detail).with_end(hold.until_ms);
                (Some(reason), by.about_repeats.is_some())
            }
        };
        let passes = matched && held.is_none();
        let does = has_sent || passes && (now || rule.shadow);
        let matches_only_open = triggers.iter().any(|it| it.matches_only_open);
        let reason = match held {
            _ if does => {
                let detail = if now { "" } else { "an update or repeat" };
                Reason::new_notified(rule.shadow, detail).with_receivers(rule)
            }
            // If only the closing prevented a match, the hold is the reason: all changes are
            // already reported.
            Some(held) if matched || matches_only_open && !is_repeat => held,
            _ if !matched => no_match_reason(&triggers, now),
            _ => Reason::new(ReasonCode::Edited, "the rule or trigger was being edited"),
        };
        Judgement {
            basis,
            at_ms: point.at_ms,
            notifies: does && !rule.shadow,
            held_back: matched && !has_sent,
            reason,
            definition: Some(definition),
            triggers,
            gates,
        }
    }

    fn evaluate_holds(
        &self,
        subject: &Subject<'_>,
        rule: &Rule,
        (point, state): (DecisionPoint, &PastState),
        now: bool,
    ) -> Vec<HeldBy> {
        let occurrence = &state.occurrence;
        if !now {
            return holds::holds_at_time(occurrence, subject.id, point.at_ms);
        }
        let covering = self
            .snapshot
            .silences()
            .find_matching(occurrence, point.at_ms);
        let waits = occurrence.pending.iter().find(|it| it.rule == subject.id);
        let inhibited = waits.map_or_else(Vec::new, |it| {
            let held_by = it.held_by.iter();
            let held_by = held_by.filter(|it| it.kind == HoldKind::Inhibition);
            held_by.cloned().collect()
        });
        let kind = match subject.notified {
            None => SendKind::Opening,
            Some(_) if rule.repeat => SendKind::Repeat,
            Some(_) => SendKind::Update,
        };
        let (named, what) = ((&rule.name, Some(rule)), (kind, waits));
        let sending = OutgoingNotification {
            covering: &covering,
            inhibited: &inhibited,
            flapping: waits.and_then(|it| {
                let mut held_by = it.held_by.iter();
                held_by.find(|it| it.kind == HoldKind::Flapping)
            }),
            group: waits.and_then(|it| it.group_hold()),
            ..OutgoingNotification::new(named, what, occurrence, self.snapshot, point.at_ms)
        };
        sending.holds()
    }

    pub(super) fn trigger(
        &mut self,
        name: &Name,
        point: DecisionPoint,
        state: &PastState,
    ) -> TriggerExplanation {
        match self.definitions.trigger(name, point) {
            FoundDefinition::InForce(loaded, definition) => {
                self.explain_trigger(&loaded, Some(definition), state)
            }
            FoundDefinition::NotKept => TriggerExplanation {
                is_stored: false,
                ..TriggerExplanation::for_missing_trigger(name)
            },
            FoundDefinition::NotYet(_) | FoundDefinition::Deleted(_) => {
                TriggerExplanation::for_missing_trigger(name)
            }
        }
    }

    pub(super) fn explain_trigger(
        &mut self,
        loaded: &LoadedTrigger,
        definition: Option<Definition>,
        state: &PastState,
    ) -> TriggerExplanation {
        TriggerExplanation {
            trigger_name: loaded.trigger.name.clone(),
            is_stored: true,
            definition,
            matches_only_open: matches_only_open(&mut self.definitions, loaded, state),
            query: explain_query(&mut self.definitions, loaded, state),
        }
    }
}

fn explain_query(
    definitions: &mut Definitions,
    loaded: &LoadedTrigger,
    state: &PastState,
) -> Option<ClauseEvaluation> {
    let query = definitions.query(loaded)?;
    let known = |field: &_| state.retains_value(field);
    Some(query.explain(&loaded.trigger.query, &state.occurrence, &known))
}

fn matches_only_open(
    definitions: &mut Definitions,
    loaded: &LoadedTrigger,
    state: &PastState,
) -> bool {
    let is_closed = state.occurrence.status == Status::Closed;
    let query = definitions.query(loaded).filter(|_| is_closed);
    query.is_some_and(|it| !it.uses_status() && it.matches(&state.occurrence))
}

fn no_match_reason(triggers: &[TriggerExplanation], now: bool) -> Reason {
    let (has, is) = if now { ("has", "is") } else { ("had", "was") };
    if let Some(trigger) = triggers.iter().find(|it| it.matches_only_open) {
        let detail = format!(
            "The occurrence {is} closed, and the query of trigger `{}` does not use `status`, so \
             it matches open occurrences only",
            trigger.trigger_name
        );
        return Reason::new(ReasonCode::NoMatch, detail);
    }
    if triggers.iter().all(|it| it.verdict() == Some(false)) {
        let detail = match (now, triggers) {
            (_, []) => format!("The rule {has} no trigger"),
            (true, [_]) => "The trigger does not match".into(),
            (true, _) => "No trigger matches".into(),
            (false, [_]) => "The trigger did not match".into(),
            (false, _) => "No trigger matched".into(),
        };
        return Reason::new(ReasonCode::NoMatch, detail);
    }
    if triggers.iter().any(|it| !it.is_stored) {
        return Reason::new(
            ReasonCode::Unknown,
            "the trigger's revision is no longer stored",
        );
    }
    let mut fields = BTreeSet::new();
    for trigger in triggers {
        trigger
            .query
            .iter()
            .for_each(|it| collect_unknown(it, &mut fields));
    }
    let fields: Vec<_> = fields.into_iter().map(|it| format!("`{it}`")).collect();
    let fields = fields.join(", ");
    let detail = format!("later events replaced {fields}");
    Reason::new(ReasonCode::Unknown, detail)
}

fn collect_unknown<'a>(explained: &'a ClauseEvaluation, fields: &mut BTreeSet<&'a str>) {
    if explained.unknown && !explained.field.is_empty() {
        fields.insert(&explained.field);
    }
    for clause in &explained.clauses {
        collect_unknown(clause, fields);
    }
}
