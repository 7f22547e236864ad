//! Tests of the page that the link in a message opens in a browser. While the signature is valid,
//! the page requires no key.

use bellwether_tests::{
    eventually::eventually,
    grpc::{Grpc, channel},
    receiver::{Received, Receiver},
    rest::{Answer, Rest},
    world::World,
};
use http::Method;
use serde_json::{Value, json};

use crate::samples;

const BASE: &str = "https://bell.example";

/// Starts a service whose messages contain links, and returns the link in its first message.
async fn start_with_link(settings: &str, grouped: bool) -> (World, String) {
    let world = World::with_settings(&format!("link_base = \"{BASE}/\"\n{settings}"));
    let receiver = Receiver::start().await;
    let rest = world.rest();
    let trigger = samples::trigger("disk", "disk");
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    let mut hook = samples::webhook("hook", &receiver.url("/"));
    hook["type"]["webhook"]["payload"] = json!("{\"link\": \"{{link}}\"}");
    rest.post("/v1/notification/destinations", &hook).await.ok();
    let mut rule = samples::rule("page", "disk", "hook", "");
    if grouped {
        rule["group"] = json!({"by": ["host"], "wait": "0s", "interval": "10s"});
    }
    rest.post("/v1/notification/rules", &rule).await.ok();
    let summary = "disk <b>full</b>";
    let event = samples::event("disk-full", "db-1", "SEVERITY_ERROR", summary);
    let events = json!({"events": [event]});
    rest.post("/v1/data-receiver/events", &events).await.ok();
    let link = eventually("a message", async || {
        let received: Vec<Received> = receiver.received();
        Some(received.first()?.json()["link"].as_str()?.to_owned())
    })
    .await;
    let path = link.strip_prefix(BASE).expect("a link to the service");
    (world, path.to_owned())
}

/// Requests a path as HTML and without a key, as a browser does.
async fn browse(rest: &Rest, path: &str) -> Answer {
    let accept = [("accept", "text/html")];
    let browser = rest.with_key(None);
    let answer = browser.try_send(Method::GET, path, &accept, "");
    answer.await.unwrap()
}

async fn submit(rest: &Rest, path: &str, form: String) -> Answer {
    let kind = [("content-type", "application/x-www-form-urlencoded")];
    let browser = rest.with_key(None);
    let answer = browser.try_send(Method::POST, path, &kind, form);
    answer.await.unwrap()
}

async fn call(grpc: &Grpc, path: &str) -> Result<Value, tonic::Code> {
    let (id, query) = path.split_once('?').expect("a signed link");
    let id = id.rsplit('/').next().unwrap();
    let part = |name: &str| {
        let found = query.split('&').find_map(|pair| pair.strip_prefix(name));
        found.unwrap_or_default().to_owned()
    };
    let request = json!({"id": id, "until": part("until="), "sign": part("sign=")});
    let wire = bellwether_tests::wire::Wire::Grpc(grpc.clone());
    let answer = wire.call("LinkService/OpenLink", &request).await;
    answer.map_err(|refusal| refusal.code)
}

#[tokio::test]
async fn signed_link_opens_an_escaped_page_without_a_key() {
    let (world, path) = start_with_link("link_lifetime = \"1h\"", false).await;
    let rest = world.rest();
    let page = browse(&rest, &path).await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.header("content-type").starts_with("text/html"));
    assert_eq!(page.header("cache-control"), "no-store");
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'"), "{policy}");
    let text = page.text();
    for part in [
        "disk &lt;b&gt;full&lt;/b&gt;",
        "db-1",
        "Acknowledge",
        "rule page",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("<b>"), "{text}");

    let keyless = channel(world.service().address("grpc"), None);
    let opened = call(&keyless, &path).await.unwrap();
    assert_eq!(opened["event"]["name"], "disk-full");
    assert!(!opened["timeline"].as_array().unwrap().is_empty());
    // The signature is valid only for this occurrence and this expiry.
    let changed = path.replacen("until=1", "until=2", 1);
    let other = path.replacen(":1?", ":2?", 1);
    for wrong in [changed, other, format!("{path}x")] {
        let refused = browse(&rest, &wrong).await;
        assert_eq!(refused.status, 401, "{wrong}");
        assert!(!refused.text().contains("db-1"), "{}", refused.text());
        let code = call(&keyless, &wrong).await.unwrap_err();
        assert_eq!(code, tonic::Code::Unauthenticated, "{wrong}");
    }
    let (bare, _) = path.split_once('?').unwrap();
    assert_eq!(browse(&rest, bare).await.status, 401);
}

