//! Records with every field set: what encodings are frozen with, and what tests of the store start
//! from.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{audit::By, record::chained};
use crate::domain::{
    Annotation, Attempt, AuditAction, AuditEntry, AuditState, Calendar, CauseMark, Clause, Client,
    Close, CloseReason, Comment, Content, Delivery, DeliverySettings, DeliveryState, Destination,
    DestinationKind, Dialect, Earlier, EqualFields, Evaluation, EventId, Field, Flapping,
    FlappingLimits, Flexible, Group, GroupContent, Grouping, Health, HealthState, Held, HeldBy,
    HistoryEntry, HoldChange, HoldKind, Inhibition, IntakeMapping, LastTold, Literal, MappedEvent,
    MappedSeverity, MemberChange, Name, Notified, Occurrence, Opening, Outcome, Pending, Progress,
    Query, Rates, Receipt, RecordId, Refusal, Revision, Role, Rule, Secret, Severity,
    SignatureScheme, Silence, Stage, Status, ThreadOf, Transcript, Trigger, Value, Was,
    WebhookSignature,
    calendar::{Window, WindowText},
    delivery::{Request, Response, RuleContent},
    destination::{
        Auth, Email, EventTemplates, Expect, Header, HeaderValue, MsTeams, OnClear, PagerDuty,
        ServiceNow, Slack, Tried, ValueMap, Webhook, WebhookMethod,
    },
};

/// When things happened, in milliseconds since 1970.
const AT_MS: i64 = 1_790_000_000_000;

/// A name.
pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

/// An identity.
pub(crate) fn id(number: u64) -> RecordId {
    RecordId::from_parts(AT_MS.unsigned_abs(), number.into())
}

/// A trigger whose query has every kind of clause.
pub(crate) fn trigger(name_of_it: &str) -> Trigger {
    let text = |field: &str| (field.to_owned(), Literal::Text("error".into()));
    let (severity, at_least) = text("severity");
    let clause = Clause::And(vec![
        Clause::GreaterAndEquals(severity, at_least),
        Clause::LessAndEquals("count".into(), Literal::Number(1e6)),
        Clause::Or(vec![
            Clause::Contains("summary".into(), "disk".into()),
            Clause::StartsWith("name".into(), "fs".into()),
            Clause::EndsWith("type".into(), "full".into()),
            Clause::Equals("acknowledged".into(), Literal::Bool(false)),
        ]),
        Clause::Not(Box::new(Clause::In(
            "dimensions.env".into(),
            vec![Literal::Text("lab".into()), Literal::Number(7.5)],
        ))),
    ]);
    Trigger {
        id: id(11),
        name: name(name_of_it),
        description: "disks that fill up".into(),
        tags: vec!["disk".into(), "team-a".into()],
        query: Query { clause },
        revision: 3,
        create_ms: AT_MS,
        update_ms: AT_MS + 1,
    }
}

/// A webhook that has all that one can have.
pub(crate) fn reaching_webhook() -> Destination {
    let mut destination = destinations().remove(0);
    destination.id = id(60);
    destination.name = name("far");
    if let DestinationKind::Webhook(webhook) = &mut destination.kind {
        webhook.headers.clear();
        webhook.auth = Some(Box::new(Auth::OAuth2 {
            token_url: "https://example.com/token".into(),
            client_id: "client".into(),
            client_secret: Secret::new("secret"),
            scope: "alerts".into(),
        }));
        webhook.on_clear = Some(Box::new(OnClear {
            url: "https://example.com/{{event.id}}".into(),
            method: WebhookMethod::Delete,
            payload: "{}".into(),
        }));
        let value = ValueMap {
            from: "event.severity".into(),
            map: [("critical".to_owned(), "P1".to_owned())].into(),
            default: "P3".into(),
        };
        webhook.values = [("priority".to_owned(), value)].into();
        webhook.expect = Some(Box::new(Expect {
            statuses: vec![200, 409],
            body: Some(Clause::Exists("ok".into())),
        }));
        webhook.compress = true;
    }
    destination
}

