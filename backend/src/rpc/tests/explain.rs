//! Tests of explanations over the wire, also after later edits.

use std::collections::BTreeMap;

use bellwether_proto::cloud::{Event, Events};

use super::*;
use crate::{
    domain::{Delivery, Health, HealthState, IncomingEvent, Status, own_event::DESTINATION_PAUSED},
    store::{Lane, Record as _},
};

const HOUR: Duration = Duration::from_secs(3600);
const NOW: i32 = v1::DecisionBasis::Now as i32;
const LAST: i32 = v1::DecisionBasis::Last as i32;
const EARLIER: i32 = v1::DecisionBasis::Earlier as i32;
const NOTIFICATION: i32 = v1::DecisionBasis::Notification as i32;

fn event(change: impl FnOnce(&mut Event)) -> Event {
    let mut event = Event {
        name: "disk-full".into(),
        dimensions: BTreeMap::from([("host".into(), "a".into())]),
        summary: "the disk is full".into(),
        severity: 4,
        ..Event::default()
    };
    change(&mut event);
    event
}

fn enabled(rule: v1::Rule) -> v1::Rule {
    v1::Rule {
        enabled: Some(true),
        message: "as it was".into(),
        ..rule
    }
}

impl World {
    /// Starts a service with the trigger `disk`, the destination `hook`, and `rule`.
    async fn with(rule: v1::Rule) -> Self {
        let world = Self::start().await;
        world.create_trigger(trigger("disk")).await.unwrap();
        world.create_destination(destination("hook")).await.unwrap();
        world.create_rule(rule).await.unwrap();
        world.clock.advance(HOUR);
        world
    }

    async fn put(&self, change: impl FnOnce(&mut Event)) {
        let request = Events {
            detailed_response: true,
            events: vec![event(change)],
        };
        let result = inner(self.receiver(&self.key).put_events(request).await.unwrap());
        assert_eq!(result.succeeded, 1, "{}", result.message);
    }

    async fn edit_trigger(&self, word: &str) {
        let trigger = v1::Trigger {
            r#type: Some(event_type(Some(contains("summary", word)))),
            ..trigger("disk")
        };
        let request = v1::UpdateTriggerRequest {
            trigger: Some(trigger),
            ..v1::UpdateTriggerRequest::default()
        };
        self.triggers().update_trigger(request).await.unwrap();
    }

    async fn edit_rule(&self, rule: v1::Rule) {
        let request = v1::UpdateRuleRequest {
            rule: Some(rule),
            ..v1::UpdateRuleRequest::default()
        };
        self.rules().update_rule(request).await.unwrap();
    }

    async fn delete_rule(&self) {
        let request = v1::DeleteRuleRequest {
            name: "page".into(),
            ..v1::DeleteRuleRequest::default()
        };
        self.rules().delete_rule(request).await.unwrap();
    }

    async fn delete_trigger(&self) {
        let request = v1::DeleteTriggerRequest {
            name: "disk".into(),
            force: true,
            ..v1::DeleteTriggerRequest::default()
        };
        self.triggers().delete_trigger(request).await.unwrap();
    }

    async fn set_status(&self, status: i32) {
        let item = v1::StatusItem {
            event_id: self.event_id().await,
            status,
            ..v1::StatusItem::default()
        };
        let request = v1::SetStatusRequest {
            statuses: vec![item],
            ..v1::SetStatusRequest::default()
        };
        let answer = self.management(&self.key).set_status(request).await;
        assert_eq!(inner(answer.unwrap()).status_responses[0].error, "");
    }

    async fn event_id(&self) -> String {
        let request = v1::SearchEventsRequest { query: None };
        let answer = self.events(&self.key).search_events(request).await;
        let found = inner(answer.unwrap()).results;
        let disk = found.into_iter().find(|it| it.name == "disk-full");
        disk.unwrap().id
    }

    async fn explain(&self) -> v1::ExplainEventResponse {
        let request = v1::ExplainEventRequest {
            id: self.event_id().await,
            occurrence_id: String::new(),
        };
        inner(self.events(&self.key).explain_event(request).await.unwrap())
    }

    async fn explained(&self) -> v1::RuleExplanation {
        let mut rules = self.explain().await.rules;
        assert_eq!(rules.len(), 1, "{rules:?}");
        rules.remove(0)
    }

    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }
}

fn clause_result(trigger: &v1::TriggerExplanation) -> (Option<bool>, String) {
    let clause = trigger.clause.as_ref().unwrap();
    let text = |value: &prost_types::Value| match &value.kind {
        Some(prost_types::value::Kind::StringValue(text)) => text.clone(),
        other => panic!("no text: {other:?}"),
    };
    (clause.result, text(clause.expected.as_ref().unwrap()))
}

