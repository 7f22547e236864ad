//! Hostile clients of all kinds at the same time, while a regular client works.

use std::{
    future::pending,
    sync::Arc,
    time::{Duration, Instant},
};

use bellwether_proto::v1::{ListRulesRequest, rule_service_client::RuleServiceClient};
use bellwether_tests::{grpc, rest::Rest, world::World};
use http::Method;
use serde_json::json;
use tokio::{task::JoinSet, time::interval};

use super::{
    EVENTS, MEMORY_MAX_MIB,
    attack::{Http2, hold_open, hostile_times, post_head},
    compressed::{framed, packed, tried},
    is_whole, peak_mib,
    unauthenticated::{EMPTY, PER_CONNECTION, grpc_call},
};
use crate::samples;

/// Number of rounds of the regular client, and the limit of the 99th percentile of its calls.
const ROUNDS: usize = 150;
const P99_MAX: Duration = Duration::from_secs(20);
const PACE: Duration = Duration::from_millis(50);
const UNFOLDED: usize = 128 * 1024 * 1024;

/// Data that the attackers have: the addresses of the service, and the keys of compromised clients.
struct Target {
    rest: String,
    grpc: String,
    sender: String,
    viewer: String,
    operator: String,
}

impl Target {
    fn of(world: &World) -> Self {
        let address = |part| world.service().address(part).to_owned();
        Self {
            rest: address("rest"),
            grpc: address("grpc"),
            sender: world.client("a-sender", "ingest"),
            viewer: world.client("a-viewer", "viewer"),
            operator: world.client("an-operator", "operator"),
        }
    }
}