/// Every kind of destination, each with a secret where it can have one.
#[expect(clippy::too_many_lines, reason = "one of each kind")]
pub(crate) fn destinations() -> Vec<Destination> {
    let secret = |text: &str| Secret::new(text);
    let header = |name: &str, value| Header {
        name: name.into(),
        value,
    };
    let webhook = Webhook {
        secret_url: Secret::default(),
        auth: None,
        on_clear: None,
        values: BTreeMap::new(),
        expect: None,
        compress: false,
        url: "https://example.com/hook".into(),
        method: WebhookMethod::Put,
        headers: vec![
            header("authorization", HeaderValue::Secret(secret("Bearer 1"))),
            header("x-team", HeaderValue::Plain("a".into())),
        ],
        payload: "{\"text\": \"{{event.summary}}\"}".into(),
        signing_secret: secret("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"),
    };
    let service_now = ServiceNow {
        instance_url: "https://example.service-now.com".into(),
        client_id: "client".into(),
        client_secret: secret("secret"),
        token_url: "https://example.com/token".into(),
        refresh_token: secret("refresh"),
    };
    let kinds = [
        DestinationKind::Webhook(webhook),
        DestinationKind::Email(Email {
            to: "ops@example.com".into(),
            cc: String::new(),
            subject: "{{event.summary}}".into(),
            body: "<p>{{event.body}}</p>".into(),
        }),
        DestinationKind::Slack(Slack {
            channel: "#ops".into(),
            token: secret("xoxb-1"),
        }),
        DestinationKind::MsTeams(MsTeams {
            url: secret("https://example.com/teams"),
        }),
        DestinationKind::PagerDuty(PagerDuty {
            routing_key: secret("R0"),
        }),
        DestinationKind::ServiceNow(service_now),
        DestinationKind::Event(EventTemplates {
            name_template: "again {{event.name}}".into(),
            type_template: "again".into(),
            summary_template: "{{event.summary}}".into(),
            severity: Severity::Warning,
        }),
    ];
    let destination = |(number, kind): (u64, DestinationKind)| Destination {
        id: id(20 + number),
        name: name(&format!("to {number}")),
        description: "a place".into(),
        tags: vec!["team-a".into()],
        kind,
        delivery: DeliverySettings {
            timeout: Some(Duration::from_secs(7)),
            max_in_flight: Some(3),
            max_per_minute: Some(60),
            max_attempts: Some(4),
        },
        revision: 2,
        create_ms: AT_MS,
        update_ms: AT_MS + 2,
    };
    (0..).zip(kinds).map(destination).collect()
}

/// A rule from the trigger `disk` to the first two destinations.
pub(crate) fn rule(name_of_it: &str) -> Rule {
    Rule {
        id: id(31),
        name: name(name_of_it),
        description: "tell the team".into(),
        tags: vec!["team-a".into()],
        enabled: true,
        trigger_names: vec![name("disk")],
        destination_names: vec![name("to 0"), name("to 1")],
        message: "{{event.summary}}".into(),
        repeat: true,
        repeat_interval_seconds: 600,
        send_updates: true,
        delay_ms: 0,
        auto_pause_ms: 0,
        active_calendar: None,
        group: None,
        flapping: None,
        shadow: false,
        revision: 5,
        create_ms: AT_MS,
        update_ms: AT_MS + 3,
    }
}

/// A client that was used.
pub(crate) fn client(name_of_it: &str) -> Client {
    Client {
        id: id(41),
        name: name(name_of_it),
        role: Role::Editor,
        rates: Rates::default(),
        dialects: BTreeSet::new(),
        key_hash: [41; 32],
        create_ms: AT_MS,
        last_used_ms: Some(AT_MS + 60_000),
        last_used_from: None,
        expire_ms: None,
        previous: None,
    }
}

