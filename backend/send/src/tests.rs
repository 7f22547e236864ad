//! Messages about one occurrence: documents, mails, and properties common to all destination types.

mod digests;
mod providers;
mod requested;

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::{RenderedView, check, render};
use crate::{
    domain::{
        Annotation, Clause, Content, DestinationKind, Literal, NO_SNIPPETS, Name, Query, RecordId,
        Secret, Severity, Snippets, Status, TemplateLanguage, Trigger,
        destination::{
            Email, EventTemplates, FollowUp, Header, HeaderValue, Keep, MsTeams, PagerDuty,
            ServiceNow, Slack, Webhook,
        },
    },
    message::{Context, Links, check_message, sample},
};

const NOW_MS: i64 = 1_769_846_400_000;

static SNIPPETS: LazyLock<Arc<Snippets>> = LazyLock::new(Arc::default);

static LINKS: LazyLock<Links> = LazyLock::new(|| Links {
    base: "https://bw.example.com/".into(),
    ..Links::default()
});

fn context() -> Context<'static> {
    Context {
        delivery_id: RecordId::from_parts(1_769_846_400_000, 7),
        destination_name: "pager",
        tenant: "acme",
        links: &LINKS,
        snippets: &SNIPPETS,
        opening: None,
        kept: None,
    }
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn trigger() -> Trigger {
    let severity = Clause::GreaterAndEquals("severity".into(), Literal::Text("error".into()));
    let lab = Clause::Equals("dimensions.env".into(), Literal::Text("lab".into()));
    let clause = Clause::And(vec![severity, Clause::Not(Box::new(lab))]);
    Trigger {
        id: RecordId::from_parts(1, 1),
        name: name("disk full"),
        description: String::new(),
        tags: vec!["disk".into()],
        query: Query { clause },
        revision: 1,
        create_ms: NOW_MS,
        update_ms: NOW_MS,
    }
}

fn content(kind: DestinationKind, message: &str) -> Content {
    let mut content =
        sample::sample_content(sample::sample_occurrence(NOW_MS), kind, message.into());
    content.trigger = Some(trigger());
    content.rule.name = "wake somebody".into();
    content.rule.trigger_names = vec![name("disk full")];
    content.rule.destination_names = vec![name("pager")];
    content
}

fn webhook(payload: &str, content_type: Option<&str>) -> DestinationKind {
    let headers = content_type.map(|value| Header {
        name: "Content-Type".into(),
        value: HeaderValue::Plain(value.into()),
    });
    DestinationKind::Webhook(Webhook {
        url: "https://example.com/".into(),
        headers: headers.into_iter().collect(),
        payload: payload.into(),
        ..Webhook::default()
    })
}

fn email(subject: &str, body: &str) -> DestinationKind {
    DestinationKind::Email(Email {
        to: "ops@example.com".into(),
        subject: subject.into(),
        body: body.into(),
        ..Email::default()
    })
}

fn slack() -> DestinationKind {
    DestinationKind::Slack(Slack {
        channel: "#ops".into(),
        token: Secret::new("xoxb"),
        ..Slack::default()
    })
}

fn teams() -> DestinationKind {
    DestinationKind::MsTeams(MsTeams {
        url: Secret::new("https://example.com/secret"),
    })
}

fn pagerduty() -> DestinationKind {
    DestinationKind::PagerDuty(PagerDuty {
        routing_key: Secret::new("R0"),
        ..PagerDuty::default()
    })
}

fn servicenow() -> DestinationKind {
    DestinationKind::ServiceNow(ServiceNow {
        instance_url: "https://example.com".into(),
        client_id: "id".into(),
        client_secret: Secret::new("secret"),
        token_url: String::new(),
        refresh_token: Secret::default(),
    })
}

fn event(name: &str, kind: &str, summary: &str) -> DestinationKind {
    DestinationKind::Event(EventTemplates {
        name_template: name.into(),
        type_template: kind.into(),
        summary_template: summary.into(),
        severity: Severity::Critical,
    })
}

fn every_kind(template: &str) -> [DestinationKind; 7] {
    [
        webhook(template, None),
        email(template, template),
        slack(),
        teams(),
        pagerduty(),
        servicenow(),
        event(template, template, template),
    ]
}

