//! Tests of destinations, and operations on deliveries over REST.

use bellwether_proto::v1::{
    self, delivery_service_client::DeliveryServiceClient, skipped_deliveries::Reason,
};
use bellwether_tests::{
    eventually::eventually,
    receiver::{Receiver, Reply},
    rest::Rest,
    world::World,
};
use serde_json::{Value, json};
use tonic::Code;

use crate::samples;

const SIGNING: &str = "whsec_Y2FuYXJ5LTQ3MTEtY2FuYXJ5LTQ3MTEt";

#[tokio::test]
async fn draft_uses_stored_secrets_only_for_their_own_address() {
    let world = World::start();
    let rest = world.rest();
    let (home, remote) = (Receiver::start().await, Receiver::start().await);
    let hook = |url: String, secret: &str| json!({"name": "hook", "type": {"webhook": {"url": url, "signingSecret": secret}}});
    rest.post(
        "/v1/notification/destinations",
        &hook(home.url("/a"), SIGNING),
    )
    .await
    .ok();
    let test = "/v1/notification/destinations:test";
    let operator = rest.with_key(Some(&world.client("olga", "operator")));

    operator.post(test, &hook(home.url("/a"), "")).await.ok();
    for caller in [&operator, &rest] {
        for elsewhere in [home.url("/b"), home.url("/a?x=1"), remote.url("/a")] {
            let refused = caller.post(test, &hook(elsewhere, "")).await;
            assert_eq!(refused.status, 400, "{}", refused.text());
            let violation = refused.json()["details"][1]["fieldViolations"][0].clone();
            assert_eq!(
                violation["field"],
                "type.webhook.signingSecret",
                "{}",
                refused.text()
            );
            let sentence = violation["description"].as_str().expect("a sentence");
            assert!(
                sentence.contains("enter it again for the new address"),
                "{sentence}"
            );
        }
    }
    assert!(remote.received().is_empty());

    operator
        .post(test, &hook(remote.url("/a"), SIGNING))
        .await
        .ok();
    for receiver in [home, remote] {
        let received = receiver.received();
        assert_eq!(received.len(), 1);
        assert!(received[0].headers.contains_key("webhook-signature"));
    }
}

const RETRY: &str = "/v1/notification/deliveries:retry";

/// Creates a rule that sends updates about `disk` events, to a destination with a single attempt
/// per message.
async fn set_up(rest: &Rest, receiver: &Receiver) {
    let mut destination = samples::webhook("hook", &receiver.url("/"));
    destination["delivery"] = json!({"maxAttempts": 1});
    let mut rule = samples::rule("disks", "disk", "hook", "");
    rule["sendUpdates"] = json!(true);
    for (path, body) in [
        ("/v1/notification/destinations", destination),
        (
            "/v1/notification/triggers",
            samples::trigger("disk", "disk"),
        ),
        ("/v1/notification/rules", rule),
    ] {
        rest.post(path, &body).await.ok();
    }
}

async fn send(rest: &Rest, hosts: &[&str], status: &str) {
    let events: Vec<_> = hosts
        .iter()
        .map(|host| {
            let mut event = samples::event("full", host, "SEVERITY_ERROR", "disk is full");
            event["status"] = json!(status);
            event
        })
        .collect();
    let path = "/v1/data-receiver/events";
    rest.post(path, &samples::events(&events)).await.ok();
}

async fn wait_for(rest: &Rest, state: &str, count: usize) -> Vec<Value> {
    let path = format!("/v1/notification/deliveries?states={state}");
    eventually("the deliveries to end", async || {
        let listed = rest.get(&path).await.ok()["deliveries"].clone();
        let listed = listed.as_array().cloned().unwrap_or_default();
        (listed.len() == count).then_some(listed)
    })
    .await
}

