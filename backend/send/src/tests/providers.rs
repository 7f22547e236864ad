//! Messages to chat, paging and ticket services, and templates of event destinations.

use serde_json::{Value as Json, json};

use super::{content, document, event, pagerduty, rendered, servicenow, slack, teams};
use crate::domain::{
    DestinationKind, Status,
    destination::{PagerDuty, Slack},
};

#[test]
fn slack_shows_the_summary_without_mentions() {
    let mut content = content(slack(), "");
    content.occurrence.summary = "<!channel> & more".into();
    let body = document(&content);
    assert_eq!(body["text"], "&lt;!channel&gt; &amp; more");
    let fields = body["attachments"][0]["blocks"][0]["fields"].to_string();
    for part in ["error", "open", "*Acknowledged*\\nno"] {
        assert!(fields.contains(part), "{part} in {fields}");
    }
    content.rule.message = "*{{event.name}}* {{event.summary}}".into();
    assert_eq!(
        document(&content)["text"],
        "*disk-full* &lt;!channel&gt; &amp; more"
    );
    content.occurrence.body = "&".repeat(60_000);
    content.rule.message = "{{event.body}}".into();
    let text = document(&content)["text"].as_str().unwrap().chars().count();
    assert!((39_990..=40_000).contains(&text), "{text}");
}

#[test]
fn teams_card_stays_within_size_limit() {
    let mut content = content(teams(), "");
    let card = document(&content)["attachments"][0].clone();
    assert_eq!(
        card["contentType"],
        "application/vnd.microsoft.card.adaptive"
    );
    assert_eq!(
        card["content"]["body"][0]["text"],
        content.occurrence.summary
    );
    assert_eq!(
        card["content"]["body"][1]["facts"][1],
        json!({"title": "Status", "value": "open"})
    );
    for body in ["x".repeat(60_000), "\n\"\u{fc}\u{1}".repeat(12_000)] {
        content.occurrence.body = body;
        content.rule.message = "{{event.body}}".into();
        let rendered = rendered(&content);
        let size = rendered.size_bytes;
        assert!((27_900..=28_000).contains(&size), "{size}");
        assert_eq!(rendered.limit_bytes, Some(28_000));
    }
}

