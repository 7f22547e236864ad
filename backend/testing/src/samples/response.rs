//! Records of responses, heartbeats and drills: contacts, schedules, policies and expectations.

use super::{AT_MS, id, name, occurrence, rule};
use crate::domain::{
    Clause, Contact, ContactMethod, Drill, DrillEvent, DrillResult, DrillRun, EscalationPlan,
    EscalationPolicy, EscalationStep, EscalationTarget, EventId, Expectation, Heartbeat,
    HeartbeatEvent, HoldKind, Occurrence, OpenAlarm, PagedContact, PagedReceiver, Query,
    QueuedMethod, Response, ResponseState, Rule, Schedule, Severity,
    calendar::{Window, WindowText, parse_date_time},
    heartbeat::{ExpectedWindow, HeartbeatRun},
    schedule::{Layer, Override, Slot},
};

/// Returns a contact with every field set.
pub fn contact(called: &str) -> Contact {
    Contact {
        id: id(74),
        name: name(called),
        description: "database".into(),
        tags: vec!["team:db".into()],
        time_zone: "Europe/Berlin".into(),
        client: Some(name("ana")),
        subject: String::new(),
        methods: vec![ContactMethod {
            id: "phone".into(),
            destination: name("phone"),
            variables: [("phone".to_owned(), "+49 30 1234".to_owned())].into(),
            after_ms: 120_000,
            min_severity: Some(Severity::Error),
            calendar: Some(name("office hours")),
        }],
        feed_number: 0,
        revision: 2,
        create_ms: AT_MS,
        update_ms: AT_MS + 1,
    }
}

/// Returns the hand-offs of a layer.
///
/// # Panics
/// Panics if a text is invalid.
pub fn rotation(dtstart: &str, rrule: &str) -> Window {
    let text = WindowText {
        dtstart: dtstart.into(),
        duration: "P1D".into(),
        rrule: rrule.into(),
        ..WindowText::default()
    };
    Window::parse(&text).expect("the window is valid")
}

/// Returns a schedule with every field set.
pub fn schedule(called: &str) -> Schedule {
    let hand_offs = rotation("2027-01-04T08:00:00", "FREQ=WEEKLY");
    Schedule {
        id: id(75),
        name: name(called),
        description: "who is called at night".into(),
        tags: vec!["team:db".into()],
        time_zone: "Europe/Berlin".into(),
        layers: vec![Layer {
            name: "nights".into(),
            slots: vec![
                Slot {
                    contacts: vec![name("ana")],
                },
                Slot {
                    contacts: vec![name("ben"), name("cleo")],
                },
            ],
            hand_offs,
            calendar: Some(name("office hours")),
            from: None,
            until: None,
        }],
        gaps_allowed: true,
        overrides: vec![Override {
            id: id(76),
            contacts: vec![name("ben")],
            start_ms: AT_MS,
            end_ms: AT_MS + 3_600_000,
            reason: "ana is ill".into(),
            author: Some(name("ops")),
        }],
        feed_number: 0,
        revision: 4,
        create_ms: AT_MS,
        update_ms: AT_MS + 1,
    }
}

/// Returns a schedule with a layer that has a start, an end and an empty slot.
pub fn bounded_schedule() -> Schedule {
    let mut schedule = schedule("summer");
    let layer = &mut schedule.layers[0];
    layer.from = parse_date_time("2027-06-01T09:00:00").ok();
    layer.until = parse_date_time("2027-09-01T00:00:00").ok();
    layer.slots[0].contacts.clear();
    schedule
}

/// Returns a contact whose feed address was rotated.
pub fn followed_contact() -> Contact {
    Contact {
        feed_number: 3,
        ..contact("ana")
    }
}

/// Returns a contact with two methods to one destination, whose ids do not follow their order.
pub fn reordered_contact() -> Contact {
    let mut contact = contact("ben");
    let mut other = contact.methods[0].clone();
    other.id = "phone-2".into();
    other.variables = [("phone".to_owned(), "+49 30 5678".to_owned())].into();
    contact.methods.insert(0, other);
    contact
}

/// Returns a schedule whose feed address was rotated.
pub fn rotated_schedule(called: &str) -> Schedule {
    Schedule {
        feed_number: 2,
        ..schedule(called)
    }
}