/// Starts attackers that keep connections open, complete no request and read no response.
fn those_who_stay(attack: &mut JoinSet<()>, target: &Arc<Target>) {
    let it = Arc::clone(target);
    attack.spawn(async move {
        let head = b"GET /v1/notification/rules HTTP/1.1\r\nhost: a\r\nx-slow: ";
        let wrong = post_head(
            EVENTS,
            "content-length: 2000000\r\nauthorization: Bearer bw_wrong",
        );
        let mine = format!(
            "content-length: 2000000\r\nauthorization: Bearer {}",
            it.sender
        );
        let begun = [wrong, post_head(EVENTS, &mine)].map(|mut head| {
            head.resize(head.len() + 512 * 1024, b' ');
            head
        });
        let count = hostile_times(100, 1_000);
        let _held = [
            hold_open(&it.rest, head, count).await,
            hold_open(&it.grpc, head, count).await,
            hold_open(&it.rest, b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n", count).await,
            hold_open(&it.grpc, b"PRI * HTTP/2.0\r\n", count).await,
            hold_open(&it.grpc, b"\x16\x03\x01\x40\x00\x01", count).await,
            hold_open(&it.rest, &begun[0], hostile_times(50, 300)).await,
            hold_open(&it.rest, &begun[1], hostile_times(50, 300)).await,
        ];
        pending::<()>().await;
    });
    let it = Arc::clone(target);
    attack.spawn(async move {
        let check = grpc_call("/grpc.health.v1.Health/Check", None);
        let watch = grpc_call("/grpc.health.v1.Health/Watch", None);
        let lists = grpc_call("/bellwether.v1.RuleService/ListRules", Some(&it.viewer));
        let mut held = Vec::new();
        for call in [&check, &watch, &lists] {
            for _ in 0..hostile_times(8, 60) {
                let mut client = Http2::without_window(&it.grpc).await;
                client.ask(call, Some(EMPTY), true, PER_CONNECTION).await;
                held.push(client);
            }
        }
        let unfinished = [
            ("/zenoss.cloud.DataReceiverService/PutEvents", &it.sender),
            ("/zenoss.cloud.DataReceiverService/PutEvent", &it.sender),
            ("/bellwether.v1.EventQueryService/WatchEvents", &it.viewer),
            (
                "/bellwether.v1.EventManagementService/Annotate",
                &it.operator,
            ),
        ];
        for (path, key) in unfinished {
            let call = grpc_call(path, Some(key));
            for _ in 0..hostile_times(3, 9) {
                let mut client = Http2::connect(&it.grpc).await;
                // The message lacks the last byte of its announced length.
                client
                    .ask(&call, Some(&[0, 0, 0, 0, 2, 0x0a]), false, PER_CONNECTION)
                    .await;
                held.push(client);
            }
        }
        pending::<()>().await;
    });
}

fn reconnecting_clients(attack: &mut JoinSet<()>, target: &Arc<Target>) {
    let it = Arc::clone(target);
    attack.spawn(async move {
        let mut pace = interval(PACE);
        loop {
            pace.tick().await;
            for address in [&it.rest, &it.grpc] {
                Http2::connect(address).await.rapid_reset(1_000).await;
                Http2::connect(address).await.continuations(20).await;
            }
        }
    });
    let it = Arc::clone(target);
    attack.spawn(async move {
        let bomb = packed(b' ', UNFOLDED);
        let rest = Rest::new(&it.rest, Some(&it.sender));
        let deep = "[".repeat(1_000_000);
        let gzip = [("content-encoding", "gzip")];
        let mut pace = interval(PACE);
        loop {
            pace.tick().await;
            drop(rest.try_send(Method::POST, EVENTS, &[], deep.clone()).await);
            drop(
                rest.try_send(Method::POST, EVENTS, &gzip, bomb.clone())
                    .await,
            );
            let method = "zenoss.cloud.DataReceiverService/PutEvents";
            tried(
                &it.grpc,
                method,
                Some(&it.sender),
                Some("gzip"),
                &framed(&bomb),
            )
            .await;
        }
    });
    let it = Arc::clone(target);
    attack.spawn(async move {
        let mut pace = interval(PACE);
        for at in 0_u64.. {
            pace.tick().await;
            let key = format!("bw_{at}");
            let rest = Rest::new(&it.rest, Some(&key));
            let mut rules = RuleServiceClient::new(grpc::channel(&it.grpc, Some(&key)));
            let both = async {
                drop(rest.try_send(Method::GET, "/v1/audit", &[], "").await);
                drop(rules.list_rules(ListRulesRequest::default()).await);
            };
            // An attacker does not wait for slow responses.
            drop(tokio::time::timeout(PACE, both).await);
        }
    });
    let it = Arc::clone(target);
    attack.spawn(async move {
        let rest = Rest::new(&it.rest, Some(&it.viewer));
        let all = json!({"query": {"pageInput": {"limit": 1000}}}).to_string();
        let mut pace = interval(PACE);
        loop {
            pace.tick().await;
            let pages =
                (0..8).map(|_| rest.try_send(Method::POST, "/v1/events:search", &[], all.clone()));
            drop(futures_util::future::join_all(pages).await);
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn combined_attacks_affect_neither_other_clients_nor_the_store() {
    let world = World::start();
    let target = Arc::new(Target::of(&world));
    let key = world.client("honest", "admin");
    let mut attack = JoinSet::new();
    those_who_stay(&mut attack, &target);
    reconnecting_clients(&mut attack, &target);

    let (rest, grpc) = (
        Rest::new(&target.rest, Some(&key)),
        grpc::channel(&target.grpc, Some(&key)),
    );
    let mut took = Vec::new();
    let mut pace = interval(PACE);
    for round in 0..ROUNDS {
        pace.tick().await;
        let event = samples::event("calm", &round.to_string(), "SEVERITY_INFO", "x");
        let start = Instant::now();
        let sent = rest.post(EVENTS, &samples::events(&[event])).await;
        assert_eq!(sent.ok()["succeeded"], 1);
        took.push(start.elapsed());
        let start = Instant::now();
        let mut rules = RuleServiceClient::new(grpc.clone());
        rules.list_rules(ListRulesRequest::default()).await.unwrap();
        took.push(start.elapsed());
    }
    took.sort();
    let (p99, peak) = (took[took.len() * 99 / 100], peak_mib(&world));
    let reported = format!("{p99:?}, at most {:?}, {peak} MiB", took[took.len() - 1]);
    if hostile_times(1, 2) == 2 {
        eprintln!("an honest client among all kinds of others: {reported}");
    }
    assert!(p99 < P99_MAX && peak < MEMORY_MAX_MIB, "{reported}");
    assert!(!attack.is_empty(), "they have given up");
    attack.shutdown().await;
    let world = is_whole(world).await;
    let counted = json!({"query": {"filter": "name=calm summary=x"}});
    let counted = world.rest().post("/v1/events:count", &counted).await.ok();
    assert_eq!(counted["count"], ROUNDS, "{counted}");
}
