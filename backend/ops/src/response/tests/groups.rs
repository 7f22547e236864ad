//! Tests of responses to groups of events.

use super::*;
use crate::domain::{Group, Grouping, Severity};

/// A service in which the rule `page` groups all full disks, and uses the policy `db`.
pub(super) async fn grouping(
    steps: &[&[Target]],
    change: impl FnOnce(&mut v1::EscalationPolicy),
) -> World {
    let world = world(steps, change).await;
    let grouping = Grouping {
        by: vec!["name".into()],
        wait_ms: 0,
        interval_ms: 60_000,
    };
    let paging = Rule {
        send_updates: true,
        group: Some(grouping),
        escalation_policy: Some(name("db")),
        revision: 7,
        ..rule("page", &[samples::DISK_TRIGGER], &["chat"])
    };
    samples::save_rule(&world.store, &paging).await;
    world.restart(0).await;
    world
}

impl World {
    pub(super) async fn close_and_review(&self, host: &str) {
        self.event(host, |it| it.status = Some(Status::Closed))
            .await;
        self.review().await;
    }

    pub(super) async fn acknowledge_host(&self, host: &str, acknowledged: bool) {
        self.turn().await;
        let target = OccurrenceTarget::Newest(samples::event(host).id());
        let change = StateChange {
            acknowledged: Some(acknowledged),
            ..StateChange::default()
        };
        let node = self.node();
        let items = [StatusItem { target, change }];
        let by = name("dora");
        let done = set_status((&node.deciding, &node.intake), &items, &by);
        done.await.unwrap().remove(0).unwrap();
        self.review().await;
    }

    /// Returns the destinations notified, oldest first, each with a `-` prefix for `clear` and with
    /// the number of open members of the group.
    async fn group_notifications(&self) -> Vec<String> {
        let mut all = samples::all::<Delivery>(&self.store).await;
        all.retain(|it| it.content.rule.name == "page");
        all.sort_by_key(|it| it.id.to_bytes());
        let shown = |it: Delivery| {
            let sign = if it.content.clear { "-" } else { "" };
            let group = it.content.group.expect("a message about a group");
            format!("{sign}{} {}", it.destination_name, group.open_count)
        };
        all.into_iter().map(shown).collect()
    }
}

#[tokio::test]
async fn steps_continue_until_every_open_member_is_acknowledged() {
    let steps = [&[contact("ana")][..], &[contact("ben")], &[contact("cleo")]];
    let world = grouping(&steps, |_| {}).await;
    for host in ["db-1", "db-2", "db-3"] {
        world.event(host, |_| {}).await;
    }
    world.review().await;
    // The first step is part of the message's commit.
    assert_eq!(world.group_notifications().await, ["chat 3", "ana 3"]);
    let response = world.response().await;
    assert_eq!((response.round, response.step), (1, 1));
    // The next step runs while one member is not acknowledged, even if another member carries the
    // response.
    for host in ["db-1", "db-2"] {
        world.acknowledge_host(host, true).await;
    }
    assert_eq!(world.state().await, State::Active);
    assert_eq!(world.response().await.id, response.id);
    world.minutes(5).await;
    let sent = world.group_notifications().await;
    assert!(sent.contains(&"ben 3".to_owned()), "{sent:?}");
    world.acknowledge_host("db-3", true).await;
    assert_eq!(world.state().await, State::Acknowledged);
    world.minutes(30).await;
    let sent = world.group_notifications().await;
    assert!(!sent.iter().any(|it| it.contains("cleo")), "{sent:?}");
    // Everyone who was notified also gets the closing.
    for host in ["db-1", "db-2", "db-3"] {
        world.close_and_review(host).await;
    }
    world.minutes(5).await;
    let sent = world.group_notifications().await;
    for closing in ["-chat 0", "-ana 0", "-ben 0"] {
        assert_eq!(
            sent.iter().filter(|it| *it == closing).count(),
            1,
            "{sent:?}"
        );
    }
    assert_eq!(world.state().await, State::Ended);
    let groups = samples::all::<Group>(&world.store).await;
    assert!(groups.iter().all(|it| it.end_ms.is_some()));
}

#[tokio::test]
async fn closed_member_hands_the_response_to_another() {
    let steps = [&[contact("ana")][..], &[contact("ben")]];
    let world = grouping(&steps, |_| {}).await;
    world.event("db-1", |_| {}).await;
    world.event("db-2", |_| {}).await;
    world.review().await;
    let first = world.response().await;
    let carrier = if first.event_id == samples::event("db-1").id().to_string() {
        ("db-1", "db-2")
    } else {
        ("db-2", "db-1")
    };
    world.close_and_review(carrier.0).await;
    let moved = world.response().await;
    assert_eq!(moved.event_id, samples::event(carrier.1).id().to_string());
    assert_eq!((moved.id, moved.step), (first.id, 1));
    world.minutes(5).await;
    let sent = world.group_notifications().await;
    assert!(sent.contains(&"ben 1".to_owned()), "{sent:?}");
    world.close_and_review(carrier.1).await;
    world.minutes(2).await;
    assert_eq!(world.state().await, State::Ended);
}

