//! Webhooks: the default document, signatures verified by another implementation, custom bodies.

use bellwether_tests::{
    providers::{Mischief, StandIn, standard_webhooks::Verifier},
    receiver::Reply,
    rest::Rest,
    world::World,
};
use serde_json::{Value, json};

use super::stage::{SUMMARY, Stage};

const OLD: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
const NEW: &str = "whsec_FxYVFBMSERAPDg0MCwoJCAcGBQQDAgEA";

fn verifier(secrets: &[&str]) -> Verifier {
    Verifier {
        secrets: secrets.iter().map(ToString::to_string).collect(),
    }
}

#[tokio::test]
async fn webhook_sends_the_standard_document_signed() {
    let receiver = StandIn::start(verifier(&[OLD])).await;
    let kind = json!({"webhook": {"url": receiver.url("/hook"), "signingSecret": OLD}});
    let message = "{{event.severity}}: {{event.summary}}";
    let stage = Stage::new(World::start(), kind, message).await;

    stage.opens().await;
    let opening = stage.wait_received(&receiver, 1).await;
    stage.is_acknowledged().await;
    let acknowledged = stage.wait_received(&receiver, 2).await.json();
    stage.gets_worse().await;
    let worse = stage.wait_received(&receiver, 3).await.json();
    stage.closes().await;
    let closing = stage.wait_received(&receiver, 4).await.json();

    let document = opening.json();
    let event = stage.event().await;
    assert_eq!(opening.method, "POST");
    assert_eq!(opening.headers["content-type"], "application/json");
    assert_eq!(opening.headers["idempotency-key"], opening.delivery_id());
    assert_eq!(document["id"], opening.delivery_id());
    assert_eq!(
        (&document["tenant"], &document["clear"]),
        (&json!("bellwether"), &json!(false))
    );
    assert_eq!(document["rule"]["message"], format!("error: {SUMMARY}"));
    assert_eq!(document["rule"]["destination_names"], json!(["place"]));
    assert_eq!(document["trigger"]["name"], "disk");
    let reported = &document["event"];
    assert_eq!(
        (&reported["id"], &reported["occurrence_id"]),
        (&event["id"], &event["occurrences"][0]["id"])
    );
    assert_eq!(
        (&reported["severity"], &reported["status"]),
        (&json!(4), &json!(1))
    );
    assert_eq!(
        reported["fields"],
        json!({"usedPercent": 97.5, "mount": {"point": "/var"}})
    );
    for (message, acknowledged, severity, status) in [
        (acknowledged, true, 4, 1),
        (worse, true, 5, 1),
        (closing, true, 5, 3),
    ] {
        let reported = &message["event"];
        assert_eq!(message["clear"], true);
        assert_eq!(reported["acknowledged"], acknowledged);
        assert_eq!(
            (&reported["severity"], &reported["status"]),
            (&json!(severity), &json!(status))
        );
    }
    stage.delivered(4).await;
}

#[tokio::test]
async fn every_attempt_is_signed_anew_with_the_same_id() {
    let receiver = StandIn::start(verifier(&[OLD])).await;
    receiver.misbehave(Mischief::Answers(Reply::status(503)));
    let world = World::with_settings("[delivery]\nschedule = [\"0s\", \"1s\"]\njitter = 0\n");
    let kind = json!({"webhook": {"url": receiver.url("/"), "signingSecret": OLD}});
    let stage = Stage::new(world, kind, "").await;

    stage.opens().await;
    bellwether_tests::eventually::eventually("the first attempt", async || {
        (receiver.requests() == 1).then_some(())
    })
    .await;
    receiver.misbehave(None);

    let accepted = stage.wait_received(&receiver, 1).await;
    let delivery = stage.delivered(1).await.remove(0);
    let attempts = delivery["attempts"].as_array().expect("attempts");
    let header = |attempt: &Value, name: &str| attempt["request"]["headers"][name].clone();
    assert_eq!(attempts.len(), 2, "{delivery}");
    assert_eq!(header(&attempts[0], "webhook-id"), accepted.delivery_id());
    assert_eq!(header(&attempts[1], "webhook-id"), accepted.delivery_id());
    let times = [0, 1].map(|at| header(&attempts[at], "webhook-timestamp"));
    assert_ne!(times[0], times[1], "the time is that of the attempt");
}

