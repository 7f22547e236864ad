//! Explanations from the wire.

use bellwether_proto::v1;
use serde_json::Value;

use super::value::value;
use crate::data::{
    Basis, ClauseExplanation, Definition, ExplainedDelivery, Explanation, GateVerdict, Judgement,
    RuleExplanation, Told, TriggerExplanation,
};

pub(in crate::client) fn explanation(from: v1::ExplainEventResponse) -> Explanation {
    Explanation {
        occurrence_id: from.occurrence_id,
        rules: from.rules.into_iter().map(rule_explanation).collect(),
    }
}

pub(super) fn rule_explanation(from: v1::RuleExplanation) -> RuleExplanation {
    let main = v1::RuleJudgement {
        basis: from.basis,
        time: from.decision_time.unwrap_or_default(),
        notifies: from.notified,
        reason: from.reason,
        definition: from.definition,
        triggers: from.triggers,
        gates: from.gates,
    };
    let told = |from: v1::ExplainedNotification| Told {
        time_ms: from.time,
        clear: from.clear.unwrap_or_default(),
        trigger_name: from.trigger_name,
        delivery_ids: from.delivery_ids,
    };
    RuleExplanation {
        rule_name: from.rule_name,
        notified: from.notified.unwrap_or_default(),
        deleted: from.deleted.unwrap_or_default(),
        deleted_ms: from.deleted_time,
        main: judgement(main),
        others: from.others.into_iter().map(judgement).collect(),
        told: from.notifications.into_iter().map(told).collect(),
        deliveries: from.deliveries.into_iter().map(delivery).collect(),
    }
}

fn judgement(from: v1::RuleJudgement) -> Judgement {
    let basis = match v1::DecisionBasis::try_from(from.basis) {
        Ok(v1::DecisionBasis::Notification) => Basis::Notification,
        Ok(v1::DecisionBasis::Last) => Basis::Last,
        Ok(v1::DecisionBasis::Earlier) => Basis::Earlier,
        Ok(v1::DecisionBasis::Now) => Basis::Now,
        Ok(v1::DecisionBasis::Unspecified) | Err(_) => Basis::Unknown,
    };
    let trigger = |from: v1::TriggerExplanation| TriggerExplanation {
        trigger_name: from.trigger_name,
        matched: (!from.unknown).then(|| from.matched.unwrap_or_default()),
        clause: from.clause.map(clause_explanation),
        definition: from.definition.map(definition),
    };
    let gate = |from: v1::Gate| GateVerdict {
        name: from.name,
        passed: from.passed.unwrap_or_default(),
        detail: from.detail,
    };
    Judgement {
        basis,
        time_ms: from.time,
        notifies: from.notifies.unwrap_or_default(),
        reason: from.reason,
        definition: from.definition.map(definition),
        triggers: from.triggers.into_iter().map(trigger).collect(),
        gates: from.gates.into_iter().map(gate).collect(),
    }
}

fn definition(from: v1::Definition) -> Definition {
    Definition {
        revision: from.revision,
        until_ms: from.until,
        deleted: from.deleted,
    }
}

pub(super) fn clause_explanation(from: v1::ClauseExplanation) -> ClauseExplanation {
    ClauseExplanation {
        kind: from.r#type,
        field: from.field,
        expected: from.expected.map_or(Value::Null, value),
        actual: from.actual.map(value),
        result: (!from.unknown).then(|| from.result.unwrap_or_default()),
        clauses: from.clauses.into_iter().map(clause_explanation).collect(),
    }
}

fn delivery(from: v1::ExplainedDelivery) -> ExplainedDelivery {
    let attempt = |from: v1::ExplainedAttempt| {
        let word = match from.outcome() {
            v1::Outcome::Unspecified => "under way",
            v1::Outcome::Delivered => "delivered",
            v1::Outcome::Rejected => "rejected",
            v1::Outcome::Unreachable => "not reached",
            v1::Outcome::Blocked => "blocked",
            v1::Outcome::Unknown => "outcome unknown",
        };
        let told = match from.explanation.as_str() {
            "" => word.to_owned(),
            explanation => format!("{word}: {explanation}"),
        };
        (from.start_time, told)
    };
    ExplainedDelivery {
        id: from.id,
        destination: from.destination_name,
        state: from.state.to_lowercase(),
        next_attempt_ms: from.next_attempt_time,
        attempts: from.attempts.into_iter().map(attempt).collect(),
    }
}
