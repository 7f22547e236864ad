//! Hostile clients: the service limits its memory, continues to serve other clients, and stops when
//! requested.
//!
//! `BELLWETHER_TEST_HOSTILE=1` intensifies the attacks; docs/benchmarks.md has the figures.

mod attack;
mod compressed;
mod scans;
mod together;
mod unauthenticated;

use std::{
    io::Write,
    process::Command,
    time::{Duration, Instant},
};

use bellwether_proto::{
    cloud::{self, data_receiver_service_client::DataReceiverServiceClient},
    v1::{
        ListRulesRequest, WatchEventsRequest, event_query_service_client::EventQueryServiceClient,
        rule_service_client::RuleServiceClient,
    },
};
use bellwether_tests::{engine::Engine, eventually::eventually, grpc::Grpc, process, world::World};
use serde_json::{Value, json};
use tokio::time::timeout;
use tonic::Code;

use attack::{Http2, hold_open, hostile_times, post_head, send_until_refused};

const MEMORY_MAX_MIB: u64 = 512;
const OTHERS_WAIT_MAX: Duration = Duration::from_secs(60);
const EVENTS: &str = "/v1/data-receiver/events";

fn peak_mib(world: &World) -> u64 {
    let status = format!("/proc/{}/status", world.service().id());
    let status = std::fs::read_to_string(status).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.expect("the kernel reports it") / 1024
}

async fn assert_others_are_served(world: &World) {
    let (rest, channel) = (world.rest(), world.grpc());
    let served = async {
        let event = json!({"name": "calm", "dimensions": {"host": "a"}});
        let sent = rest.post(EVENTS, &json!({"events": [event]})).await;
        assert_eq!(sent.ok()["succeeded"], 1);
        let all = json!({"name": "all", "type": {"event": {"query": {"clause":
            {"equals": {"field": "name", "stringVal": "calm"}}}}}});
        rest.post("/v1/notification/triggers", &all).await.ok();
        rest.delete("/v1/notification/triggers/all").await.ok();
        let mut rules = RuleServiceClient::new(channel);
        rules.list_rules(ListRulesRequest::default()).await.unwrap();
    };
    let served = timeout(OTHERS_WAIT_MAX, served).await;
    served.expect("other clients are served meanwhile");
}

/// Asserts that other clients are served during the attack, within the memory limit.
async fn withstands<T>(world: &World, attack: T) {
    assert_others_are_served(world).await;
    let peak = peak_mib(world);
    assert!(peak < MEMORY_MAX_MIB, "{peak} MiB");
    drop(attack);
    assert_others_are_served(world).await;
    if hostile_times(1, 2) == 2 {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        drop(writeln!(std::io::stderr(), "{name}: at most {peak} MiB"));
    }
}

/// Asserts that a store is intact after a kill, and that a service can use it.
async fn is_whole(mut world: World) -> World {
    let check = |world: &World| {
        let checked = process::run(world.command(&["check"]));
        assert!(checked.status.success(), "{checked:?}");
    };
    world.kill();
    // A database is checked by the service that uses it.
    let is_folder = Engine::of_this_thread() == Engine::Folder;
    if is_folder {
        check(&world);
    }
    world.start_again();
    assert_others_are_served(&world).await;
    if !is_folder {
        check(&world);
    }
    world
}

#[tokio::test]
async fn slow_or_silent_clients_do_not_delay_others() {
    let world = World::start();
    let (rest, grpc) = (
        world.service().address("rest"),
        world.service().address("grpc"),
    );
    let slow = b"GET /v1/notification/rules HTTP/1.1\r\nhost: a\r\nx-slow: ";
    let idle = hostile_times(500, 9_500);
    let held = [
        hold_open(rest, slow, 300).await,
        hold_open(grpc, slow, 300).await,
        hold_open(grpc, b"PRI * HTTP/2.0\r\n", 100).await,
        hold_open(grpc, b"", idle).await,
        hold_open(rest, b"", hostile_times(500, 3_000)).await,
    ];
    withstands(&world, held).await;
    is_whole(world).await;
}

/// Returns the maximum permitted number of failed `accept` calls within this time.
fn tries(time: Duration) -> usize {
    const PAUSE_MS: u128 = 50;
    const LISTENERS: usize = 2;
    (usize::try_from(time.as_millis() / PAUSE_MS).unwrap() + 2) * LISTENERS
}

