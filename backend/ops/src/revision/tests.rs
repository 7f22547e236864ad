//! Tests of stored revisions of triggers and rules.

use std::time::Duration;

use bellwether_proto::v1;

use super::*;
use crate::{
    clock::{Clock as _, ManualClock},
    domain::{IncomingEvent, Status},
    intake::Intake,
    review::Reviewer,
    rule::Rules,
    samples::{self, DISK_TRIGGER},
    store::verify,
    trigger::{Triggers, event_type},
};

const HOUR: Duration = Duration::from_secs(3600);

struct Service {
    store: Store,
    clock: std::sync::Arc<ManualClock>,
    triggers: Triggers,
    rules: Rules,
    intake: Intake,
    deciding: crate::decision_context::DecisionContext,
    _working: tokio_util::sync::DropGuard,
}

async fn service() -> Service {
    let store = Store::in_memory();
    let (deciding, clock) = samples::deciding(store.clone()).await;
    let (intake, working) = samples::intake(&deciding);
    Service {
        triggers: Triggers::new(store.clone(), clock.clone()),
        rules: Rules::new(store.clone(), clock.clone()),
        store,
        clock,
        intake,
        deciding,
        _working: working,
    }
}

impl Service {
    async fn with_rule(message: &str) -> Self {
        let service = service().await;
        let mut rule = samples::rule("page", &[DISK_TRIGGER], &["hook"]);
        rule.message = message.into();
        rule.send_updates = true;
        samples::save_rule(&service.store, &rule).await;
        service
    }

    async fn send(&self, change: impl FnOnce(&mut IncomingEvent)) {
        let mut event = samples::event("a");
        event.timestamp_ms = crate::clock::Clock::now_ms(&*self.clock);
        change(&mut event);
        let submitted = self.intake.submit(vec![event], None).await.unwrap();
        assert!(submitted.failed.is_empty());
    }

    async fn edit_trigger(&self, description: &str) {
        let draft = v1::Trigger {
            name: DISK_TRIGGER.into(),
            description: description.into(),
            r#type: Some(event_type(&samples::trigger("everything").query)),
            ..v1::Trigger::default()
        };
        self.triggers.update(&draft, false).await.unwrap();
    }

    async fn edit_rule(&self, message: &str) {
        let draft = v1::Rule {
            name: "page".into(),
            enabled: Some(true),
            trigger_names: vec![DISK_TRIGGER.into()],
            destination_names: vec!["hook".into()],
            message: message.into(),
            send_updates: Some(true),
            ..v1::Rule::default()
        };
        self.rules.update(&draft, false).await.unwrap();
    }

    async fn revision_count(&self) -> usize {
        samples::all::<Revision>(&self.store).await.len()
    }
}

#[tokio::test]
async fn deleted_rule_closes_with_its_opening_text_and_trigger() {
    let service = Service::with_rule("disk of {{event.name}}").await;
    service.clock.advance(HOUR);
    service.send(|_| {}).await;
    service.edit_trigger("another").await;
    service.edit_rule("another text").await;
    service.rules.delete("page", "", false).await.unwrap();
    service
        .triggers
        .delete(DISK_TRIGGER, "", false)
        .await
        .unwrap();
    service.clock.advance(HOUR);
    service
        .send(|event| event.status = Some(Status::Closed))
        .await;
    let sent = samples::all::<crate::domain::Delivery>(&service.store).await;
    let closing = &sent.iter().find(|it| it.content.clear).unwrap().content;
    assert_eq!(closing.rule.message, "disk of {{event.name}}");
    assert_eq!(closing.trigger, Some(samples::trigger(DISK_TRIGGER)));
    let findings = verify(&service.store, &|_| {}).await;
    assert_eq!(findings.descriptions, Vec::<String>::new());
}

#[tokio::test]
async fn revisions_are_retained_while_occurrences_may_reference_them() {
    let service = Service::with_rule("").await;
    service.send(|_| {}).await;
    service.clock.advance(2 * HOUR);
    service.edit_trigger("another").await;
    service
        .send(|event| event.status = Some(Status::Closed))
        .await;
    delete_unused(&service.store, service.clock.now_ms())
        .await
        .unwrap();
    assert_eq!(service.revision_count().await, 1);
    service.clock.advance(40 * 24 * HOUR);
    Reviewer::new(service.deciding.clone(), service.intake.clone())
        .run_once()
        .await;
    delete_unused(&service.store, service.clock.now_ms())
        .await
        .unwrap();
    assert_eq!(service.revision_count().await, 0);
}

#[tokio::test]
async fn revisions_per_resource_are_bounded() {
    let service = Service::with_rule("").await;
    service.send(|_| {}).await;
    for number in 0..REVISIONS_OF_ONE_MAX + 5 {
        service.edit_rule(&number.to_string()).await;
    }
    let retained = stored_revisions(&service.store, RevisionKind::Rule, &samples::name("page"))
        .await
        .unwrap();
    assert_eq!(retained.len() as u64, REVISIONS_OF_ONE_MAX);
    let newest = retained.last().unwrap();
    assert_eq!(newest.id().revision, REVISIONS_OF_ONE_MAX + 5);
}