/// A client that may speak what others do.
pub(crate) fn sender(name_of_it: &str) -> Client {
    Client {
        dialects: [Dialect::Prometheus, Dialect::Otlp].into(),
        ..client(name_of_it)
    }
}

/// That a rule told of an occurrence to its end.
fn notified() -> Notified {
    Notified {
        rule: id(31),
        rule_name: name("page"),
        last_ms: AT_MS + 1,
        send_updates: true,
        destinations: vec![(id(20), name("to 0"))],
        cleared: true,
        opening: None,
        group: None,
        shadow: false,
        thread: None,
    }
}

/// A closed occurrence with everything that can happen to one.
pub(crate) fn occurrence(number: u32) -> Occurrence {
    let metadata = BTreeMap::from([
        (
            "list".into(),
            Value::List(vec![Value::Null, Value::Bool(true)]),
        ),
        (
            "object".into(),
            Value::Object(BTreeMap::from([("n".into(), Value::Number(-1.5))])),
        ),
        ("text".into(), Value::Text("t".into())),
    ]);
    let dimensions = BTreeMap::from([("host".to_owned(), "db-1".to_owned())]);
    Occurrence {
        key: id(50 + u64::from(number)),
        event: EventId::derive("disk", &dimensions),
        number,
        name: "disk".into(),
        kind: "full".into(),
        dimensions,
        metadata,
        summary: "disk is full".into(),
        body: "99 %".into(),
        severity: Severity::Error,
        status: Status::Closed,
        acknowledged: true,
        start_ms: AT_MS,
        last_seen_ms: AT_MS + 10,
        close: Some(Close {
            at_ms: AT_MS + 20,
            reason: CloseReason::Operator,
        }),
        count: 4,
        prior_count: 2,
        annotations: vec![Annotation {
            id: "abcdefghij0123456789".into(),
            text: "looking".into(),
            author: name("admin"),
            create_ms: AT_MS + 11,
            update_ms: AT_MS + 12,
        }],
        history: vec![HistoryEntry {
            at_ms: AT_MS + 20,
            author: Some(name("admin")),
            field: Field::Status,
            from: "open".into(),
            to: "closed".into(),
        }],
        notified: vec![notified()],
        chain: vec![id(32)],
        review_ms: AT_MS + 2_592_000_000,
        content_ms: None,
        evaluation: None,
        received_ms: None,
        reopened: None,
        earlier: Vec::new(),
        causes: Vec::new(),
        covered_by: Vec::new(),
        pending: Vec::new(),
        hold_changes: Vec::new(),
        expire_ms: None,
        flapping: Vec::new(),
    }
}

/// An occurrence whose newest event was stamped ahead, and after which an earlier one was reopened.
pub(crate) fn reopened_occurrence() -> Occurrence {
    Occurrence {
        received_ms: Some(AT_MS + 6),
        reopened: Some(1),
        ..occurrence(3)
    }
}

/// An occurrence that ends unless it is sent again.
pub(crate) fn expiring_occurrence() -> Occurrence {
    Occurrence {
        status: Status::Open,
        close: None,
        expire_ms: Some(AT_MS + 240_000),
        ..occurrence(4)
    }
}

/// An occurrence with what its decisions rest on.
pub(crate) fn evaluated_occurrence() -> Occurrence {
    let mut occurrence = occurrence(2);
    occurrence.content_ms = Some(AT_MS + 4);
    occurrence.evaluation = Some(Evaluation {
        at_ms: AT_MS + 5,
        rules_ms: AT_MS + 3,
        by_event: true,
    });
    occurrence.notified[0].opening = Some(Opening {
        at_ms: AT_MS + 1,
        trigger: (&trigger("disk")).into(),
        rule_revision: 5,
    });
    occurrence
}

