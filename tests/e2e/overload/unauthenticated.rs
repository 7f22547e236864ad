//! Tests that clients without a key use few resources, and that no client can starve another by
//! unfinished connections, calls, bodies or responses.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use bellwether_proto::{
    cloud::{
        Event, EventWrapper, data_receiver_service_client::DataReceiverServiceClient,
        event_wrapper::EventType,
    },
    v1::{ListRulesRequest, rule_service_client::RuleServiceClient},
};
use bellwether_tests::{
    eventually::eventually, grpc, receiver::Receiver, rest::Rest, world::World,
};
use http::Method;
use serde_json::json;
use tokio::time::timeout;

use super::{
    EVENTS,
    attack::{Http2, hold_open, hostile_times, post_head},
    is_whole, peak_mib,
};
use crate::samples;

const WAIT_MAX: Duration = Duration::from_secs(60);
/// Memory limits of an otherwise idle service during the short and the long form of an attack.
const SHORT_MEMORY_MAX_MIB: u64 = 450;
const LONG_MEMORY_MAX_MIB: u64 = 512;

/// Asserts that a new client with a key is served over both listeners before the deadline.
async fn assert_new_client_is_served(world: &World, key: &str) {
    let start = Instant::now();
    let served = async {
        let rest = Rest::new(world.service().address("rest"), Some(key));
        let event = samples::event("calm", "h", "SEVERITY_INFO", "x");
        let sent = rest.post(EVENTS, &samples::events(&[event])).await;
        assert_eq!(sent.ok()["succeeded"], 1);
        rest.get("/v1/notification/rules").await.ok();
        let channel = grpc::channel(world.service().address("grpc"), Some(key));
        let mut rules = RuleServiceClient::new(channel.clone());
        rules.list_rules(ListRulesRequest::default()).await.unwrap();
        let note = json!({"annotations": []});
        rest.post("/v1/event-management/annotate", &note).await;
        let event = Event {
            name: "calm".into(),
            dimensions: [("host".to_owned(), "s".to_owned())].into(),
            ..Event::default()
        };
        let one = tokio_stream::once(EventWrapper {
            event_type: Some(EventType::Canonical(event)),
        });
        let mut receiver = DataReceiverServiceClient::new(channel);
        receiver.put_event(one).await.unwrap();
    };
    timeout(WAIT_MAX, served).await.unwrap_or_else(|_elapsed| {
        panic!(
            "no request was served within {WAIT_MAX:?}, until {:?}",
            start.elapsed()
        )
    });
}

fn memory_holds(world: &World) {
    let peak = peak_mib(world);
    if hostile_times(1, 2) == 2 {
        let test = std::thread::current();
        let name = test.name().unwrap_or_default();
        drop(writeln!(std::io::stderr(), "{name}: at most {peak} MiB"));
        assert!(peak < LONG_MEMORY_MAX_MIB, "{peak} MiB");
    } else {
        assert!(peak < SHORT_MEMORY_MAX_MIB, "{peak} MiB");
    }
}

pub(super) fn grpc_call<'a>(path: &'a str, key: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "a"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    headers.extend(key.map(|key| ("zenoss-api-key", key)));
    headers
}

pub(super) const PER_CONNECTION: usize = 250;
pub(super) const EMPTY: &[u8] = &[0; 5];

#[tokio::test]
async fn unread_unauthenticated_responses_use_little_memory() {
    let world = World::start();
    let check = grpc_call("/grpc.health.v1.Health/Check", None);
    let mut held = Vec::new();
    for _ in 0..hostile_times(50, 150) {
        let mut client = Http2::without_window(world.service().address("grpc")).await;
        client.ask(&check, Some(EMPTY), true, 1_024).await;
        held.push(client);
    }
    assert_new_client_is_served(&world, &world.admin_key()).await;
    let unknown = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/nothing"),
        (":authority", "a"),
    ];
    for _ in 0..hostile_times(100, 400) {
        let mut client = Http2::without_window(world.service().address("rest")).await;
        client.ask(&unknown, None, true, 199).await;
        held.push(client);
    }
    assert_new_client_is_served(&world, &world.admin_key()).await;
    memory_holds(&world);
    drop(held);
    is_whole(world).await;
}

#[tokio::test]
async fn idle_unauthenticated_connections_do_not_block_other_clients() {
    let world = World::start();
    let held = hold_open(
        world.service().address("rest"),
        b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n",
        hostile_times(4_200, 6_000),
    )
    .await;
    assert_new_client_is_served(&world, &world.admin_key()).await;
    memory_holds(&world);
    drop(held);
    is_whole(world).await;
}