fn rendered(content: &Content) -> RenderedView {
    render(content, &context())
}

fn document(content: &Content) -> Json {
    let shown = rendered(content).shown;
    match &shown["contentType"] {
        Json::Null => shown,
        _ => serde_json::from_str(shown["body"].as_str().unwrap()).unwrap(),
    }
}

fn mail(content: &Content) -> (String, String, String) {
    let shown = rendered(content).shown;
    let text = |part: &str| shown[part].as_str().unwrap().to_owned();
    (text("subject"), text("text"), text("html"))
}

#[test]
fn default_payload_matches_the_contract() {
    let content = content(webhook("", None), "{{event.severity}} on {{entity.name}}");
    let occurrence = &content.occurrence;
    let expected = json!({
        "id": context().delivery_id.to_string(),
        "tenant": "acme",
        "timestamp": "2026-01-31T08:00:00Z",
        "clear": false,
        "thread_id": format!("{}:1", occurrence.event),
        "rule": {
            "name": "wake somebody",
            "trigger_names": ["disk full"],
            "destination_names": ["pager"],
            "message": "error on db-1.example.com, bellwether-test",
            "enabled": true,
            "repeat_interval": 3600,
        },
        "trigger": {
            "name": "disk full",
            "tags": ["disk"],
            "type": {"event": {"query": {"clause": {"and": {"clauses": [
                {"greaterAndEquals": {"field": "severity", "value": "error"}},
                {"not": {"clause": {"equals": {"field": "dimensions.env", "stringVal": "lab"}}}},
            ]}}}}},
            "createTime": "2026-01-31T08:00:00Z",
            "updateTime": "2026-01-31T08:00:00Z",
        },
        "event": {
            "id": occurrence.event.to_string(),
            "occurrence_id": format!("{}:1", occurrence.event),
            "name": "disk-full",
            "type": "disk",
            "summary": "Sample: disk /var is 97.5 % full",
            "body": "This is a test message. Nothing is wrong.",
            "severity": 4,
            "status": 1,
            "acknowledged": false,
            "flapping": false,
            "count": 1,
            "dimensions": {"host": "db-1.example.com", "source": "bellwether-test"},
            "fields": {"mount": "/var", "usedPercent": 97.5},
        },
    });
    assert_eq!(document(&content), expected);
}

#[test]
fn every_template_variable_has_its_value() {
    let cases = [
        ("{{clear}}", "false"),
        ("{{url}}", "https://bw.example.com"),
        (
            "{{tenant}} {{timestamp}} {{timestamp_ms}}",
            "acme 2026-01-31T08:00:00Z 1769846400000",
        ),
        ("{{event.headline}}", "Sample: disk /var is 97.5 % full"),
        (
            "{{event.name}} {{event.type}} {{event.summary}}",
            "disk-full disk Sample: disk /var is 97.5 % full",
        ),
        (
            "{{event.severity}} {{event.status}} {{event.acknowledged}} {{event.count}}",
            "error open false 1",
        ),
        (
            "{{event.timestamp}} {{event.start_time}} {{event.last_seen}}",
            "2026-01-31T08:00:00Z 2026-01-31T08:00:00Z 2026-01-31T08:00:00Z",
        ),
        (
            "{{event.dimensions.host}} {{event.metadata.usedPercent}}",
            "db-1.example.com 97.5",
        ),
        (
            "{{event.body}}",
            "This is a test message. Nothing is wrong.",
        ),
        ("{{entity.name}}", "db-1.example.com, bellwether-test"),
        ("{{trigger.name}} {{rule.name}}", "disk full wake somebody"),
        (
            "{{rule.description}}",
            "Placeholder for a rule in test messages.",
        ),
        ("{{destination.name}} {{destination.type}}", "pager webhook"),
        ("{{nothing}}{{event.dimensions.none}}", ""),
        ("{{rule.message}}", ""),
    ];
    for (template, expected) in cases {
        let content = content(webhook("", None), template);
        assert_eq!(
            document(&content)["rule"]["message"],
            expected,
            "{template}"
        );
    }
    let content = content(
        webhook("", None),
        "{{id}} {{event.id}} {{event.occurrence_id}} {{link}}",
    );
    let id = content.occurrence.event;
    assert_eq!(
        document(&content)["rule"]["message"],
        format!(
            "{} {id} {id}:1 https://bw.example.com/events/{id}:1",
            context().delivery_id
        )
    );
}

