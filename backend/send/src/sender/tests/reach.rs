//! Webhook options: authentication, separate closing requests, custom values, expected responses,
//! and compression.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;

use super::{CANARY, request, send_content, send_with, sending};
use crate::{
    domain::{
        Clause, DestinationKind, Literal, Outcome, Secret, Status,
        destination::{
            Auth, Expect, FollowUp, Header, HeaderValue, ValueMap, Webhook, WebhookMethod,
        },
    },
    message::sample,
    sender::SendRequest,
    sending::receiver::{Receiver, Reply},
    verdict::Advice,
};

fn webhook(url: String, change: impl FnOnce(&mut Webhook)) -> DestinationKind {
    let mut webhook = Webhook {
        headers: Vec::new(),
        method: WebhookMethod::Post,
        signing_secret: Secret::default(),
        ..super::webhook(url)
    };
    change(&mut webhook);
    DestinationKind::Webhook(webhook)
}

#[tokio::test]
async fn webhook_sends_credentials_and_transcript_masks_them() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let table = [
        (
            Auth::Basic {
                username: "ada".into(),
                password: Secret::new(CANARY),
            },
            "Basic YWRhOmNhbmFyeS1TM2NyZXQvK3g=",
        ),
        (
            Auth::Bearer {
                token: Secret::new(CANARY),
            },
            "Bearer canary-S3cret/+x",
        ),
    ];
    for (auth, expected) in table {
        let kind = webhook(receiver.url("/"), |it| it.auth = Some(Box::new(auth)));
        let report = sending().send(&kind).await;
        assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
        let got = receiver.received_requests().pop().unwrap();
        assert_eq!(got.header("authorization"), expected);
        let shown = format!("{report:?}");
        assert!(
            !shown.contains("YWRh") && !shown.contains("canary"),
            "{shown}"
        );
    }
}

#[tokio::test]
async fn oauth_token_is_cached_and_renewed_when_rejected() {
    let good = Arc::new(Mutex::new("canary-token-1"));
    let now_good = Arc::clone(&good);
    let receiver = Receiver::start(move |request| {
        let good = *now_good.lock().unwrap();
        if request.path == "/token" {
            return Reply::json(&json!({"access_token": good, "expires_in": 600}));
        }
        let knows = request.header("authorization") == format!("Bearer {good}");
        Reply::status(if knows { 200 } else { 401 })
    })
    .await;
    let kind = webhook(receiver.url("/hook"), |it| {
        it.auth = Some(Box::new(Auth::OAuth2 {
            token_url: receiver.url("/token"),
            client_id: "bellwether".into(),
            client_secret: Secret::new(CANARY),
            scope: "alerts:write all".into(),
            audience: "https://alerts.example/".into(),
            params: [("resource".to_owned(), "a b".to_owned())].into(),
        }));
    });
    let world = sending();
    let sender = world.sender();
    for _ in 0..2 {
        let report = send_with(&sender, &kind).await;
        assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    }
    *good.lock().unwrap() = "canary-token-2";
    let report = send_with(&sender, &kind).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    let received = receiver.received_requests();
    let paths: Vec<_> = received.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(
        paths,
        ["/token", "/hook", "/hook", "/hook", "/token", "/hook"]
    );
    assert_eq!(
        received[0].body,
        "grant_type=client_credentials&scope=alerts%3Awrite+all\
         &audience=https%3A%2F%2Falerts.example%2F&resource=a+b"
    );
    let pair = STANDARD.encode("bellwether:canary-S3cret%2F%2Bx");
    assert_eq!(received[0].header("authorization"), format!("Basic {pair}"));
}

#[tokio::test]
async fn oauth_remembers_fallback_to_client_secret_in_body() {
    let tokens = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&tokens);
    let receiver = Receiver::start(move |request| {
        if request.path != "/token" {
            return Reply::status(401);
        }
        if request.body.contains("client_secret=canary") {
            let mut count = counted.lock().unwrap();
            *count += 1;
            return Reply::json(&json!({"access_token": format!("canary-{count}")}));
        }
        Reply::Answer(
            401,
            Vec::new(),
            json!({"error": "invalid_client"}).to_string(),
        )
    })
    .await;
    let kind = webhook(receiver.url("/hook"), |it| {
        it.auth = Some(Box::new(Auth::OAuth2 {
            token_url: receiver.url("/token"),
            client_id: "bellwether".into(),
            client_secret: Secret::new(CANARY),
            scope: String::new(),
            audience: String::new(),
            params: BTreeMap::new(),
        }));
    });
    let sender = sending().sender();
    for _ in 0..2 {
        let report = send_with(&sender, &kind).await;
        assert_eq!(report.verdict.outcome, Outcome::Rejected, "{report:?}");
    }
    let received = receiver.received_requests();
    let refused = received
        .iter()
        .filter(|it| it.path == "/token" && it.header("authorization").starts_with("Basic "));
    assert_eq!(refused.count(), 1, "the rejection is remembered");
    assert_eq!(*tokens.lock().unwrap(), 2);
}

