//! Records with every field set, used to freeze encodings and as input of store tests. [`plain`]
//! has minimal values for tests of decisions.

mod deliveries;
mod digests;
mod holds;
mod occurrences;
pub mod plain;
mod response;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use crate::domain::{
    AnyResource, Calendar, CertificateName, Clause, Client, Delivery, DeliverySettings,
    DeliveryState, Destination, DestinationKind, Dialect, EnrichmentTable, Handshake,
    IntakeMapping, KeyScope, Literal, MappedEvent, MappedResponse, MappedSeverity, MappedThread,
    Name, Notified, PreviousKey, Query, Rates, Receipt, RecordId, Refusal, RevisedResource,
    Revision, Role, Rule, SavedView, Secret, Settings, Severity, SharedSettings, SignatureScheme,
    SortField, TemplateLanguage, Trigger, WebhookSignature,
    calendar::{Window, WindowText},
    destination::{
        Auth, Email, EventTemplates, Expect, FollowUp, Header, HeaderValue, Keep, MailPriority,
        MsTeams, PagerDuty, ServiceNow, Slack, ValueMap, Webhook, WebhookMethod,
    },
};

pub use self::{deliveries::*, digests::*, holds::*, occurrences::*, response::*};

/// Time used in all samples, in milliseconds since 1970.
const AT_MS: i64 = 1_790_000_000_000;

pub fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

pub fn id(number: u64) -> RecordId {
    RecordId::from_parts(AT_MS.unsigned_abs(), number.into())
}

/// Returns a trigger whose query has every kind of clause.
pub fn trigger(name_of_it: &str) -> Trigger {
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

/// Returns a webhook with every field set.
pub fn reaching_webhook() -> Destination {
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
        webhook.on_clear = Some(Box::new(FollowUp {
            url: "https://example.com/{{event.id}}".into(),
            method: WebhookMethod::Delete,
            payload: "{}".into(),
            gone: None,
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
            destination: None,
        }));
        webhook.compress = true;
    }
    destination
}

/// Returns a webhook that keeps values of responses, with another request for updates.
pub fn keeping_webhook() -> Destination {
    let mut destination = reaching_webhook();
    destination.id = id(62);
    destination.name = name("keeping");
    if let DestinationKind::Webhook(webhook) = &mut destination.kind {
        webhook.on_update = Some(Box::new(FollowUp {
            url: "https://example.com/{{kept.issue}}".into(),
            method: WebhookMethod::Patch,
            payload: String::new(),
            gone: None,
        }));
        let keep = |from: &str, is_secret| Keep {
            from: from.into(),
            is_secret,
        };
        webhook.keep = [
            ("issue".to_owned(), keep("key", false)),
            ("receipt".to_owned(), keep("header:x-receipt", true)),
        ]
        .into();
    }
    destination
}

/// Returns a webhook that changes its first message while that exists.
pub fn editing_webhook() -> Destination {
    let mut destination = keeping_webhook();
    destination.id = id(63);
    destination.name = name("editing");
    if let DestinationKind::Webhook(webhook) = &mut destination.kind
        && let Some(on_update) = &mut webhook.on_update
    {
        on_update.gone = Some(Clause::Exists("code".into()));
    }
    destination
}

/// Returns a webhook with a condition for responses that show a misconfigured destination.
pub fn judging_webhook() -> Destination {
    let mut destination = destinations().remove(0);
    destination.id = id(61);
    destination.name = name("judging");
    if let DestinationKind::Webhook(webhook) = &mut destination.kind {
        webhook.expect = Some(Box::new(Expect {
            statuses: vec![204],
            body: None,
            destination: Some(Clause::Exists("code".into())),
        }));
    }
    destination
}