/// An occurrence of which something waits under a silence, and something else was spared.
pub(crate) fn held_occurrence() -> Occurrence {
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
            change(AT_MS + 2, Held::Waits),
            change(AT_MS + 3, Held::NoLongerMatched),
            change(AT_MS + 4, Held::Waits),
        ],
        pending: vec![Pending {
            rule: id(31),
            rule_name: name("page"),
            is_opening: false,
            since_ms: AT_MS + 4,
            repeat_due: true,
            last_told: Some(LastTold {
                severity: Severity::Warning,
                acknowledged: true,
            }),
            held_by,
        }],
        ..occurrence(4)
    }
}

/// An occurrence of an event that came before.
pub(crate) fn returned_occurrence() -> Occurrence {
    let earlier = |end_ms, by_sender| Earlier {
        end_ms,
        length_ms: 90_000,
        by_sender,
    };
    Occurrence {
        earlier: vec![
            earlier(AT_MS - 7_200_000, false),
            earlier(AT_MS - 3_600_000, true),
        ],
        ..occurrence(5)
    }
}

/// A silence.
pub(crate) fn silence(called: &str) -> Silence {
    Silence {
        id: id(51),
        name: name(called),
        description: "the monthly one".into(),
        tags: vec!["team-a".into()],
        reason: "kernel update".into(),
        query: Some(trigger("disk").query),
        rule_names: vec![name("page")],
        calendar: None,
        flexible: None,
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
            has_begun: false,
        },
        revision: 2,
        create_ms: AT_MS,
        update_ms: AT_MS + 5,
    }
}

/// An inhibition.
pub(crate) fn inhibition(called: &str) -> Inhibition {
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

/// An occurrence that is a source of an inhibition, and was one of another lately.
pub(crate) fn cause() -> Occurrence {
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

/// A rule with every way of waiting.
pub(crate) fn timed_rule() -> Rule {
    Rule {
        delay_ms: 300_000,
        auto_pause_ms: 120_000,
        active_calendar: Some(name("office")),
        ..rule("timed")
    }
}

/// A rule that groups.
pub(crate) fn grouping_rule() -> Rule {
    Rule {
        group: Some(Grouping {
            by: vec!["host".into(), "dimensions.rack".into()],
            wait_ms: 30_000,
            interval_ms: 300_000,
        }),
        ..rule("grouping")
    }
}

/// A group that is over.
pub(crate) fn group() -> Group {
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
        told_ms: AT_MS + 2,
        end_ms: Some(AT_MS + 3),
        shadow: false,
    }
}

/// A rule that counts how often an event opens.
pub(crate) fn flapping_rule() -> Rule {
    Rule {
        flapping: Some(FlappingLimits {
            open_count: 5,
            window_ms: 3_600_000,
            settle_ms: 900_000,
        }),
        ..rule("flapping")
    }
}

/// The occurrence that receivers know another one by.
fn thread() -> ThreadOf {
    ThreadOf {
        key: id(51),
        number: 1,
    }
}

/// A flapping occurrence that goes on with the thread of an earlier one.
pub(crate) fn flapping_occurrence() -> Occurrence {
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
        last_told: None,
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
    }];
    occurrence
}

/// A delivery about an occurrence that receivers know by an earlier one.
pub(crate) fn thread_delivery() -> Delivery {
    let mut delivery = delivery(901, DeliveryState::Delivered);
    delivery.content.thread = Some(thread());
    delivery.content.occurrence.flapping = flapping_occurrence().flapping;
    delivery
}

/// A rule that only records.
pub(crate) fn shadow_rule() -> Rule {
    Rule {
        shadow: true,
        ..rule("shadow")
    }
}

/// An occurrence of which a rule only recorded what it would have sent.
pub(crate) fn shadowed_occurrence() -> Occurrence {
    let mut occurrence = occurrence(7);
    occurrence.notified[0].shadow = true;
    occurrence
}

/// A group whose messages are only recorded.
pub(crate) fn shadow_group() -> Group {
    Group {
        id: id(84),
        shadow: true,
        ..group()
    }
}

/// A group that takes members.
pub(crate) fn open_group() -> Group {
    Group {
        id: id(83),
        end_ms: None,
        ..group()
    }
}