#[tokio::test]
async fn more_severe_member_starts_a_new_round() {
    for is_acknowledged in [false, true] {
        let steps = [&[contact("ana")][..], &[contact("ben")]];
        let world = grouping(&steps, |_| {}).await;
        world.event("db-1", |_| {}).await;
        world.review().await;
        if is_acknowledged {
            world.acknowledge_host("db-1", true).await;
        }
        world
            .event("db-2", |it| it.severity = Some(Severity::Critical))
            .await;
        world.minutes(2).await;
        let response = world.response().await;
        assert_eq!((response.round, response.state()), (2, State::Active));
        let sent = world.group_notifications().await;
        assert_eq!(
            sent.iter().filter(|it| *it == "ana 2").count(),
            1,
            "{sent:?}"
        );
    }
}

#[tokio::test]
async fn equally_severe_member_starts_a_round_only_after_acknowledgement() {
    for (is_acknowledged, rounds) in [(false, 1), (true, 2)] {
        let world = grouping(&[&[contact("ana")]], |_| {}).await;
        world.event("db-1", |_| {}).await;
        world.review().await;
        if is_acknowledged {
            world.acknowledge_host("db-1", true).await;
        }
        world.event("db-2", |_| {}).await;
        world.minutes(2).await;
        assert_eq!(world.response().await.round, rounds, "{is_acknowledged}");
    }
}

#[tokio::test]
async fn silence_over_all_members_holds_the_steps() {
    let steps = [&[contact("ana")][..], &[contact("ben")], &[contact("cleo")]];
    let world = grouping(&steps, |_| {}).await;
    world.event("db-1", |_| {}).await;
    world.event("db-2", |_| {}).await;
    world.review().await;
    world.silence_all(20).await;
    world.minutes(6).await;
    assert_eq!(world.state().await, State::Held);
    world.minutes(16).await;
    assert_eq!(world.state().await, State::Active);
    let sent = world.group_notifications().await;
    // Only one of the missed steps runs.
    assert!(sent.contains(&"ben 2".to_owned()), "{sent:?}");
    assert!(!sent.iter().any(|it| it.contains("cleo")), "{sent:?}");
}

#[tokio::test]
async fn contact_link_acknowledges_the_whole_group() {
    let world = grouping(&[&[contact("ana")]], |_| {}).await;
    for host in ["db-1", "db-2", "db-3"] {
        world.event(host, |_| {}).await;
    }
    world.review().await;
    let first = world.response().await;
    // When the link is opened, another member carries the response.
    let event = [1, 2, 3].map(|at| format!("db-{at}"));
    let of = |host: &String| samples::event(host).id().to_string() == first.event_id;
    let carrier = event.iter().find(|it| of(it)).unwrap();
    world.acknowledge_host(carrier, true).await;
    let link = (&*first.occurrence_id, &*first.id, "ana");
    let (_, others) = world.responses().acknowledge(link, false).await.unwrap();
    assert_eq!(others, 1);
    let (shown, others) = world.responses().acknowledge(link, true).await.unwrap();
    assert_eq!(others, 1);
    assert!(shown.acknowledged);
    world.review().await;
    assert_eq!(world.state().await, State::Acknowledged);
    let all = samples::all::<Occurrence>(&world.store).await;
    assert!(all.iter().all(|it| it.acknowledged));
}

#[tokio::test]
async fn no_response_report_closes_once_all_are_acknowledged() {
    let world = grouping(&[&[contact("ana")]], |_| {}).await;
    world.event("db-1", |_| {}).await;
    world.event("db-2", |_| {}).await;
    world.review().await;
    world.minutes(6).await;
    assert!(world.response().await.unanswered);
    // The report is stored in a separate commit, so wait for it.
    let open = async |count: usize| {
        for _ in 0..1_000 {
            let all = samples::all::<Occurrence>(&world.store).await;
            let said = all.iter().filter(|it| it.name == "no one responded");
            if said.filter(|it| it.status == Status::Open).count() == count {
                return true;
            }
            tokio::task::yield_now().await;
        }
        false
    };
    assert!(open(1).await);
    world.acknowledge_host("db-1", true).await;
    world.acknowledge_host("db-2", false).await;
    assert!(open(1).await && world.response().await.unanswered);
    world.acknowledge_host("db-2", true).await;
    assert!(open(0).await);
    assert_eq!(world.state().await, State::Acknowledged);
}

