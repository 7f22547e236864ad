//! Tests of mappings and signatures.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, Mac as _};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::Sha256;

use super::*;
use crate::{domain::Secret, limits::DIALECT_EVENTS_MAX, testing::samples};

fn no_headers() -> BTreeMap<String, String> {
    BTreeMap::new()
}

fn mapped(mapping: &IntakeMapping, document: &Value) -> Result<MappingResult, Error> {
    let (body, headers) = (document.to_string(), no_headers());
    let incoming = IncomingBody {
        body: body.as_bytes(),
        headers: &headers,
    };
    evaluate(mapping, incoming)
}

#[test]
fn each_list_entry_maps_to_an_event_unless_skipped() {
    let mapping = samples::mapping("page");
    let document = json!({"alerts": [
        {"title": "a\nb", "host": "h1", "level": "SEV1", "text": "x".repeat(2_000)},
        {"title": "t", "host": "h2", "test": null},
        {"title": "t", "host": " ", "level": 3, "resolved": true, "owner": "ada"},
    ]});
    let mapped = mapped(&mapping, &document).unwrap();
    assert_eq!(mapped.dropped, 0, "null values are absent");
    let [first, _, third] = <[_; 3]>::try_from(mapped.events).unwrap();
    assert_eq!((first.name.as_str(), first.severity), ("a b", 5));
    assert!(first.summary.len() <= 1_024 && first.summary.ends_with('\u{2026}'));
    assert_eq!(first.acknowledged, None);
    assert!(third.dimensions.is_empty(), "blank values are left out");
    assert_eq!((third.severity, third.status), (3, 3));
    assert_eq!(third.acknowledged, Some(true));
}

#[test]
fn unmappable_document_is_refused() {
    let mapping = samples::mapping("page");
    for wrong in [json!({}), json!({"alerts": {}}), json!(7), json!("x")] {
        let error = mapped(&mapping, &wrong).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{wrong}: {error:?}");
    }
}

#[test]
fn entries_beyond_the_limit_are_refused() {
    let mapping = samples::mapping("page");
    let many: Vec<_> = (0..DIALECT_EVENTS_MAX + 2)
        .map(|at| json!({"title": at}))
        .collect();
    let found = mapped(&mapping, &json!({"alerts": many})).unwrap();
    assert_eq!(
        (found.events.len(), found.refused.len()),
        (DIALECT_EVENTS_MAX, 2)
    );
    let huge = "x".repeat(60_000);
    let mut greedy = mapping;
    event_of(&mut greedy).body = "{{huge}}".into();
    let many: Vec<_> = (0..1_000).map(|at| json!({"title": at})).collect();
    let found = mapped(&greedy, &json!({"alerts": many, "huge": huge})).unwrap();
    assert_eq!(found.events.len() + found.refused.len(), 1_000);
    assert!(
        (250..400).contains(&found.events.len()),
        "{}",
        found.events.len()
    );
}

#[test]
fn invalid_json_entry_does_not_affect_the_others() {
    let mapping = samples::mapping("page");
    let headers = BTreeMap::new();
    let body = br#"{"alerts": [{"title": "a"}, {"title": 1e400}, {"title": "b"}]}"#;
    let incoming = IncomingBody {
        body,
        headers: &headers,
    };
    let found = evaluate(&mapping, incoming).unwrap();
    assert_eq!(found.events.len(), 2);
    assert_eq!(found.refused[0].0, 1);
    assert!(
        found.refused[0]
            .1
            .starts_with("is not JSON: number out of range")
    );
}

