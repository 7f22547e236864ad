//! Tests that a severity above all earlier ones of a response starts a new round.

use super::{groups::grouping, *};
use crate::domain::{
    Clause, Literal,
    Severity::{self, Critical, Debug, Error as Err, Warning},
    Trigger,
};

async fn paging(steps: &[&[Target]], change: impl FnOnce(&mut v1::EscalationPolicy)) -> World {
    let world = world(steps, change).await;
    match_every_severity(&world).await;
    world
}

async fn paging_groups(
    steps: &[&[Target]],
    change: impl FnOnce(&mut v1::EscalationPolicy),
) -> World {
    let world = grouping(steps, change).await;
    match_every_severity(&world).await;
    world
}

/// Makes the rule match full disks at every severity.
async fn match_every_severity(world: &World) {
    let clause = Clause::Equals("name".into(), Literal::Text("disk-full".into()));
    let trigger = Trigger {
        query: Query { clause },
        ..samples::trigger("full disks")
    };
    let mut changes = world.store.new_changes();
    changes.insert(&trigger);
    world.store.apply(Lane::Admin, changes).await.unwrap();
    edit(world, |it| it.trigger_names = vec![name("full disks")]).await;
}

/// Gives `ana` the method `push`, and `call` for critical events.
async fn call_ana_if_critical(world: &World) {
    for called in ["push", "call"] {
        save_destination(&world.store, called).await;
    }
    let method = |called: &str, least| v1::ContactMethod {
        destination_name: called.into(),
        min_severity: least,
        ..v1::ContactMethod::default()
    };
    let draft = v1::Contact {
        name: "ana".into(),
        methods: vec![method("push", 0), method("call", Critical as i32)],
        ..v1::Contact::default()
    };
    let all = Contacts::new(world.store.clone(), world.clock());
    all.create_or_update(&draft, false).await.unwrap();
}

impl World {
    async fn severity(&self, host: &str, severity: Severity) {
        self.event(host, |it| it.severity = Some(severity)).await;
        self.review().await;
    }

    /// Returns the number of pages to a destination.
    async fn pages(&self, to: &str) -> usize {
        let all = samples::all::<Delivery>(&self.store).await;
        let pages = all.iter().filter(|it| !it.content.clear);
        pages.filter(|it| it.destination_name == to).count()
    }
}

#[tokio::test]
async fn round_starts_only_above_every_earlier_severity() {
    for (severities, rounds, calls) in [
        (&[Warning, Critical][..], 2, 1),
        (&[Warning, Err, Critical], 3, 1),
        (&[Critical], 1, 1),
        (&[Critical, Warning, Critical], 1, 1),
        (&[Err, Warning, Err], 1, 0),
        (&[Warning, Critical, Warning, Critical], 2, 1),
        (&[Debug, Warning, Warning, Err, Warning], 3, 0),
        (&[Warning, Warning], 1, 0),
    ] {
        let world = paging(&[&[contact("ana")], &[contact("ben")]], |_| {}).await;
        call_ana_if_critical(&world).await;
        for severity in severities {
            world.severity("db-1", *severity).await;
        }
        let response = world.response().await;
        let seen = (response.round, response.step, world.pages("call").await);
        assert_eq!(seen, (rounds, 1, calls), "{severities:?}");
        let pushes = usize::try_from(rounds).unwrap();
        assert_eq!(world.pages("push").await, pushes, "{severities:?}");
    }
}

