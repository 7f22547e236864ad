//! Digests of all destination types that support them.

use serde_json::Value as Json;

use super::{NOW_MS, content, context, webhook};
use crate::{
    RenderedView,
    domain::{
        Content, DestinationKind, DigestContent, EventId, RecordId, Secret, Severity,
        destination::{Email, MsTeams, Slack},
    },
    render, supports_digests,
};

/// A digest of `count` messages of three rules; every third is an update.
fn digest(kind: DestinationKind, count: u64, summary: &str) -> Content {
    let mut digest = DigestContent::new(RecordId::from_parts(1, 1));
    for number in 0..count {
        let mut one = content(kind.clone(), "one {{event.summary}}");
        one.rule.name = format!("rule {}", number % 3);
        one.clear = number % 3 == 1;
        one.occurrence.key = RecordId::from_parts(number, 2);
        one.occurrence.event = EventId::derive(&number.to_string(), &one.occurrence.dimensions);
        one.occurrence.summary = format!("{summary} {number}");
        if number == 30 {
            one.occurrence.severity = Severity::Critical;
        }
        let at_ms = NOW_MS + i64::try_from(number).unwrap();
        digest.add_item(one.digest_item(at_ms));
    }
    let mut shown = content(kind, "");
    shown.rule.name = String::new();
    shown.occurrence = digest.most_severe().clone();
    shown.digest = Some(digest);
    shown
}

fn render_digest(content: &Content) -> RenderedView {
    render(content, &context())
}

