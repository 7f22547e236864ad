//! Group messages, without a store.

use std::sync::Arc;

use super::*;
use crate::{
    decide::LoadedTrigger,
    domain::{DeliveryState, HeldBy, HoldKind, destination::Email},
    samples::plain::{self as samples, DISK_TRIGGER, START_MS, rule},
};

/// Returns a member that waits for a group message: one that is joining or, with `is_closed`, one
/// that closed after it was reported.
fn member(host: &str, severity: Severity, is_closed: bool) -> Occurrence {
    let mut member = samples::occurrence();
    member.key = samples::id(host);
    member.severity = severity;
    member.status = if is_closed {
        Status::Closed
    } else {
        Status::Open
    };
    member.pending = vec![Pending {
        rule: samples::id("page"),
        rule_name: samples::name("page"),
        is_opening: !is_closed,
        since_ms: START_MS,
        repeat_due: false,
        last_notified: None,
        held_by: vec![HeldBy {
            kind: HoldKind::Group,
            id: samples::id("key"),
            name: samples::name("page"),
            revision: 1,
            since_ms: START_MS,
            until_ms: Some(START_MS),
            author: None,
            shared: Vec::new(),
            detail: String::new(),
        }],
        left_out: Vec::new(),
    }];
    member.notified = Vec::new();
    if is_closed {
        member.notified.push(Notified {
            rule: samples::id("page"),
            rule_name: samples::name("page"),
            last_ms: START_MS,
            send_updates: true,
            destinations: Vec::new(),
            cleared: false,
            opening: None,
            group: Some(samples::id("group")),
            shadow: false,
            thread: None,
            response: None,
            last_notified: None,
        });
    }
    member
}

fn snapshot(is_shadow: bool) -> Snapshot {
    let paging = Rule {
        send_updates: true,
        shadow: is_shadow,
        group: Some(crate::domain::Grouping {
            by: Vec::new(),
            wait_ms: 0,
            interval_ms: 60_000,
        }),
        ..rule("page", &[DISK_TRIGGER], &["hook", "mail"])
    };
    let trigger = Arc::new(LoadedTrigger::new(samples::trigger(DISK_TRIGGER)));
    let destinations = ["hook", "mail"].map(|of| {
        let destination = samples::destination(of);
        (destination.name.clone(), Arc::new(destination))
    });
    Snapshot::new(
        BTreeMap::from([(trigger.trigger.name.clone(), trigger)]),
        vec![Arc::new(paging)],
        BTreeMap::from(destinations),
        None,
    )
}

fn group() -> Group {
    Group {
        id: samples::id("group"),
        rule: samples::id("page"),
        rule_name: samples::name("page"),
        key: samples::id("key"),
        by: Vec::new(),
        interval_ms: 60_000,
        destinations: vec![(samples::id("mail"), samples::name("mail"))],
        message_count: 1,
        member_count: 1,
        is_full: false,
        create_ms: START_MS,
        last_ms: START_MS,
        notified_ms: START_MS,
        end_ms: None,
        shadow: false,
        responder: None,
    }
}

fn decide_group(is_shadow: bool, group: Option<&Group>, waiting: Vec<Occurrence>) -> GroupDecision {
    decided_under(&snapshot(is_shadow), group, waiting)
}

fn decided_under(
    snapshot: &Snapshot,
    group: Option<&Group>,
    waiting: Vec<Occurrence>,
) -> GroupDecision {
    let (past, unacknowledged) = (PastDefinitions::default(), BTreeSet::new());
    past.causes().set_group(
        crate::domain::GroupRef::Id(samples::id("group")),
        group.map(|it| crate::decide::GroupAt {
            notified_ms: it.notified_ms,
            next_ms: it.last_ms,
            is_open: false,
            is_over: false,
        }),
    );
    let message = GroupMessage {
        rule: samples::id("page"),
        key: samples::id("key"),
        id: samples::id("group"),
        group,
        open: &[],
        unacknowledged: &unacknowledged,
        is_more: false,
        snapshot,
        past: &past,
        now_ms: START_MS + 1,
    };
    let mut made = 0;
    let members = GroupMembers {
        waiting,
        others: Vec::new(),
        responder: None,
    };
    message.decide(members, &mut || {
        made += 1;
        RecordId::from_parts(1, made)
    })
}

