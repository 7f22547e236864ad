//! Why each rule did or did not notify about an occurrence.

use std::collections::BTreeMap;

use crate::{
    domain::{
        Delivery, DeliveryState, Health, HealthState, Name, Notified, Occurrence, RecordId, Rule,
        Status,
    },
    error::Error,
    matching::Explained,
    ops::ruleset::Snapshot,
    store::{Direction, Index, Store, engine::Range},
};

/// Deliveries of one event that are looked at, newest first.
const DELIVERIES_MAX: usize = 1_000;

/// What one rule made of an occurrence.
#[derive(Debug, Clone)]
pub struct RuleExplanation {
    /// The rule's name.
    pub rule_name: Name,
    /// Whether it notified about the occurrence.
    pub notified: bool,
    /// A sentence for people.
    pub reason: String,
    /// Its triggers as they are now, each with how it sees the occurrence as it is now.
    pub triggers: Vec<TriggerExplanation>,
    /// What stands between a match and a notification, in order.
    pub gates: Vec<Gate>,
    /// What it sent about the occurrence, or is to send, oldest first.
    pub deliveries: Vec<Delivery>,
}

/// How one trigger sees an occurrence.
#[derive(Debug, Clone)]
pub struct TriggerExplanation {
    /// The trigger's name.
    pub trigger_name: Name,
    /// Its query; none when the trigger does not exist or its query is not valid.
    pub query: Option<Explained>,
}

/// One thing that stands between a match and a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// What it is called.
    pub name: &'static str,
    /// Whether it lets a notification pass.
    pub passed: bool,
    /// What it saw.
    pub detail: String,
}

/// Explains every rule, by name; rules that are gone and notified come last.
///
/// What was sent and who was told is as it happened; triggers and gates are as they stand now.
///
/// # Errors
/// Those of the store.
pub async fn explain(
    store: &Store,
    snapshot: &Snapshot,
    occurrence: &Occurrence,
    now_ms: i64,
) -> Result<Vec<RuleExplanation>, Error> {
    let mut sent = deliveries_by_rule(store, occurrence).await?;
    let paused = paused(store, snapshot).await?;
    let mut explanations = Vec::new();
    for rule in snapshot.rules() {
        let told = occurrence
            .notified
            .iter()
            .find(|notified| notified.rule == rule.id);
        let deliveries = sent.remove(&rule.id).unwrap_or_default();
        let triggers = triggers(rule, snapshot, occurrence);
        let gates = gates(rule, told, occurrence, &paused, now_ms);
        let notified = told.is_some() || !deliveries.is_empty();
        explanations.push(RuleExplanation {
            reason: reason(notified, &deliveries, &triggers, &gates),
            rule_name: rule.name.clone(),
            notified,
            triggers,
            gates,
            deliveries,
        });
    }
    for told in &occurrence.notified {
        if let Some(deliveries) = sent.remove(&told.rule) {
            explanations.push(RuleExplanation {
                rule_name: told.rule_name.clone(),
                notified: true,
                reason: "it notified, and was deleted since".into(),
                triggers: Vec::new(),
                gates: Vec::new(),
                deliveries,
            });
        }
    }
    Ok(explanations)
}

async fn deliveries_by_rule(
    store: &Store,
    occurrence: &Occurrence,
) -> Result<BTreeMap<RecordId, Vec<Delivery>>, Error> {
    let found = store
        .page_by::<Delivery>(
            Index::DeliveryByEvent,
            Range::under(&occurrence.event.to_bytes()),
            Direction::Descending,
            DELIVERIES_MAX,
        )
        .await?;
    let mut by_rule: BTreeMap<RecordId, Vec<Delivery>> = BTreeMap::new();
    for delivery in found.into_iter().rev().map(|(_, found)| found.value) {
        let about_it = delivery.content.occurrence.number == occurrence.number && !delivery.test;
        if let (Some(rule), true) = (delivery.rule, about_it) {
            by_rule.entry(rule).or_default().push(delivery);
        }
    }
    Ok(by_rule)
}

async fn paused(store: &Store, snapshot: &Snapshot) -> Result<Vec<RecordId>, Error> {
    let keys = snapshot
        .destinations()
        .map(|found| found.id.to_bytes().into())
        .collect();
    let healths = store.get_many::<Health>(keys).await?.into_iter().flatten();
    let paused = healths.filter(|health| health.value.state == HealthState::Paused);
    Ok(paused.map(|health| health.value.destination).collect())
}

