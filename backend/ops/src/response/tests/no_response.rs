//! Tests of the event "no one responded", which is opened once per policy.

use super::{groups::grouping, *};
use crate::domain::{OwnEvent, Severity, Value};

/// Returns the reports about a policy, oldest first.
async fn reports(world: &World, policy: &str) -> Vec<Occurrence> {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let mut all = samples::all::<Occurrence>(&world.store).await;
    all.retain(|it| {
        it.name == "no one responded" && it.dimensions.get("policy") == Some(&policy.to_owned())
    });
    all.sort_by_key(|it| it.number);
    all
}

async fn report(world: &World) -> Occurrence {
    reports(world, "db").await.pop().expect("a report")
}

fn number(of: &Occurrence) -> Value {
    of.metadata["responses"].clone()
}

impl World {
    async fn acknowledge_one(&self, host: &str) {
        self.acknowledge_host(host, true).await;
    }
}

#[tokio::test]
async fn unanswered_responses_of_one_policy_open_one_event() {
    let world = world(&[&[contact("ana")]], |_| {}).await;
    let severities = [Severity::Error, Severity::Critical];
    for at in 0..300 {
        let severity = severities[usize::from(at % 50 == 0)];
        let host = format!("db-{at}");
        world.event(&host, |it| it.severity = Some(severity)).await;
    }
    world.minutes(6).await;
    world.review().await;
    let all = reports(&world, "db").await;
    assert_eq!(all.len(), 1);
    let said = &all[0];
    assert_eq!(
        (said.severity, said.status),
        (Severity::Critical, Status::Open)
    );
    assert_eq!(number(said), Value::Number(300.0));
    assert_eq!(
        said.metadata["worstSeverity"],
        Value::Text("critical".into())
    );
    let summary = "policy db: no one responded to 300 events; most severe: critical disk-full on db-0 (rule page)";
    assert_eq!(said.summary, summary);
    let lines: Vec<_> = said.body.lines().collect();
    assert_eq!(lines.len(), 6, "{lines:?}");
    for (line, host) in lines
        .iter()
        .zip(["db-0", "db-50", "db-100", "db-150", "db-200"])
    {
        assert_eq!(*line, format!("critical disk-full on {host} (rule page)"));
    }
    assert_eq!(lines[5], "and 295 more");
    assert!(said.count < 20, "{} events", said.count);
    // The count falls with each acknowledgement, and the last one closes the event.
    for at in 0..299 {
        let change = StateChange {
            acknowledged: Some(true),
            ..StateChange::default()
        };
        let target = OccurrenceTarget::Newest(samples::event(&format!("db-{at}")).id());
        let node = world.node();
        let items = [StatusItem { target, change }];
        let by = name("dora");
        let done = set_status((&node.deciding, &node.intake), &items, &by).await;
        done.unwrap().remove(0).unwrap();
    }
    world.restart(1).await;
    world.review().await;
    world.review().await;
    let said = report(&world).await;
    assert_eq!(
        (number(&said), said.status),
        (Value::Number(1.0), Status::Open)
    );
    let summary = "policy db: no one responded to error disk-full on db-299 (rule page)";
    assert_eq!(said.summary, summary);
    world.acknowledge_one("db-299").await;
    world.review().await;
    let all = reports(&world, "db").await;
    assert_eq!((all.len(), all[0].status), (1, Status::Closed));
    assert!(samples::all::<OwnEvent>(&world.store).await.is_empty());
}

