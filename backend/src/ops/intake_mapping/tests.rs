//! What mappings make of documents, and what proves who sent them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::{domain::Secret, store::samples};

fn no_headers() -> BTreeMap<String, String> {
    BTreeMap::new()
}

fn mapped(mapping: &IntakeMapping, document: &Value) -> Result<Mapped, Error> {
    let (body, headers) = (document.to_string(), no_headers());
    let incoming = Incoming {
        body: body.as_bytes(),
        headers: &headers,
    };
    evaluate(mapping, incoming)
}

#[test]
fn each_entry_of_a_list_is_an_event_unless_it_is_passed_over() {
    let mapping = samples::mapping("page");
    let document = json!({"alerts": [
        {"title": "a\nb", "host": "h1", "level": "SEV1", "text": "x".repeat(2_000)},
        {"title": "t", "host": "h2", "test": null},
        {"title": "t", "host": " ", "level": 3, "resolved": true, "owner": "ada"},
    ]});
    let mapped = mapped(&mapping, &document).unwrap();
    assert_eq!(mapped.dropped, 0, "what is null is not there");
    let [first, _, third] = <[_; 3]>::try_from(mapped.events).unwrap();
    assert_eq!((first.name.as_str(), first.severity), ("a b", 5));
    assert!(first.summary.len() <= 1_024 && first.summary.ends_with('\u{2026}'));
    assert_eq!(first.acknowledged, None);
    assert!(third.dimensions.is_empty(), "what is blank is left out");
    assert_eq!((third.severity, third.status), (3, 3));
    assert_eq!(third.acknowledged, Some(true));
}

#[test]
fn a_document_that_cannot_be_mapped_is_told_of() {
    let mapping = samples::mapping("page");
    for wrong in [json!({}), json!({"alerts": {}}), json!(7), json!("x")] {
        let error = mapped(&mapping, &wrong).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{wrong}: {error:?}");
    }
    let many: Vec<_> = (0..1_001).map(|at| json!({"title": at})).collect();
    assert!(mapped(&mapping, &json!({"alerts": many})).is_err());
    let huge = "x".repeat(60_000);
    let mut greedy = mapping;
    greedy.event.body = "{{huge}}".into();
    let many: Vec<_> = (0..1_000).map(|at| json!({"title": at})).collect();
    assert!(mapped(&greedy, &json!({"alerts": many, "huge": huge})).is_err());
}

#[test]
fn what_is_kept_of_a_document_is_bounded_in_size_and_depth() {
    let mut mapping = samples::mapping("page");
    mapping.each = String::new();
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let event = mapped(&mapping, &json!({"deep": deep}))
        .unwrap()
        .events
        .remove(0);
    assert!(event.metadata_fields.is_some());
    let large = json!({"large": "x".repeat(40_000)});
    let event = mapped(&mapping, &large).unwrap().events.remove(0);
    assert_eq!(event.metadata_fields, None);
}

#[test]
fn signatures_of_the_services_own_examples_are_taken() {
    // GitHub's documented example.
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
    // That of Standard Webhooks.
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