/// Returns an escalation policy with every field set.
pub fn policy(called: &str) -> EscalationPolicy {
    let step = |target, wait_ms| EscalationStep {
        targets: vec![target],
        wait_ms,
    };
    EscalationPolicy {
        id: id(77),
        name: name(called),
        description: "database".into(),
        tags: vec!["team:db".into()],
        plan: EscalationPlan {
            steps: vec![
                step(EscalationTarget::Schedule(name("nights")), 300_000),
                step(EscalationTarget::Contact(name("cleo")), 600_000),
                step(EscalationTarget::Destination(name("on call")), 60_000),
            ],
            rounds: 2,
            ack_timeout_ms: 3_600_000,
            fallback: Some(name("on call")),
        },
        revision: 1,
        create_ms: AT_MS,
        update_ms: AT_MS,
    }
}

/// Returns a rule with an escalation policy.
pub fn paging_rule() -> Rule {
    Rule {
        escalation_policy: Some(name("database")),
        ..rule("page at night")
    }
}

/// Returns an escalated occurrence that was acknowledged temporarily.
pub fn escalated() -> Occurrence {
    let mut occurrence = occurrence(91);
    occurrence.acknowledged_until_ms = Some(AT_MS + 900_000);
    let contact = PagedContact {
        name: name("ana"),
        variables: [("phone".to_owned(), "+49 30 1234".to_owned())].into(),
        response: id(78),
        method: String::new(),
    };
    let response = Response {
        round: 2,
        step: 1,
        checks: 3,
        next_ms: Some(AT_MS + 300_000),
        review_ms: Some(AT_MS + 60_000),
        queued: vec![QueuedMethod {
            contact: name("ana"),
            schedule: Some(name("nights")),
            position: 1,
            due_ms: AT_MS + 120_000,
            method: String::new(),
            round: 0,
            step: 0,
        }],
        paged: vec![PagedReceiver {
            contact: Some(contact),
            schedule: Some(name("nights")),
            destination: (id(1), name("to 0")),
            delivery: id(79),
            at_ms: AT_MS,
            round: 2,
            step: 1,
        }],
        end_ms: None,
        is_unanswered: true,
        ..Response::new(id(78), &policy("database"), AT_MS)
    };
    for notified in occurrence.notified.iter_mut().take(1) {
        notified.response = Some(Box::new(response.clone()));
    }
    occurrence
}

/// Returns the occurrence of [`escalated`] after a round for severity critical, with the ids of
/// pages and waiting methods.
pub fn identified_response() -> Occurrence {
    let mut occurrence = escalated();
    if let Some(response) = &mut occurrence.notified[0].response {
        response.most_severe = Some(Severity::Critical);
        for queued in &mut response.queued {
            queued.method = "phone-2".into();
            (queued.round, queued.step) = (1, 2);
        }
        for contact in response
            .paged
            .iter_mut()
            .filter_map(|it| it.contact.as_mut())
        {
            contact.method = "phone".into();
        }
    }
    occurrence
}

/// Returns the occurrence of [`escalated`] while a silence and a cause hold its response.
pub fn held_response() -> Occurrence {
    let mut occurrence = escalated();
    if let Some(response) = &mut occurrence.notified[0].response {
        response.state = ResponseState::Held;
        response.held_by = vec![(HoldKind::Silence, id(80)), (HoldKind::Inhibition, id(81))];
    }
    occurrence
}

/// Returns a heartbeat with every field set.
pub fn heartbeat(called: &str) -> Heartbeat {
    Heartbeat {
        id: id(72),
        name: name(called),
        description: "what runs at night".into(),
        tags: vec!["team:db".into()],
        enabled: true,
        query: Some(Query {
            clause: Clause::Exists("dimensions.job".into()),
        }),
        by: vec!["host".into(), "dimensions.job".into()],
        every_ms: 86_400_000,
        calendar: None,
        cron: String::new(),
        time_zone: String::new(),
        max_run_ms: None,
        grace_ms: 600_000,
        forget_ms: 864_000_000,
        event: HeartbeatEvent {
            name: "no backup".into(),
            severity: Severity::Critical,
            summary: "the backup did not run".into(),
            dimensions: [("team".to_owned(), "db".to_owned())].into(),
        },
        key_number: 2,
        revision: 3,
        create_ms: AT_MS,
        update_ms: AT_MS + 1,
    }
}