#[tokio::test]
async fn closing_uses_the_on_clear_request() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let kind = webhook(receiver.url("/alerts"), |it| {
        it.payload = "{\"open\": \"{{event.name}}\"}".into();
        it.on_clear = Some(Box::new(FollowUp {
            url: receiver.url("/alerts/{{event.id}}/close"),
            method: WebhookMethod::Delete,
            payload: "{\"closed\": \"{{event.name}}\"}".into(),
            gone: None,
        }));
    });
    let world = sending();
    let mut content = sample::sample_content(
        sample::sample_occurrence(super::NOW_MS),
        kind.clone(),
        String::new(),
    );
    let send = async |content: &_| send_content(&world.sender(), &kind, content, None).await;
    send(&content).await;
    // An update about an open occurrence is not a closing.
    content.clear = true;
    content.occurrence.acknowledged = true;
    send(&content).await;
    content.occurrence.status = Status::Closed;
    send(&content).await;
    let received: Vec<_> = receiver
        .received_requests()
        .iter()
        .map(|it| format!("{} {} {}", it.method, it.path, it.body))
        .collect();
    let id = content.occurrence.event.to_string().replace('=', "%3D");
    let open = "POST /alerts {\"open\": \"disk-full\"}";
    let close = format!("DELETE /alerts/{id}/close {{\"closed\": \"disk-full\"}}");
    assert_eq!(received, [open, open, &close]);
}

#[tokio::test]
async fn custom_values_are_escaped_for_their_context() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let value = |from: &str, to: &str| ValueMap {
        from: from.into(),
        map: BTreeMap::from([
            ("error".into(), to.into()),
            ("db-1.example.com".into(), to.into()),
        ]),
        default: "other \"one\"".into(),
    };
    let kind = webhook(receiver.url("/{{values.priority}}"), |it| {
        it.payload = "{\"p\": \"{{values.priority}}\", \"h\": \"{{values.team}}\", \"d\": \"{{values.none}}\"}".into();
        it.values = BTreeMap::from([
            ("priority".into(), value("event.severity", "P/2")),
            ("team".into(), value("event.dimensions.host", "dba")),
            ("none".into(), value("event.metadata.nothing", "x")),
        ]);
    });
    let report = sending().send(&kind).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    let got = receiver.received_requests().pop().unwrap();
    assert_eq!(got.path, "/P%2F2");
    assert_eq!(
        got.json(),
        json!({"p": "P/2", "h": "dba", "d": "other \"one\""})
    );
}

#[tokio::test]
async fn success_requires_the_expected_status_and_body() {
    let ok = Clause::Equals("ok".into(), Literal::Bool(true));
    let expect = |statuses: &[u16], body: Option<&Clause>| Expect {
        statuses: statuses.to_vec(),
        body: body.cloned(),
        destination: Some(Clause::In(
            "code".into(),
            vec![Literal::Number(10003.0), Literal::Number(21211.0)],
        )),
    };
    let answer = |status, body: &str| Reply::Answer(status, Vec::new(), body.into());
    let table = [
        (expect(&[], Some(&ok)), answer(200, "{\"ok\": true}"), None),
        (
            expect(&[], Some(&ok)),
            answer(200, "{\"ok\": false, \"error\": \"no channel\"}"),
            Some(Advice::FewMore),
        ),
        (
            expect(&[], Some(&ok)),
            answer(200, "fine"),
            Some(Advice::FewMore),
        ),
        (
            expect(&[], Some(&ok)),
            answer(503, "{\"ok\": true}"),
            Some(Advice::Again),
        ),
        (expect(&[409, 200], None), answer(409, ""), None),
        (expect(&[201], None), answer(200, ""), Some(Advice::FewMore)),
        (expect(&[201], None), answer(404, ""), Some(Advice::Fix)),
        (
            expect(&[201], None),
            answer(400, "{\"code\": 21211}"),
            Some(Advice::Fix),
        ),
        (
            expect(&[], Some(&ok)),
            answer(200, "{\"ok\": false, \"code\": 10003}"),
            Some(Advice::Fix),
        ),
        (
            expect(&[201], None),
            answer(400, "{\"code\": 21617}"),
            Some(Advice::Reduce),
        ),
        (
            expect(&[201], None),
            answer(429, "{\"code\": 10003, \"retry_after\": 2}"),
            Some(Advice::Limited(Some(Duration::from_secs(2)))),
        ),
        (
            expect(&[], None),
            answer(200, " <!DOCTYPE html><title>Sign in</title>"),
            Some(Advice::Fix),
        ),
    ];
    for (expect, reply, advice) in table {
        let answered = reply.clone();
        let receiver = Receiver::start(move |_| answered.clone()).await;
        let kind = webhook(receiver.url("/"), |it| {
            it.expect = Some(Box::new(expect.clone()));
        });
        let verdict = sending().send(&kind).await.verdict;
        let failed = (verdict.outcome != Outcome::Delivered).then_some(verdict.advice);
        assert_eq!(failed, advice, "{expect:?} {reply:?}: {verdict:?}");
    }
}