/// Returns a destination of each type in the first layout, with a secret if the type has one. Do not
/// add any: the stored folders of former layouts contain exactly these.
pub fn destinations() -> Vec<Destination> {
    let secret = |text: &str| Secret::new(text);
    let header = |name: &str, value| Header {
        name: name.into(),
        value,
    };
    let webhook = Webhook {
        url: "https://example.com/hook".into(),
        method: WebhookMethod::Put,
        headers: vec![
            header("authorization", HeaderValue::Secret(secret("Bearer 1"))),
            header("x-team", HeaderValue::Plain("a".into())),
        ],
        payload: "{\"text\": \"{{event.summary}}\"}".into(),
        signing_secret: secret("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"),
        ..Webhook::default()
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

/// Returns a mail destination with every field set.
pub fn mail_destination() -> Destination {
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

/// Returns destinations with Jinja templates, with the fields that later versions added to their
/// types, and destinations of later types.
pub fn worded_destinations() -> Vec<Destination> {
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
        name: name(&format!("worded {}", kind.as_str())),
        kind,
        template_language: TemplateLanguage::Jinja,
        ..destinations().swap_remove(1)
    };
    (0..).zip(kinds).map(worded).collect()
}

pub fn jinja_rule() -> Rule {
    Rule {
        destination_names: vec![name("to 0")],
        template_language: TemplateLanguage::Jinja,
        ..rule("words")
    }
}

pub fn jinja_delivery() -> Delivery {
    let mut delivery = delivery(7, DeliveryState::Delivered);
    delivery.content.template_language = TemplateLanguage::Jinja;
    delivery.content.rule.template_language = TemplateLanguage::Jinja;
    delivery
}

/// Returns a rule with the trigger `disk` and the first two destinations.
pub fn rule(name_of_it: &str) -> Rule {
    Rule {
        id: id(31),
        name: name(name_of_it),
        description: "tell the team".into(),
        tags: vec!["team-a".into()],
        enabled: true,
        trigger_names: vec![name("disk")],
        destination_names: vec![name("to 0"), name("to 1")],
        escalation_policy: None,
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

/// Returns a client that has been used.
pub fn client(name_of_it: &str) -> Client {
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

/// Returns a client with a rotated key, whose previous key is still accepted.
pub fn rotated_client(name_of_it: &str) -> Client {
    Client {
        key_hash: [42; 32],
        expire_ms: Some(AT_MS + 90_000),
        last_used_from: Some([192, 0, 2, 7].into()),
        previous: Some(PreviousKey {
            hash: [41; 32],
            until_ms: AT_MS + 80_000,
        }),
        ..client(name_of_it)
    }
}

/// Returns a client that may use other services' formats.
pub fn sender(name_of_it: &str) -> Client {
    Client {
        dialects: [Dialect::Prometheus, Dialect::Otlp].into(),
        ..client(name_of_it)
    }
}

/// Returns a client with a scope that restricts its role, authenticated by a certificate.
pub fn scoped_client(name_of_it: &str) -> Client {
    Client {
        scope: KeyScope {
            tags: ["team:db".into()].into(),
            sources: ["cron".into()].into(),
        },
        certificates: [CertificateName::parse("dns:cron.example.net").unwrap()].into(),
        ..client(name_of_it)
    }
}

/// Returns the state of a rule that notified about an occurrence and its closing.
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
        response: None,
        last_notified: None,
    }
}

/// Returns settings that all differ from their defaults.
pub fn settings() -> Settings {
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
            templates: Arc::default(),
            quiet_since_ms: None,
        },
        from_file: vec!["tenant".into()],
        revision: 2,
        create_ms: AT_MS,
        update_ms: AT_MS + 1,
    }
}

pub fn settings_with_templates() -> Settings {
    let mut settings = settings();
    let templates = [("footer", "{{link}}"), ("header", "{{event.severity}}")];
    let templates = templates.map(|(name, text)| (name.to_owned(), text.to_owned()));
    settings.values.templates = Arc::new(templates.into());
    settings
}

/// Returns a view with every field set.
/// Returns a resource of each plain kind, which needs no other sample.
pub fn plain_resources() -> Vec<AnyResource> {
    vec![
        AnyResource::View(view("databases")),
        AnyResource::Enrichment(enrichment("hosts")),
        AnyResource::Drill(drill("weekly page")),
    ]
}

pub fn view(called: &str) -> SavedView {
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

pub fn enrichment(called: &str) -> EnrichmentTable {
    EnrichmentTable {
        id: id(98),
        name: name(called),
        description: "the inventory".into(),
        tags: vec!["team:db".into()],
        enabled: true,
        match_fields: vec!["host".into(), "dimensions.site".into()],
        csv: "host,dimensions.site,team,parent\ndb-*,b*,databases,rack-7".into(),
        revision: 3,
        create_ms: AT_MS,
        update_ms: AT_MS + 1,
    }
}

/// Returns an intake mapping with every field of the first version set.
pub fn mapping(called: &str) -> IntakeMapping {
    IntakeMapping {
        id: id(61),
        name: name(called),
        description: "what its page says".into(),
        tags: vec!["team-a".into()],
        each: "alerts".into(),
        drop: Some(Clause::Exists("item.test".into())),
        event: Some(MappedEvent {
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
        }),
        response: None,
        signature: Some(WebhookSignature {
            scheme: SignatureScheme::Sentry,
            secret: Secret::new("shared"),
        }),
        parse: Vec::new(),
        handshake: None,
        reply: String::new(),
        revision: 2,
        create_ms: AT_MS,
        update_ms: AT_MS + 1,
    }
}

/// Returns an intake mapping with encoded parts and a handshake.
pub fn decoding_mapping(called: &str) -> IntakeMapping {
    IntakeMapping {
        parse: vec!["Message".into(), "Message.detail".into()],
        handshake: Some(Handshake::EventGrid),
        ..mapping(called)
    }
}

/// Returns an intake mapping with a reply.
pub fn replying_mapping(called: &str) -> IntakeMapping {
    IntakeMapping {
        signature: Some(WebhookSignature {
            scheme: SignatureScheme::Discord,
            secret: Secret::new("shared"),
        }),
        reply: r#"{"challenge": "{{challenge}}"}"#.into(),
        ..mapping(called)
    }
}

/// Returns an intake mapping to actions on threads.
pub fn response_mapping(called: &str) -> IntakeMapping {
    IntakeMapping {
        event: None,
        response: Some(Box::new(MappedResponse {
            thread: MappedThread {
                kept_name: "issue".into(),
                template: "{{ issue.key }}".into(),
            },
            action: "{{ action }}".into(),
            author: "{{ user.name }}".into(),
            note: "{{ comment.body }}".into(),
            duration: "{{ duration }}".into(),
            assignee: "{{ assignee }}".into(),
            destination_names: vec![name("jira")],
            template_language: TemplateLanguage::Jinja,
        })),
        ..mapping(called)
    }
}

pub fn calendar(called: &str) -> Calendar {
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
        windows: windows
            .iter()
            .map(|it| Window::parse(it).unwrap())
            .collect(),
        except: vec![name("holidays")],
        revision: 2,
        create_ms: AT_MS,
        update_ms: AT_MS + 5,
    }
}

/// Returns a receipt with a rejected event.
pub fn receipt() -> Receipt {
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

/// Returns earlier revisions of a trigger and a rule.
pub fn revisions() -> [Revision; 2] {
    let was = [
        RevisedResource::Trigger(trigger("disk")),
        RevisedResource::Rule(rule("page")),
    ];
    was.map(|was| Revision {
        was,
        until_ms: AT_MS + 9,
        deleted: true,
    })
}
