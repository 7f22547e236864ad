//! Tests of destinations that fail, recover, are paused, or are the only way to report their own
//! failure.

use bellwether_proto::v1;

use super::*;
use crate::domain::Status;
use crate::{
    clock::Clock as _,
    contact::Contacts,
    domain::{Occurrence, Rule},
    escalation_policy::EscalationPolicies,
    samples::{
        self, rule,
        world::{self, Node},
    },
    store::Lane,
};

type World = world::World<FailingWatch>;

fn watch(node: &Node) -> FailingWatch {
    FailingWatch::new(node.deciding.clone(), node.intake.clone())
}

impl World {
    async fn new() -> Self {
        let world = world::World::under(&[rule("other", &["nothing"], &["hook"])]).await;
        let part = watch(&world.node());
        world.with(part)
    }

    async fn hook(&self) -> Destination {
        let found = self.store.get::<Destination>("hook".into()).await.unwrap();
        found.unwrap().value
    }

    async fn health(&self, state: HealthState, failures: u32) -> Health {
        let id = self.hook().await.id;
        let health = Health {
            state,
            failures,
            since_ms: self.clock.now_ms(),
            last_error: "503".into(),
            ..Health::new_unattempted(id, self.clock.now_ms())
        };
        let stored = self
            .store
            .get::<Health>(id.to_bytes().into())
            .await
            .unwrap();
        let mut changes = self.store.new_changes();
        match &stored {
            Some(stored) => changes.update(stored, &health),
            None => changes.insert(&health),
        }
        self.store.apply(Lane::Admin, changes).await.unwrap();
        health
    }

    /// Advances the clock and runs a pass; returns the status and severity of the event.
    async fn pass(&mut self, seconds: u64) -> Option<(Status, Severity)> {
        self.clock.advance(Duration::from_secs(seconds));
        self.part.run_once().await.unwrap();
        let all = samples::all::<Occurrence>(&self.store).await;
        let mut events = all
            .into_iter()
            .filter(|it| it.kind == "destination-failing");
        let newest = events.next_back();
        newest.map(|it| (it.status, it.severity))
    }

    async fn page_through_hook(&self) {
        let contact = v1::Contact {
            name: "ana".into(),
            methods: vec![v1::ContactMethod {
                destination_name: "hook".into(),
                ..v1::ContactMethod::default()
            }],
            ..v1::Contact::default()
        };
        let contacts = Contacts::new(self.store.clone(), self.clock());
        contacts.create_or_update(&contact, false).await.unwrap();
        let target = v1::escalation_target::Target::ContactName("ana".into());
        let policy = v1::EscalationPolicy {
            name: "db".into(),
            steps: vec![v1::EscalationStep {
                targets: vec![v1::EscalationTarget {
                    target: Some(target),
                }],
                wait: None,
            }],
            ..v1::EscalationPolicy::default()
        };
        let policies = EscalationPolicies::new(self.store.clone(), self.clock());
        policies.create(&policy, false).await.unwrap();
    }
}

#[tokio::test]
async fn destination_failing_for_two_minutes_is_reported_until_recovery() {
    let mut world = World::new().await;
    assert_eq!(world.pass(0).await, None);
    world.health(HealthState::Failing, 4).await;
    assert_eq!(world.pass(600).await, None, "it is still tried");
    world.health(HealthState::Failing, 5).await;
    assert_eq!(world.pass(5).await, None);
    assert_eq!(world.pass(119).await, None);
    let open = Some((Status::Open, Severity::Error));
    assert_eq!(world.pass(1).await, open);
    world.health(HealthState::Failing, 9).await;
    assert_eq!(world.pass(600).await, open);
    let reported = samples::said(&world.store, "destination-failing").await;
    assert_eq!(reported.count, 1, "it is reported once");
    world.health(HealthState::Paused, 9).await;
    assert_eq!(
        world.pass(5).await,
        open,
        "a pause does not count as a recovery"
    );
    world.health(HealthState::Healthy, 0).await;
    let closed = Some((Status::Closed, Severity::Error));
    assert_eq!(world.pass(5).await, closed);
    assert_eq!(world.pass(600).await, closed);
}

#[tokio::test]
async fn destination_recovering_within_two_minutes_is_not_reported() {
    let mut world = World::new().await;
    world.pass(0).await;
    for _ in 0..10 {
        world.health(HealthState::Failing, 5).await;
        assert_eq!(world.pass(5).await, None);
        assert_eq!(world.pass(100).await, None);
        world.health(HealthState::Healthy, 0).await;
        assert_eq!(world.pass(5).await, None);
    }
}

#[tokio::test]
async fn failing_event_of_a_previous_leader_is_closed_on_recovery() {
    let mut world = World::new().await;
    world.pass(0).await;
    world.health(HealthState::Failing, 5).await;
    world.pass(5).await;
    let open = Some((Status::Open, Severity::Error));
    assert_eq!(world.pass(120).await, open);
    world.part = watch(&world.node());
    assert_eq!(world.pass(5).await, open);
    world.health(HealthState::Healthy, 0).await;
    world.part = watch(&world.node());
    assert_eq!(world.pass(5).await, Some((Status::Closed, Severity::Error)));
}

#[tokio::test]
async fn failing_paging_destination_is_critical() {
    let mut world = World::new().await;
    world.page_through_hook().await;
    world.pass(0).await;
    world.health(HealthState::Failing, 5).await;
    world.pass(5).await;
    let expected = Some((Status::Open, Severity::Critical));
    assert_eq!(world.pass(120).await, expected);
}

#[tokio::test]
async fn failure_reportable_only_via_failing_destinations_is_detected() {
    let world = World::new().await;
    let health = world.health(HealthState::Failing, 5).await;
    let hook = world.hook().await;
    // Destinations of the rule about own events, failing destinations, and whether no one is
    // notified.
    for (destinations, failing, expected) in [
        (&[][..], &["hook"][..], false),
        (&["hook"], &["hook"], true),
        (&["hook", "other"], &["hook"], false),
        (&["hook", "other"], &["hook", "other"], true),
        (&["other"], &["hook"], false),
    ] {
        let about_own = Rule {
            enabled: !destinations.is_empty(),
            ..rule(
                "own",
                &["any"],
                match destinations {
                    [] => &["hook"],
                    given => given,
                },
            )
        };
        samples::save_rule(&world.store, &about_own).await;
        let snapshot = world.deciding.ruleset.refresh().await.unwrap();
        let failing: BTreeSet<_> = failing.iter().copied().collect();
        let now_ms = world.clock.now_ms();
        let found = would_notify_no_one(&snapshot, &hook, &health, &failing, now_ms);
        assert_eq!(found, expected, "{destinations:?}");
    }
}