#[tokio::test]
async fn critical_event_pages_again_in_every_state() {
    for (state, expected) in [
        ("active", State::Active),
        ("second step", State::Active),
        ("unanswered", State::Active),
        ("held", State::Held),
        ("acknowledged", State::Acknowledged),
        ("snoozed", State::Acknowledged),
        ("stopped", State::Ended),
    ] {
        let world = paging(&[&[contact("ana")], &[contact("ben")]], |_| {}).await;
        call_ana_if_critical(&world).await;
        world.severity("db-1", Warning).await;
        match state {
            "second step" => world.minutes(6).await,
            "unanswered" => world.minutes(11).await,
            "held" => world.silence_all(20).await,
            "acknowledged" => world.acknowledge(None).await,
            "snoozed" => world.acknowledge(Some(60)).await,
            "stopped" => edit(&world, |it| it.enabled = false).await,
            _ => {}
        }
        assert_eq!(world.state().await, expected, "{state}");
        world.restart(1).await;
        world.severity("db-1", Critical).await;
        match state {
            "held" => {
                assert_eq!(world.pages("call").await, 0, "nothing is sent while held");
                world.minutes(21).await;
            }
            "stopped" => {
                assert_eq!(
                    world.pages("call").await,
                    0,
                    "nothing is sent while stopped"
                );
                edit(&world, |it| it.enabled = true).await;
            }
            _ => {}
        }
        let response = world.response().await;
        assert_eq!((response.round, response.step), (2, 1), "{state}");
        assert_eq!(response.state(), State::Active, "{state}");
        assert!(!response.unanswered, "{state}");
        assert_eq!(world.pages("call").await, 1, "{state}");
        // The response can be acknowledged again, for the current severity.
        world.acknowledge(None).await;
        for severity in [Warning, Critical] {
            world.severity("db-1", severity).await;
            assert_eq!(world.state().await, State::Acknowledged, "{state}");
        }
        assert_eq!(world.pages("call").await, 1, "{state}");
    }
}

#[tokio::test]
async fn withdrawn_acknowledgement_is_in_the_history() {
    let world = paging(&[&[contact("ana")]], |_| {}).await;
    world.severity("db-1", Warning).await;
    world.acknowledge(Some(60)).await;
    world.severity("db-1", Critical).await;
    let event = samples::event("db-1");
    let newest = crate::find::newest_occurrence(&world.store, event.id()).await;
    let newest = newest.unwrap().unwrap();
    let last = newest.history.last().unwrap();
    assert_eq!(
        (last.field, &*last.to, &last.author),
        (Field::Acknowledged, "false", &None)
    );
    assert_eq!(
        (newest.acknowledged, newest.acknowledged_until_ms),
        (false, None)
    );
}

#[tokio::test]
async fn severity_change_with_acknowledgement_starts_no_round() {
    for is_operator in [false, true] {
        let world = paging(&[&[contact("ana")]], |_| {}).await;
        world.severity("db-1", Warning).await;
        world.acknowledge(None).await;
        if is_operator {
            world
                .change(StateChange {
                    severity: Some(Critical),
                    acknowledged: Some(true),
                    ..StateChange::default()
                })
                .await;
        } else {
            world
                .event("db-1", |it| {
                    it.severity = Some(Critical);
                    it.acknowledged = Some(true);
                })
                .await;
        }
        world.minutes(30).await;
        assert_eq!(world.state().await, State::Acknowledged);
        assert_eq!(world.pages("ana").await, 1);
    }
}

#[tokio::test]
async fn severity_set_by_an_operator_starts_a_round() {
    let world = paging(&[&[contact("ana")]], |_| {}).await;
    world.severity("db-1", Warning).await;
    world.acknowledge(None).await;
    world
        .change(StateChange {
            severity: Some(Critical),
            ..StateChange::default()
        })
        .await;
    assert_eq!(world.state().await, State::Active);
    assert_eq!(world.pages("ana").await, 2);
}

#[tokio::test]
async fn response_of_an_earlier_version_compares_with_the_last_severity() {
    for is_acknowledged in [false, true] {
        let world = paging(&[&[contact("ana")]], |_| {}).await;
        world.severity("db-1", Warning).await;
        if is_acknowledged {
            world.acknowledge(None).await;
        }
        let event = samples::event("db-1");
        let stored = samples::all::<Occurrence>(&world.store).await;
        let key = stored.iter().find(|it| it.event == event.id()).unwrap().key;
        let stored = world.store.get::<Occurrence>(key.to_bytes().into()).await;
        let stored = stored.unwrap().unwrap();
        let mut earlier = stored.value.clone();
        earlier.notified[0].response.as_mut().unwrap().most_severe = None;
        let mut changes = world.store.new_changes();
        changes.update(&stored, &earlier);
        world.store.apply(Lane::Admin, changes).await.unwrap();
        world.severity("db-1", Warning).await;
        assert_eq!(world.response().await.round, 1, "{is_acknowledged}");
        world.severity("db-1", Critical).await;
        assert_eq!(world.response().await.round, 2, "{is_acknowledged}");
    }
}

