//! Tests of all destination types with a test server that checks the requests.

mod keep;
mod mail;
mod proxy;
mod reach;
mod servicenow;
mod templates;

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, Mac};
use serde_json::json;
use sha2::Sha256;

use super::{SendRequest, Sender};
use crate::{
    ChatThread,
    clock::ManualClock,
    domain::{
        Content, DestinationKind, Outcome, RecordId, Secret, Severity, TemplateLanguage,
        delivery::Recipients,
        destination::{
            EventTemplates, Header, HeaderValue, MsTeams, PagerDuty, ServiceNow, Slack, Webhook,
            WebhookMethod,
        },
    },
    message::sample,
    sending::{
        SenderParts,
        receiver::{ReceivedRequest, Receiver, Reply},
    },
    verdict::{Advice, AttemptReport},
};

const CANARY: &str = "canary-S3cret/+x";
static NO_RECIPIENTS: Recipients = Recipients {
    reached: Vec::new(),
    refused: Vec::new(),
};
const NOW_MS: i64 = 1_700_000_000_123;
const SIGNING: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

fn sending() -> SenderParts {
    SenderParts::at(Arc::new(ManualClock::starting_at(NOW_MS)))
}

impl SenderParts {
    async fn send(&self, kind: &DestinationKind) -> AttemptReport {
        send_with(&self.sender(), kind).await
    }
}

fn id() -> RecordId {
    RecordId::from_parts(1, 2)
}

async fn send_with(sender: &Sender, kind: &DestinationKind) -> AttemptReport {
    let content = sample::sample_content(
        sample::sample_occurrence(NOW_MS),
        kind.clone(),
        String::new(),
    );
    send_content(sender, kind, &content, None).await
}

async fn send_content(
    sender: &Sender,
    kind: &DestinationKind,
    content: &Content,
    rule: Option<RecordId>,
) -> AttemptReport {
    let report = sender.send(request(kind, content, rule)).await;
    let shown = format!("{report:?}");
    assert!(!shown.contains("canary-"), "a secret shows in {shown}");
    report
}

fn request<'a>(
    kind: &'a DestinationKind,
    content: &'a Content,
    rule: Option<RecordId>,
) -> SendRequest<'a> {
    SendRequest {
        delivery: id(),
        rule,
        content,
        destination_name: "the-destination",
        kind,
        template_language: TemplateLanguage::Mustache,
        opening: None,
        opening_content: None,
        thread: None,
        kept: None,
        recipients: &NO_RECIPIENTS,
        is_reduced: false,
        timeout: Duration::from_millis(500),
        is_fresh: false,
    }
}

#[tokio::test]
async fn transcript_keeps_first_16_kib_of_response() {
    let said = "0123456789abcdef".repeat(1_100);
    let receiver = {
        let said = said.clone();
        Receiver::start(move |_| Reply::Answer(422, Vec::new(), said.clone())).await
    };
    let kind = DestinationKind::Webhook(webhook(receiver.url("/")));
    let report = sending().send(&kind).await;
    let stored = report.transcript.response.unwrap().body;
    assert_eq!(stored.len(), 16 * 1024);
    assert!(said.starts_with(&stored));
}

#[tokio::test]
async fn slack_updates_are_posted_in_the_thread_of_the_first_message() {
    let accepted = json!({"ok": true, "channel": "C1", "ts": "1503435956.000247"});
    let receiver = Receiver::start(move |_| Reply::json(&accepted)).await;
    let mut world = sending();
    world.config.providers.slack = receiver.url("");
    let kind = DestinationKind::Slack(Slack {
        channel: "#ops".into(),
        token: Secret::new(CANARY),
        ..Slack::default()
    });
    let content = sample::sample_content(
        sample::sample_occurrence(NOW_MS),
        kind.clone(),
        String::new(),
    );
    let first = ChatThread {
        channel: "C1".into(),
        ts: "1503435956.000247".into(),
    };
    for thread in [None, Some(&first)] {
        let request = SendRequest {
            thread,
            ..request(&kind, &content, None)
        };
        let report = world.sender().send(request).await;
        assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
        let sent = receiver.received_requests().pop().unwrap().json();
        assert_eq!(sent["thread_ts"].as_str(), thread.map(|it| it.ts.as_str()));
    }
}

fn echo(request: &ReceivedRequest) -> Reply {
    let said = format!("{} {:?} {}", request.path, request.headers, request.body);
    Reply::Answer(400, vec![("x-echo", said.replace('\n', " "))], said)
}

fn webhook(url: String) -> Webhook {
    let header = |name: &str, value| Header {
        name: name.into(),
        value,
    };
    Webhook {
        url,
        method: WebhookMethod::Put,
        headers: vec![
            header(
                "Authorization",
                HeaderValue::Secret(Secret::new(format!("Bearer {CANARY}"))),
            ),
            header("X-Team", HeaderValue::Plain("ops".into())),
        ],
        signing_secret: Secret::new(SIGNING),
        ..Webhook::default()
    }
}