#[tokio::test]
async fn dead_deliveries_are_counted_and_resent_once() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    receiver.reply(vec![Reply::status(500); 3]);
    set_up(&rest, &receiver).await;
    send(&rest, &["a", "b", "c"], "STATUS_OPEN").await;
    wait_for(&rest, "DEAD", 3).await;
    receiver.forget();

    let dry = json!({"filter": {"destinationNames": ["hook"]}, "dryRun": true});
    let counted = rest.post(RETRY, &dry).await.ok();
    let to_hook = json!([{"destinationName": "hook", "count": 3}]);
    assert_eq!(counted, json!({"count": 3, "destinations": to_hook}));
    assert!(receiver.received().is_empty());

    let mut request = json!({"filter": {"destinationNames": ["hook"]}, "limit": 2});
    let first = rest.post(RETRY, &request).await.ok();
    assert_eq!(first["count"], 2, "{first}");
    assert_eq!(
        first["deliveries"].as_array().map(Vec::len),
        Some(2),
        "{first}"
    );
    request["pageToken"] = first["nextPageToken"].clone();
    let second = rest.post(RETRY, &request).await.ok();
    assert_eq!(second["count"], 1, "{second}");
    assert_eq!(second["nextPageToken"], Value::Null, "{second}");
    for delivery in wait_for(&rest, "DELIVERED", 3).await {
        let old = delivery["retryOf"].as_str().expect("it names the old one");
        let old = rest
            .get(&format!("/v1/notification/deliveries/{old}"))
            .await
            .ok();
        assert_eq!(old["delivery"]["retriedAs"], delivery["id"]);
    }
    assert_eq!(receiver.received().len(), 3);

    // Over gRPC, no message is sent twice either.
    let mut deliveries = DeliveryServiceClient::new(world.grpc());
    let request = v1::RetryDeliveriesRequest {
        filter: Some(v1::DeliveryFilter::default()),
        ..v1::RetryDeliveriesRequest::default()
    };
    let again = deliveries
        .retry_deliveries(request)
        .await
        .expect("an answer");
    let again = again.into_inner();
    assert_eq!(
        (again.count, again.skipped.len()),
        (Some(0), 1),
        "{again:?}"
    );
    assert_eq!(again.skipped[0].reason(), Reason::RetriedAlready);
    let neither = v1::RetryDeliveriesRequest::default();
    let refused = deliveries
        .retry_deliveries(neither)
        .await
        .expect_err("a refusal");
    assert_eq!(refused.code(), Code::InvalidArgument);
    let viewer = rest.with_key(Some(&world.client("vera", "viewer")));
    assert_eq!(viewer.post(RETRY, &dry).await.status, 403);
}

#[tokio::test]
async fn obligations_are_listed_until_their_closing_is_sent() {
    let world = World::start();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    set_up(&rest, &receiver).await;
    send(&rest, &["a", "b", "c"], "STATUS_OPEN").await;
    let list = async |query: &str| {
        let path = format!("/v1/notification/obligations{query}");
        let answer = rest.get(&path).await.ok();
        let items = answer["obligations"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        (
            items,
            answer["nextPageToken"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    let (all, end) = list("?ruleNames=disks&destinationNames=hook").await;
    assert_eq!((all.len(), end.as_str()), (3, ""));
    assert_eq!(all[0]["ruleName"], "disks");
    assert_eq!(all[0]["destinationName"], "hook");
    assert_eq!(all[0]["summary"], "disk is full");
    assert_eq!(all[0]["status"], "STATUS_OPEN");
    let (first, token) = list("?pageSize=2").await;
    let (rest_of_them, end) = list(&format!("?pageSize=2&pageToken={token}")).await;
    assert_eq!([first, rest_of_them].concat(), all);
    assert_eq!(end, "");
    assert_eq!(list("?ruleNames=other").await.0, Vec::<Value>::new());
    let event = all[0]["eventId"].as_str().expect("an id");
    assert_eq!(list(&format!("?eventId={event}")).await.0.len(), 1);
    assert_eq!(
        rest.get("/v1/notification/obligations?eventId=x")
            .await
            .status,
        400
    );

    send(&rest, &["a", "b"], "STATUS_CLOSED").await;
    assert_eq!(list("").await.0.len(), 1);
}