fn failed(gates: &[v1::Gate]) -> Vec<&str> {
    let failed = gates.iter().filter(|gate| gate.passed == Some(false));
    failed.map(|gate| gate.name.as_str()).collect()
}

fn judgement_now(rule: &v1::RuleExplanation) -> &v1::RuleJudgement {
    rule.others.iter().find(|it| it.basis == NOW).unwrap()
}

#[tokio::test]
async fn notifying_rule_is_explained_as_of_its_decision() {
    let world = World::with(enabled(rule("page", &["disk"], &["hook"]))).await;
    let fired_ms = world.now_ms();
    world.put(|_| {}).await;
    // At the time of the event.
    world.edit_trigger("nothing like it").await;
    world.clock.advance(HOUR);
    world.edit_rule(rule("page", &["disk"], &["hook"])).await;
    for deleted in [false, true] {
        let rule = world.explained().await;
        assert_eq!(rule.notified, Some(true));
        assert_eq!(
            (rule.basis, rule.decision_time),
            (NOTIFICATION, Some(fired_ms))
        );
        assert_eq!(
            clause_result(&rule.triggers[0]),
            (Some(true), "disk".into())
        );
        let definition = rule.triggers[0].definition.as_ref().unwrap();
        assert_eq!((definition.revision, definition.until), (1, Some(fired_ms)));
        assert_eq!(rule.definition.as_ref().unwrap().revision, 1);
        assert_eq!(failed(&rule.gates), Vec::<&str>::new());
        assert!(
            rule.reason
                .starts_with("Notified: trigger `disk` matched. 1 message,"),
            "{}",
            rule.reason
        );
        let notification = &rule.notifications[0];
        assert_eq!(
            (notification.time, notification.trigger_name.as_str()),
            (fired_ms, "disk")
        );
        assert_eq!(notification.delivery_ids, [rule.deliveries[0].id.clone()]);
        assert_eq!(rule.deleted, Some(deleted));
        if deleted {
            assert_eq!(rule.deleted_time, Some(world.now_ms()));
            assert!(rule.others.is_empty(), "{:?}", rule.others);
        } else {
            let now = judgement_now(&rule);
            assert_eq!(now.notifies, Some(false));
            assert_eq!(
                clause_result(&now.triggers[0]),
                (Some(false), "nothing like it".into())
            );
            assert_eq!(now.definition.as_ref().unwrap().revision, 2);
            world.delete_rule().await;
            world.delete_trigger().await;
        }
    }
}

#[tokio::test]
async fn outcome_is_unknown_once_the_deliveries_are_deleted() {
    let world = World::with(enabled(rule("page", &["disk"], &["hook"]))).await;
    world.put(|_| {}).await;
    let outcome = |rule: v1::RuleExplanation| rule.reason_detail.unwrap().outcome();
    let before = outcome(world.explained().await);
    assert_eq!(before, v1::NotificationOutcome::Waiting);
    for delivery in samples::all::<Delivery>(&world.store).await {
        let stored = world.store.get::<Delivery>(delivery.key()).await.unwrap();
        let mut changes = world.store.new_changes();
        changes.delete(&stored.unwrap());
        world.store.apply(Lane::Admin, changes).await.unwrap();
    }
    let after = outcome(world.explained().await);
    assert_eq!(after, v1::NotificationOutcome::Unknown);
}

#[tokio::test]
async fn non_notifying_rule_is_explained_as_of_its_decision() {
    let world = World::with(enabled(rule("page", &["disk"], &["hook"]))).await;
    world.put(|event| event.summary = "cpu".into()).await;
    let decided_ms = world.now_ms();
    world.edit_trigger("cpu").await;
    let rule = world.explained().await;
    assert_eq!((rule.notified, rule.basis), (Some(false), LAST));
    assert_eq!(rule.decision_time, Some(decided_ms));
    assert_eq!(rule.reason, "The trigger did not match");
    assert_eq!(
        clause_result(&rule.triggers[0]),
        (Some(false), "disk".into())
    );
    assert_eq!(
        judgement_now(&rule).notifies,
        Some(true),
        "{:?}",
        judgement_now(&rule)
    );
    world.clock.advance(HOUR);
    world.delete_rule().await;
    world.delete_trigger().await;
    let gone = world.explained().await;
    assert_eq!((gone.deleted, &gone.reason), (Some(true), &rule.reason));
    assert_eq!(gone.triggers[0].clause, rule.triggers[0].clause);
}

