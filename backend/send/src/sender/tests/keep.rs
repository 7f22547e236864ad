//! Values kept from responses, and the requests that use them.

use serde_json::json;

use super::{request, sending};
use crate::{
    domain::{
        Clause, Content, DestinationKind, Literal, Outcome, Secret, Status,
        destination::{FollowUp, Keep, KeptValues, Webhook, WebhookMethod},
    },
    message::sample,
    sender::SendRequest,
    sending::receiver::{ReceivedRequest, Receiver, Reply},
    verdict::{Advice, AttemptReport},
};

const RECEIPT: &str = "canary-receipt-1";

fn keeping(url: String, from: &str, is_secret: bool) -> Webhook {
    let keep = Keep {
        from: from.into(),
        is_secret,
    };
    Webhook {
        payload: "{\"first\": \"{{event.name}}\"}".into(),
        on_update: Some(Box::new(FollowUp {
            url: "./{{kept.item}}".into(),
            method: WebhookMethod::Patch,
            payload: "{\"item\": \"{{kept.item}}\"}".into(),
            gone: None,
        })),
        keep: [("item".to_owned(), keep)].into(),
        headers: Vec::new(),
        method: WebhookMethod::Post,
        signing_secret: Secret::default(),
        ..super::webhook(url)
    }
}

fn content(kind: &DestinationKind) -> Content {
    let occurrence = sample::sample_occurrence(super::NOW_MS);
    sample::sample_content(occurrence, kind.clone(), String::new())
}