#[test]
fn all_members_are_stored_only_if_the_message_names_them() {
    let members = |count: usize, body_bytes: usize| {
        let member = |at: usize| Occurrence {
            summary: String::new(),
            body: "x".repeat(body_bytes),
            dimensions: BTreeMap::new(),
            metadata: BTreeMap::new(),
            ..member(&format!("host {at:03}"), Severity::Error, false)
        };
        (0..count).map(member).collect::<Vec<_>>()
    };
    let all = "{{#group}}{{#all_events}}{{summary}}{{/all_events}}{{/group}}";
    let mail = |body: &str| {
        let mut destination = samples::destination("mail");
        destination.kind = DestinationKind::Email(Email {
            body: body.into(),
            ..Email::default()
        });
        destination
    };
    let stored = |message: &str, body: &str, members: Vec<Occurrence>| {
        let base = snapshot(false);
        let paging = Rule {
            message: message.into(),
            ..base.rules()[0].as_ref().clone()
        };
        let destinations = [samples::destination("hook"), mail(body)];
        let destinations = destinations.map(|it| (it.name.clone(), Arc::new(it)));
        let trigger = Arc::new(LoadedTrigger::new(samples::trigger(DISK_TRIGGER)));
        let snapshot = Snapshot::new(
            BTreeMap::from([(trigger.trigger.name.clone(), trigger)]),
            vec![Arc::new(paging)],
            BTreeMap::from(destinations),
            None,
        );
        let pairs = [("inner", all), ("outer", "{{> inner}}"), ("header", "x")];
        let pairs = pairs.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let snapshot = snapshot.with_settings(Arc::new(crate::domain::SharedSettings {
            templates: Arc::new(pairs.into()),
            ..Default::default()
        }));
        let decision = decided_under(&snapshot, None, members);
        let deliveries = decision.deliveries.iter();
        let counts = deliveries.map(|it| it.content.group.as_ref().unwrap().members.len());
        counts.collect::<Vec<_>>()
    };
    let cases = [
        ("", "", 600, 10, [100, 100]),
        (all, "", 600, 10, [500, 500]),
        ("", all, 600, 10, [100, 500]),
        (all, "", 99, 10, [99, 99]),
        ("", all, 600, 2 * 1024, [79, 255]),
    ];
    for (message, body, count, bytes, expected) in cases {
        let stored = stored(message, body, members(count, bytes));
        assert_eq!(stored, expected, "{message} {body} {bytes}");
    }
    assert_eq!(stored("{{> outer}}", "", members(600, 10)), [500, 500]);
    assert_eq!(stored("", "{{> outer}}", members(600, 10)), [100, 500]);
    assert_eq!(stored("{{> header}}", "", members(600, 10)), [100, 100]);
}

/// A decision, its receivers, the representative member, whether the message is a closing one, and
/// whether it is only recorded.
type Row<'a> = (GroupDecision, &'a [&'a str], &'a str, bool, bool);

#[test]
fn group_message_describes_its_most_severe_member() {
    let joining = || {
        vec![
            member("a", Severity::Error, false),
            member("b", Severity::Critical, false),
        ]
    };
    let closed = || vec![member("a", Severity::Error, true)];
    let known = group();
    let table: [Row<'_>; 4] = [
        (
            decide_group(false, None, joining()),
            &["hook", "mail"],
            "b",
            false,
            false,
        ),
        (
            decide_group(true, None, joining()),
            &["hook", "mail"],
            "b",
            false,
            true,
        ),
        (
            decide_group(false, Some(&known), closed()),
            &["mail"],
            "a",
            true,
            false,
        ),
        // A closing message is due even though the rule has become a shadow rule.
        (
            decide_group(true, Some(&known), closed()),
            &["mail"],
            "a",
            true,
            false,
        ),
    ];
    for (at, (decision, receivers, main, is_over, is_recorded)) in table.into_iter().enumerate() {
        let sent = decision.deliveries.iter();
        let to: Vec<_> = sent.map(|it| it.destination_name.as_str()).collect();
        assert_eq!(to, receivers, "{at}");
        for delivery in &decision.deliveries {
            let content = &delivery.content;
            assert_eq!(content.occurrence.key, samples::id(main), "{at}");
            assert_eq!(content.clear, is_over, "{at}");
            assert_eq!(content.group.as_ref().unwrap().is_over, is_over, "{at}");
            let is_shadowed = delivery.state == DeliveryState::Shadowed;
            assert_eq!(is_shadowed, is_recorded, "{at}");
        }
        let group = decision.group.unwrap();
        assert_eq!(group.end_ms.is_some(), is_over, "{at}");
        assert_eq!(decision.settled.len(), decision.members.len(), "{at}");
        assert!(decision.members.iter().all(|it| it.pending.is_empty()));
    }
}

#[test]
fn group_without_changes_creates_no_message() {
    let quiet = Occurrence {
        pending: Vec::new(),
        ..member("a", Severity::Error, false)
    };
    let decision = decide_group(false, Some(&group()), vec![quiet]);
    assert!(decision.group.is_none() && decision.deliveries.is_empty());
}