#[tokio::test]
async fn large_bodies_are_compressed_when_enabled() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    for (length, encoding) in [(2_000, "gzip"), (10, "")] {
        let kind = webhook(receiver.url("/"), |it| {
            it.compress = true;
            it.payload = format!("{{\"x\": \"{}\"}}", "y".repeat(length));
        });
        let report = sending().send(&kind).await;
        assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
        let got = receiver.received_requests().pop().unwrap();
        assert_eq!(got.header("content-encoding"), encoding, "{length}");
        let shown = report.transcript.request.unwrap().body;
        assert!(shown.contains("yyyyyyyyyy"), "{shown}");
    }
}

#[tokio::test]
async fn web_page_in_response_to_json_is_a_failure() {
    let html = |content_type: &str, body: &str| {
        let headers = vec![("content-type", content_type.to_owned())];
        Reply::Answer(200, headers, body.into())
    };
    let cases = [
        (
            html("text/html; charset=utf-8", "<p>Sign in</p>"),
            "application/json",
            false,
        ),
        (
            html("text/plain", "\u{feff}\n<!doctype HTML>\n<body>"),
            "application/json",
            false,
        ),
        (
            html("", "<html lang=\"en\">"),
            "application/cloudevents+json",
            false,
        ),
        (html("text/html", "ok"), "application/json", true),
        (html("application/json", "{}"), "application/json", true),
        (
            html("text/xml", "<?xml version=\"1.0\"?>"),
            "application/json",
            true,
        ),
        (html("text/html", "<p>thanks</p>"), "text/plain", true),
    ];
    for (reply, content_type, is_accepted) in cases {
        let answered = reply.clone();
        let receiver = Receiver::start(move |_| answered.clone()).await;
        let kind = webhook(receiver.url("/"), |it| {
            it.payload = "{}".into();
            it.headers = vec![Header {
                name: "content-type".into(),
                value: HeaderValue::Plain(content_type.into()),
            }];
        });
        let verdict = sending().send(&kind).await.verdict;
        let is_delivered = verdict.outcome == Outcome::Delivered;
        assert_eq!(is_delivered, is_accepted, "{reply:?}: {verdict:?}");
        if !is_accepted {
            assert_eq!(verdict.advice, Advice::Fix, "{verdict:?}");
            assert!(verdict.explanation.contains("web page"), "{verdict:?}");
        }
    }
}

#[tokio::test]
async fn reduced_form_is_short_and_not_compressed() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let long = "x".repeat(5_000);
    let payload = "{\"text\": \"{{event.body}}\"}";
    for payload in ["", payload] {
        let kind = webhook(receiver.url("/"), |it| {
            it.compress = true;
            it.payload = payload.into();
        });
        let mut content =
            sample::sample_content(sample::sample_occurrence(0), kind.clone(), String::new());
        content.occurrence.body.clone_from(&long);
        let request = SendRequest {
            is_reduced: true,
            ..request(&kind, &content, None)
        };
        let report = sending().sender().send(request).await;
        assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
        let explanation = &report.verdict.explanation;
        assert!(explanation.contains("reduced form"), "{explanation}");
        let got = receiver.received_requests().pop().unwrap();
        assert_eq!(got.header("content-encoding"), "");
        assert!(
            got.json().is_object() && got.body.len() < 2_500,
            "{}",
            got.body
        );
    }
    // The receiver may have rejected the message because of a blank text.
    let kind = webhook(receiver.url("/"), |it| it.payload = payload.into());
    let mut content =
        sample::sample_content(sample::sample_occurrence(0), kind.clone(), String::new());
    content.occurrence.body.clear();
    let request = SendRequest {
        is_reduced: true,
        ..request(&kind, &content, None)
    };
    sending().sender().send(request).await;
    let got = receiver.received_requests().pop().unwrap().json();
    assert_eq!(got["text"], "Sample: disk /var is 97.5 % full");
}