/// An occurrence that was told of with a group, and joins one of another rule.
pub(crate) fn grouped_occurrence() -> Occurrence {
    let mut occurrence = held_occurrence();
    occurrence.close = None;
    occurrence.status = Status::Open;
    occurrence.acknowledged = false;
    occurrence.notified[0].cleared = false;
    occurrence.notified[0].group = Some(id(83));
    for (at, pending) in occurrence.pending.iter_mut().enumerate() {
        pending.is_opening = at == 0;
        pending.last_told = (at > 0).then_some(LastTold {
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

/// A delivery about a group.
pub(crate) fn group_delivery() -> Delivery {
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

/// A silence inside the windows of a calendar, without an end.
pub(crate) fn nightly_silence() -> Silence {
    Silence {
        calendar: Some(name("nights")),
        end_ms: i64::MAX,
        ..silence("nightly")
    }
}

/// A silence that began by itself.
pub(crate) fn flexible_silence() -> Silence {
    let mut silence = silence("flexible");
    silence.flexible = Some(Flexible {
        start_ms: AT_MS,
        end_ms: AT_MS + 3_600_000,
        duration_ms: 7_200_000,
    });
    silence.begin(AT_MS + 60_000);
    silence
}

/// An intake mapping that has all that one can have.
pub(crate) fn mapping(called: &str) -> IntakeMapping {
    IntakeMapping {
        id: id(61),
        name: name(called),
        description: "what its page says".into(),
        tags: vec!["team-a".into()],
        each: "alerts".into(),
        drop: Some(Clause::Exists("item.test".into())),
        event: MappedEvent {
            name: "{{item.title}}".into(),
            dimensions: [("host".to_owned(), "{{item.host}}".to_owned())].into(),
            severity: MappedSeverity {
                from: "item.level".into(),
                map: [("sev1".to_owned(), Severity::Critical)].into(),
                default: Some(Severity::Warning),
            },
            closed: Some(Clause::Exists("item.resolved".into())),
            acknowledged: Some(Clause::Exists("item.owner".into())),
            summary: "{{item.text}}".into(),
            body: "{{{item.details}}}".into(),
            kind: "page".into(),
        },
        signature: Some(WebhookSignature {
            scheme: SignatureScheme::Sentry,
            secret: Secret::new("shared"),
        }),
        revision: 2,
        create_ms: AT_MS,
        update_ms: AT_MS + 1,
    }
}

/// A calendar.
pub(crate) fn calendar(called: &str) -> Calendar {
    let window = |dtstart: &str, duration: &str, end: &str, rrule: &str| WindowText {
        dtstart: dtstart.into(),
        duration: duration.into(),
        end_time_of_day: end.into(),
        rrule: rrule.into(),
        ..WindowText::default()
    };
    let mut nights = window(
        "2027-01-04T22:00:00",
        "",
        "07:00",
        "FREQ=WEEKLY;BYDAY=MO,FR",
    );
    nights.exdate = vec!["2027-01-08".into(), "2027-01-11T22:00:00".into()];
    nights.rdate = vec!["2027-01-12T23:30:00".into()];
    let patch = window(
        "2027-01-08T20:00:00",
        "P1DT2H",
        "",
        "FREQ=MONTHLY;BYDAY=2FR",
    );
    let windows = [nights, patch];
    Calendar {
        id: id(61),
        name: name(called),
        description: "when to be quiet".into(),
        tags: vec!["team-a".into()],
        time_zone: "Europe/Berlin".into(),
        windows: windows.iter().map(|it| Window::read(it).unwrap()).collect(),
        except: vec![name("holidays")],
        revision: 2,
        create_ms: AT_MS,
        update_ms: AT_MS + 5,
    }
}

/// A receipt with a refusal.
pub(crate) fn receipt() -> Receipt {
    Receipt {
        client: id(41),
        key: "request-1".into(),
        fingerprint: [9; 32],
        create_ms: AT_MS,
        refused: vec![Refusal {
            place: 3,
            reason: "has no dimension".into(),
        }],
    }
}

/// A trigger and a rule as they were.
pub(crate) fn revisions() -> [Revision; 2] {
    let was = [Was::Trigger(trigger("disk")), Was::Rule(rule("page"))];
    was.map(|was| Revision {
        was,
        until_ms: AT_MS + 9,
        deleted: true,
    })
}

/// A delivery that was tried once.
pub(crate) fn delivery(number: u64, state: DeliveryState) -> Delivery {
    let rule_content = RuleContent {
        name: "page".into(),
        description: "tell the team".into(),
        message: "{{event.summary}}".into(),
        enabled: true,
        repeat_interval_seconds: 600,
        trigger_names: vec![name("disk")],
        destination_names: vec![name("to 0")],
    };
    let occurrence = occurrence(1);
    Delivery {
        id: id(60 + number),
        rule: Some(id(31)),
        destination: id(21),
        destination_name: "to 1".into(),
        event: Some(occurrence.event),
        state,
        test: false,
        attempts: 1,
        last_error: "answered 500".into(),
        create_ms: AT_MS + 1,
        end_ms: state.due_ms().is_none().then_some(AT_MS + 5),
        retry_of: Some(id(61)),
        retried_as: None,
        content: Content {
            clear: true,
            occurrence,
            rule: rule_content,
            trigger: Some(trigger("disk")),
            destination_kind: destinations().swap_remove(1).kind,
            group: None,
            thread: None,
        },
    }
}

/// A delivery that was sent again.
pub(crate) fn retried_delivery() -> Delivery {
    Delivery {
        retried_as: Some(id(62)),
        ..delivery(3, DeliveryState::Dead)
    }
}

/// An attempt of a delivery.
pub(crate) fn attempt(delivery: u64, number: u32) -> Attempt {
    let headers = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    Attempt {
        delivery: id(60 + delivery),
        number,
        start_ms: AT_MS + 2,
        duration: Some(Duration::from_micros(1_234)),
        outcome: Some(Outcome::Rejected),
        explanation: "answered 500".into(),
        transcript: Transcript {
            request: Some(Request {
                method: "POST".into(),
                url: "https://example.com/hook".into(),
                headers: headers.clone(),
                body: "sent".into(),
            }),
            response: Some(Response {
                status: 500,
                headers,
                body: "came back".into(),
            }),
        },
    }
}

/// How the deliveries to a destination fare.
pub(crate) fn health() -> Health {
    Health {
        destination: id(21),
        state: HealthState::Failing,
        since_ms: AT_MS + 3,
        failures: 2,
        last_error: "answered 500".into(),
        last_success_ms: None,
        tried: Vec::new(),
    }
}

/// The same with what is kept of attempts.
pub(crate) fn tried_health() -> Health {
    Health {
        last_success_ms: Some(AT_MS + 2),
        tried: vec![
            Tried {
                took_ms: 70,
                is_delivered: true,
            },
            Tried {
                took_ms: 30_000,
                is_delivered: false,
            },
        ],
        ..health()
    }
}

/// An entry of the audit log, at the beginning of a chain.
pub(crate) fn audit_entry() -> AuditEntry {
    let by = By {
        client: "jane".into(),
        address: Some([192, 0, 2, 7].into()),
        method: "/bellwether.v1.TriggerService/UpdateTrigger",
        time_ms: 1_800_000_000_000,
    };
    let mut after = trigger("disk");
    after.description = "disks that are full".into();
    let entry = AuditEntry {
        kind: "trigger".into(),
        names: vec!["disk".into()],
        before: Some(AuditState::Trigger(trigger("disk"))),
        after: Some(AuditState::Trigger(after)),
        changed_secrets: vec!["webhook.signingSecret".into()],
        reason: "because".into(),
        ..by.entry(AuditAction::Updated)
    };
    chained(entry, 1, [0; 32])
}