#[test]
fn custom_payload_is_sent_as_written() {
    let mut content = content(webhook(r#"{"text":"{{event.summary}}"}"#, None), "");
    content.occurrence.summary = "a \"quote\"\nand <b>".into();
    assert_eq!(document(&content), json!({"text": "a \"quote\"\nand <b>"}));

    content.rule.message = "{{event.name}}!".into();
    content.destination_kind = webhook("text={{event.count}} {{rule.message}}", Some("text/plain"));
    let rendered = rendered(&content);
    let expected = json!({"contentType": "text/plain", "body": "text=1 disk-full!"});
    assert_eq!((rendered.shown, rendered.warnings), (expected, vec![]));
}

#[test]
fn values_are_escaped_for_the_content_type() {
    let cases = [
        (
            None,
            r#"{"a":"{{event.summary}}"}"#,
            r#"{"a":"1\",\"b\":\"2&b=2<i>"}"#,
        ),
        (
            Some("application/x-www-form-urlencoded"),
            "a={{event.summary}}",
            "a=1%22%2C%22b%22%3A%222%26b%3D2%3Ci%3E",
        ),
        (
            Some("application/soap+xml; charset=utf-8"),
            "<a>{{event.summary}}</a>",
            "<a>1&quot;,&quot;b&quot;:&quot;2&amp;b=2&lt;i&gt;</a>",
        ),
        (
            Some("text/html"),
            "<p>{{event.summary}}",
            "<p>1&quot;,&quot;b&quot;:&quot;2&amp;b=2&lt;i&gt;",
        ),
        (
            Some("text/plain"),
            "{{event.summary}}",
            r#"1","b":"2&b=2<i>"#,
        ),
    ];
    for (content_type, payload, expected) in cases {
        let mut content = content(webhook(payload, content_type), "");
        content.occurrence.summary = r#"1","b":"2&b=2<i>"#.into();
        let rendered = rendered(&content);
        assert_eq!(rendered.shown["body"], expected, "{content_type:?}");
        assert_eq!(rendered.warnings, [""; 0]);
    }
}

#[test]
fn values_are_escaped_in_urls() {
    let DestinationKind::Webhook(standard) = webhook("", None) else {
        unreachable!("as it was made");
    };
    let cases = [
        ("a/b?c=d&e#f", "a%2Fb%3Fc%3Dd%26e%23f"),
        ("..", "_"),
        ("@evil.example.com", "%40evil.example.com"),
        ("\u{e4}\r\nx: y", "%C3%A4%0D%0Ax%3A%20y"),
    ];
    for (summary, escaped) in cases {
        let kind = DestinationKind::Webhook(Webhook {
            url: "https://example.com/v1/{{event.summary}}{{#clear}}/close{{/clear}}?p={{#event.is_error}}P2{{/event.is_error}}".into(),
            ..standard.clone()
        });
        let mut content = content(kind, "");
        content.occurrence.summary = summary.into();
        for (clear, end) in [(false, ""), (true, "/close")] {
            content.clear = clear;
            let rendered = rendered(&content);
            assert_eq!(
                rendered.shown["url"],
                format!("https://example.com/v1/{escaped}{end}?p=P2")
            );
        }
    }
}

#[test]
fn invalid_json_payload_falls_back_to_the_default() {
    let payloads = [
        ("{{event.summary}}", None),
        (
            "{\"a\": {{event.metadata.none}} }",
            Some("application/cloudevents+json; charset=utf-8"),
        ),
        ("{{#broken}}", None),
    ];
    for (payload, content_type) in payloads {
        let content = content(webhook(payload, content_type), "");
        let document = document(&content);
        assert_eq!(document["event"]["name"], "disk-full", "{payload}");
        let fallback = document["fallback"].as_str().unwrap();
        assert!(fallback.contains("the webhook's payload"), "{fallback}");
        assert_eq!(rendered(&content).warnings.last().unwrap(), fallback);
    }
}

#[test]
fn mail_without_templates_lists_event_details() {
    let mut content = content(email("", ""), "");
    content.occurrence.annotations.push(Annotation {
        id: "a".repeat(20),
        text: "on it, <soon>".into(),
        author: name("alice"),
        create_ms: NOW_MS,
        update_ms: NOW_MS,
    });
    let (subject, text, html) = mail(&content);
    let entity = "(db-1.example.com, bellwether-test)";
    let line = format!("[acme] error: Sample: disk /var is 97.5 % full {entity}");
    assert_eq!(subject, line);
    for part in [
        "Severity: error",
        "host: db-1.example.com",
        "usedPercent: 97.5",
        "Nothing is wrong.",
        "alice, 2026-01-31T08:00:00Z: on it, <soon>",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(
        html.contains("on it, &lt;soon&gt;") && html.contains("db-1.example.com"),
        "{html}"
    );

    content.clear = true;
    content.occurrence.status = Status::Closed;
    assert_eq!(mail(&content).0, format!("{line} (closed)"));
}

#[test]
fn mail_uses_its_templates_and_the_rule_message() {
    let mut content = content(
        email(
            "{{event.name}}\r\nBcc: x@example.com",
            "<p>{{event.summary}}</p>",
        ),
        "hi",
    );
    content.occurrence.summary = "<script>".into();
    let (subject, text, html) = mail(&content);
    assert_eq!(subject, "disk-full Bcc: x@example.com");
    assert_eq!(
        (text.as_str(), html.as_str()),
        ("<script>", "<p>&lt;script&gt;</p>")
    );

    content.destination_kind = email("{{nothing}}", "");
    content.rule.message = "{{event.summary}}\nsecond line".into();
    let (subject, text, html) = mail(&content);
    assert_eq!(
        subject,
        "[acme] error: <script> (db-1.example.com, bellwether-test)"
    );
    assert_eq!(text, "<script>\nsecond line");
    assert_eq!(html, "&lt;script&gt;<br>\nsecond line");

    content.destination_kind = email("", "{{event.summary}}\n{{event.name}}");
    let (_, text, html) = mail(&content);
    assert_eq!(
        (text.as_str(), html.as_str()),
        ("<script>\ndisk-full", "&lt;script&gt;<br>\ndisk-full")
    );
}

#[test]
fn broken_templates_still_produce_a_message() {
    let templates = [
        "{{#broken",
        "{{> partial}}",
        &"x".repeat(70_000),
        &"{{event.body}}".repeat(10),
        "{{nothing}}",
    ];
    for template in templates {
        for kind in every_kind(template) {
            let word = kind.as_str();
            let mut content = content(kind, template);
            content.occurrence.body = "y".repeat(60_000);
            let rendered = rendered(&content);
            assert!(!rendered.warnings.is_empty(), "{word} is not specific");
            let shown = rendered.shown;
            let text = |pointer: &str| shown.pointer(pointer).unwrap().as_str().unwrap();
            match word {
                "webhook" => assert!(text("/body").contains("disk-full")),
                "email" => assert!(text("/subject").contains("97.5")),
                "event" => assert!(!text("/name").is_empty()),
                "pagerduty" => assert!(!text("/payload/summary").is_empty()),
                "slack" if template != "{{nothing}}" => assert!(text("/text").contains("97.5")),
                _ => {}
            }
        }
    }
}

#[test]
fn template_errors_are_reported_on_save() {
    let places = |kind: &DestinationKind| -> Vec<String> {
        let violations = check(kind, TemplateLanguage::Mustache, (None, &NO_SNIPPETS)).into_iter();
        violations.map(|violation| violation.field).collect()
    };
    assert_eq!(places(&webhook("{{", None)), ["type.webhook.payload"]);
    assert_eq!(
        places(&email("{{", "{{/x}}")),
        ["type.email.subject", "type.email.body"]
    );
    assert_eq!(
        places(&event("{{", "ok", "{{")),
        ["type.event.nameTemplate", "type.event.summaryTemplate"]
    );
    assert_eq!(places(&slack()), Vec::<String>::new());
    let violations = check_message(
        TemplateLanguage::Mustache,
        "fine\n and {{#this}} not",
        &NO_SNIPPETS,
    );
    assert_eq!(violations[0].field, "message");
    assert!(
        violations[0].description.starts_with("line 2, column 6: "),
        "{violations:?}"
    );
    assert_eq!(
        check_message(TemplateLanguage::Mustache, "{{event.name}}", &NO_SNIPPETS),
        []
    );
}

#[test]
fn hostile_bodies_render_quickly() {
    let bodies = [
        "<style></style>",
        "<a",
        "<p",
        "<br ><td>",
        "&amp;",
        "<!--",
        "<script",
    ];
    for body in bodies {
        let mut content = content(email("", "<p>{{{event.body}}}{{{event.body}}}</p>"), "");
        content.occurrence.body = body.repeat(100_000 / body.len());
        mail(&content);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_event_renders_within_provider_limits(
        summary in any::<String>(),
        body in "[\\PC\n\r\u{0}<>&\"\\\\]{0,400}",
        repeated in 1..200_usize,
        value in any::<String>(),
        message in prop::sample::select(vec!["", "{{event.body}}", "{{{event.summary}}}\n{{x}}"]),
        clear in any::<bool>(),
    ) {
        for kind in every_kind("{\"a\":\"{{event.body}} {{event.dimensions.host}}\"}") {
            let word = kind.as_str();
            let mut content = content(kind, message);
            content.clear = clear;
            content.occurrence.summary.clone_from(&summary);
            content.occurrence.body = body.repeat(repeated);
            content.occurrence.dimensions.insert("host".into(), value.clone());
            let rendered = rendered(&content);
            if let Some(limit) = rendered.limit_bytes {
                prop_assert!(rendered.size_bytes <= limit);
            }
            let shown = rendered.shown;
            let text = |pointer: &str| shown.pointer(pointer).unwrap().as_str().unwrap();
            match word {
                "webhook" => {
                    prop_assert!(serde_json::from_str::<Json>(text("/body")).is_ok());
                }
                "email" => {
                    let subject = text("/subject");
                    prop_assert!(!subject.is_empty() && !subject.contains(char::is_control));
                }
                "event" => {
                    prop_assert!(!text("/name").is_empty() && text("/name").len() <= 256);
                    prop_assert!(text("/summary").len() <= 1_024 && text("/body").len() <= 65_536);
                }
                "slack" => {
                    let text = text("/text");
                    prop_assert!(!text.is_empty() || !message.is_empty());
                    prop_assert!(!text.contains('<') && text.chars().count() <= 40_020);
                }
                "pagerduty" => {
                    let summary = text("/payload/summary");
                    prop_assert!(!summary.is_empty() && summary.chars().count() <= 1_024);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn link_template_values_are_escaped() {
    let mut content = content(webhook("{{{link}}}", None), "");
    content.occurrence.summary = "a/b?c&d".into();
    let links = Links {
        template: "https://ops.example.com/{{event.summary}}?host={{event.dimensions.host}}".into(),
        ..Links::default()
    };
    let around = Context {
        links: &links,
        ..context()
    };
    let facts = crate::message::Facts::new(&content, &around);
    assert_eq!(
        facts.link,
        "https://ops.example.com/a%2Fb%3Fc%26d?host=db-1.example.com"
    );
}

#[test]
fn snippets_are_included_in_messages_but_not_in_addresses() {
    let snippets = Arc::new(Snippets::from([(
        "header".to_owned(),
        "{{event.severity}} {{event.name}}\n".to_owned(),
    )]));
    let around = Context {
        snippets: &snippets,
        ..context()
    };
    let included = "{{> header}}!";
    let mut content = content(email(included, included), included);
    content.occurrence.name = "<disk>".into();
    let mail = render(&content, &around);
    assert_eq!(mail.warnings, [""; 0]);
    assert_eq!(mail.shown["subject"], "error <disk>!");
    assert_eq!(mail.shown["html"], "error &lt;disk&gt;!");
    let unknown = render(&content, &context());
    let warned = unknown.warnings.join(" ");
    assert!(
        warned.contains("no template `header` to include"),
        "{warned}"
    );

    let checked = |kind: &DestinationKind| {
        let found = check(kind, TemplateLanguage::Mustache, (None, &*snippets));
        let fields = found.into_iter().map(|it| it.field);
        fields.collect::<Vec<_>>()
    };
    let mut hook = webhook("{\"text\": \"{{> header}}\"}", None);
    assert_eq!(checked(&hook), [""; 0]);
    let DestinationKind::Webhook(settings) = &mut hook else {
        panic!("a webhook");
    };
    settings.url = "https://example.com/{{> header}}".into();
    settings.headers.push(Header {
        name: "x-name".into(),
        value: HeaderValue::Plain("{{> header}}".into()),
    });
    let fields = checked(&hook);
    let expected = ["type.webhook.url", "type.webhook.headers[x-name]"];
    assert_eq!(fields[..2], expected, "{fields:?}");
}

#[test]
fn follow_up_contains_the_kept_values_that_it_uses() {
    let snippets = Snippets::from([
        ("plain".to_owned(), "{{ event.name }}".to_owned()),
        ("issue".to_owned(), "{{ kept.issue }}".to_owned()),
    ]);
    for (url, payload, expected) in [
        ("./{{ kept.issue }}", "{% include 'plain' %}", ""),
        ("./x", "{{ kept.issue }} {% include 'issue' %}", ""),
        (
            "./x",
            "{% include 'issue' %}",
            "type.webhook.onClear.payload",
        ),
        ("./x", "{{ kept .issue }}", "type.webhook.onClear.payload"),
        (
            "./x",
            "{{ kept.issue_key }}",
            "type.webhook.onClear.payload",
        ),
        ("./{{ kept. issue }}", "", "type.webhook.onClear.url"),
    ] {
        let mut kind = webhook("", None);
        let DestinationKind::Webhook(settings) = &mut kind else {
            panic!("a webhook");
        };
        settings.on_clear = Some(Box::new(FollowUp {
            url: url.into(),
            payload: payload.into(),
            ..FollowUp::default()
        }));
        let keep = Keep {
            from: "key".into(),
            is_secret: false,
        };
        settings.keep = [("issue".to_owned(), keep)].into();
        let found = check(&kind, TemplateLanguage::Jinja, (None, &snippets));
        let fields: Vec<_> = found.iter().map(|it| it.field.as_str()).collect();
        let is_expected = match expected {
            "" => fields.is_empty(),
            field => fields.contains(&field),
        };
        assert!(is_expected, "{url} {payload}: {found:?}");
    }
}

/// Returns links without a real signature, to test which messages contain links.
#[derive(Debug)]
struct Unsigned;

impl crate::message::SignLinks for Unsigned {
    fn read_signature(&self, _: &str, since_ms: i64) -> (i64, Secret) {
        (since_ms, Secret::default())
    }

    fn acknowledgement_signature(&self, _: &str, _: &str, _: &Name) -> Secret {
        Secret::default()
    }
}

#[test]
fn contacts_get_an_acknowledge_link_while_open() {
    let links = Links {
        base: "https://bw.example.com".into(),
        acknowledging: Some(Arc::new(Unsigned)),
        ..Links::default()
    };
    let around = Context {
        links: &links,
        ..context()
    };
    for kind in [slack(), teams(), email("", "")] {
        let mut content = content(kind, "");
        let shown = |content: &Content| format!("{:?}", render(content, &around));
        assert!(
            !shown(&content).contains("/acknowledge/"),
            "not to a contact"
        );
        content.contact = Some(crate::domain::PagedContact {
            name: name("ana"),
            variables: std::collections::BTreeMap::new(),
            response: RecordId::from_parts(1, 1),
            method: "call".into(),
        });
        let offered = shown(&content);
        assert!(offered.contains("/acknowledge/"), "{offered}");
        assert!(offered.contains("contact=ana"), "{offered}");
        content.clear = true;
        assert!(!shown(&content).contains("/acknowledge/"), "it is over");
    }
}
