//! Checks that the reference topics match the code.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use bellwether_language::filter::{self, TimeReference};
use bellwether_proto::reference::{Block, Topic};
use serde_json::{Value, json};

use crate::{
    domain::{
        Clause, Content, DestinationKind, Literal, Name, Query, RecordId, Secret, Severity,
        Snippets, TemplateLanguage, Trigger,
        destination::{Email, EventTemplates, MsTeams, PagerDuty, ServiceNow, Slack, Webhook},
        own_event::OWN_EVENT_KINDS,
    },
    matching::field::Field,
    message::{Context, Links, sample},
    send::render,
    template::{JINJA_FILTERS, OPEN_VARIABLES, Template, VARIABLES},
};

/// Environment variable that makes the test rewrite differing examples instead of failing.
const WRITE: &str = "BELLWETHER_WRITE_REFERENCE";
const NOW_MS: i64 = 1_769_846_400_000;

fn topic(name: &str) -> &'static Topic {
    Topic::find(name).unwrap()
}

/// Returns the rows of the table below a heading, without the header row. An empty `heading`
/// selects the first table.
fn table(topic: &Topic, heading: &str) -> Vec<Vec<String>> {
    let mut under = String::new();
    for block in topic.blocks() {
        match block {
            Block::Heading(title) => under = title,
            Block::Table(rows) if under == heading => return rows[1..].to_vec(),
            _ => {}
        }
    }
    panic!("{} has no table under `{heading}`", topic.name);
}

/// Returns the code spans in the first cells of a table.
fn names(topic: &Topic, heading: &str) -> BTreeSet<String> {
    let rows = table(topic, heading).into_iter();
    rows.map(|row| row[0].trim_matches('`').to_owned())
        .collect()
}

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn reference_lists_the_name_type_and_dimensions_of_every_own_event() {
    // The row of refused calls is about addresses and clients.
    let mut kinds: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for own in OWN_EVENT_KINDS {
        let keys = own.keys.iter().map(ToString::to_string);
        kinds.entry((own.name, own.kind)).or_default().extend(keys);
    }
    let rows = table(topic("own-events"), "");
    let documented = rows.iter().map(|row| {
        // Words in parentheses are values of a dimension.
        let outside = row[2].split('(').filter_map(|it| it.rsplit(')').next());
        let keys = outside.flat_map(|it| it.split('`').skip(1).step_by(2));
        let name = (row[0].trim_matches('`'), row[1].trim_matches('`'));
        (name, set(keys))
    });
    assert_eq!(documented.collect::<BTreeMap<_, _>>(), kinds);
}

#[test]
fn reference_lists_exactly_the_template_variables() {
    let open = OPEN_VARIABLES.map(|prefix| format!("{prefix}KEY"));
    let known = VARIABLES.into_iter().chain(open.iter().map(String::as_str));
    let known = set(known);
    assert_eq!(names(topic("templates"), "Variables"), known);
    assert_eq!(
        set(bellwether_proto::reference::template_variables()),
        known
    );
}

#[test]
fn template_syntax_examples_parse_as_documented() {
    for row in table(topic("templates"), "Syntax") {
        let example = row[0].trim_matches('`').replace('…', "text");
        let snippets = Snippets::from([("x".into(), "text".into())]);
        Template::parse_with(&example, &snippets).unwrap();
    }
    let refused = "{{= =}}";
    assert!(topic("templates").markdown.contains(refused));
    assert!(Template::parse(refused).is_err());
}

