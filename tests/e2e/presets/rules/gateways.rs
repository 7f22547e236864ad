//! The rules of services that forward messages, to phones, queues or homes.

use serde_json::Value;

use super::{
    ChangeKind, Rules, SHOWN, assert_has_summary, assert_starts_with_summary, form, posted,
};
use crate::presets::aws::assert_aws_signature;

pub(super) const RULES: &[Rules] = &[
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