#[test]
fn reply_is_rendered_for_one_document_and_must_be_json() {
    let mut mapping = plain_mapping();
    mapping.reply = r#"{"challenge": "{{challenge}}"}"#.into();
    let document = json!({"id": "1", "challenge": "a\"b"});
    let reply = mapped(&mapping, &document).unwrap().reply;
    assert_eq!(reply, r#"{"challenge": "a\"b"}"#);
    assert_eq!(mapped(&mapping, &json!([document])).unwrap().reply, "");
    mapping.reply = "{{challenge}}".into();
    let error = mapped(&mapping, &document).unwrap_err();
    assert!(error.to_string().contains("reply: is not JSON"), "{error}");
}

/// Returns a mapping of documents with the members `id` and `level`.
fn plain_mapping() -> IntakeMapping {
    let mut mapping = samples::mapping("plain");
    mapping.each = String::new();
    mapping.drop = Some(Clause::Exists("test".into()));
    mapping.event = Some(MappedEvent {
        name: "late".into(),
        dimensions: [("id".to_owned(), "{{id}}".to_owned())].into(),
        summary: "{{item.id}}".into(),
        ..MappedEvent::default()
    });
    event_of(&mut mapping).severity.from = "nothing | levels.0 | level".into();
    mapping
}

fn event_of(mapping: &mut IntakeMapping) -> &mut MappedEvent {
    mapping.event.as_mut().unwrap()
}

/// Maps a body with a content type. Returns the dimension `id` of each event.
fn ids(mapping: &IntakeMapping, content_type: &str, body: &str) -> Result<Vec<String>, Error> {
    let headers = BTreeMap::from([("content-type".to_owned(), content_type.to_owned())]);
    let incoming = IncomingBody {
        body: body.as_bytes(),
        headers: &headers,
    };
    let events = evaluate(mapping, incoming)?.events.into_iter();
    Ok(events
        .map(|it| it.dimensions.get("id").cloned().unwrap_or_default())
        .collect())
}

#[test]
fn bodies_are_read_by_content_type() {
    let (json, form, lines) = (
        "application/json",
        "application/x-www-form-urlencoded",
        "application/x-ndjson",
    );
    let table: &[(&str, &str, &[&str])] = &[
        (json, r#"{"id": 1}"#, &["1"]),
        (
            json,
            r#"[{"id": 1}, {"id": 2, "test": 1}, {"id": 3}]"#,
            &["1", "3"],
        ),
        (form, "id=7&x=1", &["7"]),
        (form, "payload=%7B%22id%22%3A+%227%22%7D", &["7"]),
        (
            form,
            "payload=%5B%7B%22id%22%3A1%7D%2C%7B%22id%22%3A2%7D%5D&x=1",
            &["1", "2"],
        ),
        (form, "id=payload&payload=text", &["payload"]),
        (form, r#"{"id": 1}"#, &["1"]),
        (
            "Application/X-WWW-Form-URLEncoded; charset=utf-8",
            "id=%C3%A4",
            &["\u{e4}"],
        ),
        (lines, "{\"id\": 1}\r\n\n{\"id\": 2}\n", &["1", "2"]),
        (lines, "{\"id\": 1}\n{\"id\":\n{\"id\": 3}", &["1", "3"]),
        ("application/jsonl", "{\"id\": 1}", &["1"]),
    ];
    for (content_type, body, expected) in table {
        let found = ids(&plain_mapping(), content_type, body).unwrap();
        assert_eq!(found, *expected, "{content_type} {body}");
    }
    for (content_type, body) in [
        (json, "id=7"),
        (json, "{\"id\": 1}\n{\"id\": 2}"),
        (form, "payload=%7B%22id%22"),
        (lines, "\n\n"),
        ("", ""),
    ] {
        let refused = ids(&plain_mapping(), content_type, body);
        assert!(
            matches!(refused, Err(Error::Invalid(_))),
            "{content_type} {body}"
        );
    }
    // Each line may contain a list.
    let mut listed = plain_mapping();
    listed.each = "list".into();
    event_of(&mut listed).dimensions = [("id".to_owned(), "{{item.id}}{{x}}".to_owned())].into();
    let body = "{\"x\": 1, \"list\": [{\"id\": 1}, {\"id\": 2}]}\n{}\n{\"list\": [{\"id\": 3}]}";
    assert_eq!(ids(&listed, lines, body).unwrap(), ["11", "21", "3"]);
}

#[test]
fn list_entries_are_mapped_as_document_and_item() {
    let document = json!([{"id": 1, "level": "error"}, {"id": 2, "levels": ["critical"]}, 7]);
    let mapped = mapped(&plain_mapping(), &document).unwrap();
    let events: Vec<_> = mapped
        .events
        .iter()
        .map(|it| (it.summary.as_str(), it.severity))
        .collect();
    assert_eq!(events, [("1", 4), ("2", 5), ("", 0)]);
    let stored = mapped.events[0].metadata_fields.as_ref().unwrap();
    let shown = format!("{:?}", stored.fields["data"]);
    assert!(
        shown.contains("\"id\"") && !shown.contains("item"),
        "{shown}"
    );
    assert_eq!(
        mapped.empty_templates,
        [
            "event.dimensions[id] is empty in 1 of 3 events, first in events[2]",
            "event.summary is empty in 1 of 3 events, first in events[2]",
        ]
    );
}

#[test]
fn encoded_parts_are_decoded_before_anything_else() {
    let mut mapping = plain_mapping();
    mapping.parse = vec!["records".into(), "records.data".into()];
    mapping.each = "records".into();
    mapping.drop = Some(Clause::Exists("item.data.test".into()));
    event_of(&mut mapping).dimensions = [("id".to_owned(), "{{item.data.id}}".to_owned())].into();
    let data = |data: Value| json!({"data": STANDARD.encode(data.to_string())});
    let records = json!([data(json!({"id": 1})), data(json!({"test": 1})), {"data": {"id": 3}}]);
    let body = json!({"records": records.to_string()}).to_string();
    assert_eq!(ids(&mapping, "", &body).unwrap(), ["1", "3"]);
    let mapped = mapped(&mapping, &json!({"records": records.to_string()})).unwrap();
    assert_eq!(mapped.rejected.len(), 1);
    assert!(mapped.rejected[0].dropped);
    assert_eq!(mapped.rejected[0].document, r#"{"data":{"test":1}}"#);
    assert_eq!(mapped.rejected[0].size_bytes, 19);
}

#[test]
fn last_rejected_entries_are_kept_with_their_reason() {
    let mut mapping = plain_mapping();
    event_of(&mut mapping).summary =
        "{{#m}}{{#m}}{{#m}}{{#m}}{{#m}}x{{/m}}{{/m}}{{/m}}{{/m}}{{/m}}".into();
    let list: Vec<_> = (0..50)
        .map(|at| match at {
            45 => json!({"id": at, "m": vec![1; 100], "password": "canary"}),
            at => json!({"id": at, "test": true}),
        })
        .collect();
    let found = mapped(&mapping, &json!(list)).unwrap();
    assert_eq!(
        (found.dropped, found.refused.len(), found.rejected.len()),
        (49, 1, 20)
    );
    let refused: Vec<_> = found.rejected.iter().filter(|it| !it.dropped).collect();
    assert_eq!(refused.len(), 1);
    assert!(
        refused[0]
            .reason
            .starts_with("entry 45: event.summary: rendering exceeds"),
        "{}",
        refused[0].reason
    );
    assert!(
        !refused[0].document.contains("canary"),
        "{}",
        refused[0].document
    );
    assert!(found.rejected[19].document.contains("49"));
}

#[test]
fn stored_document_depth_is_bounded() {
    let mut mapping = samples::mapping("page");
    mapping.each = String::new();
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let event = mapped(&mapping, &json!({"deep": deep}))
        .unwrap()
        .events
        .remove(0);
    assert!(event.metadata_fields.is_some());
}

#[test]
fn published_signature_examples_verify() {
    // The example in GitHub's documentation.
    let github = WebhookSignature {
        scheme: SignatureScheme::HubSha256,
        secret: Secret::new("It's a Secret to Everybody"),
    };
    let code = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let headers = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let signed = headers("x-hub-signature-256", code);
    assert!(verify(&github, b"Hello, World!", &signed, 0).is_ok());
    assert!(verify(&github, b"Hello, World?", &signed, 0).is_err());
    assert!(verify(&github, b"Hello, World!", &no_headers(), 0).is_err());
    for wrong in ["", "sha256=", "sha256=7", "sha256=zz", "757107ea"] {
        let signed = headers("x-hub-signature-256", wrong);
        assert!(
            verify(&github, b"Hello, World!", &signed, 0).is_err(),
            "{wrong}"
        );
    }
    // The example in the Standard Webhooks specification.
    let standard = WebhookSignature {
        scheme: SignatureScheme::StandardWebhooks,
        secret: Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
    };
    let signed = BTreeMap::from(
        [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            (
                "webhook-signature",
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let body = br#"{"test": 2432232314}"#;
    let sent_ms = 1_614_265_330_000;
    assert!(verify(&standard, body, &signed, sent_ms + 299_000).is_ok());
    assert!(verify(&standard, body, &signed, sent_ms + 301_000).is_err());
    assert!(verify(&standard, body, &signed, sent_ms - 301_000).is_err());
}

#[test]
#[expect(clippy::too_many_lines, reason = "one scheme after another")]
fn published_signature_examples_of_receivers_verify() {
    let jira = WebhookSignature {
        scheme: SignatureScheme::Jira,
        secret: Secret::new("It's a Secret to Everybody"),
    };
    let signed = |headers: &[(&str, &str)]| {
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        headers.collect::<BTreeMap<_, _>>()
    };
    let code = "a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9";
    let sha256 = format!("sha256={code}");
    assert!(
        verify(
            &jira,
            b"Hello World!",
            &signed(&[("x-hub-signature", &sha256)]),
            0
        )
        .is_ok()
    );
    assert!(
        verify(
            &jira,
            b"Hello World?",
            &signed(&[("x-hub-signature", &sha256)]),
            0
        )
        .is_err()
    );
    // While a secret is replaced, PagerDuty sends a signature with each.
    let pagerduty = WebhookSignature {
        scheme: SignatureScheme::PagerDuty,
        ..jira.clone()
    };
    for (given, is_valid) in [
        (format!("v1={code}"), true),
        (format!("v1=00, v1={code}"), true),
        (format!("v0={code}"), false),
        (String::new(), false),
    ] {
        let headers = signed(&[("x-pagerduty-signature", &given)]);
        let verified = verify(&pagerduty, b"Hello World!", &headers, 0);
        assert_eq!(verified.is_ok(), is_valid, "{given}");
    }
    let slack = WebhookSignature {
        scheme: SignatureScheme::Slack,
        secret: Secret::new("8f742231b10e8888abcd99yyyzzz85a5"),
    };
    let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&\
        channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&\
        command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands\
        %2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&\
        trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let code = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
    let headers = signed(&[
        ("x-slack-signature", code),
        ("x-slack-request-timestamp", "1531420618"),
    ]);
    let sent_ms = 1_531_420_618_000;
    assert!(verify(&slack, body, &headers, sent_ms + 299_000).is_ok());
    assert!(verify(&slack, body, &headers, sent_ms + 301_000).is_err());
    let private = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let hex = |bytes: &[u8]| {
        let digits = bytes.iter().map(|it| format!("{it:02x}"));
        digits.collect::<Vec<_>>().concat()
    };
    let discord = WebhookSignature {
        scheme: SignatureScheme::Discord,
        secret: Secret::new(hex(private.public_key().as_ref())),
    };
    let code = hex(private.sign(b"1531420618{}").as_ref());
    let other = hex(private.sign(b"1531420617{}").as_ref());
    let late_ms = sent_ms + 301_000;
    for (code, body, now_ms, is_valid) in [
        (&*code, b"{}", sent_ms, true),
        (&code, b"[]", sent_ms, false),
        (&other, b"{}", sent_ms, false),
        (&code[2..], b"{}", sent_ms, false),
        ("", b"{}", sent_ms, false),
        (&code, b"{}", late_ms, false),
    ] {
        let headers = signed(&[
            ("x-signature-ed25519", code),
            ("x-signature-timestamp", "1531420618"),
        ]);
        let verified = verify(&discord, body, &headers, now_ms);
        assert_eq!(verified.is_ok(), is_valid, "{code}");
        // Discord tests the endpoint with wrong signatures, and requires the status 401.
        assert!(verified.is_ok() || matches!(verified, Err(Error::Unauthenticated(_))));
    }
    let telegram = WebhookSignature {
        scheme: SignatureScheme::Telegram,
        secret: Secret::new("a_secret-token"),
    };
    for (given, is_valid) in [("a_secret-token", true), ("a_secret", false), ("", false)] {
        let headers = signed(&[("x-telegram-bot-api-secret-token", given)]);
        assert_eq!(
            verify(&telegram, b"{}", &headers, 0).is_ok(),
            is_valid,
            "{given}"
        );
    }
}

#[test]
fn empty_signing_key_is_refused_in_every_scheme() {
    use SignatureScheme::{
        Discord, HubSha256, Jira, PagerDuty, Sentry, Slack, StandardWebhooks, Telegram,
    };
    let mac = |text: &[u8]| {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"").unwrap();
        mac.update(text);
        mac.finalize().into_bytes()
    };
    let hex: Vec<_> = mac(b"body").iter().map(|it| format!("{it:02x}")).collect();
    let hex = hex.concat();
    let standard = STANDARD.encode(mac(b"msg_1.1000.body"));
    let headers = [
        ("x-hub-signature-256", format!("sha256={hex}")),
        ("sentry-hook-signature", hex),
        ("webhook-id", "msg_1".into()),
        ("webhook-timestamp", "1000".into()),
        ("webhook-signature", format!("v1,{standard}")),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value));
    let headers = BTreeMap::from(headers);
    for (scheme, secret) in [
        (HubSha256, ""),
        (Sentry, ""),
        (Slack, ""),
        (PagerDuty, ""),
        (Jira, ""),
        (Telegram, ""),
        (Discord, ""),
        (Discord, "00"),
        (StandardWebhooks, ""),
        (StandardWebhooks, "whsec_"),
        (StandardWebhooks, "of another scheme"),
        (StandardWebhooks, "whsec_?"),
    ] {
        let secret = Secret::new(secret);
        let refused = verify(
            &WebhookSignature { scheme, secret },
            b"body",
            &headers,
            1_000_000,
        );
        assert!(
            matches!(
                refused,
                Err(Error::PermissionDenied(_) | Error::Unauthenticated(_))
            ),
            "{scheme:?}"
        );
    }
}