#[test]
fn jinja_filters_are_documented_and_examples_render() {
    assert_eq!(
        bellwether_proto::reference::template_filters(),
        JINJA_FILTERS
    );
    let blocks = topic("templates").blocks().into_iter();
    let examples = blocks.filter_map(|block| match block {
        Block::Code(word, lines) if word == "jinja" => Some(lines.join("\n")),
        _ => None,
    });
    for example in examples {
        let slack = DestinationKind::Slack(Slack {
            channel: "#ops".into(),
            token: Secret::new("xoxb"),
            blocks: String::new(),
            update_first: false,
            broadcast_replies: false,
        });
        let mut content = content(slack, &example);
        content.rule.template_language = TemplateLanguage::Jinja;
        let rendered = render(&content, &context());
        assert_eq!(rendered.warnings, [""; 0]);
        let text = rendered.shown["text"].as_str().unwrap();
        assert!(text.starts_with("<!here> *ERROR* Sample"), "{text}");
        assert!(
            text.ends_with("/disk-full|Runbook>, since 09:00 CET"),
            "{text}"
        );
    }
}

#[test]
fn query_fields_are_documented_with_valid_examples() {
    let documented = names(topic("queries"), "Fields");
    let fixed = Field::fixed_names();
    let known = fixed.into_iter().chain(["dimensions.KEY", "metadata.KEY"]);
    assert_eq!(documented, set(known));
    let rows = table(topic("queries"), "Fields").into_iter();
    let examples = rows.map(|row| (row[0].clone(), row[2].clone()));
    for (name, example) in examples {
        let example = example.trim_matches('`');
        let clause: Value = serde_json::from_str(example).unwrap();
        let field = clause.as_object().unwrap().values().next().unwrap()["field"].clone();
        let stem = name.trim_matches('`').trim_end_matches("KEY").to_owned();
        assert!(field.as_str().unwrap().starts_with(&stem), "{example}");
    }
}

#[tokio::test]
async fn documented_delivery_filters_parse() {
    let (deciding, clock) = crate::samples::deciding(crate::store::Store::in_memory()).await;
    let deliveries = crate::ops::delivery::Deliveries::new(deciding.store, clock);
    let examples = names(topic("filters"), "Deliveries");
    assert!(examples.len() >= 8, "{examples:?}");
    for example in examples {
        let read = deliveries.condition("filter", &example).await;
        assert!(read.is_ok_and(|(it, _)| it.is_some()), "{example}");
    }
}

#[test]
fn documented_filters_parse_and_compile() {
    let mut examples = 0;
    for heading in ["Conditions", "Joining"] {
        for example in names(topic("filters"), heading) {
            let read = filter::parse(&example, Some(&TimeReference::in_utc(NOW_MS))).unwrap();
            let query = Query {
                clause: read.clause,
            };
            crate::matching::compile(&query).unwrap();
            examples += 1;
        }
    }
    assert_eq!(examples, 19);
}

static SNIPPETS: LazyLock<Arc<Snippets>> = LazyLock::new(Arc::default);

static LINKS: LazyLock<Links> = LazyLock::new(|| Links {
    base: "https://bellwether.example.com".into(),
    ..Links::default()
});

fn context() -> Context<'static> {
    Context {
        delivery_id: RecordId::from_parts(1_769_846_400_000, 7),
        destination_name: "pager",
        tenant: "bellwether",
        links: &LINKS,
        snippets: &SNIPPETS,
        opening: None,
        kept: None,
    }
}

fn content(kind: DestinationKind, message: &str) -> Content {
    let name = |text: &str| Name::parse(text).unwrap();
    let severity = Clause::GreaterAndEquals("severity".into(), Literal::Text("error".into()));
    let mut content =
        sample::sample_content(sample::sample_occurrence(NOW_MS), kind, message.into());
    content.trigger = Some(Trigger {
        id: RecordId::from_parts(1, 1),
        name: name("disk-full"),
        description: String::new(),
        tags: Vec::new(),
        query: Query { clause: severity },
        revision: 1,
        create_ms: NOW_MS,
        update_ms: NOW_MS,
    });
    content.rule.name = "tell-me".into();
    content.rule.description = String::new();
    content.rule.trigger_names = vec![name("disk-full")];
    content.rule.destination_names = vec![name("pager")];
    content
}