fn triggers(rule: &Rule, snapshot: &Snapshot, occurrence: &Occurrence) -> Vec<TriggerExplanation> {
    let explain = |name: &Name| TriggerExplanation {
        trigger_name: name.clone(),
        query: snapshot.loaded(name).and_then(|loaded| {
            Some(
                loaded
                    .query
                    .as_ref()?
                    .explain(&loaded.trigger.query, occurrence),
            )
        }),
    };
    rule.trigger_names.iter().map(explain).collect()
}

fn gates(
    rule: &Rule,
    told: Option<&Notified>,
    occurrence: &Occurrence,
    paused: &[RecordId],
    now_ms: i64,
) -> Vec<Gate> {
    let enabled = Gate {
        name: "enabled",
        passed: rule.enabled,
        detail: if rule.enabled {
            "the rule is enabled"
        } else {
            "the rule is disabled"
        }
        .into(),
    };
    let suppressed = Gate {
        name: "suppressed",
        passed: occurrence.status != Status::Suppressed,
        detail: format!("the occurrence is {}", occurrence.status.word()),
    };
    let waiting: Vec<_> = told
        .into_iter()
        .flat_map(|told| &told.destinations)
        .filter(|(id, _)| paused.contains(id))
        .map(|(_, name)| format!("`{name}`"))
        .collect();
    let destination_paused = Gate {
        name: "destination paused",
        passed: waiting.is_empty(),
        detail: if waiting.is_empty() {
            "none is paused".into()
        } else {
            format!("{} is paused; its messages wait", waiting.join(", "))
        },
    };
    vec![
        enabled,
        suppressed,
        already_notified(rule, told),
        repeat_interval(rule, told, now_ms),
        destination_paused,
    ]
}

fn already_notified(rule: &Rule, told: Option<&Notified>) -> Gate {
    let (passed, detail) = match (told, rule.repeat) {
        (None, _) => (true, "it has not notified about this occurrence".to_owned()),
        (Some(_), true) => (true, "it has notified, and the rule repeats".to_owned()),
        (Some(_), false) => (
            false,
            "it has notified, and tells each occurrence once: no further match is told".to_owned(),
        ),
    };
    Gate {
        name: "already notified",
        passed,
        detail,
    }
}

fn repeat_interval(rule: &Rule, told: Option<&Notified>, now_ms: i64) -> Gate {
    let interval_ms = i64::from(rule.repeat_interval_seconds) * 1000;
    let (passed, detail) = match told {
        Some(told) if rule.repeat => {
            let left_ms = told
                .last_ms
                .saturating_add(interval_ms)
                .saturating_sub(now_ms);
            match left_ms {
                ..=0 => (true, "the interval has passed".to_owned()),
                left_ms => (
                    false,
                    format!("{} s of the interval are left", left_ms / 1000 + 1),
                ),
            }
        }
        _ => (true, "there is no interval to wait for".to_owned()),
    };
    Gate {
        name: "repeat interval",
        passed,
        detail,
    }
}

fn messages(count: usize) -> String {
    match count {
        1 => "1 message".into(),
        count => format!("{count} messages"),
    }
}

fn reason(
    notified: bool,
    deliveries: &[Delivery],
    triggers: &[TriggerExplanation],
    gates: &[Gate],
) -> String {
    if notified {
        let ended = |state: DeliveryState| {
            deliveries
                .iter()
                .filter(|delivery| delivery.state == state)
                .count()
        };
        let (delivered, dead) = (ended(DeliveryState::Delivered), ended(DeliveryState::Dead));
        return format!(
            "it notified: {}, {delivered} delivered, {dead} given up",
            messages(deliveries.len())
        );
    }
    let matches = |found: &TriggerExplanation| found.query.as_ref().is_some_and(|it| it.result);
    if triggers.is_empty() {
        return "it has no trigger".into();
    }
    if !triggers.iter().any(matches) {
        return "none of its triggers matches".into();
    }
    match gates.iter().find(|gate| !gate.passed) {
        Some(gate) => format!("it did not notify: {}", gate.detail),
        None => {
            "it would notify if the event came now; it did not match when the event came".into()
        }
    }
}