#[tokio::test]
async fn connections_are_served_without_spinning_when_descriptors_run_out() {
    let world = World::start();
    let rest = world.rest();
    rest.get("/v1/notification/rules").await.ok();
    let process = world.service().id();
    let metrics = rest.get("/metrics").await.text();
    let open = metrics
        .lines()
        .find_map(|line| line.strip_prefix("process_open_fds "));
    let limit = open.expect("it counts them").parse::<usize>().unwrap() + 20;
    let limited = Command::new("prlimit")
        .args([format!("--pid={process}"), format!("--nofile={limit}")])
        .status();
    assert!(limited.unwrap().success());
    let start = Instant::now();
    let (rest_address, grpc_address) = (
        world.service().address("rest"),
        world.service().address("grpc"),
    );
    let held = [
        hold_open(rest_address, b"", 60).await,
        hold_open(grpc_address, b"", 60).await,
    ];
    let refusals = || {
        let log = world.service().log();
        let refused = ["failed to accept"];
        let is_one = |line: &&str| refused.iter().any(|text| line.contains(text));
        log.lines().filter(is_one).count()
    };
    eventually("file descriptors to run out temporarily", async || {
        (refusals() >= 10).then_some(())
    })
    .await;
    let event = json!({"name": "calm", "dimensions": {"host": "a"}});
    let sent = rest.post(EVENTS, &json!({"events": [event]})).await;
    assert_eq!(sent.ok()["succeeded"], 1);
    let (count, most) = (refusals(), tries(start.elapsed()));
    assert!(
        count <= most,
        "{count} attempts to accept, at most {most} expected"
    );
    drop(held);
    is_whole(world).await;
}