#[tokio::test]
async fn page_acknowledges_with_a_key_and_rejects_insufficient_roles() {
    let (world, path) = start_with_link("link_lifetime = \"1h\"", false).await;
    let rest = world.rest();
    let form = |key: &str, what: &str| format!("key={key}&do={what}");
    let viewer = world.client("looks", "viewer");
    let refused = submit(&rest, &path, form(&viewer, "acknowledge")).await;
    assert_eq!(refused.status, 200);
    let text = refused.text();
    assert!(
        text.contains("Nothing was changed") && text.contains("operator"),
        "{text}"
    );

    let operator = world.client("acts", "operator");
    let done = submit(&rest, &path, form(&operator, "acknowledge")).await;
    assert!(done.text().contains("Acknowledged."), "{}", done.text());
    let event = path
        .trim_start_matches("/events/")
        .split(':')
        .next()
        .unwrap();
    let flag = async || {
        let found = rest.get(&format!("/v1/events/{event}")).await.ok();
        found["result"]["occurrences"][0]["acknowledged"].clone()
    };
    assert_eq!(flag().await, true);
    let back = submit(&rest, &path, form(&operator, "unacknowledge")).await;
    assert!(back.text().contains("was removed"), "{}", back.text());
    assert_eq!(flag().await, false);

    for wrong in [
        "key=nonsense&do=acknowledge",
        "do=acknowledge",
        "key=%0a&do=show",
        "",
        "%%%",
    ] {
        let refused = submit(&rest, &path, wrong.to_owned()).await;
        assert_eq!(refused.status, 401, "{wrong}: {}", refused.text());
    }
    let large = submit(&rest, &path, format!("key={}", "x".repeat(5_000))).await;
    assert_eq!(large.status, 413, "{}", large.text());
    assert_eq!(rest.put(&path, &json!({})).await.status, 405);
}

#[tokio::test]
async fn unsigned_link_requires_a_key() {
    let (world, path) = start_with_link("", false).await;
    let rest = world.rest();
    assert!(!path.contains('?'), "{path}");
    let asking = browse(&rest, &path).await;
    assert_eq!(asking.status, 401);
    assert!(
        asking.text().contains("type=\"password\""),
        "{}",
        asking.text()
    );
    let viewer = world.client("looks", "viewer");
    let shown = submit(&rest, &path, format!("key={viewer}&do=show")).await;
    assert_eq!(shown.status, 200, "{}", shown.text());
    assert!(shown.text().contains("db-1"), "{}", shown.text());
    // A key for sending events does not permit reading.
    let sender = world.client("sends", "ingest");
    let refused = submit(&rest, &path, format!("key={sender}&do=show")).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    let gone = path.replace(":1", ":9");
    let missing = submit(&rest, &gone, format!("key={viewer}&do=show")).await;
    assert_eq!(missing.status, 404, "{}", missing.text());
}

#[tokio::test]
async fn start_page_shows_open_events_with_a_key() {
    let (world, path) = start_with_link("", false).await;
    let rest = world.rest();
    let welcome = browse(&rest, "/").await;
    assert_eq!(welcome.status, 200, "{}", welcome.text());
    let text = welcome.text();
    assert!(
        text.contains("type=\"password\"") && !text.contains("db-1"),
        "{text}"
    );
    let viewer = world.client("looks", "viewer");
    let shown = submit(&rest, "/", format!("key={viewer}&do=show")).await;
    assert_eq!(shown.status, 200, "{}", shown.text());
    let text = shown.text();
    for part in ["1 error", "hook", "disk &lt;b&gt;full", &path] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(submit(&rest, "/", "key=wrong".into()).await.status, 401);
    let sender = world.client("sends", "ingest");
    let refused = submit(&rest, "/", format!("key={sender}")).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
}

#[tokio::test]
async fn group_link_shows_its_members_after_a_kill() {
    let (mut world, path) = start_with_link("link_lifetime = \"1h\"", true).await;
    assert!(path.starts_with("/groups/group-"), "{path}");
    world.kill();
    world.start_again();
    let rest = world.rest();
    let page = browse(&rest, &path).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let text = page.text();
    for part in ["host=db-1", "disk &lt;b&gt;", "error, open"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let admin = world.admin_key();
    let done = submit(&rest, &path, format!("key={admin}&do=acknowledge")).await;
    assert!(done.text().contains("Acknowledged."), "{}", done.text());
}
