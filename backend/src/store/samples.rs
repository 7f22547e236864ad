//! Records with every field set: what encodings are frozen with, and what tests of the store start
//! from.

mod digests;
mod holds;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{audit::By, record::chained};
use crate::domain::{
    Annotation, AnyResource, Attempt, AuditAction, AuditEntry, Budget, BudgetWindow, Calendar,
    CauseMark, CertificateName, Clause, Client, Close, CloseReason, Comment, Content, Delivery,
    DeliverySettings, DeliveryState, Destination, DestinationKind, Dialect, DigestContent,
    DigestItem, DigestRow, Earlier, EqualFields, Evaluation, EventId, Field, Flapping,
    FlappingLimits, Flexible, Folding, Group, GroupContent, Grouping, Health, HealthState, HeldBy,
    HistoryEntry, HoldChange, HoldKind, HoldOutcome, Inhibition, IntakeMapping, KeyScope,
    LastNotified, Literal, MappedEvent, MappedSeverity, MemberChange, Name, Notified, Occurrence,
    Opening, Outcome, Pending, Progress, Query, Rates, Receipt, RecordId, Refusal, Revised,
    Revision, Role, Rule, SavedView, Secret, Settings, Severity, SharedSettings, SignatureScheme,
    Silence, SortField, Stage, Status, TemplateLanguage, ThreadOf, TraceContext, Transcript,
    Trigger, Value, WebhookSignature,
    calendar::{Window, WindowText},
    delivery::{Recipients, Request, Response, RuleContent},
    destination::{
        Auth, Email, EventTemplates, Expect, Header, HeaderValue, MailPriority, MsTeams, OnClear,
        PagerDuty, RefusedRecipient, ServiceNow, Slack, Tried, ValueMap, Webhook, WebhookMethod,
    },
};

pub(crate) use self::{digests::*, holds::*};

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
            audience: String::new(),
            params: BTreeMap::new(),
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
            subject: "{{event.summary}}".into(),
            body: "<p>{{event.body}}</p>".into(),
            ..Email::default()
        }),
        DestinationKind::Slack(Slack {
            channel: "#ops".into(),
            token: secret("xoxb-1"),
            ..Slack::default()
        }),
        DestinationKind::MsTeams(MsTeams {
            url: secret("https://example.com/teams"),
        }),
        DestinationKind::PagerDuty(PagerDuty {
            routing_key: secret("R0"),
            ..PagerDuty::default()
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
        template_language: TemplateLanguage::Mustache,
        delivery: DeliverySettings {
            timeout: Some(Duration::from_secs(7)),
            max_in_flight: Some(3),
            max_per_minute: Some(60),
            max_attempts: Some(4),
            budget: None,
        },
        revision: 2,
        create_ms: AT_MS,
        update_ms: AT_MS + 2,
    };
    (0..).zip(kinds).map(destination).collect()
}

/// A mail destination with all that a mail can have.
pub(crate) fn mail_destination() -> Destination {
    let email = Email {
        to: "ops@example.com".into(),
        cc: "boss@example.com".into(),
        bcc: "archive@example.com".into(),
        from: "Alerts <alerts@example.com>".into(),
        reply_to: "duty@example.com".into(),
        list_id: "alerts.example.com".into(),
        priority: MailPriority::BySeverity,
        ..Email::default()
    };
    Destination {
        id: id(91),
        name: name("mail"),
        kind: DestinationKind::Email(email),
        ..destinations().swap_remove(1)
    }
}

/// Destinations with what their types have beside their first form, in Jinja where there are templates.
pub(crate) fn worded_destinations() -> Vec<Destination> {
    let slack = Slack {
        channel: "#ops".into(),
        token: Secret::new("xoxb-1"),
        blocks: "[{\"type\": \"divider\"}]".into(),
        update_first: true,
        broadcast_replies: true,
    };
    let pagerduty = PagerDuty {
        routing_key: Secret::new("R0"),
        class: "{{ event.type }}".into(),
        component: "{{ event.name }}".into(),
        group: "{{ tenant }}".into(),
        custom_details: "{\"a\": \"{{ event.body }}\"}".into(),
        links: "[{\"href\": \"https://example.com\"}]".into(),
        images: "[{\"src\": \"https://example.com/a.png\"}]".into(),
    };
    let mut webhook = reaching_webhook().kind;
    if let DestinationKind::Webhook(webhook) = &mut webhook
        && let Some(Auth::OAuth2 {
            audience, params, ..
        }) = webhook.auth.as_deref_mut()
    {
        *audience = "https://api.example.com/".into();
        *params = [("resource".to_owned(), "alerts".to_owned())].into();
    }
    let kinds = [
        DestinationKind::Slack(slack),
        DestinationKind::PagerDuty(pagerduty),
        webhook,
    ];
    let worded = |(number, kind): (u64, DestinationKind)| Destination {
        id: id(92 + number),
        name: name(&format!("worded {}", kind.word())),
        kind,
        template_language: TemplateLanguage::Jinja,
        ..destinations().swap_remove(1)
    };
    (0..).zip(kinds).map(worded).collect()
}

/// A rule in Jinja.
pub(crate) fn jinja_rule() -> Rule {
    Rule {
        destination_names: vec![name("to 0")],
        template_language: TemplateLanguage::Jinja,
        ..rule("words")
    }
}

