//! Tests of destinations and deliveries as operators steer them over REST.

use bellwether_tests::{receiver::Receiver, world::World};
use serde_json::json;

const SIGNING: &str = "whsec_Y2FuYXJ5LTQ3MTEtY2FuYXJ5LTQ3MTEt";

#[tokio::test]
async fn an_operators_draft_takes_stored_secrets_to_their_own_address_only() {
    let world = World::start();
    let rest = world.rest();
    let (home, away) = (Receiver::start().await, Receiver::start().await);
    let hook = |url: String, secret: &str| json!({"name": "hook", "type": {"webhook": {"url": url, "signingSecret": secret}}});
    rest.post(
        "/v1/notification/destinations",
        &hook(home.url("/a"), SIGNING),
    )
    .await
    .ok();
    let test = "/v1/notification/destinations:test";
    let operator = rest.with_key(Some(&world.client("olga", "operator")));

    operator.post(test, &hook(home.url("/b"), "")).await.ok();
    let refused = operator.post(test, &hook(away.url("/"), "")).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    let fault = refused.json()["details"][1]["fieldViolations"][0].clone();
    assert_eq!(fault["field"], "type.webhook.url", "{}", refused.text());
    let sentence = fault["description"].as_str().expect("a sentence");
    assert!(sentence.contains("editor"), "{sentence}");
    assert!(away.received().is_empty());

    rest.post(test, &hook(away.url("/"), "")).await.ok();
    for receiver in [home, away] {
        let received = receiver.received();
        assert_eq!(received.len(), 1);
        assert!(received[0].headers.contains_key("webhook-signature"));
    }
}
