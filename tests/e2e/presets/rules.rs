//! The published rules of the receivers that presets send to, and checks of messages against them.

use std::collections::BTreeMap;

use bellwether_tests::receiver::{Received, Receiver, Reply};
use serde_json::{Value, json};

use super::aws::assert_aws_signature;

/// The hostile text as it must appear on one line.
const SHOWN: &str = "x\",\"y\":\"z\"} x-evil: 1</a><b>&to=evil&b=%41#f/../{{event.name}} \u{e4}";

pub(super) struct Rules {
    pub(super) file: &'static str,
    pub(super) secret_path: &'static str,
    /// The other variable that must be set.
    pub(super) secret: &'static str,
    /// The response to an accepted message: its status and body.
    pub(super) accepts: (u16, &'static str),
    /// Responses that mean that the destination is wrong, not the message.
    pub(super) wrong: &'static [(u16, &'static str)],
    pub(super) check: fn(&Received, ChangeKind),
}

impl Rules {
    pub(super) fn receiver(&self) -> impl Future<Output = Receiver> {
        let reply = reply(self.accepts);
        Receiver::with_rule(move |_| reply.clone())
    }
}

pub(super) fn reply((status, body): (u16, &str)) -> Reply {
    Reply::answer(status, Vec::new(), body.to_owned())
}

/// The kind of change that a message reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ChangeKind {
    Opening,
    Closing,
}

impl ChangeKind {
    fn choose(self, opening: &'static str, closing: &'static str) -> &'static str {
        match self {
            Self::Opening => opening,
            Self::Closing => closing,
        }
    }
}

/// Returns the JSON of a `POST` to this path, which must have exactly these fields.
fn posted(received: &Received, path: &str, fields: &[&str]) -> Value {
    assert_eq!(
        (received.method.as_str(), received.path.as_str()),
        ("POST", path)
    );
    fielded(received, fields)
}

fn fielded(received: &Received, fields: &[&str]) -> Value {
    assert_eq!(received.header("content-type"), "application/json");
    let body = received.json();
    let known = body.as_object().unwrap().keys();
    assert!(
        known.clone().all(|key| fields.contains(&key.as_str())) && known.len() == fields.len(),
        "{body}"
    );
    body
}

/// Asserts that a text contains the complete hostile summary, and has at most `characters_max`
/// characters.
fn assert_has_summary(value: &Value, characters_max: usize) {
    let text = value.as_str().unwrap();
    assert!(plain(text).contains(SHOWN), "{text}");
    assert!(text.chars().count() <= characters_max, "{text}");
}

/// Returns the text without the characters that escape markup.
pub(super) fn plain(text: &str) -> String {
    text.replace(['\u{2060}', '\\'], "")
}

/// Asserts that a text begins with the hostile summary, and has at most `characters_max`
/// characters.
fn assert_starts_with_summary(value: &Value, characters_max: usize) {
    let text = value.as_str().unwrap();
    assert!(text.starts_with("x\",\"y\""), "{text}");
    assert!(text.chars().count() <= characters_max, "{text}");
}

fn form(received: &Received, path: &str) -> BTreeMap<String, String> {
    assert_eq!(
        (received.method.as_str(), received.path.as_str()),
        ("POST", path)
    );
    assert_eq!(
        received.header("content-type"),
        "application/x-www-form-urlencoded"
    );
    let pairs: Vec<_> = url::form_urlencoded::parse(&received.body)
        .into_owned()
        .collect();
    let fields: BTreeMap<_, _> = pairs.iter().cloned().collect();
    assert_eq!(fields.len(), pairs.len(), "{pairs:?}");
    fields
}