/// A delivery whose rule and destination are in Jinja.
pub(crate) fn jinja_delivery() -> Delivery {
    let mut delivery = delivery(7, DeliveryState::Delivered);
    delivery.content.template_language = TemplateLanguage::Jinja;
    delivery.content.rule.template_language = TemplateLanguage::Jinja;
    delivery
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
        template_language: TemplateLanguage::Mustache,
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
        scope: KeyScope::default(),
        certificates: BTreeSet::new(),
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

/// A client that is kept to a part of its role, and that a certificate stands for.
pub(crate) fn scoped_client(name_of_it: &str) -> Client {
    Client {
        scope: KeyScope {
            tags: ["team:db".into()].into(),
            sources: ["cron".into()].into(),
        },
        certificates: [CertificateName::parse("dns:cron.example.net").unwrap()].into(),
        ..client(name_of_it)
    }
}

/// That a rule notified of an occurrence to its end.
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
        reports: crate::domain::Reports::default(),
        flapping: Vec::new(),
        assignee: None,
        trace: None,
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

/// An occurrence that a user looks after.
pub(crate) fn assigned_occurrence() -> Occurrence {
    let mut assigned = Occurrence {
        assignee: Some(name("ben")),
        ..occurrence(7)
    };
    assigned.history.push(HistoryEntry {
        at_ms: AT_MS + 30,
        author: Some(name("ann")),
        field: Field::Assignee,
        from: String::new(),
        to: "ben".into(),
    });
    assigned
}

/// An occurrence whose newest event came with a trace.
pub(crate) fn traced_occurrence() -> Occurrence {
    Occurrence {
        trace: TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ..occurrence(8)
    }
}

/// An occurrence that several reporters report.
pub(crate) fn reported_occurrence() -> Occurrence {
    let lease = |reporter: &str, until_ms| crate::domain::Lease {
        reporter: crate::domain::Report::new(None, reporter).reporter.unwrap(),
        until_ms,
    };
    Occurrence {
        reports: crate::domain::Reports {
            began_ms: Some((AT_MS - 60_000, AT_MS - 45_000)),
            leases: vec![lease("a", AT_MS + 240_000), lease("b", AT_MS + 255_000)],
        },
        ..occurrence(8)
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

/// Settings of which each is another one than its default.
pub(crate) fn settings() -> Settings {
    Settings {
        id: id(71),
        name: name(Settings::NAME),
        values: SharedSettings {
            tenant: "acme".into(),
            info_age_max: Duration::from_secs(1),
            warning_age_max: Duration::from_secs(2),
            error_age_max: Duration::from_secs(3),
            event_retention: Duration::from_secs(4),
            delivery_retention: Duration::from_secs(5),
            audit_retention: Duration::from_secs(6),
            together_from: 7,
        },
        from_file: vec!["tenant".into()],
        revision: 2,
        create_ms: AT_MS,
        update_ms: AT_MS + 1,
    }
}

/// A view that has all that one can have.
pub(crate) fn view(called: &str) -> SavedView {
    SavedView {
        id: id(70),
        name: name(called),
        description: "what the night shift looks at".into(),
        tags: vec!["team:db".into()],
        filter: "host=db-* since=8h".into(),
        sort: SortField::Severity,
        ascending: true,
        includes_closed: true,
        group_by: Some("host".into()),
        columns: vec!["Seen".into(), "Summary".into()],
        revision: 3,
        create_ms: AT_MS,
        update_ms: AT_MS + 1,
    }
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
    let was = [
        Revised::Trigger(trigger("disk")),
        Revised::Rule(rule("page")),
    ];
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
        template_language: TemplateLanguage::Mustache,
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
        origin: None,
        retried_as: None,
        folding: Folding::Open,
        recipients: Recipients::default(),
        content: Content {
            clear: true,
            occurrence,
            rule: rule_content,
            trigger: Some(trigger("disk")),
            destination_kind: destinations().swap_remove(1).kind,
            template_language: TemplateLanguage::Mustache,
            group: None,
            thread: None,
            digest: None,
        },
    }
}

/// A delivery of a mail that some addresses have, and that one refused.
pub(crate) fn partial_delivery() -> Delivery {
    Delivery {
        recipients: Recipients {
            reached: vec!["a@example.com".into(), "b@example.com".into()],
            refused: vec!["c@example.com".into()],
        },
        ..delivery(5, DeliveryState::Retry { due_ms: 3 })
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

/// The health of the deliveries to a destination.
pub(crate) fn health() -> Health {
    Health {
        destination: id(21),
        state: HealthState::Failing,
        since_ms: AT_MS + 3,
        failures: 2,
        last_error: "answered 500".into(),
        last_success_ms: None,
        tried: Vec::new(),
        refused: Vec::new(),
        asked_until_ms: None,
    }
}

/// The same of a receiver that asks for nothing for a while.
pub(crate) fn asking_health() -> Health {
    Health {
        asked_until_ms: Some(AT_MS + 90_000),
        ..health()
    }
}

/// The same with addresses that are refused.
pub(crate) fn refusing_health() -> Health {
    let refused = |address: &str, said: &str, is_permanent| RefusedRecipient {
        address: address.into(),
        said: said.into(),
        is_permanent,
        since_ms: AT_MS + 3,
    };
    Health {
        refused: vec![
            refused("a@example.com", "450 greylisted", false),
            refused("b@example.com", "550 no such user", true),
        ],
        ..health()
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
        scope: std::sync::Arc::default(),
    };
    let mut after = trigger("disk");
    after.description = "disks that are full".into();
    let entry = AuditEntry {
        kind: "trigger".into(),
        names: vec!["disk".into()],
        before: Some(AnyResource::Trigger(trigger("disk"))),
        after: Some(AnyResource::Trigger(after)),
        changed_secrets: vec!["webhook.signingSecret".into()],
        reason: "because".into(),
        ..by.entry(AuditAction::Updated)
    };
    chained(entry, 1, [0; 32])
}