#[test]
fn pagerduty_opens_acknowledges_and_resolves_one_alert() {
    let mut content = content(pagerduty(), "");
    let opened = document(&content);
    assert_eq!(opened["event_action"], "trigger");
    assert_eq!(opened["dedup_key"], content.occurrence.id().to_string());
    assert_eq!(opened["payload"]["severity"], "error");
    assert_eq!(
        opened["payload"]["custom_details"]["dimensions"]["host"],
        "db-1.example.com"
    );
    content.occurrence.acknowledged = true;
    assert_eq!(document(&content)["event_action"], "trigger");
    content.clear = true;
    assert_eq!(document(&content)["event_action"], "acknowledge");
    content.occurrence.status = Status::Closed;
    assert_eq!(document(&content)["event_action"], "resolve");

    content.rule.message = "{{event.body}}".into();
    content.occurrence.body = "\u{fc}".repeat(32_000);
    let summary = document(&content)["payload"]["summary"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(summary.chars().count(), 1_024);

    let huge = "x".repeat(600_000);
    content.occurrence.dimensions.insert("huge".into(), huge);
    let rendered = rendered(&content);
    assert!(rendered.size_bytes < 10_000, "{}", rendered.size_bytes);
}

#[test]
fn servicenow_record_opens_and_closes_its_alert() {
    let mut content = content(servicenow(), "");
    let record = document(&content);
    assert_eq!(record["message_key"], content.occurrence.event.to_string());
    assert_eq!(
        (&record["severity"], &record["node"]),
        (&json!("2"), &json!("db-1.example.com"))
    );
    assert_eq!(record["time_of_event"], "2026-01-31 08:00:00");
    let info: Json = serde_json::from_str(record["additional_info"].as_str().unwrap()).unwrap();
    assert_eq!(info["fields.mount"], "/var");
    content.occurrence.status = Status::Closed;
    let record = document(&content);
    assert_eq!(
        (&record["severity"], &record["resolution_state"]),
        (&json!("0"), &json!("Closing"))
    );
}

#[test]
fn derived_event_keeps_dimensions_of_its_source() {
    let mut content = content(
        event("escalated {{event.name}}", "", "{{event.body}}"),
        "see {{link}}",
    );
    content.occurrence.body = "\u{fc}".repeat(1_000);
    let made = document(&content);
    assert_eq!(
        (&made["name"], &made["type"]),
        (&json!("escalated disk-full"), &json!("escalated disk-full"))
    );
    assert_eq!(
        (&made["severity"], &made["status"]),
        (&json!("SEVERITY_CRITICAL"), &Json::Null)
    );
    assert_eq!(made["dimensions"], json!(content.occurrence.dimensions));
    let summary = made["summary"].as_str().unwrap();
    assert!(summary.len() <= 1_024 && summary.len() > 1_000);
    assert!(made["body"].as_str().unwrap().starts_with("see https://"));
    content.occurrence.status = Status::Closed;
    assert_eq!(document(&content)["status"], "STATUS_CLOSED");
}

#[test]
fn slack_custom_blocks_escape_event_mentions() {
    let with = |blocks: &str| {
        DestinationKind::Slack(Slack {
            channel: "#ops".into(),
            blocks: blocks.into(),
            ..Slack::default()
        })
    };
    let section = |text: &str| {
        format!(r#"[{{"type":"section","text":{{"type":"mrkdwn","text":"{text}"}}}}]"#)
    };
    let own = section("<https://x.example|runbook> <!here> {{event.summary}}");
    let mut content = content(with(&own), "");
    content.occurrence.summary = "<!channel> \"&\" @here".into();
    let sent = document(&content);
    assert_eq!(
        sent["blocks"][0]["text"]["text"],
        "<https://x.example|runbook> <!here> &lt;!channel&gt; \"&amp;\" @\u{2060}here"
    );
    assert_eq!(sent["text"], "&lt;!channel&gt; \"&amp;\" @\u{2060}here");
    assert_eq!(sent["attachments"], Json::Null);
    let too_many = format!("[{}{{}}]", "{},".repeat(50));
    for wrong in ["[", "{}", "[]", "[1]", "\"x\"", &too_many] {
        content.destination_kind = with(wrong);
        let rendered = rendered(&content);
        assert!(rendered.shown["attachments"].is_array(), "{wrong}");
        let warning = &rendered.warnings[0];
        assert!(warning.starts_with("the blocks: "), "{warning}");
    }
}

#[test]
fn pagerduty_uses_custom_templates() {
    let with = |change: fn(&mut PagerDuty)| {
        let mut pagerduty = PagerDuty::default();
        change(&mut pagerduty);
        DestinationKind::PagerDuty(pagerduty)
    };
    let mut content = content(
        with(|it| {
            it.class = "{{event.severity}}".into();
            it.component = "{{event.dimensions.host}}".into();
            it.group = "{{event.dimensions.nothing}}".into();
            it.custom_details = r#"{"text":"{{event.summary}}","tags":[1,{"a":true}]}"#.into();
            it.links = r#"[{"href":"https://x.example/{{event.name}}","text":"Runbook"},
                {"href":"javascript:alert(1)"},{"text":"no address"}]"#
                .into();
            it.images = r#"[{"src":"https://x.example/graph.png","alt":"{{event.name}}"},
                {"src":"http://x.example/plain.png"}]"#
                .into();
        }),
        "",
    );
    content.occurrence.summary = "a \"quote\"".into();
    let made = rendered(&content);
    let payload = &made.shown["payload"];
    assert_eq!(
        (&payload["class"], &payload["component"]),
        (&json!("error"), &json!("db-1.example.com"))
    );
    assert!(
        payload["group"].as_str().is_some_and(|it| !it.is_empty()),
        "the default"
    );
    assert_eq!(
        payload["custom_details"],
        json!({"text": "a \"quote\"", "tags": [1, {"a": true}]})
    );
    let links = made.shown["links"].as_array().unwrap();
    assert_eq!(
        links.last().unwrap(),
        &json!({"href": "https://x.example/disk-full", "text": "Runbook"})
    );
    assert!(links.len() <= 2, "{links:?}");
    assert_eq!(
        made.shown["images"],
        json!([{"src": "https://x.example/graph.png", "alt": "disk-full"}])
    );
    let said = made.warnings.join("; ");
    for part in ["the links: 2 of 3", "the images: 1 of 2"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    content.destination_kind = with(|it| {
        it.custom_details = "[1]".into();
        it.links = "nothing".into();
    });
    let made = rendered(&content);
    let details = &made.shown["payload"]["custom_details"];
    assert_eq!(details["dimensions"]["host"], "db-1.example.com");
    assert!(made.warnings.len() >= 2, "{:?}", made.warnings);
}