#[tokio::test]
async fn webhook_carries_id_and_signature_headers() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let kind = DestinationKind::Webhook(webhook(receiver.url("/hook?x=1")));
    let report = sending().send(&kind).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    let [got] = receiver.received_requests().try_into().unwrap();
    assert_eq!(
        (got.method.as_str(), got.path.as_str()),
        ("PUT", "/hook?x=1")
    );
    assert_eq!(got.header("webhook-id"), id().to_string());
    assert_eq!(got.header("idempotency-key"), id().to_string());
    assert_eq!(got.header("webhook-timestamp"), "1700000000");
    assert_eq!(got.header("content-type"), "application/json");
    assert_eq!(got.header("authorization"), format!("Bearer {CANARY}"));
    assert_eq!(got.header("x-team"), "ops");
    assert!(got.header("user-agent").starts_with("Bellwether/"));
    let key = STANDARD
        .decode(SIGNING.trim_start_matches("whsec_"))
        .unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("{}.1700000000.{}", id(), got.body).as_bytes());
    let signature = got.header("webhook-signature").trim_start_matches("v1,");
    mac.verify_slice(&STANDARD.decode(signature).unwrap())
        .unwrap();
    let request = report.transcript.request.unwrap();
    assert_eq!(request.headers["authorization"], "********");
    assert_eq!(request.headers["x-team"], "ops");
    assert_eq!(request.body, got.body);
}

#[tokio::test]
async fn echoed_secrets_are_masked_in_transcripts() {
    let receiver = Receiver::start(echo).await;
    let mut world = sending();
    world.config.providers.slack = receiver.url("");
    world.config.providers.pagerduty = receiver.url("");
    let secret = || Secret::new(CANARY);
    let kinds = [
        DestinationKind::Webhook(webhook(receiver.url("/"))),
        DestinationKind::Slack(Slack {
            channel: "#ops".into(),
            token: secret(),
            ..Slack::default()
        }),
        DestinationKind::MsTeams(MsTeams {
            url: Secret::new(receiver.url("/canary-hook?sig=canary-sig")),
        }),
        DestinationKind::PagerDuty(PagerDuty {
            routing_key: secret(),
            ..PagerDuty::default()
        }),
        DestinationKind::ServiceNow(ServiceNow {
            instance_url: receiver.url(""),
            client_id: "bellwether".into(),
            client_secret: secret(),
            token_url: String::new(),
            refresh_token: Secret::new("canary-refresh token"),
        }),
    ];
    for kind in kinds {
        let report = world.send(&kind).await;
        assert_eq!(report.verdict.outcome, Outcome::Rejected, "{report:?}");
        if let DestinationKind::ServiceNow(_) = kind {
            // The token request already failed, and its response is not part of the transcript.
            assert_eq!(report.transcript.response, None);
            assert!(!report.verdict.explanation.contains("/oauth_token.do"));
            continue;
        }
        let response = report.transcript.response.unwrap();
        assert!(
            response.body.contains("********"),
            "{}: {}",
            kind.as_str(),
            response.body
        );
    }
}

#[tokio::test]
async fn slack_outcome_follows_the_response_body() {
    let cases = [
        (
            json!({"ok": true, "ts": "1.2"}),
            Outcome::Delivered,
            "accepted",
            Advice::Again,
        ),
        (
            json!({"ok": false, "error": "channel_not_found"}),
            Outcome::Rejected,
            "channel_not_found",
            Advice::Fix,
        ),
        (
            json!({"ok": false, "error": "ratelimited"}),
            Outcome::Rejected,
            "ratelimited",
            Advice::Limited(Some(Duration::from_secs(30))),
        ),
        (
            json!({"ok": false, "error": "invalid_blocks"}),
            Outcome::Rejected,
            "invalid_blocks",
            Advice::Reduce,
        ),
        (
            json!("hello"),
            Outcome::Rejected,
            "no reason",
            Advice::FewMore,
        ),
    ];
    for (said, outcome, text, advice) in cases {
        let answer = said.to_string();
        let receiver = Receiver::start(move |_| {
            Reply::Answer(200, vec![("retry-after", "30".into())], answer.clone())
        })
        .await;
        let mut world = sending();
        world.config.providers.slack = receiver.url("/");
        let kind = DestinationKind::Slack(Slack {
            channel: "#ops".into(),
            token: Secret::new(CANARY),
            ..Slack::default()
        });
        let report = world.send(&kind).await;
        assert_eq!(report.verdict.outcome, outcome, "{said}");
        assert!(report.verdict.explanation.contains(text), "{report:?}");
        assert!(
            outcome == Outcome::Delivered || report.verdict.advice == advice,
            "{report:?}"
        );
        let [got] = receiver.received_requests().try_into().unwrap();
        assert_eq!(got.path, "/api/chat.postMessage");
        assert_eq!(got.header("authorization"), format!("Bearer {CANARY}"));
        assert_eq!(got.json()["channel"], "#ops");
        assert!(got.json()["text"].is_string());
    }
}

