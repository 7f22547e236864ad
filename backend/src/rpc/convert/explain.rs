//! Conversion of explanations.

use bellwether_proto::v1;

use super::{event::wire_value, to_i32};
use crate::{
    domain::{Attempt, DeliveryState, HoldChange, HoldOutcome},
    matching::ClauseEvaluation,
    ops::explain::{
        Judgement, Reason, RuleExplanation, SentDelivery, TriggerExplanation, describe,
    },
    wire::holds,
};

pub fn explanation(rule: RuleExplanation) -> v1::RuleExplanation {
    let next = next_step(&rule.main.reason);
    let main = judgement(rule.main);
    v1::RuleExplanation {
        rule_name: rule.rule_name.to_string(),
        notified: Some(rule.notified),
        reason: main.reason,
        triggers: main.triggers,
        gates: main.gates,
        deliveries: rule.deliveries.into_iter().map(delivery).collect(),
        basis: main.basis,
        decision_time: Some(main.time),
        definition: main.definition,
        deleted: Some(rule.deleted),
        deleted_time: rule.deleted_ms,
        others: rule.others.into_iter().map(judgement).collect(),
        notifications: rule.notifications,
        holds: holds(&rule.held_by),
        skipped_reason: rule.skipped_reason.unwrap_or_default(),
        next: next.into_iter().collect(),
        hold_steps: rule.hold_changes.iter().map(hold_step).collect(),
        reason_detail: main.reason_detail,
    }
}

fn reason(reason: Reason) -> v1::DecisionReason {
    v1::DecisionReason {
        outcome: reason.outcome().into(),
        due: reason.is_due,
        code: reason.code.into(),
        until: reason.until_ms,
        destination_names: reason
            .destinations
            .iter()
            .map(ToString::to_string)
            .collect(),
        escalation_policy: reason
            .escalation_policy
            .map_or_else(String::new, |it| it.to_string()),
        detail: reason.detail,
    }
}

fn next_step(reason: &Reason) -> Option<v1::NextStep> {
    Some(v1::NextStep {
        time: reason.until_ms,
        what: "evaluated".into(),
        destination_names: reason
            .destinations
            .iter()
            .map(ToString::to_string)
            .collect(),
        condition: reason.condition?.into(),
    })
}

fn hold_step(change: &HoldChange) -> v1::HoldStep {
    let kind = match change.what {
        HoldOutcome::Waits => "held",
        HoldOutcome::Released => "released",
        HoldOutcome::ReleasedByHand => "released by hand",
        HoldOutcome::HandedOver => "handed over",
        _ => "skipped",
    };
    v1::HoldStep {
        time: change.at_ms,
        kind: kind.into(),
        text: describe(change),
        holds: holds(&change.held_by),
    }
}

fn judgement(judgement: Judgement) -> v1::RuleJudgement {
    let text = judgement.reason_text();
    let triggers = judgement.triggers.into_iter();
    v1::RuleJudgement {
        basis: judgement.basis.into(),
        time: judgement.at_ms,
        notifies: Some(judgement.notifies),
        reason: text,
        definition: judgement.definition,
        triggers: triggers.map(trigger_explanation).collect(),
        gates: judgement.gates,
        reason_detail: Some(reason(judgement.reason)),
    }
}

fn trigger_explanation(trigger: TriggerExplanation) -> v1::TriggerExplanation {
    let verdict = trigger.verdict();
    v1::TriggerExplanation {
        trigger_name: trigger.trigger_name.to_string(),
        matched: Some(verdict.unwrap_or(false)),
        clause: trigger.query.map(clause_explanation),
        definition: trigger.definition,
        unknown: verdict.is_none(),
    }
}

fn clause_explanation(clause: ClauseEvaluation) -> v1::ClauseExplanation {
    v1::ClauseExplanation {
        r#type: clause.kind.into(),
        field: clause.field,
        expected: clause.expected.map(wire_value),
        actual: clause.actual.map(wire_value),
        result: Some(clause.result),
        clauses: clause.clauses.into_iter().map(clause_explanation).collect(),
        unknown: clause.unknown,
    }
}

fn delivery(sent: SentDelivery) -> v1::ExplainedDelivery {
    let outcome = sent.outcome();
    let delivery = sent.delivery;
    let (alone, digest_next) = match &sent.digest {
        None => (sent.waiting.next_ms, None),
        Some(_) => (None, sent.waiting.next_ms),
    };
    v1::ExplainedDelivery {
        id: delivery.id.to_string(),
        destination_name: delivery.destination_name,
        state: state_name(delivery.state).into(),
        create_time: delivery.create_ms,
        clear: Some(delivery.content.clear),
        end_time: delivery.end_ms,
        next_attempt_time: alone,
        last_error: delivery.last_error,
        attempt_count: Some(to_i32(delivery.attempts as usize)),
        attempts: sent.attempts.into_iter().map(attempt).collect(),
        digest: sent.digest.map(|it| v1::ExplainedDigest {
            delivery_id: it.id.to_string(),
            state: state_name(it.state).into(),
            end_time: it.end_ms,
            next_attempt_time: digest_next,
            message_count: to_i32(it.count as usize),
        }),
        wait_reason: sent.waiting.reason,
        wait_code: sent.waiting.code.into(),
        contact_name: delivery
            .content
            .contact
            .map(|it| it.name.to_string())
            .unwrap_or_default(),
        outcome: outcome.into(),
    }
}

fn state_name(state: DeliveryState) -> &'static str {
    let state = v1::delivery::State::try_from(i32::from(state.number()));
    state.unwrap_or_default().as_str_name()
}

fn attempt(attempt: Attempt) -> v1::ExplainedAttempt {
    v1::ExplainedAttempt {
        number: to_i32(attempt.number as usize),
        start_time: attempt.start_ms,
        outcome: attempt.outcome.map_or(0, |it| it as i32),
        explanation: attempt.explanation,
    }
}