fn slack() -> DestinationKind {
    DestinationKind::Slack(Slack {
        channel: "#ops".into(),
        token: Secret::new("t"),
        ..Slack::default()
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

const HEADLINE: &str = "90 messages (60 new, 30 changed or closed): event 30";

#[test]
fn chat_digest_lists_counts_and_most_severe_first() {
    let shown = render_digest(&digest(slack(), 90, "event")).shown;
    let text = shown["text"].as_str().unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], HEADLINE);
    assert_eq!(lines[1], "\u{2022} rule rule 0, critical: 1");
    assert_eq!(lines[2], "\u{2022} rule rule 0, error: 29");
    assert_eq!(
        lines[3],
        "\u{2022} rule rule 1, error: 30, 30 of them changed or closed"
    );
    assert_eq!(lines[5], "\u{2022} critical: event 30");
    assert_eq!(lines[7], "\u{2022} error: event 1 (changed or closed)");
    assert_eq!(*lines.last().unwrap(), "\u{2022} and 70 more");
    let fields = shown["attachments"].to_string();
    assert!(fields.contains("*Messages*\\n90"), "{fields}");
    assert!(!fields.contains("Acknowledged"), "{fields}");
}

#[test]
fn digest_card_stays_within_size_limit() {
    let teams = DestinationKind::MsTeams(MsTeams {
        url: Secret::new("https://example.com/"),
    });
    let long = "a long story ".repeat(100);
    let content = digest(teams, 90, &long);
    let rendered = render_digest(&content);
    assert!(rendered.size_bytes <= 28_000, "{}", rendered.size_bytes);
    assert!(rendered.shown.to_string().contains("90 messages"));
}

#[test]
fn custom_mail_template_is_used_only_if_it_handles_digests() {
    let shown = render_digest(&digest(
        email("about {{event.name}}", "<p>{{event.name}}</p>"),
        90,
        "event",
    ));
    let subject = shown.shown["subject"].as_str().unwrap();
    assert_eq!(subject, format!("[acme] critical: {HEADLINE}"));
    let text = shown.shown["text"].as_str().unwrap();
    assert!(text.contains("Messages: 90"), "{text}");
    assert!(
        text.contains("error: event 1 (changed or closed)"),
        "{text}"
    );
    assert!(!text.contains("Dimensions"), "{text}");
    let own = "{{#digest}}{{count}} of {{#rows}}{{rule_name}} {{/rows}}{{/digest}}";
    let shown = render_digest(&digest(email(own, ""), 90, "event"));
    assert_eq!(shown.shown["subject"], "90 of rule 0 rule 0 rule 1 rule 2");
    assert_eq!(shown.warnings, Vec::<String>::new());
}

#[test]
fn digest_payload_has_all_counts_and_top_events() {
    let shown = render_digest(&digest(webhook("", None), 90, "event")).shown;
    let body: Json = serde_json::from_str(shown["body"].as_str().unwrap()).unwrap();
    let sent_digest = &body["digest"];
    assert_eq!(
        sent_digest["id"],
        format!("digest-{}", RecordId::from_parts(1, 1))
    );
    assert_eq!(body["thread_id"], sent_digest["id"]);
    assert_eq!(
        (&sent_digest["count"], &sent_digest["clear_count"]),
        (&90.into(), &30.into())
    );
    assert_eq!(
        (&sent_digest["more_count"], &sent_digest["new_count"]),
        (&70.into(), &60.into())
    );
    assert_eq!(sent_digest["events"].as_array().unwrap().len(), 20);
    assert_eq!(sent_digest["events"][0]["severity"], 5);
    assert_eq!(sent_digest["events"][0]["rule_name"], "rule 0");
    assert_eq!(body["event"]["summary"], "event 30");
    assert_eq!(body["rule"]["name"], "");
    let large = "x".repeat(20_000);
    let shown = render_digest(&digest(webhook("", None), 90, &large));
    assert!(shown.size_bytes < 256 * 1024, "{}", shown.size_bytes);
    let payload = r#"{"count": {{digest.count}}, "worst": "{{digest.events.0.name}}"}"#;
    let shown = render_digest(&digest(webhook(payload, None), 90, "event"));
    assert!(
        shown.shown["body"]
            .as_str()
            .unwrap()
            .starts_with(r#"{"count": 90"#)
    );
}

#[test]
fn rules_beyond_the_row_limit_are_counted_together() {
    let mut one = digest(slack(), 1, "event");
    let mut all = DigestContent::new(RecordId::from_parts(1, 1));
    for number in 0..500 {
        let mut item = one.digest_item(NOW_MS);
        item.rule_name = format!("rule {number}");
        all.add_item(item);
    }
    assert_eq!(all.rows.len(), 200);
    let sum: u32 = all.rows.iter().map(|row| row.count).sum();
    assert_eq!((sum, all.count), (500, 500));
    let others = all.rows.last().unwrap();
    assert_eq!((others.rule_name.as_deref(), others.count), (None, 301));
    one.digest = Some(all);
    let text = render_digest(&one).shown["text"].to_string();
    assert!(text.contains("other rules, at most error: 301"), "{text}");
}

#[test]
fn stateful_destinations_receive_no_digests() {
    use crate::domain::destination::{EventTemplates, PagerDuty};
    assert!(supports_digests(&slack()));
    assert!(supports_digests(&email("", "")));
    assert!(!supports_digests(&DestinationKind::PagerDuty(PagerDuty {
        routing_key: Secret::new("R0"),
        ..PagerDuty::default()
    })));
    let keyed = "{\"key\": \"{{thread_id}}\", \"over\": {{{is_over}}}}";
    assert!(!supports_digests(&webhook(keyed, None)));
    for stateless in [
        "{\"text\": \"{{#is_over}}over: {{/is_over}}{{headline}}\"}",
        "{\"thread\": \"{{thread_id}}\"}",
        &keyed.replace("thread_id", "digest.count}}{{thread_id"),
    ] {
        assert!(supports_digests(&webhook(stateless, None)), "{stateless}");
    }
    assert!(!supports_digests(&DestinationKind::Event(EventTemplates {
        name_template: "a".into(),
        type_template: "b".into(),
        summary_template: "c".into(),
        severity: Severity::Info,
    })));
}
