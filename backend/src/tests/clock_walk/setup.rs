//! The content of the store for a walk: rules, a policy, a heartbeat, and records that only clock
//! steps affect.

use std::collections::BTreeMap;

use super::{
    DELAY_MS, GROUP_INTERVAL_MS, GROUP_WAIT_MS, HOUR_MS, MINUTE_MS, PEOPLE, REPEAT_MS, SECOND_MS,
    STEP_MS,
};
use crate::{
    domain::{
        BudgetWindow, Delivery, DeliveryState, EscalationPlan, EscalationPolicy, EscalationStep,
        EscalationTarget, Grouping, Health, Heartbeat, HeartbeatEvent, Receipt, Rule, Severity,
        Silence,
    },
    message::sample,
    samples::{self, DISK_TRIGGER, START_MS, id, name},
    testing::samples as records,
};

/// Returns the rules. Each has a destination of the same name, except the rule that pages.
pub(super) fn rules() -> [Rule; 4] {
    let rule = |of| samples::rule(of, &[DISK_TRIGGER], &[of]);
    [
        Rule {
            escalation_policy: Some(name("on call")),
            destination_names: Vec::new(),
            ..rule("page")
        },
        Rule {
            delay_ms: DELAY_MS,
            ..rule("delayed")
        },
        Rule {
            repeat: true,
            repeat_interval_seconds: u32::try_from(REPEAT_MS / SECOND_MS).unwrap(),
            ..rule("repeated")
        },
        Rule {
            group: Some(Grouping {
                by: vec!["host".into()],
                wait_ms: GROUP_WAIT_MS,
                interval_ms: GROUP_INTERVAL_MS,
            }),
            ..rule("grouped")
        },
    ]
}

pub(super) fn policy() -> EscalationPolicy {
    let step = |called: &str| EscalationStep {
        targets: vec![EscalationTarget::Destination(name(called))],
        wait_ms: STEP_MS,
    };
    EscalationPolicy {
        id: id("on call"),
        name: name("on call"),
        description: String::new(),
        tags: Vec::new(),
        plan: EscalationPlan {
            steps: PEOPLE.map(step).into(),
            rounds: 1,
            ack_timeout_ms: 0,
            fallback: None,
        },
        revision: 1,
        create_ms: START_MS,
        update_ms: START_MS,
    }
}

pub(super) fn heartbeat() -> Heartbeat {
    Heartbeat {
        id: id("backup"),
        name: name("backup"),
        description: String::new(),
        tags: Vec::new(),
        enabled: true,
        query: None,
        by: Vec::new(),
        every_ms: MINUTE_MS,
        calendar: None,
        cron: String::new(),
        time_zone: String::new(),
        max_run_ms: None,
        grace_ms: 10 * SECOND_MS,
        forget_ms: 1_000 * HOUR_MS,
        event: HeartbeatEvent {
            name: String::new(),
            severity: Severity::Warning,
            summary: String::new(),
            dimensions: BTreeMap::new(),
        },
        key_number: 0,
        revision: 1,
        create_ms: START_MS,
        update_ms: START_MS,
    }
}

/// Returns a silence that covers no events, active from the start, with an end.
pub(super) fn silence() -> Silence {
    Silence {
        query: Some(samples::trigger("nothing").query),
        rule_names: Vec::new(),
        calendar: None,
        start_ms: START_MS,
        end_ms: START_MS + 10_000 * HOUR_MS,
        expire_when_idle_ms: None,
        ..records::silence("ends")
    }
}

/// Returns records that wait until a time, and that only clock steps affect.
pub(super) fn fixed(until_ms: i64) -> (Delivery, BudgetWindow, Health, Receipt) {
    let kind = samples::destination("fixed").kind;
    let content = sample::sample_content(sample::sample_occurrence(START_MS), kind, String::new());
    let delivery = Delivery {
        state: DeliveryState::Retry { due_ms: until_ms },
        ..Delivery::new(
            id("fixed"),
            (id("fixed"), "fixed".into()),
            content,
            START_MS,
        )
    };
    let budget = BudgetWindow {
        destination: id("fixed"),
        until_ms,
        ..records::budget_window()
    };
    let health = Health {
        requested_until_ms: Some(until_ms),
        ..Health::new_unattempted(id("fixed"), START_MS)
    };
    let receipt = Receipt {
        create_ms: until_ms,
        ..records::receipt()
    };
    (delivery, budget, health, receipt)
}