#[tokio::test]
async fn teams_error_with_status_200_is_a_rejection() {
    let cases = [
        ("1", Outcome::Delivered),
        (
            "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429",
            Outcome::Rejected,
        ),
    ];
    for (said, outcome) in cases {
        let receiver = Receiver::start(|_| Reply::Answer(200, Vec::new(), said.into())).await;
        let kind = DestinationKind::MsTeams(MsTeams {
            url: Secret::new(receiver.url("/canary-path")),
        });
        let report = sending().send(&kind).await;
        assert_eq!(report.verdict.outcome, outcome, "{report:?}");
        let [got] = receiver.received_requests().try_into().unwrap();
        assert_eq!(got.path, "/canary-path");
        assert!(got.json().is_object());
    }
}

#[tokio::test]
async fn pagerduty_receives_routing_key_and_errors_are_reported() {
    let cases = [
        (
            202,
            json!({"status": "success"}),
            Outcome::Delivered,
            "accepted",
            Advice::Again,
        ),
        (
            400,
            json!({"status": "invalid event", "message": "Event object is invalid",
                   "errors": ["'routing_key' is missing", "'payload' is missing"]}),
            Outcome::Rejected,
            "Event object is invalid: 'routing_key' is missing; 'payload' is missing",
            Advice::Fix,
        ),
        (
            429,
            json!(null),
            Outcome::Rejected,
            "429",
            Advice::Limited(None),
        ),
        (500, json!(null), Outcome::Rejected, "500", Advice::Again),
    ];
    for (status, said, outcome, text, advice) in cases {
        let said = said.to_string();
        let receiver =
            Receiver::start(move |_| Reply::Answer(status, Vec::new(), said.clone())).await;
        let mut world = sending();
        world.config.providers.pagerduty = receiver.url("");
        let kind = DestinationKind::PagerDuty(PagerDuty {
            routing_key: Secret::new(CANARY),
            ..PagerDuty::default()
        });
        let report = world.send(&kind).await;
        assert_eq!(
            (report.verdict.outcome, report.verdict.advice),
            (outcome, advice),
            "{status}"
        );
        assert!(report.verdict.explanation.contains(text), "{report:?}");
        let [got] = receiver.received_requests().try_into().unwrap();
        assert_eq!(got.path, "/v2/enqueue");
        assert_eq!(got.json()["routing_key"], CANARY);
    }
}

#[tokio::test]
async fn derived_event_carries_its_rule_chain() {
    let world = sending();
    let kind = DestinationKind::Event(EventTemplates {
        name_template: "escalation".into(),
        type_template: "escalation".into(),
        summary_template: "look at this".into(),
        severity: Severity::Critical,
    });
    let rules = [RecordId::from_parts(5, 5), RecordId::from_parts(6, 6)];
    let mut content = sample::sample_content(
        sample::sample_occurrence(NOW_MS),
        kind.clone(),
        String::new(),
    );
    content.occurrence.chain = vec![rules[0]];
    let sender = world.sender();
    let report = send_content(&sender, &kind, &content, Some(rules[1])).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    let made = world.sink.events();
    assert_eq!(made.len(), 1);
    assert_eq!(
        (made[0].0.name.as_str(), &made[0].1),
        ("escalation", &rules.to_vec())
    );
    let report = send_content(&sender, &kind, &content, Some(rules[0])).await;
    assert_eq!(report.verdict.advice, Advice::GiveUp, "{report:?}");
    assert_eq!(world.sink.events().len(), 1, "a loop creates no event");
}

#[tokio::test]
async fn guard_blocks_every_destination_kind() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let mut world = sending();
    world.config.egress.allow.clear();
    world.config.providers.slack = receiver.url("");
    let kinds = [
        DestinationKind::Webhook(webhook(receiver.url("/"))),
        DestinationKind::Slack(Slack {
            channel: "#ops".into(),
            token: Secret::new(CANARY),
            ..Slack::default()
        }),
    ];
    for kind in kinds {
        let report = world.send(&kind).await;
        assert_eq!(report.verdict.outcome, Outcome::Blocked, "{report:?}");
        assert!(
            report.verdict.explanation.contains("127.0.0.0/8"),
            "{report:?}"
        );
        assert_eq!(report.transcript.request, None);
    }
    assert_eq!(receiver.count(), 0);
}