#[tokio::test]
async fn report_closes_when_no_response_is_unanswered() {
    for how in ["closed", "acknowledged", "worse", "disabled", "deleted"] {
        let world = world(&[&[contact("ana")]], |_| {}).await;
        world.event("db-1", |_| {}).await;
        world.minutes(6).await;
        assert_eq!(report(&world).await.status, Status::Open, "{how}");
        match how {
            "closed" => world.end().await,
            "acknowledged" => world.acknowledge(None).await,
            "worse" => {
                world
                    .event("db-1", |it| it.severity = Some(Severity::Critical))
                    .await;
            }
            "disabled" => edit(&world, |it| it.enabled = false).await,
            _ => {
                let stored = world
                    .store
                    .get::<Rule>("page".into())
                    .await
                    .unwrap()
                    .unwrap();
                let mut changes = world.store.new_changes();
                changes.delete(&stored);
                world.store.apply(Lane::Admin, changes).await.unwrap();
            }
        }
        world.review().await;
        world.review().await;
        assert_eq!(report(&world).await.status, Status::Closed, "{how}");
        if how == "disabled" {
            edit(&world, |it| it.enabled = true).await;
            world.review().await;
            world.review().await;
            let said = report(&world).await;
            assert_eq!((said.number, said.status), (2, Status::Open));
        }
    }
}

#[tokio::test]
async fn report_never_triggers_the_policy_that_failed() {
    for is_grouped in [false, true] {
        let world = if is_grouped {
            grouping(&[&[contact("ana")]], |_| {}).await
        } else {
            world(&[&[contact("ana")]], |_| {}).await
        };
        // Both rules match all events; the second rule uses a separate policy.
        edit(&world, |it| it.trigger_names = vec![name("everything")]).await;
        let mut other = policy(&[&[contact("ben")]]);
        other.name = "managers".into();
        let all = EscalationPolicies::new(world.store.clone(), world.clock());
        all.create(&other, false).await.unwrap();
        let escalating = Rule {
            escalation_policy: Some(name("managers")),
            ..rule("tell managers", &["everything"], &[])
        };
        samples::save_rule(&world.store, &escalating).await;
        world.event("db-1", |_| {}).await;
        world.minutes(120).await;
        let pages = async |to: &str| {
            let all = samples::all::<Delivery>(&world.store).await;
            let pages = all.iter().filter(|it| it.destination_name == to);
            let names = pages.map(|it| &*it.content.occurrence.name);
            let mut names: Vec<_> = names.map(str::to_owned).collect();
            names.sort_unstable();
            names
        };
        // Each policy pages once for the event, and once for the failure of the other policy.
        let expected = ["disk-full", "no one responded"];
        assert_eq!(pages("ana").await, expected, "{is_grouped}");
        assert_eq!(pages("ben").await, expected, "{is_grouped}");
        for policy in ["db", "managers"] {
            let all = reports(&world, policy).await;
            assert_eq!(all.len(), 1, "{is_grouped} {policy}");
            assert_eq!(number(&all[0]), Value::Number(1.0), "{is_grouped} {policy}");
        }
        world.acknowledge(None).await;
        world.minutes(2).await;
        for policy in ["db", "managers"] {
            let all = reports(&world, policy).await;
            assert_eq!(
                (all.len(), all[0].status),
                (1, Status::Closed),
                "{is_grouped} {policy}"
            );
        }
    }
}

#[tokio::test]
async fn event_of_an_earlier_version_closes_with_its_response() {
    let world = world(&[&[contact("ana")]], |_| {}).await;
    world.event("db-1", |_| {}).await;
    let id = world.response().await.occurrence_id;
    let earlier = crate::domain::IncomingEvent {
        severity: Some(Severity::Critical),
        ..crate::domain::IncomingEvent::new_own_event(
            "no one responded",
            "escalation",
            [("rule", "page"), ("occurrence", &id)],
            world.clock.now_ms(),
        )
    };
    let node = world.node();
    node.intake
        .submit_internal(earlier.clone(), Vec::new())
        .await
        .unwrap();
    drop(node);
    world.minutes(6).await;
    world.acknowledge(None).await;
    own_events::killed_pass(&world).await;
    for _ in 0..2 {
        world.review().await;
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
    }
    let marks = samples::all::<OwnEvent>(&world.store).await;
    assert!(marks.is_empty(), "{marks:?}");
    let newest = crate::find::newest_occurrence(&world.store, earlier.id()).await;
    assert_eq!(newest.unwrap().unwrap().status, Status::Closed);
}
