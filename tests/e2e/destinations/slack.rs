//! Slack: messages to a channel, with the default text and with the text of a rule.

use bellwether_tests::{
    providers::{StandIn, slack::Slack},
    receiver::Received,
    world::World,
};
use serde_json::{Value, json};

use super::stage::Stage;

pub(super) const TOKEN: &str = "xoxb-canary-token";

pub(super) fn rules() -> Slack {
    Slack {
        token: TOKEN.into(),
        channel: "#ops".into(),
        refuses_threads: None,
    }
}

async fn stage(slack: &StandIn, message: &str) -> Stage {
    let settings = format!("[providers]\nslack = {:?}\n", slack.url(""));
    let world = World::with_settings(&settings);
    let kind = json!({"slack": {"channel": "#ops", "token": TOKEN}});
    Stage::new(world, kind, message).await
}

/// Returns the texts of the fields: severity, status, acknowledged.
fn fields(message: &Received) -> Vec<Value> {
    let attachment = &message.json()["attachments"][0];
    let fields = attachment["blocks"][0]["fields"].as_array().cloned();
    fields
        .unwrap_or_default()
        .into_iter()
        .map(|field| field["text"].clone())
        .collect()
}

#[tokio::test]
async fn slack_gets_the_opening_and_updates() {
    let slack = StandIn::start(rules()).await;
    let stage = stage(&slack, "").await;

    stage.opens().await;
    let opening = stage.wait_received(&slack, 1).await;
    stage.is_acknowledged().await;
    let acknowledged = stage.wait_received(&slack, 2).await;
    stage.gets_worse().await;
    let worse = stage.wait_received(&slack, 3).await;
    stage.closes().await;
    let closing = stage.wait_received(&slack, 4).await;

    let text = "disk /var is 97 % full &amp; \"hot\" &lt;!channel&gt;";
    assert_eq!(opening.json()["text"], text, "an event pages no one");
    assert_eq!(opening.json()["thread_ts"], Value::Null);
    for change in [&acknowledged, &worse, &closing] {
        let thread = &change.json()["thread_ts"];
        assert_eq!(thread, "1503435956.000247", "it answers the first");
    }
    assert_eq!(
        fields(&opening),
        ["*Severity*\nerror", "*Status*\nopen", "*Acknowledged*\nno"]
    );
    assert_eq!(
        acknowledged.json()["text"],
        format!("{text} (acknowledged)")
    );
    assert_eq!(fields(&acknowledged)[2], "*Acknowledged*\nyes");
    assert_eq!(fields(&worse)[0], "*Severity*\ncritical");
    assert_eq!(closing.json()["text"], format!("{text} (closed)"));
    assert_eq!(fields(&closing)[1], "*Status*\nclosed");
    stage.delivered(4).await;
}

#[tokio::test]
async fn slack_gets_the_message_of_the_rule() {
    let slack = StandIn::start(rules()).await;
    let message = "{{#clear}}over: {{/clear}}{{event.severity}} on {{event.dimensions.host}}";
    let stage = stage(&slack, message).await;

    stage.opens().await;
    let opening = stage.wait_received(&slack, 1).await.json();
    stage.closes().await;
    let closing = stage.wait_received(&slack, 2).await.json();

    assert_eq!(opening["text"], "error on db-1");
    assert_eq!(closing["text"], "over: critical on db-1");
}

#[tokio::test]
async fn reply_goes_to_the_channel_if_the_thread_is_rejected() {
    for error in [
        "thread_not_found",
        "message_not_found",
        "cannot_reply_to_message",
        "restricted_action_thread_locked",
        "restricted_action_non_threadable_channel",
        "thread_locked",
    ] {
        let rules = Slack {
            refuses_threads: Some(error),
            ..rules()
        };
        let slack = StandIn::start(rules).await;
        let stage = stage(&slack, "").await;
        stage.opens().await;
        stage.wait_received(&slack, 1).await;
        stage.closes().await;
        let closing = stage.wait_received(&slack, 2).await.json();
        assert_eq!(closing["thread_ts"], Value::Null, "{error}");
        let text = closing["text"].as_str().expect("a text");
        assert!(text.ends_with("(closed)"), "{error}: {text}");
        let deliveries = stage.delivered(2).await;
        let attempts = deliveries[0]["attempts"].as_array().expect("attempts");
        assert_eq!(attempts.len(), 1, "{error}: the thread uses no attempt");
        let says = attempts[0]["explanation"].as_str().expect("a sentence");
        assert!(says.contains("was sent to the channel"), "{error}: {says}");
    }
}

#[tokio::test]
async fn first_slack_message_is_edited_and_replies_are_broadcast() {
    let slack = StandIn::start(rules()).await;
    let settings = format!("[providers]\nslack = {:?}\n", slack.url(""));
    let world = World::with_settings(&settings);
    let block = json!([{"type": "section", "text": {
        "type": "mrkdwn", "text": "{{event.summary}} is {{event.status}}",
    }}]);
    let kind = json!({"slack": {
        "channel": "#ops", "token": TOKEN, "blocks": block.to_string(),
        "updateFirst": true, "broadcastReplies": true,
    }});
    let stage = Stage::new(world, kind, "").await;
    stage.opens().await;
    let opening = stage.wait_received(&slack, 1).await;
    stage.closes().await;
    stage.wait_received(&slack, 3).await;
    let sent = slack.accepted();
    let paths: Vec<_> = sent.iter().map(|it| it.path.as_str()).collect();
    let (post, update) = ("/api/chat.postMessage", "/api/chat.update");
    assert_eq!(paths, [post, post, update]);
    let (reply, edit) = (sent[1].json(), sent[2].json());
    let text = |message: &Value| message["blocks"][0]["text"]["text"].clone();
    let summary = "disk /var is 97 % full &amp; \"hot\" &lt;!channel&gt;";
    assert_eq!(text(&opening.json()), format!("{summary} is open"));
    for closed in [&reply, &edit] {
        assert_eq!(text(closed), format!("{summary} is closed"));
    }
    assert_eq!(reply["reply_broadcast"], true);
    assert_eq!(
        (&edit["channel"], &edit["ts"]),
        (&json!("C0123456789"), &reply["thread_ts"])
    );
    stage.delivered(2).await;
}