fn build_payload(kind: DestinationKind, message: &str) -> Value {
    let rendered = render(&content(kind, message), &context());
    assert_eq!(rendered.warnings, [""; 0]);
    rendered.shown
}

fn made_json(kind: DestinationKind, message: &str) -> String {
    format!("{:#}", build_payload(kind, message))
}

fn webhook() -> DestinationKind {
    DestinationKind::Webhook(Webhook {
        url: "https://pager.example.com/in".into(),
        ..Webhook::default()
    })
}

/// Returns every generated example: its topic, the info of its code fence, and its content.
fn examples() -> Vec<(&'static str, &'static str, String)> {
    let sent = build_payload(webhook(), "{{event.severity}}: {{event.summary}}");
    let document: Value = serde_json::from_str(sent["body"].as_str().unwrap()).unwrap();
    let email = DestinationKind::Email(Email {
        to: "ops@example.com".into(),
        ..Email::default()
    });
    let mail = build_payload(email, "");
    let mail_text = |part: &str| mail[part].as_str().unwrap().trim_end().to_owned();
    let slack = DestinationKind::Slack(Slack {
        channel: "#ops".into(),
        token: Secret::new("xoxb"),
        ..Slack::default()
    });
    let teams = DestinationKind::MsTeams(MsTeams {
        url: Secret::new("https://example.com/secret"),
    });
    let pagerduty = DestinationKind::PagerDuty(PagerDuty {
        routing_key: Secret::new("R0"),
        ..PagerDuty::default()
    });
    let servicenow = DestinationKind::ServiceNow(ServiceNow {
        instance_url: "https://example.com".into(),
        client_id: "id".into(),
        client_secret: Secret::new("secret"),
        token_url: String::new(),
        refresh_token: Secret::default(),
    });
    let event = DestinationKind::Event(EventTemplates {
        name_template: "{{event.name}}-escalated".into(),
        type_template: "escalation".into(),
        summary_template: "{{event.count}} times: {{event.summary}}".into(),
        severity: Severity::Critical,
    });
    let message = "{{event.summary}}\n**{{entity.name}}**";
    vec![
        ("webhook", "json example", format!("{document:#}")),
        ("messages", "text email-subject", mail_text("subject")),
        ("messages", "text email-body", mail_text("text")),
        ("messages", "json slack", made_json(slack, "")),
        ("messages", "json pagerduty", made_json(pagerduty, "")),
        ("messages", "json servicenow", made_json(servicenow, "")),
        ("messages", "json event", made_json(event, "")),
        ("card", "json card-default", made_json(teams.clone(), "")),
        ("card", "json card-message", made_json(teams, message)),
    ]
}

#[test]
fn example_messages_match_rendered_output() {
    for (name, info, made) in examples() {
        let blocks = topic(name).blocks().into_iter();
        let shown = blocks.filter_map(|block| match block {
            Block::Code(word, lines) if word == info => Some(lines.join("\n")),
            _ => None,
        });
        let shown: Vec<_> = shown.collect();
        assert_eq!(shown.len(), 1, "{name}: {info}");
        let same = if info.starts_with("json") {
            serde_json::from_str(&shown[0]).unwrap_or(json!(null))
                == serde_json::from_str::<Value>(&made).unwrap()
        } else {
            shown[0] == made
        };
        if !same && std::env::var_os(WRITE).is_some() {
            write(name, info, &made);
        } else {
            assert!(
                same,
                "{name}: `{info}` is now, with {WRITE} it is written:\n{made}"
            );
        }
    }
}

fn write(name: &str, info: &str, made: &str) {
    let path = format!(
        "{}/../proto/reference/{name}.md",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(&path).unwrap();
    let fence = format!("```{info}\n");
    let (before, rest) = text.split_once(&fence).unwrap();
    let after = match rest.strip_prefix("```\n") {
        Some(after) => after,
        None => rest.split_once("\n```\n").unwrap().1,
    };
    std::fs::write(&path, format!("{before}{fence}{made}\n```\n{after}")).unwrap();
}