async fn test_webhook(rest: &Rest, webhook: Value) -> Value {
    let destination = json!({"name": "hook", "type": {"webhook": webhook}});
    rest.post("/v1/notification/destinations:test", &destination)
        .await
        .ok()
}

#[tokio::test]
async fn both_secrets_verify_during_rotation() {
    let (old, new) = (
        StandIn::start(verifier(&[OLD])).await,
        StandIn::start(verifier(&[NEW])).await,
    );
    let world = World::start();
    let rest = world.rest();
    let both = format!("{NEW} {OLD}");
    for receiver in [&old, &new] {
        let tested = test_webhook(
            &rest,
            json!({"url": receiver.url("/"), "signingSecret": both}),
        )
        .await;
        assert_eq!(tested["outcome"], "OUTCOME_DELIVERED", "{tested}");
        assert_eq!(receiver.accepted().len(), 1);
    }
    // The verifier rejects a different secret.
    let tested = test_webhook(&rest, json!({"url": new.url("/"), "signingSecret": OLD})).await;
    assert_eq!(tested["outcome"], "OUTCOME_REJECTED", "{tested}");
    assert_eq!(new.refused()[0].1, ["no signature matches"]);
}

#[tokio::test]
async fn custom_payload_is_escaped_for_its_content_type() {
    let receiver = StandIn::start(verifier(&[OLD])).await;
    let world = World::start();
    let rest = world.rest();
    let quoted = json!({"text": "Sample: disk /var is 97.5 % full", "host": "db-1.example.com"});
    let template = r#"{"text": "{{event.summary}}", "host": "{{event.dimensions.host}}"}"#;
    // Method, content type and payload; then the method, content type and body received.
    let cases = [
        (
            "PUT",
            None,
            template,
            "application/json",
            quoted.to_string(),
        ),
        (
            "PATCH",
            Some("application/vnd.x+json"),
            template,
            "application/vnd.x+json",
            quoted.to_string(),
        ),
        (
            "POST",
            Some("text/plain"),
            "{{{event.summary}}}",
            "text/plain",
            "Sample: disk /var is 97.5 % full".into(),
        ),
    ];
    for (method, content_type, payload, expected_type, expected) in cases {
        let mut webhook = json!({
            "url": receiver.url("/"), "method": method, "payload": payload, "signingSecret": OLD,
        });
        if let Some(content_type) = content_type {
            webhook["headers"] = json!({"Content-Type": content_type});
        }
        let tested = test_webhook(&rest, webhook).await;
        assert_eq!(tested["outcome"], "OUTCOME_DELIVERED", "{tested}");
        let got = receiver.accepted().pop().expect("a message");
        assert_eq!(got.method, method);
        assert_eq!(got.headers["content-type"], expected_type);
        let body = String::from_utf8_lossy(&got.body).into_owned();
        let same = |text: &str| serde_json::from_str::<Value>(text).ok();
        assert!(
            body == expected || same(&body).is_some() && same(&body) == same(&expected),
            "{body}"
        );
    }
}

#[tokio::test]
async fn invalid_payload_falls_back_to_the_standard_document() {
    let receiver = StandIn::start(verifier(&[OLD])).await;
    let world = World::start();
    let rest = world.rest();
    let cases = [(
        "application/json",
        "{\"text\": {{event.summary}}}".to_owned(),
        "not JSON",
    )];
    for (content_type, payload, said) in cases {
        let event = json!({
            "name": "big", "dimensions": {"host": "a"}, "body": "x".repeat(60_000),
        });
        let destination = json!({"name": "hook", "event": event, "type": {"webhook": {
            "url": receiver.url("/"), "payload": payload, "signingSecret": OLD,
            "headers": {"content-type": content_type},
        }}});
        let tested = rest
            .post("/v1/notification/destinations:test", &destination)
            .await
            .ok();

        assert_eq!(tested["outcome"], "OUTCOME_DELIVERED", "{tested}");
        let explanation = tested["explanation"].as_str().expect("a sentence");
        assert!(explanation.contains(said), "{explanation}");
        let got = receiver.accepted().pop().expect("a message");
        assert_eq!(got.headers["content-type"], "application/json");
        let fallback = got.json()["fallback"]
            .as_str()
            .expect("a reason")
            .to_owned();
        assert!(fallback.contains(said), "{fallback}");
        assert_eq!(got.json()["event"]["name"], "big");
    }
}