#[tokio::test]
async fn rule_disabled_at_the_time_is_explained_after_enabling() {
    let world = World::with(rule("page", &["disk"], &["hook"])).await;
    world.put(|_| {}).await;
    world.clock.advance(HOUR);
    world
        .edit_rule(enabled(rule("page", &["disk"], &["hook"])))
        .await;
    let rule = world.explained().await;
    assert_eq!(failed(&rule.gates), ["enabled"]);
    assert_eq!(
        rule.reason,
        "A trigger matched, but no message was sent: the rule was disabled"
    );
    assert_eq!(judgement_now(&rule).notifies, Some(true));
    assert_eq!(
        judgement_now(&rule).reason,
        "Would notify if the same event arrived now"
    );
}

#[tokio::test]
async fn rule_created_after_the_event_is_explained() {
    let world = World::start().await;
    world.create_trigger(trigger("disk")).await.unwrap();
    world.create_destination(destination("hook")).await.unwrap();
    world.put(|_| {}).await;
    world.clock.advance(HOUR);
    world
        .create_rule(enabled(rule("page", &["disk"], &["hook"])))
        .await
        .unwrap();
    let rule = world.explained().await;
    assert_eq!((rule.notified, rule.definition), (Some(false), None));
    assert!(
        rule.reason.starts_with("The rule was created at "),
        "{}",
        rule.reason
    );
    assert_eq!(judgement_now(&rule).notifies, Some(true));
}

#[tokio::test]
async fn repeats_are_distinguished_from_held_messages() {
    let mut repeating = enabled(rule("page", &["disk"], &["hook"]));
    repeating.repeat = Some(true);
    repeating.repeat_interval = Some(3600);
    let world = World::with(repeating.clone()).await;
    world.put(|_| {}).await;
    world.clock.advance(HOUR);
    world.put(|_| {}).await;
    world.clock.advance(HOUR / 2);
    world.put(|_| {}).await;
    repeating.repeat = Some(false);
    world.edit_rule(repeating).await;
    let rule = world.explained().await;
    assert_eq!(rule.notifications.len(), 2);
    assert!(failed(&rule.gates).is_empty());
    let last = rule.others.iter().find(|it| it.basis == LAST).unwrap();
    assert_eq!(failed(&last.gates), ["repeat interval"]);
    let detail = last.reason_detail.as_ref().unwrap();
    assert_eq!(detail.code(), v1::ReasonCode::Prevented);
    assert_eq!(detail.until, Some(world.now_ms() + 1_800_000));
    assert_eq!(detail.detail, "within the repeat interval of 3600 s");
    assert_eq!(failed(&judgement_now(&rule).gates), ["already notified"]);
    assert!(
        judgement_now(&rule)
            .reason
            .starts_with("Would not notify: the rule already notified at "),
        "{}",
        judgement_now(&rule).reason
    );
}

#[tokio::test]
async fn ended_suppression_is_still_explained() {
    let world = World::with(enabled(rule("page", &["disk"], &["hook"]))).await;
    world
        .put(|event| {
            event.summary = "cpu".into();
            event.status = 2;
        })
        .await;
    world.clock.advance(HOUR);
    world.put(|_| {}).await;
    let suppressed = world.explained().await;
    assert_eq!(failed(&suppressed.gates), ["suppressed"]);
    world.clock.advance(HOUR);
    world.set_status(3).await;
    let rule = world.explained().await;
    assert_eq!((rule.notified, rule.basis), (Some(false), LAST));
    assert_eq!(failed(&rule.gates), ["suppressed"]);
    assert!(
        rule.reason.contains("suppressed until closed"),
        "{}",
        rule.reason
    );
}

#[tokio::test]
async fn closing_message_keeps_the_trigger_of_its_opening() {
    let mut updating = enabled(rule("page", &["disk"], &["hook"]));
    updating.send_updates = Some(true);
    let world = World::with(updating).await;
    world.put(|_| {}).await;
    world.clock.advance(HOUR);
    world.delete_rule().await;
    world.delete_trigger().await;
    world.put(|event| event.status = 3).await;
    let rule = world.explained().await;
    let notification = |at: usize| {
        let notification = &rule.notifications[at];
        (
            notification.clear,
            notification.trigger_name.as_str(),
            notification.delivery_ids.len(),
        )
    };
    assert_eq!(notification(0), (Some(false), "disk", 1));
    assert_eq!(notification(1), (Some(true), "disk", 1));
    assert_eq!(rule.deliveries[1].clear, Some(true));
    let last = rule.others.iter().find(|it| it.basis == LAST).unwrap();
    assert_eq!(last.definition, None, "the rule was deleted");
}