fn of_hosts(hosts: &[String]) -> String {
    format!("host in ({})", hosts.join(", "))
}

/// Returns a service with a notified group of `count` hosts, and the hosts, beginning with the
/// carrier of the response.
async fn notified_group(count: usize) -> (World, Vec<String>) {
    let steps = [&[contact("ana")][..], &[contact("ben")], &[contact("cleo")]];
    let world = grouping(&steps, |_| {}).await;
    let mut hosts: Vec<_> = (0..count).map(|at| format!("db-{at}")).collect();
    for host in &hosts {
        world.event(host, |_| {}).await;
    }
    world.review().await;
    let carrier = world.response().await.event_id;
    hosts.sort_by_key(|host| samples::event(host).id().to_string() != carrier);
    (world, hosts)
}

#[tokio::test]
async fn group_escalates_unless_all_members_are_silenced() {
    for (held, all) in [
        (1, 3),
        (2, 3),
        (7, 10),
        (20, 22),
        (21, 22),
        (37, 40),
        (39, 40),
    ] {
        let (world, hosts) = notified_group(all).await;
        world
            .silence_some("some", Some(&of_hosts(&hosts[..held])), 300)
            .await;
        let response = world.response().await;
        assert_eq!(response.state(), State::Active, "{held} of {all}");
        let free: Vec<_> = hosts[held..]
            .iter()
            .map(|it| samples::event(it).id().to_string())
            .collect();
        assert!(free.contains(&response.event_id), "{held} of {all}");
        world.minutes(5).await;
        let sent = world.group_notifications().await;
        assert_eq!(
            sent.iter().filter(|it| it.starts_with("ben")).count(),
            1,
            "{held} of {all}: {sent:?}"
        );
    }
}

#[tokio::test]
async fn held_group_escalates_when_a_member_is_released() {
    for is_deleted in [false, true] {
        let (world, hosts) = notified_group(3).await;
        world
            .silence_some("most", Some(&of_hosts(&hosts[..2])), 300)
            .await;
        world
            .silence_some("last", Some(&of_hosts(&hosts[2..])), 10)
            .await;
        assert_eq!(world.state().await, State::Held);
        world.minutes(9).await;
        assert_eq!(world.state().await, State::Held);
        let sent = world.group_notifications().await;
        assert!(!sent.iter().any(|it| it.starts_with("ben")), "{sent:?}");
        if is_deleted {
            world.node().silences.delete("last", "").await.unwrap();
            world.review().await;
        } else {
            world.minutes(1).await;
        }
        let response = world.response().await;
        assert_eq!(response.state(), State::Active, "{is_deleted}");
        assert_eq!(
            response.event_id,
            samples::event(&hosts[2]).id().to_string()
        );
        let sent = world.group_notifications().await;
        assert_eq!(
            sent.iter().filter(|it| it.starts_with("ben")).count(),
            1,
            "{sent:?}"
        );
    }
}

#[tokio::test]
async fn held_group_escalates_when_a_member_joins() {
    let (world, hosts) = notified_group(3).await;
    world
        .silence_some("all", Some(&of_hosts(&hosts)), 300)
        .await;
    assert_eq!(world.state().await, State::Held);
    world.event("db-9", |_| {}).await;
    world.minutes(2).await;
    let response = world.response().await;
    assert_eq!(response.state(), State::Active);
    assert_eq!(response.event_id, samples::event("db-9").id().to_string());
}

#[tokio::test]
async fn suppressed_carrier_hands_the_response_to_another() {
    let (world, hosts) = notified_group(3).await;
    world
        .event(&hosts[0], |it| it.status = Some(Status::Suppressed))
        .await;
    world.review().await;
    let response = world.response().await;
    assert_eq!(response.state(), State::Active);
    assert_ne!(
        response.event_id,
        samples::event(&hosts[0]).id().to_string()
    );
}

#[tokio::test]
async fn group_response_resumes_when_its_rule_is_enabled() {
    for is_closed in [false, true] {
        let (world, hosts) = notified_group(2).await;
        edit(&world, |it| it.enabled = false).await;
        assert_eq!(world.state().await, State::Ended);
        if is_closed {
            world.close_and_review(&hosts[0]).await;
        }
        world.minutes(30).await;
        edit(&world, |it| it.enabled = true).await;
        assert_eq!(world.state().await, State::Active, "{is_closed}");
        let sent = world.group_notifications().await;
        assert!(sent.iter().any(|it| it.starts_with("ben")), "{sent:?}");
    }
}