/// Returns a missed expectation of [`heartbeat`].
pub fn expectation() -> Expectation {
    Expectation {
        heartbeat: id(72),
        key: id(73),
        values: vec![
            ("host".into(), Some("db-1".into())),
            ("dimensions.job".into(), None),
        ],
        last_ms: Some(AT_MS),
        beat_service_ms: 5_000,
        has_failed: true,
        open: Some(OpenAlarm {
            event: EventId::from_bytes([7; 20]),
            service_ms: 4_000,
            is_failure: true,
            is_reported: true,
        }),
        run: None,
        run_ms: None,
        gaps_ms: Vec::new(),
        window: None,
        outages: Vec::new(),
    }
}

/// Returns a heartbeat with a beat in each window of a calendar, whose runs are measured.
pub fn window_heartbeat(called: &str) -> Heartbeat {
    Heartbeat {
        every_ms: 0,
        calendar: Some(name("office hours")),
        max_run_ms: Some(3_600_000),
        ..heartbeat(called)
    }
}

/// Returns a heartbeat with a beat after each time of a cron expression.
pub fn cron_heartbeat(called: &str) -> Heartbeat {
    Heartbeat {
        every_ms: 0,
        cron: "0 3 * * *".into(),
        time_zone: "Europe/Berlin".into(),
        ..heartbeat(called)
    }
}

/// Returns an expectation of a heartbeat with a calendar, during a run.
pub fn running_expectation() -> Expectation {
    Expectation {
        has_failed: false,
        open: None,
        run: Some(HeartbeatRun {
            since_service_ms: 6_000,
            start_service_ms: 7_000,
            start_ms: AT_MS + 2_000,
        }),
        run_ms: Some(1_500),
        gaps_ms: vec![1_000, 2_000],
        window: Some(ExpectedWindow {
            start_ms: AT_MS,
            length_ms: 3_600_000,
            service_ms: 4_000,
            slack_ms: 5_000,
            is_over: true,
        }),
        ..expectation()
    }
}

/// Returns a drill with every field set: one run is in progress, and one was acknowledged.
pub fn drill(called: &str) -> Drill {
    Drill {
        id: id(79),
        name: name(called),
        description: "does the phone ring".into(),
        tags: vec!["team:db".into()],
        enabled: true,
        cron: String::new(),
        time_zone: String::new(),
        every_ms: 604_800_000,
        event: DrillEvent {
            name: "shop down".into(),
            kind: "drill".into(),
            severity: Severity::Critical,
            summary: "acknowledge this".into(),
            dimensions: [("service".to_owned(), "shop".to_owned())].into(),
        },
        acknowledge_ms: 900_000,
        failed_severity: Severity::Error,
        due_ms: Some(AT_MS + 604_800_000),
        runs: vec![
            DrillRun {
                start_ms: Some(AT_MS - 604_800_000),
                event: Some(EventId::from_bytes([8; 20])),
                since_service_ms: Some(1_000),
                acknowledged_by: "ana".into(),
                acknowledged_after_ms: Some(42_000),
                ..DrillRun::new(AT_MS - 604_800_000, DrillResult::Acknowledged, "")
            },
            DrillRun {
                start_ms: Some(AT_MS),
                event: Some(EventId::from_bytes([9; 20])),
                ..DrillRun::new(AT_MS, DrillResult::Running, "")
            },
        ],
        revision: 3,
        create_ms: AT_MS - 604_800_001,
        update_ms: AT_MS - 604_800_000,
    }
}

/// Returns a drill with a cron expression whose last run was skipped.
pub fn cron_drill(called: &str) -> Drill {
    Drill {
        cron: "30 10 * * tue".into(),
        time_zone: "Europe/Berlin".into(),
        every_ms: 0,
        runs: vec![DrillRun::new(AT_MS, DrillResult::Skipped, "too late")],
        ..drill(called)
    }
}