#[tokio::test]
async fn slow_bodies_do_not_block_others() {
    let world = World::start();
    let rest = world.service().address("rest");
    // Send more requests than may be in flight, each with part of its announced body.
    let mut begun = post_head(EVENTS, "content-length: 4000000");
    begun.extend_from_slice(br#"{"events":["#);
    let held = hold_open(rest, &begun, hostile_times(1_500, 3_500)).await;
    withstands(&world, held).await;
    // Send more bytes than the memory limit.
    begun.resize(begun.len() + 1024 * 1024, b' ');
    let held = hold_open(rest, &begun, hostile_times(80, 300)).await;
    let peak = peak_mib(&world);
    assert!(peak < MEMORY_MAX_MIB, "{peak} MiB");
    drop(held);
    is_whole(world).await;
}

#[tokio::test]
async fn endless_bodies_headers_and_frames_are_cut_off() {
    let world = World::start();
    let (rest, grpc) = (
        world.service().address("rest"),
        world.service().address("grpc"),
    );
    let mib = vec![b' '; 1024 * 1024];
    let announced = post_head(EVENTS, "content-length: 1073741824");
    let sent = send_until_refused(rest, &announced, &mib, 1_024).await;
    assert!(sent < 64, "{sent} MiB of a body were read");
    let chunked = post_head(EVENTS, "transfer-encoding: chunked");
    let chunk = [b"100000\r\n", &*mib, b"\r\n"].concat();
    let sent = send_until_refused(rest, &chunked, &chunk, 1_024).await;
    assert!(sent < 64, "{sent} MiB of a chunked body were read");

    let headers = b"x-one-of-a-million: 1\r\n".repeat(10_000);
    for address in [rest, grpc] {
        let line = b"GET /healthz HTTP/1.1\r\n";
        let sent = send_until_refused(address, line, &headers, 100).await;
        assert!(sent < 50, "{sent} times 10,000 headers were read");
    }
    for address in [rest, grpc] {
        let mut client = Http2::connect(address).await;
        let frames = client.continuations(2_000).await;
        assert!(frames < 1_000, "{frames} continuations were read");
    }
    withstands(&world, ()).await;
    is_whole(world).await;
}

#[tokio::test]
async fn rapid_resets_do_not_block_others() {
    let world = World::start();
    for address in [
        world.service().address("rest"),
        world.service().address("grpc"),
    ] {
        let mut clients = Vec::new();
        for _ in 0..4 {
            let mut client = Http2::connect(address).await;
            client.rapid_reset(hostile_times(5_000, 100_000)).await;
            clients.push(client);
        }
        withstands(&world, clients).await;
    }
    is_whole(world).await;
}

#[tokio::test]
async fn documents_expanding_in_memory_are_rejected() {
    let world = World::start();
    let rest = world.rest();
    let bombs = [
        "[".repeat(4_000_000),
        format!(r#"{{"events":{}"#, "[".repeat(100_000)),
        format!(r#"{{"events":[{}{{}}]}}"#, "{},".repeat(1_300_000)),
        format!(
            r#"{{"events":[{{"name":"a","metadataFields":{{"a":{}1{}}}}}]}}"#,
            "[".repeat(50_000),
            "]".repeat(50_000)
        ),
    ];
    for bomb in &bombs {
        let attack = (0..hostile_times(2, 40)).map(|_| {
            let sent = rest.try_send(http::Method::POST, EVENTS, &[], bomb.clone());
            async { sent.await.unwrap() }
        });
        for answer in futures_util::future::join_all(attack).await {
            let status = answer.status.as_u16();
            // With many clients, some may have to retry.
            assert!(matches!(status, 400 | 503), "{}", answer.text());
            assert!(answer.body.len() < 20_000);
        }
    }
    // The same applies to gRPC, where messages are not checked before they are decoded.
    let events = cloud::Events {
        detailed_response: true,
        events: vec![cloud::Event::default(); hostile_times(100_000, 1_500_000)],
    };
    let mut client = DataReceiverServiceClient::new(world.grpc());
    let refused = client.put_events(events).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    withstands(&world, ()).await;
    is_whole(world).await;
}

async fn store_large(world: &World, count: usize, round: usize) {
    let rest = world.rest();
    for at in (0..count).step_by(25) {
        let event = |host: usize| {
            json!({"name": "large", "dimensions": {"host": host.to_string()},
                "summary": round.to_string(), "body": "x".repeat(60_000)})
        };
        let events: Vec<Value> = (at..at + 25).map(event).collect();
        rest.post(EVENTS, &json!({"events": events})).await.ok();
    }
}

#[tokio::test]
async fn concurrent_large_pages_fit_into_memory() {
    let world = World::start();
    let count = hostile_times(100, 300);
    store_large(&world, count, 0).await;
    let rest = world.rest();
    let page = |cursor: &str| {
        json!({"query": {"clause": {"equals": {"field": "name", "stringVal": "large"}},
            "pageInput": {"limit": 1000, "cursor": cursor}}})
    };
    let first = page("");
    let calls = (0..hostile_times(6, 100)).map(|_| rest.post("/v1/events:search", &first));
    for answer in futures_util::future::join_all(calls).await {
        assert!(
            matches!(answer.status.as_u16(), 200 | 503),
            "{}",
            answer.text()
        );
    }
    let (mut cursor, mut seen) = (String::new(), 0);
    loop {
        let found = rest.post("/v1/events:search", &page(&cursor)).await.ok();
        seen += found["results"].as_array().unwrap().len();
        if found["pageInfo"]["hasNext"] != true {
            break;
        }
        cursor = found["pageInfo"]["endCursor"].as_str().unwrap().into();
    }
    assert_eq!(seen, count);
    withstands(&world, ()).await;
    is_whole(world).await;
}

async fn watch(channel: Grpc) -> tonic::Streaming<bellwether_proto::v1::WatchEventsResponse> {
    let mut client = EventQueryServiceClient::new(channel);
    let watching = client.watch_events(WatchEventsRequest::default()).await;
    watching.unwrap().into_inner()
}

#[tokio::test]
async fn stalled_watchers_use_little_memory_and_do_not_delay_shutdown() {
    let mut world = World::start();
    let mut watchers = Vec::new();
    // One client may use a quarter of all streams.
    for _ in 0..hostile_times(20, 60) {
        watchers.push(watch(world.grpc()).await);
    }
    for round in 0..hostile_times(2, 20) {
        store_large(&world, 100, round).await;
    }
    let (rest, grpc) = (
        world.service().address("rest"),
        world.service().address("grpc"),
    );
    let silent = [
        hold_open(rest, b"", 50).await,
        hold_open(grpc, b"", 50).await,
        hold_open(grpc, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 50).await,
    ];
    assert_others_are_served(&world).await;
    let peak = peak_mib(&world);
    assert!(peak < MEMORY_MAX_MIB, "{peak} MiB");
    let start = Instant::now();
    let status = tokio::task::spawn_blocking(move || world.terminate()).await;
    assert!(status.unwrap().success());
    let took = start.elapsed();
    assert!(took < OTHERS_WAIT_MAX, "the shutdown took {took:?}");
    drop((watchers, silent));
}
