//! Tests over the wire of the receivers that a rule reaches directly and by its escalation policy.

use super::*;
use crate::ops::{contact::Contacts, escalation_policy::EscalationPolicies, schedule::Schedules};
use v1::escalation_target::Target;

/// A service in which the rule `page` pages `ana` by a schedule, then `ben`, then the destination
/// `last`, and the rule `log` has only the destination `log`.
async fn world() -> World {
    let world = World::start().await;
    world.create_trigger(trigger("t1")).await.unwrap();
    for name in ["log", "phone", "mail", "last", "unused"] {
        world.create_destination(destination(name)).await.unwrap();
    }
    let (store, clock) = (&world.store, || world.clock());
    for (name, destination) in [("ana", "phone"), ("ben", "mail"), ("idle", "mail")] {
        let contact = v1::Contact {
            name: name.into(),
            methods: vec![v1::ContactMethod {
                destination_name: destination.into(),
                id: "first".into(),
                variables: [("phone".to_owned(), format!("+{name}"))].into(),
                ..v1::ContactMethod::default()
            }],
            ..v1::Contact::default()
        };
        let contacts = Contacts::new(store.clone(), clock());
        contacts.create(&contact, false).await.unwrap();
    }
    let nights = v1::Schedule {
        name: "nights".into(),
        time_zone: "UTC".into(),
        layers: vec![v1::ScheduleLayer {
            slots: vec![v1::ScheduleSlot {
                contact_names: vec!["ana".into()],
            }],
            dtstart: "2027-01-14T08:00:00".into(),
            ..v1::ScheduleLayer::default()
        }],
        ..v1::Schedule::default()
    };
    let schedules = Schedules::new(store.clone(), clock());
    schedules.create(&nights, false).await.unwrap();
    let step = |target| v1::EscalationStep {
        targets: vec![v1::EscalationTarget {
            target: Some(target),
        }],
        wait: None,
    };
    let policy = v1::EscalationPolicy {
        name: "db".into(),
        steps: vec![
            step(Target::ScheduleName("nights".into())),
            step(Target::ContactName("ben".into())),
        ],
        fallback_destination_name: "last".into(),
        ..v1::EscalationPolicy::default()
    };
    let policies = EscalationPolicies::new(store.clone(), clock());
    policies.create(&policy, false).await.unwrap();
    let paging = v1::Rule {
        escalation_policy_name: "db".into(),
        ..rule("page", &["t1"], &[])
    };
    world.create_rule(paging).await.unwrap();
    world
        .create_rule(rule("log", &["t1"], &["log"]))
        .await
        .unwrap();
    world
}

/// Returns the destination, policy, step, contact and schedule of a path to a receiver.
fn row(way: &v1::RuleReach) -> (&str, &str, i32, &str, &str) {
    (
        &way.destination_name,
        &way.policy_name,
        way.step,
        &way.contact_name,
        &way.schedule_name,
    )
}

const THROUGH_POLICY: [(&str, &str, i32, &str, &str); 3] = [
    ("phone", "db", 1, "ana", "nights"),
    ("mail", "db", 2, "ben", ""),
    ("last", "db", 0, "", ""),
];

#[tokio::test]
async fn rule_lists_everyone_it_reaches_through_its_policy() {
    let world = world().await;
    let page = world.get_rule("page").await.unwrap();
    let rows: Vec<_> = page.reaches.iter().map(row).collect();
    assert_eq!(rows, THROUGH_POLICY);
    assert!(page.reaches.iter().all(|it| it.rule_name == "page"));
    let log = world.get_rule("log").await.unwrap();
    let rows: Vec<_> = log.reaches.iter().map(row).collect();
    assert_eq!(rows, [("log", "", 0, "", "")]);
}

#[tokio::test]
async fn destination_and_contact_list_the_rules_that_reach_them() {
    let world = world().await;
    for (name, expected) in [
        ("log", Some(("log", ("log", "", 0, "", "")))),
        ("phone", Some(("page", THROUGH_POLICY[0]))),
        ("mail", Some(("page", THROUGH_POLICY[1]))),
        ("last", Some(("page", THROUGH_POLICY[2]))),
        ("unused", None),
    ] {
        let request = v1::GetDestinationRequest { name: name.into() };
        let found = inner(world.destinations().get_destination(request).await.unwrap());
        let reached_by = found.destination.unwrap().reached_by;
        let rows = reached_by.iter().map(|it| (&*it.rule_name, row(it)));
        assert_eq!(rows.collect::<Vec<_>>(), Vec::from_iter(expected), "{name}");
    }
    let contacts = Contacts::new(world.store.clone(), world.clock());
    for (name, expected) in [("ana", 1), ("ben", 1), ("idle", 0)] {
        let reached_by = contacts.get(name).await.unwrap().reached_by;
        assert_eq!(reached_by.len(), expected, "{name}");
        assert!(reached_by.iter().all(|it| it.rule_name == "page"));
    }
}

#[tokio::test]
async fn refused_deletion_names_the_rules_that_reach_the_destination() {
    let world = world().await;
    let request = v1::DeleteDestinationRequest {
        name: "phone".into(),
        force: true,
        ..v1::DeleteDestinationRequest::default()
    };
    let refused = world.destinations().delete_destination(request).await;
    let message = refused.unwrap_err().message().to_owned();
    assert_eq!(
        message,
        "destination `phone` is used by contact `ana`; remove it there first. The rule `page` \
         notifies it"
    );
}

#[tokio::test]
async fn preview_renders_for_the_receivers_of_the_policy() {
    let world = world().await;
    let draft = v1::PreviewRuleRequest {
        name: "draft".into(),
        trigger_names: vec!["t1".into()],
        destination_names: vec!["log".into()],
        escalation_policy_name: "db".into(),
        message: "call {{contact.phone}}".into(),
        ..v1::PreviewRuleRequest::default()
    };
    let answer = inner(world.rules().preview_rule(draft).await.unwrap());
    let previews = answer.previews.iter();
    let receivers: Vec<_> = previews
        .map(|it| (&*it.destination_name, &*it.contact_name))
        .collect();
    let expected = [("log", ""), ("phone", "ana"), ("mail", "ben"), ("last", "")];
    assert_eq!(receivers, expected);
    let message = format!("{:?}", answer.previews[1].rendered);
    assert!(message.contains("call +ana"), "{message}");
    let warnings = answer.previews.iter().flat_map(|it| &it.warnings);
    assert_eq!(warnings.collect::<Vec<_>>(), [""; 0]);
    let rows: Vec<_> = answer.reaches.iter().map(row).collect();
    assert_eq!(rows[0], ("log", "", 0, "", ""));
    assert_eq!(rows[1..], THROUGH_POLICY);

    let wrong = v1::PreviewRuleRequest {
        escalation_policy_name: "gone".into(),
        ..v1::PreviewRuleRequest::default()
    };
    let refused = world.rules().preview_rule(wrong).await;
    assert_eq!(fields(refused), ["escalationPolicyName"]);
}