#[tokio::test]
async fn unauthenticated_connections_do_not_exhaust_a_low_descriptor_limit() {
    let world = World::with_descriptors(512);
    let receiver = Receiver::start().await;
    let rest = world.rest();
    let made = [
        ("destinations", samples::webhook("here", &receiver.url("/"))),
        ("triggers", samples::trigger("calm", "calm")),
        ("rules", samples::rule("tell", "calm", "here", "m")),
    ];
    for (kind, body) in made {
        rest.post(&format!("/v1/notification/{kind}"), &body)
            .await
            .ok();
    }
    let address = |part| world.service().address(part);
    let held = [
        hold_open(address("grpc"), b"", 600).await,
        hold_open(address("rest"), b"", 600).await,
    ];
    let event = samples::event("calm", "a", "SEVERITY_ERROR", "calm");
    let newcomer = Rest::new(address("rest"), Some(&world.admin_key()));
    let events = samples::events(&[event]);
    let sent = newcomer.post(EVENTS, &events);
    let sent = timeout(WAIT_MAX, sent).await.expect("is answered in time");
    assert_eq!(sent.ok()["succeeded"], 1);
    eventually("the delivery", async || {
        (receiver.count() > 0).then_some(())
    })
    .await;
    assert_new_client_is_served(&world, &world.admin_key()).await;
    drop(held);
    is_whole(world).await;
}

#[tokio::test]
async fn unauthenticated_bodies_do_not_exhaust_memory() {
    let world = World::start();
    let mut begun = post_head(EVENTS, "content-length: 2000000");
    begun.resize(begun.len() + 1024 * 1024, b' ');
    let wrong = post_head(
        EVENTS,
        "content-length: 2000000\r\nauthorization: Bearer bw_wrong",
    );
    let mut wrong_begun = wrong.clone();
    wrong_begun.resize(wrong.len() + 1024 * 1024, b' ');
    let address = world.service().address("rest");
    let held = [
        hold_open(address, &begun, hostile_times(110, 400)).await,
        hold_open(address, &wrong_begun, hostile_times(110, 400)).await,
    ];
    assert_new_client_is_served(&world, &world.admin_key()).await;
    memory_holds(&world);
    drop(held);
    is_whole(world).await;
}

#[tokio::test]
async fn health_watchers_do_not_block_other_streams() {
    let world = World::start();
    let watch = grpc_call("/grpc.health.v1.Health/Watch", None);
    let mut held = Vec::new();
    for _ in 0..5 {
        let mut client = Http2::connect(world.service().address("grpc")).await;
        client.ask(&watch, Some(EMPTY), true, PER_CONNECTION).await;
        held.push(client);
    }
    assert_new_client_is_served(&world, &world.admin_key()).await;
    drop(held);
    is_whole(world).await;
}

#[tokio::test]
async fn unfinished_calls_of_one_client_do_not_block_another() {
    let world = World::start();
    let (sender, viewer) = (world.client("s", "ingest"), world.client("v", "viewer"));
    let operator = world.client("o", "operator");
    let attacks = [
        (
            "/zenoss.cloud.DataReceiverService/PutEvents",
            &sender,
            2_200,
        ),
        ("/bellwether.v1.RuleService/ListRules", &viewer, 30),
        (
            "/bellwether.v1.EventManagementService/Annotate",
            &operator,
            300,
        ),
        ("/bellwether.v1.EventQueryService/WatchEvents", &viewer, 300),
        ("/zenoss.cloud.DataReceiverService/PutEvent", &sender, 1_100),
    ];
    let mut held = Vec::new();
    for (path, key, mut count) in attacks {
        let call = grpc_call(path, Some(key));
        while count > 0 {
            let mut client = Http2::connect(world.service().address("grpc")).await;
            // The message lacks the last byte of its announced length.
            let begun: &[u8] = &[0, 0, 0, 0, 2, 0x0a];
            client
                .ask(&call, Some(begun), false, count.min(PER_CONNECTION))
                .await;
            held.push(client);
            count = count.saturating_sub(PER_CONNECTION);
        }
    }
    assert_new_client_is_served(&world, &world.admin_key()).await;
    // Complete calls whose responses are never read do not block other calls either.
    let lists = grpc_call("/bellwether.v1.RuleService/ListRules", Some(&viewer));
    let mut unread = Http2::without_window(world.service().address("grpc")).await;
    unread.ask(&lists, Some(EMPTY), true, 100).await;
    assert_new_client_is_served(&world, &world.admin_key()).await;
    // Over REST, send complete heads with bodies that never end.
    let begun = post_head(
        EVENTS,
        &format!("content-length: 2000000\r\nauthorization: Bearer {sender}"),
    );
    let mut mib = begun.clone();
    mib.resize(begun.len() + 1024 * 1024, b' ');
    let bodies = hold_open(world.service().address("rest"), &mib, 110).await;
    assert_new_client_is_served(&world, &world.admin_key()).await;
    memory_holds(&world);
    drop((held, unread, bodies));
    is_whole(world).await;
}

#[tokio::test]
async fn large_unauthenticated_body_gets_a_readable_401() {
    let world = World::start();
    let rest = world.rest().with_key(None);
    for size in [10, 100_000] {
        let answer = rest.send(Method::POST, EVENTS, "x".repeat(size)).await;
        assert_eq!(answer.status, 401, "{}", answer.text());
        assert_eq!(answer.code(), 16);
    }
}