#[tokio::test]
async fn ended_pause_is_still_explained() {
    let world = World::with(enabled(rule("page", &["disk"], &["hook"]))).await;
    let hook = samples::all::<crate::domain::Destination>(&world.store)
        .await
        .remove(0);
    let mut changes = world.store.new_changes();
    let paused = Health {
        state: HealthState::Paused,
        failures: 9,
        last_error: "gone".into(),
        ..Health::new_unattempted(hook.id, world.now_ms() - 1)
    };
    changes.insert(&paused);
    world.store.apply(Lane::Admin, changes).await.unwrap();
    world.put(|_| {}).await;
    let notice = async |status: Status| {
        let notice = IncomingEvent {
            status: Some(status),
            ..DESTINATION_PAUSED.event([hook.name.as_str()], world.now_ms())
        };
        let intake = &world.node().intake;
        intake.submit_internal(notice, Vec::new()).await.unwrap();
    };
    let still = world.explained().await;
    assert_eq!(failed(&still.gates), ["destination paused"]);
    assert_eq!(
        failed(&judgement_now(&still).gates),
        ["already notified", "destination paused"]
    );
    // Report as the delivery module does when it pauses a destination and when a user resumes it.
    notice(Status::Open).await;
    world.clock.advance(HOUR);
    notice(Status::Closed).await;
    let mut changes = world.store.new_changes();
    let stored = world
        .store
        .get::<Health>(hook.id.to_bytes().into())
        .await
        .unwrap();
    let resumed = Health {
        state: HealthState::Healthy,
        since_ms: world.now_ms(),
        ..paused
    };
    changes.update(&stored.unwrap(), &resumed);
    world.store.apply(Lane::Admin, changes).await.unwrap();
    let after = world.explained().await;
    assert_eq!(failed(&after.gates), ["destination paused"]);
    assert_eq!(failed(&judgement_now(&after).gates), ["already notified"]);
}

#[tokio::test]
async fn overwritten_fields_are_explained_as_unknown() {
    let world = World::with(rule("page", &["disk"], &["hook"])).await;
    world.put(|_| {}).await;
    world.clock.advance(HOUR);
    world.delete_rule().await;
    world.clock.advance(HOUR);
    world.put(|event| event.summary = "fine".into()).await;
    let rule = world.explained().await;
    assert_eq!((rule.basis, rule.triggers[0].unknown), (EARLIER, true));
    let clause = rule.triggers[0].clause.as_ref().unwrap();
    assert_eq!((clause.unknown, &clause.actual), (true, &None));
    assert_eq!(rule.reason, "Unknown: later events replaced `summary`");
}

#[tokio::test]
async fn more_informative_earlier_decision_is_shown() {
    let world = World::start().await;
    let critical = v1::GreaterAndEquals {
        field: "severity".into(),
        value: Some(prost_types::Value {
            kind: Some(prost_types::value::Kind::StringValue("critical".into())),
        }),
    };
    let trigger = v1::Trigger {
        r#type: Some(event_type(Some(clause(
            v1::clause::Kind::GreaterAndEquals(critical),
        )))),
        ..trigger("disk")
    };
    world.create_trigger(trigger).await.unwrap();
    world.create_destination(destination("hook")).await.unwrap();
    world
        .create_rule(rule("page", &["disk"], &["hook"]))
        .await
        .unwrap();
    world.clock.advance(HOUR);
    world.put(|event| event.severity = 5).await;
    let opened_ms = world.now_ms();
    world.clock.advance(HOUR);
    world
        .put(|event| (event.severity, event.summary) = (2, "fine".into()))
        .await;
    let rule = world.explained().await;
    assert_eq!((rule.basis, rule.decision_time), (EARLIER, Some(opened_ms)));
    assert_eq!(rule.triggers[0].matched, Some(true));
    assert_eq!(failed(&rule.gates), ["enabled"]);
}

#[tokio::test]
async fn close_without_a_status_query_is_explained() {
    let world = World::with(enabled(rule("page", &["disk"], &["hook"]))).await;
    world.put(|event| event.status = 3).await;
    let rule = world.explained().await;
    assert_eq!((rule.notified, rule.basis), (Some(false), LAST));
    let said = "The occurrence was closed, and the query of trigger `disk` does not use `status`";
    assert!(rule.reason.starts_with(said), "{}", rule.reason);
    assert_eq!(rule.triggers[0].matched, Some(false));
}

#[tokio::test]
async fn operator_change_is_distinguished_from_a_due_repeat() {
    let mut repeating = enabled(rule("page", &["disk"], &["hook"]));
    repeating.repeat = Some(true);
    repeating.repeat_interval = Some(0);
    let world = World::with(repeating).await;
    world.put(|_| {}).await;
    world.clock.advance(HOUR);
    world.set_status(2).await;
    world.clock.advance(HOUR);
    world.set_status(1).await;
    let rule = world.explained().await;
    let last = rule.others.iter().find(|it| it.basis == LAST).unwrap();
    assert_eq!(failed(&last.gates), ["repeat interval"]);
    assert!(
        last.reason.contains("only reports from a sender"),
        "{}",
        last.reason
    );
    assert_eq!(rule.deliveries.len(), 1);
}