#[tokio::test]
async fn group_member_that_becomes_critical_starts_a_round() {
    for sends_updates in [false, true] {
        for state in ["active", "unanswered", "acknowledged", "held"] {
            for is_carrier in [false, true] {
                let case = format!("{sends_updates} {state} {is_carrier}");
                let world = paging_groups(&[&[contact("ana")], &[contact("ben")]], |_| {}).await;
                edit(&world, |it| it.send_updates = sends_updates).await;
                call_ana_if_critical(&world).await;
                for host in ["db-1", "db-2"] {
                    world.event(host, |it| it.severity = Some(Warning)).await;
                }
                world.review().await;
                let carrier = world.response().await.event_id;
                let is_of = |it: &&str| samples::event(it).id().to_string() == carrier;
                let mut hosts = ["db-1", "db-2"].into_iter();
                let host = hosts.find(|it| is_of(it) == is_carrier).unwrap();
                match state {
                    "unanswered" => world.minutes(11).await,
                    "acknowledged" => {
                        world.acknowledge_host("db-1", true).await;
                        world.acknowledge_host("db-2", true).await;
                        world.minutes(2).await;
                        assert_eq!(world.state().await, State::Acknowledged, "{case}");
                    }
                    "held" => world.silence_all(5).await,
                    _ => {}
                }
                let before = world.pages("chat").await;
                world.severity(host, Critical).await;
                world.minutes(if state == "held" { 8 } else { 2 }).await;
                let response = world.response().await;
                assert_eq!((response.round, response.step), (2, 1), "{case}");
                assert_eq!(response.state(), State::Active, "{case}");
                assert_eq!(world.pages("call").await, 1, "{case}");
                assert_eq!(
                    world.pages("chat").await,
                    before,
                    "no message to all: {case}"
                );
                // A second member that becomes critical starts no further round.
                for host in ["db-1", "db-2"] {
                    world.severity(host, Critical).await;
                }
                world.minutes(2).await;
                assert_eq!(world.response().await.round, 2, "{case}");
                assert_eq!(world.pages("call").await, 1, "{case}");
            }
        }
    }
}

#[tokio::test]
async fn joining_member_is_compared_with_every_earlier_round() {
    let world = paging_groups(&[&[contact("ana")]], |it| it.rounds = 2).await;
    for host in ["db-1", "db-2"] {
        world.event(host, |it| it.severity = Some(Warning)).await;
    }
    world.review().await;
    world.event("db-3", |it| it.severity = Some(Critical)).await;
    world.minutes(2).await;
    assert_eq!(world.response().await.round, 2);
    world.close_and_review("db-3").await;
    world.minutes(2).await;
    world.event("db-4", |it| it.severity = Some(Err)).await;
    world.minutes(1).await;
    assert_eq!(world.response().await.round, 2, "critical was seen before");
}

#[tokio::test]
async fn acknowledging_again_before_the_group_message_prevents_pages() {
    for is_repeated in [false, true] {
        let world = paging_groups(&[&[contact("ana")]], |_| {}).await;
        edit(&world, |it| it.send_updates = false).await;
        let hosts = ["db-1", "db-2"];
        for host in hosts {
            world.event(host, |it| it.severity = Some(Warning)).await;
        }
        world.review().await;
        for host in hosts {
            world.acknowledge_host(host, true).await;
        }
        // Select a member that does not carry the response: a page about the carrier would not wait
        // for the group message.
        let carrier = world.response().await.event_id;
        let is_other = |it: &&str| samples::event(it).id().to_string() != carrier;
        let host = hosts.into_iter().find(is_other).unwrap();
        world.severity(host, Critical).await;
        if is_repeated {
            world.acknowledge_host(host, true).await;
        }
        assert_eq!(world.pages("ana").await, 1);
        world.minutes(2).await;
        let pages = if is_repeated { 1 } else { 2 };
        assert_eq!(world.pages("ana").await, pages, "repeated {is_repeated}");
    }
}
