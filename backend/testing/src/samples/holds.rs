//! Records of silences, inhibitions, delays, groups, flapping and dry-run rules.

use std::collections::BTreeMap;

use super::{AT_MS, delivery, id, name, occurrence, rule, trigger};
use crate::domain::{
    CauseMark, Clause, Comment, Delivery, DeliveryState, EqualFields, Flapping, FlappingLimits,
    Group, GroupContent, Grouping, HeldBy, HoldChange, HoldKind, HoldOutcome, IncomingEvent,
    Inhibition, LastNotified, Literal, MemberChange, Occurrence, OwnEvent, Pending, Progress,
    Query, Rule, Severity, Silence, Stage, Status, ThreadOrigin,
};

/// Returns an occurrence with one notification held by a silence and another one skipped.
pub fn held_occurrence() -> Occurrence {
    let held_by = vec![HeldBy {
        kind: HoldKind::Silence,
        id: id(51),
        name: name("db patch"),
        revision: 2,
        since_ms: AT_MS + 1,
        until_ms: Some(AT_MS + 90),
        author: Some(name("admin")),
        shared: Vec::new(),
        detail: "kernel update".into(),
    }];
    let change = |at_ms, what| HoldChange {
        at_ms,
        rule: id(31),
        what,
        held_by: held_by.clone(),
    };
    Occurrence {
        covered_by: vec![id(51)],
        hold_changes: vec![
            change(AT_MS + 2, HoldOutcome::Waits),
            change(AT_MS + 3, HoldOutcome::NoLongerMatched),
            change(AT_MS + 4, HoldOutcome::Waits),
        ],
        pending: vec![Pending {
            rule: id(31),
            rule_name: name("page"),
            is_opening: false,
            since_ms: AT_MS + 4,
            repeat_due: true,
            last_notified: Some(LastNotified {
                severity: Severity::Warning,
                acknowledged: true,
            }),
            held_by,
            left_out: Vec::new(),
        }],
        ..occurrence(4)
    }
}

/// Returns an occurrence whose notification left out a destination.
pub fn partly_held_occurrence() -> Occurrence {
    let mut occurrence = held_occurrence();
    occurrence.pending[0].left_out = vec![name("chat")];
    occurrence
}

/// Returns a suppressed occurrence whose state has changed since its last message.
pub fn changed_occurrence() -> Occurrence {
    let mut occurrence = occurrence(9);
    occurrence.notified[0].cleared = false;
    occurrence.notified[0].last_notified = Some(LastNotified {
        severity: Severity::Warning,
        acknowledged: true,
    });
    occurrence
}

/// Returns an event of the service's own that is not yet ingested.
pub fn own_event() -> OwnEvent {
    let mut event =
        IncomingEvent::new_own_event("no one responded", "escalation", [("rule", "page")], AT_MS);
    event.metadata = occurrence(1).metadata;
    event.summary = "no one responded".into();
    event.body = "The rule is page.".into();
    event.severity = Some(Severity::Critical);
    event.status = Some(Status::Closed);
    OwnEvent {
        id: id(95),
        event,
        chain: vec![id(31)],
    }
}

pub fn silence(called: &str) -> Silence {
    Silence {
        id: id(51),
        name: name(called),
        description: "the monthly one".into(),
        tags: vec!["team-a".into()],
        reason: "kernel update".into(),
        query: Some(trigger("disk").query),
        rule_names: vec![name("page")],
        destination_names: Vec::new(),
        annotations: BTreeMap::new(),
        calendar: None,
        start_ms: AT_MS,
        end_ms: AT_MS + 90,
        expire_when_idle_ms: Some(0),
        warn_before_ms: Some(10),
        comments: vec![Comment {
            author: name("admin"),
            at_ms: AT_MS + 6,
            text: "half of it is done".into(),
        }],
        from_event: Some(occurrence(1).event),
        author: name("admin"),
        last_editor: name("admin"),
        progress: Progress {
            stage: Stage::InForce,
            counted_revision: 1,
            has_covered: true,
            idle_since_ms: Some(AT_MS + 8),
        },
        revision: 2,
        create_ms: AT_MS,
        update_ms: AT_MS + 5,
    }
}

/// Returns a silence of one destination, with annotations.
pub fn destination_silence() -> Silence {
    Silence {
        destination_names: vec![name("chat")],
        annotations: [("ticket".to_owned(), "OPS-1".to_owned())].into(),
        ..silence("of chat")
    }
}

/// Returns a silence limited to the windows of a calendar, without an end.
pub fn nightly_silence() -> Silence {
    Silence {
        calendar: Some(name("nights")),
        end_ms: i64::MAX,
        ..silence("nightly")
    }
}

pub fn inhibition(called: &str) -> Inhibition {
    let query = |field: &str, text: &str| Query {
        clause: Clause::Equals(field.into(), Literal::Text(text.into())),
    };
    Inhibition {
        id: id(71),
        name: name(called),
        description: "a dead host says it all".into(),
        tags: vec!["team-a".into()],
        enabled: true,
        source: query("name", "host-down"),
        target: query("type", "disk"),
        equal: vec![EqualFields {
            source: "host".into(),
            target: "dimensions.host".into(),
        }],
        linger_ms: 60_000,
        counted_revision: 1,
        revision: 2,
        create_ms: AT_MS,
        update_ms: AT_MS + 5,
    }
}

/// Returns an occurrence that is a cause for one inhibition, and recently was one for another.
pub fn cause() -> Occurrence {
    let mark = |number, until_ms| CauseMark {
        inhibition: id(number),
        values: [7; 16],
        until_ms,
        is_freed: until_ms.is_some(),
    };
    Occurrence {
        causes: vec![mark(71, None), mark(72, Some(AT_MS + 60_000))],
        ..occurrence(6)
    }
}