/// Checks a request of Opsgenie's Alert API, version 2, which Jira Service Management has adopted.
fn assert_opsgenie_request(received: &Received, reported: ChangeKind, path: &str) {
    assert_eq!(received.header("authorization"), "GenieKey canary");
    let fields = [
        "message",
        "alias",
        "source",
        "entity",
        "description",
        "priority",
    ];
    let body = fielded(received, &fields);
    assert_starts_with_summary(&body["message"], 130);
    assert_has_summary(&body["description"], 15_000);
    assert_eq!(body["priority"], "P1");
    let alias: String =
        url::form_urlencoded::byte_serialize(body["alias"].as_str().unwrap().as_bytes()).collect();
    let end = match reported {
        ChangeKind::Opening => String::new(),
        ChangeKind::Closing => format!("/{alias}/close?identifierType=alias"),
    };
    assert_eq!(received.path, format!("{path}{end}"));
}

pub(super) const RULES: &[Rules] = &[
    Rules {
        file: "discord",
        secret_path: "/api/webhooks/1/canary",
        secret: "",
        accepts: (204, ""),
        wrong: &[
            (404, r#"{"message":"Unknown Channel","code":10003}"#),
            (
                400,
                r#"{"message":"Webhooks posted to forum channels must have a thread_name or thread_id","code":220001}"#,
            ),
        ],
        check: |it, _| {
            let body = posted(
                it,
                "/api/webhooks/1/canary",
                &["content", "allowed_mentions"],
            );
            assert_has_summary(&body["content"], 2_000);
            assert_eq!(body["allowed_mentions"], json!({"parse": []}));
        },
    },
    Rules {
        file: "mattermost",
        secret_path: "/hooks/canary",
        secret: "",
        accepts: (200, "ok"),
        wrong: &[
            (
                400,
                r#"{"id":"web.incoming_webhook.invalid.app_error","message":"Invalid webhook.","status_code":400}"#,
            ),
            (
                400,
                r#"{"id":"web.incoming_webhook.channel.app_error","message":"Couldn't find the channel.","status_code":400}"#,
            ),
        ],
        check: |it, _| assert_has_summary(&posted(it, "/hooks/canary", &["text"])["text"], 16_383),
    },
    Rules {
        file: "rocket-chat",
        secret_path: "/hooks/1/canary",
        secret: "",
        accepts: (200, r#"{"success":true}"#),
        wrong: &[(400, r#"{"success":false,"error":"invalid-channel"}"#)],
        check: |it, _| assert_has_summary(&posted(it, "/hooks/1/canary", &["text"])["text"], 5_000),
    },
    Rules {
        file: "google-chat",
        secret_path: "/v1/spaces/1/messages?key=k&token=canary&messageReplyOption=REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD",
        secret: "",
        accepts: (200, r#"{"name":"spaces/1/messages/1"}"#),
        wrong: &[(
            400,
            r#"{"error":{"code":400,"status":"NOT_FOUND","message":"Space not found"}}"#,
        )],
        check: |it, _| {
            let path = "/v1/spaces/1/messages?key=k&token=canary&messageReplyOption=REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD";
            let body = posted(it, path, &["text", "thread"]);
            assert_has_summary(&body["text"], 8_000);
            assert!(body["thread"]["threadKey"].as_str().unwrap().len() > 10);
        },
    },
    Rules {
        file: "slack-webhook",
        secret_path: "/services/T0/B0/canary",
        secret: "",
        accepts: (200, "ok"),
        wrong: &[(400, "channel_is_archived"), (400, "no_team")],
        check: |it, _| {
            let body = posted(it, "/services/T0/B0/canary", &["text", "blocks"]);
            let text = &body["blocks"][0]["text"];
            assert_eq!(text["type"], "plain_text");
            assert_has_summary(&text["text"], 3_000);
        },
    },
    Rules {
        file: "webex",
        secret_path: "/v1/webhooks/incoming/canary",
        secret: "",
        accepts: (204, ""),
        wrong: &[],
        check: |it, _| {
            assert_has_summary(
                &posted(it, "/v1/webhooks/incoming/canary", &["text"])["text"],
                7_000,
            );
        },
    },
    Rules {
        file: "zulip",
        secret_path: "",
        secret: "Basic canary",
        accepts: (200, r#"{"result":"success","msg":"","id":42}"#),
        wrong: &[
            (
                400,
                r#"{"result":"error","msg":"Channel 'ops' does not exist","code":"STREAM_DOES_NOT_EXIST"}"#,
            ),
            (
                400,
                r#"{"result":"error","msg":"Not authorized to send to channel 'ops'","code":"BAD_REQUEST"}"#,
            ),
        ],
        check: |it, _| {
            assert_eq!(it.header("authorization"), "Basic canary");
            let fields = form(it, "/api/v1/messages");
            assert_eq!(
                fields.keys().collect::<Vec<_>>(),
                ["content", "to", "topic", "type"]
            );
            assert_eq!(
                (fields["type"].as_str(), fields["to"].as_str()),
                ("stream", "ops")
            );
            assert_has_summary(&fields["content"].as_str().into(), 10_000);
        },
    },
    Rules {
        file: "telegram",
        secret_path: "/bot1:canary/sendMessage",
        secret: "",
        accepts: (200, r#"{"ok":true,"result":{"message_id":1}}"#),
        wrong: &[
            (
                400,
                r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#,
            ),
            (
                400,
                r#"{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-100}}"#,
            ),
            (
                400,
                r#"{"ok":false,"error_code":400,"description":"Bad Request: not enough rights to send text messages to the chat"}"#,
            ),
            (
                400,
                r#"{"ok":false,"error_code":400,"description":"Bad Request: message thread not found"}"#,
            ),
            (
                400,
                r#"{"ok":false,"error_code":400,"description":"Bad Request: TOPIC_DELETED"}"#,
            ),
        ],
        check: |it, _| {
            let fields = ["chat_id", "text", "link_preview_options"];
            assert_has_summary(
                &posted(it, "/bot1:canary/sendMessage", &fields)["text"],
                4_096,
            );
        },
    },
    Rules {
        file: "ntfy",
        secret_path: "",
        secret: "Bearer canary",
        accepts: (200, r#"{"id":"a","event":"message","topic":"ops"}"#),
        wrong: &[],
        check: |it, _| {
            let body = posted(it, "/", &["topic", "title", "priority", "message", "tags"]);
            assert_starts_with_summary(&body["title"], 250);
            assert_has_summary(&body["message"], 4_096);
            assert_eq!(body["priority"], 5);
        },
    },
    Rules {
        file: "gotify",
        secret_path: "",
        secret: "canary",
        accepts: (200, r#"{"id":1,"appid":2}"#),
        wrong: &[],
        check: |it, _| {
            assert_eq!(it.header("x-gotify-key"), "canary");
            let body = posted(it, "/message", &["title", "priority", "message"]);
            assert_has_summary(&body["message"], 10_000);
            assert!(body["priority"].is_number());
        },
    },
    Rules {
        file: "opsgenie",
        secret_path: "",
        secret: "GenieKey canary",
        accepts: (
            202,
            r#"{"result":"Request will be processed","requestId":"r"}"#,
        ),
        wrong: &[],
        check: |it, reported| assert_opsgenie_request(it, reported, "/v2/alerts"),
    },
    Rules {
        file: "jira-service-management",
        secret_path: "",
        secret: "GenieKey canary",
        accepts: (
            202,
            r#"{"result":"Request will be processed","requestId":"r"}"#,
        ),
        wrong: &[],
        check: |it, reported| {
            assert_opsgenie_request(it, reported, "/jsm/ops/integration/v2/alerts");
        },
    },
    Rules {
        file: "better-stack",
        secret_path: "/api/v1/incoming-webhook/canary",
        secret: "",
        accepts: (200, "{}"),
        wrong: &[],
        check: |it, reported| {
            let fields = [
                "alert_id",
                "title",
                "severity",
                "status",
                "acknowledged",
                "url",
            ];
            let body = posted(it, "/api/v1/incoming-webhook/canary", &fields);
            assert_starts_with_summary(&body["title"], 250);
            assert_eq!(body["status"], reported.choose("open", "closed"));
        },
    },
    Rules {
        file: "incident-io",
        secret_path: "",
        secret: "Bearer canary",
        accepts: (
            202,
            r#"{"status":"success","message":"Event accepted for processing"}"#,
        ),
        wrong: &[],
        check: |it, reported| {
            let fields = [
                "title",
                "description",
                "source_url",
                "deduplication_key",
                "status",
                "metadata",
            ];
            let body = posted(it, "/v2/alert_events/http/SOURCE", &fields);
            assert_starts_with_summary(&body["title"], 250);
            assert_has_summary(&body["description"], 10_000);
            assert_eq!(body["status"], reported.choose("firing", "resolved"));
        },
    },
    Rules {
        file: "splunk-on-call",
        secret_path: "/integrations/generic/20131114/alert/canary/ops",
        secret: "",
        accepts: (200, r#"{"result":"success","entity_id":"e"}"#),
        wrong: &[],
        check: |it, reported| {
            let fields = [
                "entity_id",
                "entity_display_name",
                "message_type",
                "state_message",
                "monitoring_tool",
            ];
            let path = "/integrations/generic/20131114/alert/canary/ops";
            let body = posted(it, path, &fields);
            assert_has_summary(&body["state_message"], 20_480);
            assert_eq!(
                body["message_type"],
                reported.choose("CRITICAL", "RECOVERY")
            );
        },
    },
    Rules {
        file: "grafana-oncall",
        secret_path: "/integrations/v1/formatted_webhook/canary/",
        secret: "",
        accepts: (200, "Ok."),
        wrong: &[],
        check: |it, reported| {
            let fields = [
                "alert_uid",
                "title",
                "state",
                "message",
                "link_to_upstream_details",
            ];
            let body = posted(it, "/integrations/v1/formatted_webhook/canary/", &fields);
            assert_has_summary(&body["message"], 10_000);
            assert_eq!(body["state"], reported.choose("alerting", "ok"));
        },
    },
    Rules {
        file: "squadcast",
        secret_path: "/v2/incidents/api/canary",
        secret: "",
        accepts: (202, ""),
        wrong: &[],
        check: |it, reported| {
            let fields = ["message", "description", "status", "event_id", "tags"];
            let body = posted(it, "/v2/incidents/api/canary", &fields);
            assert_has_summary(&body["description"], 10_000);
            assert_eq!(body["status"], reported.choose("trigger", "resolve"));
        },
    },
    Rules {
        file: "matrix",
        secret_path: "",
        secret: "Bearer canary",
        accepts: (200, r#"{"event_id":"$1"}"#),
        wrong: &[(
            400,
            r#"{"errcode":"M_FORBIDDEN","error":"User not in room"}"#,
        )],
        check: |it, _| {
            let room = "/_matrix/client/v3/rooms/!ROOM:example.net/send/m.room.message/";
            assert_eq!(it.method, "PUT");
            assert_eq!(it.path, format!("{room}{}", it.delivery_id()));
            let body = fielded(it, &["msgtype", "body"]);
            assert_eq!(body["msgtype"], "m.text");
            assert_has_summary(&body["body"], 10_000);
        },
    },
    Rules {
        file: "twilio-sms",
        secret_path: "",
        secret: "Basic canary",
        accepts: (201, r#"{"sid":"SM1","status":"queued"}"#),
        wrong: &[
            (
                400,
                r#"{"code":21211,"message":"The 'To' number is not a valid phone number.","status":400}"#,
            ),
            (
                400,
                r#"{"code":21610,"message":"Attempt to send to unsubscribed recipient","status":400}"#,
            ),
        ],
        check: |it, _| {
            let fields = form(it, "/2010-04-01/Accounts/ACCOUNT/Messages.json");
            assert_eq!(fields.keys().collect::<Vec<_>>(), ["Body", "From", "To"]);
            assert_eq!(fields["To"], "+15550000002");
            assert!(fields["Body"].contains("x\",\"y\"") && fields["Body"].len() <= 1_600);
        },
    },
    Rules {
        file: "github-issue",
        secret_path: "",
        secret: "Bearer canary",
        accepts: (201, r#"{"number":7}"#),
        wrong: &[],
        check: |it, reported| {
            assert_eq!(it.header("authorization"), "Bearer canary");
            if reported == ChangeKind::Closing {
                assert_eq!(it.path, "/repos/OWNER/REPOSITORY/issues/7");
                return;
            }
            let fields = ["title", "body", "labels"];
            let body = posted(it, "/repos/OWNER/REPOSITORY/issues", &fields);
            assert_starts_with_summary(&body["title"], 256);
            assert_has_summary(&body["body"], 65_536);
            assert_eq!(body["labels"], json!(["critical"]));
        },
    },
    Rules {
        file: "gitlab-issue",
        secret_path: "",
        secret: "canary",
        accepts: (201, r#"{"id":1,"iid":7}"#),
        wrong: &[],
        check: |it, reported| {
            assert_eq!(it.header("private-token"), "canary");
            if reported == ChangeKind::Closing {
                assert_eq!(it.path, "/api/v4/projects/PROJECT/issues/7");
                return;
            }
            let fields = ["title", "description", "labels"];
            let body = posted(it, "/api/v4/projects/PROJECT/issues", &fields);
            assert_starts_with_summary(&body["title"], 255);
            assert_has_summary(&body["description"], 65_536);
        },
    },
    Rules {
        file: "zendesk",
        secret_path: "",
        secret: "Basic canary",
        accepts: (201, r#"{"ticket":{"id":35436}}"#),
        wrong: &[],
        check: |it, reported| {
            assert_eq!(it.header("authorization"), "Basic canary");
            let end = reported.choose("", "/35436");
            assert_eq!(it.path, format!("/api/v2/tickets{end}"));
            let ticket = &it.json()["ticket"];
            assert_has_summary(&ticket["comment"]["body"], 65_536);
            assert_eq!(ticket["comment"]["public"], false);
        },
    },
    Rules {
        file: "discord-edit",
        secret_path: "/api/webhooks/1/canary?wait=true",
        secret: "",
        accepts: (200, r#"{"id":"11"}"#),
        wrong: &[(404, r#"{"message":"Unknown Channel","code":10003}"#)],
        check: |it, reported| {
            let path = "/api/webhooks/1/canary?wait=true";
            let edit = "/api/webhooks/1/canary/messages/11?wait=true";
            assert_eq!(it.path, reported.choose(path, edit));
            let body = fielded(it, &["content", "allowed_mentions"]);
            assert_has_summary(&body["content"], 2_000);
            assert_eq!(body["allowed_mentions"], json!({"parse": []}));
        },
    },
    Rules {
        file: "telegram-edit",
        secret_path: "/bot1:canary/sendMessage",
        secret: "",
        accepts: (
            200,
            r#"{"ok":true,"result":{"message_id":4,"chat":{"id":-100}}}"#,
        ),
        wrong: &[(
            400,
            r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#,
        )],
        check: |it, reported| {
            let path = reported.choose("/bot1:canary/sendMessage", "/bot1:canary/editMessageText");
            assert_eq!(it.path, path);
            assert_has_summary(&it.json()["text"], 4_096);
        },
    },
    Rules {
        file: "mattermost-bot",
        secret_path: "",
        secret: "Bearer canary",
        accepts: (201, r#"{"id":"p1"}"#),
        wrong: &[(
            403,
            r#"{"id":"api.context.permissions.app_error","status_code":403}"#,
        )],
        check: |it, reported| {
            assert_eq!(it.header("authorization"), "Bearer canary");
            let path = reported.choose("/api/v4/posts", "/api/v4/posts/p1/patch");
            assert_eq!(it.path, path);
            assert_has_summary(&it.json()["message"], 16_383);
        },
    },
    Rules {
        file: "rocket-chat-bot",
        secret_path: "",
        secret: "canary",
        accepts: (200, r#"{"success":true,"message":{"_id":"m1","rid":"r1"}}"#),
        wrong: &[(400, r#"{"success":false,"error":"invalid-channel"}"#)],
        check: |it, reported| {
            assert_eq!(it.header("x-auth-token"), "canary");
            let path = reported.choose("/api/v1/chat.postMessage", "/api/v1/chat.update");
            assert_eq!(it.path, path);
            assert_has_summary(&it.json()["text"], 5_000);
        },
    },
    Rules {
        file: "webex-bot",
        secret_path: "",
        secret: "Bearer canary",
        accepts: (200, r#"{"id":"m1","roomId":"ROOM"}"#),
        wrong: &[],
        check: |it, reported| {
            assert_eq!(it.header("authorization"), "Bearer canary");
            assert_eq!(it.path, reported.choose("/v1/messages", "/v1/messages/m1"));
            assert_eq!(it.method, reported.choose("POST", "PUT"));
            assert_has_summary(&fielded(it, &["roomId", "text"])["text"], 7_439);
        },
    },
    Rules {
        file: "line",
        secret_path: "",
        secret: "Bearer canary",
        accepts: (200, r#"{"sentMessages":[{"id":"1","quoteToken":"q"}]}"#),
        wrong: &[(
            400,
            r#"{"message":"The property, 'to', in the request body is invalid (line: -, column: -)"}"#,
        )],
        check: |it, _| {
            assert_eq!(it.header("authorization"), "Bearer canary");
            let body = posted(it, "/v2/bot/message/push", &["to", "messages"]);
            assert_eq!(body["messages"][0]["type"], "text");
            assert_has_summary(&body["messages"][0]["text"], 5_000);
        },
    },
    Rules {
        file: "threema",
        secret_path: "/send_simple?secret=canary",
        secret: "",
        accepts: (200, "0123456789abcdef"),
        wrong: &[],
        check: |it, _| {
            let fields = form(it, "/send_simple?secret=canary");
            assert_eq!(fields.keys().collect::<Vec<_>>(), ["from", "text", "to"]);
            assert_eq!((fields["from"].len(), fields["to"].len()), (8, 8));
            assert!(fields["text"].contains(SHOWN), "{fields:?}");
            assert!(fields["text"].len() <= 3_500);
        },
    },
    Rules {
        file: "kafka-rest",
        secret_path: "",
        secret: "Basic canary",
        accepts: (
            200,
            r#"{"offsets":[{"partition":2,"offset":100}],"key_schema_id":null}"#,
        ),
        wrong: &[(404, r#"{"error_code":40401,"message":"Topic not found"}"#)],
        check: |it, _| {
            assert_eq!(it.path, "/topics/alerts");
            let content_type = "application/vnd.kafka.json.v2+json";
            assert_eq!(it.header("content-type"), content_type);
            let record = &it.json()["records"][0];
            assert_has_summary(&record["value"]["summary"], 1_000);
            assert!(record["key"].as_str().unwrap().ends_with(":1"));
        },
    },
    Rules {
        file: "amazon-sns",
        secret_path: "",
        secret: "canary",
        accepts: (200, "<PublishResponse/>"),
        wrong: &[(403, "<ErrorResponse/>"), (404, "<ErrorResponse/>")],
        check: |it, _| {
            assert_aws_signature(it, "sns");
            let fields = form(it, "/");
            let names = ["Action", "Message", "TopicArn", "Version"];
            assert_eq!(fields.keys().collect::<Vec<_>>(), names);
            assert_eq!(
                fields["TopicArn"],
                "arn:aws:sns:eu-central-1:123456789012:alerts"
            );
            assert!(fields["Message"].contains("x\",\"y\""));
        },
    },
    Rules {
        file: "amazon-eventbridge",
        secret_path: "",
        secret: "canary",
        accepts: (200, r#"{"FailedEntryCount":0,"Entries":[{"EventId":"1"}]}"#),
        wrong: &[(400, r#"{"__type":"UnrecognizedClientException"}"#)],
        check: |it, _| {
            assert_aws_signature(it, "events");
            assert_eq!(it.header("content-type"), "application/x-amz-json-1.1");
            assert_eq!(it.header("x-amz-target"), "AWSEvents.PutEvents");
            let entry = &it.json()["Entries"][0];
            assert_eq!(entry["Source"], "bellwether");
            let detail = entry["Detail"].as_str().unwrap();
            let detail: Value = serde_json::from_str(detail).unwrap();
            // The event has the summary as it was sent, in two lines.
            let summary = detail["summary"].as_str().unwrap();
            assert!(
                summary.ends_with("#f/../{{event.name}} \u{e4}"),
                "{summary}"
            );
        },
    },
    Rules {
        file: "twilio-voice",
        secret_path: "",
        secret: "Basic canary",
        accepts: (201, r#"{"sid":"CA1","status":"queued"}"#),
        wrong: &[(
            400,
            r#"{"code":21211,"message":"Invalid 'To' Phone Number","status":400}"#,
        )],
        check: |it, _| {
            let fields = form(it, "/2010-04-01/Accounts/ACCOUNT/Calls.json");
            assert_eq!(fields.keys().collect::<Vec<_>>(), ["From", "To", "Twiml"]);
            let text = fields["Twiml"]
                .strip_prefix("<Response><Say loop=\"2\">")
                .and_then(|it| it.strip_suffix("</Say></Response>"));
            let text = text.unwrap();
            assert!(!text.contains(['<', '&']) && text.len() <= 4_096, "{text}");
        },
    },
    Rules {
        file: "home-assistant",
        secret_path: "",
        secret: "Bearer canary",
        accepts: (200, "[]"),
        wrong: &[],
        check: |it, _| {
            assert_eq!(it.header("authorization"), "Bearer canary");
            let fields = ["title", "message", "data"];
            let body = posted(it, "/api/services/notify/notify", &fields);
            assert_has_summary(&body["message"], 4_096);
            assert!(body["data"]["tag"].as_str().unwrap().ends_with(":1"));
        },
    },
    Rules {
        file: "jira-issue",
        secret_path: "",
        secret: "Basic canary",
        accepts: (201, r#"{"id":"10000","key":"OPS-24"}"#),
        wrong: &[(
            400,
            r#"{"errorMessages":[],"errors":{"project":"valid project is required"}}"#,
        )],
        check: |it, reported| {
            assert_eq!(it.header("authorization"), "Basic canary");
            if reported == ChangeKind::Closing {
                let path = "/rest/api/2/issue/OPS-24/transitions";
                let body = posted(it, path, &["transition"]);
                assert_eq!(body["transition"], json!({"id": "31"}));
                return;
            }
            let body = posted(it, "/rest/api/2/issue", &["fields"]);
            let fields = &body["fields"];
            assert_eq!(fields["project"], json!({"key": "OPS"}));
            assert_eq!(fields["issuetype"], json!({"name": "Task"}));
            assert_eq!(fields["labels"], json!(["critical"]));
            assert_starts_with_summary(&fields["summary"], 255);
            assert!(!fields["summary"].as_str().unwrap().contains('\n'));
            assert_has_summary(&fields["description"], 32_767);
        },
    },
    Rules {
        file: "pushover",
        secret_path: "/1/messages.json?token=canary&user=u",
        secret: "",
        accepts: (200, r#"{"status":1,"request":"r"}"#),
        wrong: &[(
            400,
            r#"{"user":"invalid","errors":["user identifier is invalid"],"status":0,"request":"r"}"#,
        )],
        check: |it, reported| {
            let fields = form(it, "/1/messages.json?token=canary&user=u");
            let known = ["expire", "message", "priority", "retry", "title", "url"];
            assert!(fields.keys().all(|it| known.contains(&&**it)), "{fields:?}");
            assert!(fields["message"].contains(SHOWN), "{fields:?}");
            assert!(fields["message"].chars().count() <= 1_024);
            assert!(fields["title"].chars().count() <= 250);
            assert_eq!(fields["priority"], reported.choose("2", "0"));
        },
    },
    Rules {
        file: "wecom",
        secret_path: "/cgi-bin/webhook/send?key=canary",
        secret: "",
        accepts: (200, r#"{"errcode":0,"errmsg":"ok"}"#),
        wrong: &[(200, r#"{"errcode":93000,"errmsg":"invalid webhook url"}"#)],
        check: |it, _| {
            let body = posted(it, "/cgi-bin/webhook/send?key=canary", &["msgtype", "text"]);
            assert_eq!(body["msgtype"], "text");
            assert_has_summary(&body["text"]["content"], 2_048);
        },
    },
    Rules {
        file: "dingtalk",
        secret_path: "/robot/send?access_token=canary",
        secret: "",
        accepts: (200, r#"{"errcode":0,"errmsg":"ok"}"#),
        wrong: &[
            (200, r#"{"errcode":300001,"errmsg":"token is not exist"}"#),
            (
                200,
                r#"{"errcode":310000,"errmsg":"keywords not in content"}"#,
            ),
        ],
        check: |it, _| {
            let body = posted(
                it,
                "/robot/send?access_token=canary",
                &["msgtype", "text", "at"],
            );
            assert_eq!(body["msgtype"], "text");
            assert_eq!(body["at"], json!({"isAtAll": false}));
            let text = body["text"]["content"].as_str().unwrap();
            assert!(text.starts_with("Alert: "), "{text}");
            assert_has_summary(&body["text"]["content"], 20_000);
        },
    },
    Rules {
        file: "feishu",
        secret_path: "/open-apis/bot/v2/hook/canary",
        secret: "",
        accepts: (200, r#"{"code":0,"msg":"success","data":{}}"#),
        wrong: &[(
            200,
            r#"{"code":19001,"msg":"param invalid: incoming webhook access token invalid"}"#,
        )],
        check: |it, _| {
            let body = posted(
                it,
                "/open-apis/bot/v2/hook/canary",
                &["msg_type", "content"],
            );
            assert_eq!(body["msg_type"], "text");
            assert_has_summary(&body["content"]["text"], 20_000);
        },
    },
    Rules {
        file: "apprise",
        secret_path: "",
        secret: "",
        accepts: (200, r#"{"error":null}"#),
        wrong: &[(204, "")],
        check: |it, reported| {
            let body = posted(it, "/notify/KEY", &["title", "body", "format", "type"]);
            assert_has_summary(&body["body"], 32_768);
            assert_eq!(body["type"], reported.choose("failure", "success"));
        },
    },
    Rules {
        file: "cloudevents",
        secret_path: "",
        secret: "",
        accepts: (202, ""),
        wrong: &[],
        check: |it, reported| {
            assert_eq!(it.header("content-type"), "application/cloudevents+json");
            let body = it.json();
            assert_eq!(body["specversion"], "1.0");
            assert_eq!(body["id"], it.delivery_id());
            let kind = body["type"].as_str().unwrap();
            assert!(
                kind.ends_with(reported.choose(".opened", ".changed")),
                "{kind}"
            );
            assert_has_summary(&body["data"]["summary"], 10_000);
            assert_eq!(body["data"]["dimensions"]["host"], "a\"b");
            assert_eq!(body["data"]["severity"], 5);
        },
    },
    Rules {
        file: "alertmanager",
        secret_path: "",
        secret: "",
        accepts: (200, ""),
        wrong: &[],
        check: |it, reported| {
            assert_eq!(
                (it.method.as_str(), it.path.as_str()),
                ("POST", "/api/v2/alerts")
            );
            let alert = &it.json()[0];
            let labels = &alert["labels"];
            assert_eq!(labels["alertname"], "disk");
            assert_eq!(labels["host"], "a\"b");
            assert!(labels["thread"].as_str().unwrap().ends_with(":1"));
            assert_eq!(labels.as_object().unwrap().len(), 3);
            assert_has_summary(&alert["annotations"]["summary"], 10_000);
            let end: jiff::Timestamp = alert["endsAt"].as_str().unwrap().parse().unwrap();
            let is_over = end <= jiff::Timestamp::now();
            assert_eq!(is_over, reported == ChangeKind::Closing);
        },
    },
];