async fn send(
    kind: &DestinationKind,
    content: &Content,
    kept: Option<&KeptValues>,
) -> AttemptReport {
    let request = SendRequest {
        kept,
        ..request(kind, content, None)
    };
    sending().sender().send(request).await
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
async fn values_are_kept_from_bodies_and_headers_within_their_limits() {
    let long = "x".repeat(1_025);
    let page = "<!doctype html><p>7</p>".to_owned();
    let cases = [
        ("key", json!({"key": "OPS-1"}).to_string(), Ok("OPS-1")),
        (
            "a.b.1.c",
            json!({"a": {"b": [0, {"c": 42}]}}).to_string(),
            Ok("42"),
        ),
        (
            "a.b",
            json!({"a.b": "whole", "a": {"b": "part"}}).to_string(),
            Ok("whole"),
        ),
        ("0.id", json!([{"id": "first"}]).to_string(), Ok("first")),
        ("header:X-Item", "no JSON".to_owned(), Ok("h7")),
        (
            "key",
            json!({"key": &long[..1_024]}).to_string(),
            Ok(&long[..1_024]),
        ),
        (
            "key",
            json!({"key": &long}).to_string(),
            Err("`key` has 1025 bytes; the limit is 1024"),
        ),
        (
            "key",
            json!({"other": 1}).to_string(),
            Err("the response has no `key`"),
        ),
        ("key", json!({"key": ""}).to_string(), Err("`key` is empty")),
        (
            "key",
            json!({"key": "a\nb"}).to_string(),
            Err("`key` contains control characters"),
        ),
        (
            "key",
            json!({"key": {"a": 1}}).to_string(),
            Err("`key` is not a string or a number"),
        ),
        (
            "key",
            json!({"key": null}).to_string(),
            Err("`key` is not a string or a number"),
        ),
        (
            "key",
            json!({"key": true}).to_string(),
            Err("`key` is not a string or a number"),
        ),
        ("key", String::new(), Err("the response is not JSON")),
        (
            "header:etag",
            "{}".to_owned(),
            Err("the response has no header `etag`"),
        ),
    ];
    for (from, body, expected) in cases {
        let shown = body.clone();
        let receiver = Receiver::start(move |_| {
            Reply::Answer(200, vec![("x-item", "h7".to_owned())], body.clone())
        });
        let receiver = receiver.await;
        let kind = DestinationKind::Webhook(keeping(receiver.url("/items"), from, false));
        let report = send(&kind, &content(&kind), None).await;
        let verdict = &report.verdict;
        assert_eq!(verdict.outcome, Outcome::Delivered, "{report:?}");
        let kept = verdict.kept.values.first().map(|it| it.text.reveal());
        match expected {
            Ok(text) => assert_eq!(kept, Some(text), "{from} in {shown}"),
            Err(reason) => {
                assert_eq!(kept, None, "{from} in {shown}");
                let text = format!("; not kept: `item` ({reason})");
                assert!(verdict.explanation.ends_with(&text), "{verdict:?}");
            }
        }
    }
    // A sign-in page is no response of the receiver.
    let receiver = Receiver::start(move |_| Reply::Answer(200, Vec::new(), page.clone())).await;
    let kind = DestinationKind::Webhook(keeping(receiver.url("/items"), "key", false));
    let report = send(&kind, &content(&kind), None).await;
    assert_eq!(report.verdict.outcome, Outcome::Rejected, "{report:?}");
    assert_eq!(report.verdict.kept, KeptValues::default());
}

#[tokio::test]
async fn updates_and_closings_use_kept_values_only_if_the_thread_has_them() {
    let receiver = Receiver::start(|_| Reply::json(&json!({"key": "a/1"}))).await;
    let mut webhook = keeping(receiver.url("/items?v=1"), "key", false);
    webhook.on_clear = Some(Box::new(FollowUp {
        url: receiver.url("/closed/{{kept.item}}"),
        method: WebhookMethod::Delete,
        payload: "{}".into(),
        gone: None,
    }));
    let kind = DestinationKind::Webhook(webhook);
    let mut content = content(&kind);
    let first = send(&kind, &content, None).await.verdict.kept;
    assert_eq!(first.origin, receiver.url(""));
    let again = send(&kind, &content, Some(&first)).await.verdict.kept;
    assert_eq!(again, KeptValues::default(), "nothing changed");
    send(&kind, &content, Some(&KeptValues::default())).await;
    content.clear = true;
    content.occurrence.status = Status::Closed;
    send(&kind, &content, Some(&first)).await;
    let skipped = send(&kind, &content, Some(&KeptValues::default())).await;
    assert_eq!(skipped.verdict.outcome, Outcome::Rejected);
    assert!(
        skipped.verdict.explanation.starts_with("skipped: "),
        "{skipped:?}"
    );
    let received = receiver.received_requests().into_iter();
    let received = received.map(|it| format!("{} {} {}", it.method, it.path, it.body));
    let open = "POST /items?v=1 {\"first\": \"disk-full\"}";
    assert_eq!(
        received.collect::<Vec<_>>(),
        [
            open,
            "PATCH /items/a%2F1?v=1 {\"item\": \"a/1\"}",
            open,
            "DELETE /closed/a%2F1 {}",
        ]
    );
}

#[tokio::test]
async fn change_of_a_message_that_is_gone_is_sent_like_the_first_one() {
    let respond = |status, body: &'static str| {
        move |request: &ReceivedRequest| match request.method.as_str() {
            "PATCH" => Reply::Answer(status, Vec::new(), body.to_owned()),
            _ => Reply::json(&json!({"key": "new"})),
        }
    };
    let gone = Clause::Equals("code".into(), Literal::Text("gone".into()));
    for (status, body, has_clause, expected) in [
        (404, r#"{"code": "gone"}"#, true, Advice::Reduce),
        (404, r#"{"code": "gone"}"#, false, Advice::FewMore),
        (404, r#"{"code": "other"}"#, true, Advice::FewMore),
        (410, r#"{"code": "gone"}"#, true, Advice::Reduce),
        (503, r#"{"code": "gone"}"#, true, Advice::Again),
    ] {
        let receiver = Receiver::start(respond(status, body)).await;
        let mut webhook = keeping(receiver.url("/items"), "key", false);
        let on_update = webhook.on_update.as_mut().unwrap();
        on_update.gone = has_clause.then(|| gone.clone());
        let kind = DestinationKind::Webhook(webhook);
        let content = content(&kind);
        let kept = send(&kind, &content, None).await.verdict.kept;
        let verdict = send(&kind, &content, Some(&kept)).await.verdict;
        assert_eq!(verdict.advice, expected, "{status} {body}: {verdict:?}");
        let again = SendRequest {
            kept: Some(&kept),
            is_reduced: true,
            ..request(&kind, &content, None)
        };
        let again = sending().sender().send(again).await.verdict;
        let is_delivered = again.outcome == Outcome::Delivered;
        assert_eq!(is_delivered, has_clause, "{status} {body}: {again:?}");
    }
}

#[tokio::test]
async fn secret_values_are_masked_in_every_transcript() {
    let receiver = Receiver::start(|request| {
        let body = json!({"key": RECEIPT, "echo": request.path, "also": format!("<{RECEIPT}>")});
        Reply::Answer(
            200,
            vec![("x-receipt", RECEIPT.to_owned())],
            body.to_string(),
        )
    });
    let receiver = receiver.await;
    let mut webhook = keeping(String::new(), "key", true);
    webhook.secret_url = Secret::new(receiver.url("/token-canary-2/items"));
    let kind = DestinationKind::Webhook(webhook);
    let content = content(&kind);
    let report = send(&kind, &content, None).await;
    let kept = report.verdict.kept.clone();
    assert_eq!(kept.values[0].text.reveal(), RECEIPT);
    let update = send(&kind, &content, Some(&kept)).await;
    assert_eq!(update.verdict.outcome, Outcome::Delivered);
    let last = receiver.received_requests().pop().unwrap();
    assert_eq!(last.path, format!("/token-canary-2/items/{RECEIPT}"));
    for report in [report, update] {
        let shown = format!("{report:?}");
        assert!(!shown.contains("canary-"), "{shown}");
    }
}

#[tokio::test]
async fn value_that_contains_a_secret_of_the_destination_is_secret() {
    let receiver = Receiver::start(|_| Reply::json(&json!({"key": super::CANARY}))).await;
    let webhook = Webhook {
        headers: super::webhook(String::new()).headers,
        ..keeping(receiver.url("/items"), "key", false)
    };
    let kind = DestinationKind::Webhook(webhook);
    let report = send(&kind, &content(&kind), None).await;
    assert!(report.verdict.kept.values[0].is_secret);
}