/// Returns a rule with every kind of delay.
pub fn timed_rule() -> Rule {
    Rule {
        delay_ms: 300_000,
        auto_pause_ms: 120_000,
        active_calendar: Some(name("office")),
        ..rule("timed")
    }
}

pub fn grouping_rule() -> Rule {
    Rule {
        group: Some(Grouping {
            by: vec!["host".into(), "dimensions.rack".into()],
            wait_ms: 30_000,
            interval_ms: 300_000,
        }),
        ..rule("grouping")
    }
}

/// Returns a closed group.
pub fn group() -> Group {
    Group {
        id: id(81),
        rule: id(31),
        rule_name: name("page"),
        key: id(82),
        by: vec![
            ("host".into(), Some("db-1".into())),
            ("dimensions.rack".into(), None),
        ],
        interval_ms: 300_000,
        destinations: vec![(id(20), name("to 0"))],
        message_count: 3,
        member_count: 7,
        is_full: false,
        create_ms: AT_MS + 1,
        last_ms: AT_MS + 3,
        notified_ms: AT_MS + 2,
        end_ms: Some(AT_MS + 3),
        shadow: false,
        responder: None,
    }
}

pub fn open_group() -> Group {
    Group {
        id: id(83),
        end_ms: None,
        ..group()
    }
}

/// Returns an occurrence that was notified in a group, and joins a group of another rule.
pub fn grouped_occurrence() -> Occurrence {
    let mut occurrence = held_occurrence();
    occurrence.close = None;
    occurrence.status = Status::Open;
    occurrence.acknowledged = false;
    occurrence.notified[0].cleared = false;
    occurrence.notified[0].group = Some(id(83));
    for (at, pending) in occurrence.pending.iter_mut().enumerate() {
        pending.is_opening = at == 0;
        pending.last_notified = (at > 0).then_some(LastNotified {
            severity: Severity::Warning,
            acknowledged: false,
        });
        for held_by in &mut pending.held_by {
            held_by.kind = HoldKind::Group;
            held_by.id = id(82);
        }
    }
    occurrence
}

pub fn group_delivery() -> Delivery {
    let mut delivery = delivery(900, DeliveryState::Delivered);
    delivery.content.group = Some(GroupContent {
        id: id(81),
        by: group().by,
        count: 2,
        open_count: 1,
        joined_count: 0,
        closed_count: 1,
        is_first: false,
        is_over: false,
        acknowledged: true,
        members: vec![
            (None, occurrence(1)),
            (Some(MemberChange::Closed), occurrence(4)),
        ],
    });
    delivery
}

/// Returns a rule that detects flapping.
pub fn flapping_rule() -> Rule {
    Rule {
        flapping: Some(FlappingLimits {
            open_count: 5,
            window_ms: 3_600_000,
            settle_ms: 900_000,
        }),
        ..rule("flapping")
    }
}

/// Returns the origin of a thread that another occurrence continues.
fn thread() -> ThreadOrigin {
    ThreadOrigin {
        key: id(51),
        number: 1,
    }
}

/// Returns a flapping occurrence that continues the thread of an earlier one.
pub fn flapping_occurrence() -> Occurrence {
    let mut occurrence = occurrence(8);
    occurrence.notified[0].thread = Some(thread());
    occurrence.notified[0].group = Some(id(83));
    occurrence.notified[0].cleared = false;
    occurrence.flapping = vec![Flapping {
        rule: id(31),
        openings: vec![AT_MS - 2, AT_MS],
        number: 8,
        changed_ms: AT_MS + 20,
        since_ms: Some(AT_MS),
    }];
    occurrence.pending = vec![Pending {
        rule: id(31),
        rule_name: name("page"),
        is_opening: false,
        since_ms: AT_MS + 20,
        repeat_due: false,
        last_notified: None,
        held_by: vec![HeldBy {
            kind: HoldKind::Flapping,
            id: id(31),
            name: name("page"),
            revision: 5,
            since_ms: AT_MS,
            until_ms: Some(AT_MS + 900_020),
            author: None,
            shared: Vec::new(),
            detail: "it opened 5 times".into(),
        }],
        left_out: Vec::new(),
    }];
    occurrence
}

/// Returns a delivery about an occurrence that continues the thread of an earlier one.
pub fn thread_delivery() -> Delivery {
    let mut delivery = delivery(901, DeliveryState::Delivered);
    delivery.content.thread = Some(thread());
    delivery.content.occurrence.flapping = flapping_occurrence().flapping;
    delivery
}

/// Returns a delivery that waits for earlier ones of its thread.
pub fn waiting_delivery() -> Delivery {
    Delivery {
        in_thread: true,
        ..delivery(902, DeliveryState::Pending { due_ms: 1 })
    }
}

/// Returns a shadow rule, which only records messages.
pub fn shadow_rule() -> Rule {
    Rule {
        shadow: true,
        ..rule("shadow")
    }
}

/// Returns an occurrence whose messages a shadow rule recorded.
pub fn shadowed_occurrence() -> Occurrence {
    let mut occurrence = occurrence(7);
    occurrence.notified[0].shadow = true;
    occurrence
}

/// Returns a group with a response.
pub fn escalated_group() -> Group {
    Group {
        id: id(85),
        responder: Some(id(86)),
        ..open_group()
    }
}

pub fn shadow_group() -> Group {
    Group {
        id: id(84),
        shadow: true,
        ..group()
    }
}
