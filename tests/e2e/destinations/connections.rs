//! Broken, closed and rejecting connections: the next request uses a working one.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use bellwether_tests::{
    eventually::eventually,
    providers::{
        certificates::Authority,
        connections::{ConnectionAction, Connections, Request, ServerAction},
    },
    rest::Rest,
    world::World,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::samples;

/// The second attempt follows soon; there is no third.
const SETTINGS: &str = "[delivery]\nschedule = [\"0s\", \"100ms\", \"1h\"]\njitter = 0.0\n";

const DELIVERIES: &str = "/v1/notification/deliveries";

struct Stage {
    world: World,
    receiver: Connections,
    reported: usize,
    _folder: Option<TempDir>,
}

impl Stage {
    async fn http1(rule: impl Fn(Request) -> ServerAction + Send + Sync + 'static) -> Self {
        Self::http1_at(rule, |_| ConnectionAction::Serves).await
    }

    async fn http1_at(
        rule: impl Fn(Request) -> ServerAction + Send + Sync + 'static,
        door: impl Fn(usize) -> ConnectionAction + Send + Sync + 'static,
    ) -> Self {
        let receiver = Connections::http1(rule).await.with_connection_rule(door);
        Self::new(World::with_settings(SETTINGS), receiver, "1s", None).await
    }

    async fn http2(
        timeout: &str,
        rule: impl Fn(Request) -> ServerAction + Send + Sync + 'static,
    ) -> Self {
        Self::http2_at(timeout, rule, |_| ConnectionAction::Serves).await
    }

    async fn http2_at(
        timeout: &str,
        rule: impl Fn(Request) -> ServerAction + Send + Sync + 'static,
        door: impl Fn(usize) -> ConnectionAction + Send + Sync + 'static,
    ) -> Self {
        let authority = Authority::new("ours");
        let folder = tempfile::tempdir().expect("a folder");
        let file: PathBuf = folder.path().join("ca.pem");
        authority.write(&file);
        let receiver = Connections::http2(authority.server("localhost"), rule);
        let receiver = receiver.await.with_connection_rule(door);
        let world = World::with_authorities(SETTINGS, &file);
        Self::new(world, receiver, timeout, Some(folder)).await
    }

    async fn new(
        world: World,
        receiver: Connections,
        timeout: &str,
        folder: Option<TempDir>,
    ) -> Self {
        let rest = world.rest();
        let destination = json!({
            "name": "hook",
            "type": {"webhook": {
                "url": receiver.url("/"),
                "headers": {"content-type": "text/plain"},
                "payload": "{{event.dimensions.host}} {{id}}",
            }},
            "delivery": {"timeout": timeout},
        });
        for (kind, draft) in [
            ("triggers", samples::trigger("disk", "disk")),
            ("destinations", destination),
            ("rules", samples::rule("teller", "disk", "hook", "")),
        ] {
            let path = format!("/v1/notification/{kind}");
            rest.post(&path, &draft).await.ok();
        }
        Self {
            world,
            receiver,
            reported: 0,
            _folder: folder,
        }
    }

    fn rest(&self) -> Rest {
        self.world.rest()
    }

    /// Asserts that duplicates have the same identity: the body contains host and id.
    fn is_identified(&self) {
        let bodies = self.receiver.bodies();
        let mut ids = BTreeMap::new();
        for body in &bodies {
            let body = std::str::from_utf8(body).expect("a text");
            let (host, id) = body.split_once(' ').expect("a host and an id");
            assert!(!id.is_empty(), "{body}");
            assert_eq!(*ids.entry(host).or_insert(id), id, "{host} got another id");
        }
    }

    /// Sends `count` messages, waits until all have arrived, and returns the attempts of each.
    async fn send_all(&mut self, count: usize) -> Vec<Vec<String>> {
        let from = self.reported;
        self.reported += count;
        let hosts = (from..self.reported).map(|host| format!("db-{host}"));
        let events = hosts.map(|host| samples::event("full", &host, "SEVERITY_ERROR", "disk"));
        let events = samples::events(&events.collect::<Vec<_>>());
        let rest = self.rest();
        rest.post("/v1/data-receiver/events", &events).await.ok();
        let all = eventually("the messages to arrive", async || {
            let list = rest.get(&format!("{DELIVERIES}?pageSize=100")).await.ok();
            let all = list["deliveries"].as_array().cloned().unwrap_or_default();
            let arrived = all.iter().filter(|it| it["state"] == "DELIVERED").count();
            (arrived == self.reported).then_some(all)
        })
        .await;
        let mut outcomes = Vec::new();
        for delivery in &all[..count] {
            let id = delivery["id"].as_str().expect("an id");
            let whole = rest.get(&format!("{DELIVERIES}/{id}")).await.ok();
            let attempts = whole["delivery"]["attempts"].as_array().cloned();
            let attempts = attempts.unwrap_or_default();
            let outcome = |attempt: &Value| attempt["outcome"].as_str().map(str::to_owned);
            outcomes.push(attempts.iter().filter_map(outcome).collect());
        }
        outcomes
    }
}

const ONCE: [&str; 1] = ["OUTCOME_DELIVERED"];
const AGAIN: [&str; 2] = ["OUTCOME_UNKNOWN", "OUTCOME_DELIVERED"];

/// Applies the action to all requests of the first connection except its first one. All other
/// requests get a response.
fn respond_then(deed: ServerAction) -> impl Fn(Request) -> ServerAction {
    move |request| match (request.connection, request.number) {
        (1, 2..) => deed,
        _ => ServerAction::Answers,
    }
}

#[tokio::test]
async fn dead_http2_connection_costs_one_attempt() {
    let mut stage = Stage::http2("1s", respond_then(ServerAction::FallsSilent)).await;
    assert_eq!(stage.send_all(1).await, [ONCE]);
    for attempts in stage.send_all(4).await {
        assert_eq!(
            attempts, AGAIN,
            "a message that was sent is not reported as unreachable"
        );
    }
    let connections = stage.receiver.connections();
    assert_eq!(stage.send_all(1).await, [ONCE]);
    assert_eq!(stage.receiver.connections(), connections, "it is reused");
    assert!(stage.receiver.answered().values().all(|times| *times == 1));
}

#[tokio::test]
async fn dead_http2_connection_is_detected_by_pings() {
    let mut stage = Stage::http2("20s", respond_then(ServerAction::FallsSilent)).await;
    assert_eq!(stage.send_all(1).await, [ONCE]);
    assert_eq!(
        stage.send_all(2).await,
        [ONCE, ONCE],
        "pings were not answered"
    );
}

#[tokio::test]
async fn unprocessed_request_is_resent_without_counting_an_attempt() {
    for deed in [
        ServerAction::Refuses,
        ServerAction::GoesAway,
        ServerAction::Closes,
    ] {
        let mut stage = Stage::http2("5s", respond_then(deed)).await;
        assert_eq!(stage.send_all(1).await, [ONCE]);
        for attempts in stage.send_all(3).await {
            assert_eq!(attempts, ONCE, "{deed:?}");
        }
        let answered = stage.receiver.answered();
        assert!(answered.values().all(|times| *times == 1), "{answered:?}");
        assert_eq!(answered.len(), 4);
    }
    // The same applies to several connections in a row that never worked.
    for deed in [ServerAction::Refuses, ServerAction::GoesAway] {
        let rule = move |request: Request| match request.connection {
            1..=3 => deed,
            _ => ServerAction::Answers,
        };
        let mut stage = Stage::http2("5s", rule).await;
        assert_eq!(stage.send_all(1).await, [ONCE], "{deed:?}");
        assert_eq!(stage.receiver.connections(), 4);
    }
}

#[tokio::test]
async fn possibly_processed_request_is_not_resent_immediately() {
    let first = |deed| {
        move |request: Request| match request.connection {
            1 => deed,
            _ => ServerAction::Answers,
        }
    };
    for deed in [
        ServerAction::GoesAwayAfter,
        ServerAction::Closes,
        ServerAction::FallsSilent,
    ] {
        let mut stage = Stage::http2("1s", first(deed)).await;
        assert_eq!(stage.send_all(1).await, [AGAIN], "{deed:?}");
    }
    for deed in [ServerAction::Closes, ServerAction::FallsSilent] {
        let mut stage = Stage::http1(first(deed)).await;
        assert_eq!(stage.send_all(1).await, [AGAIN], "{deed:?}");
    }
}

#[tokio::test]
async fn repeatedly_refused_request_fails_the_attempt() {
    let stage = Stage::http2("3s", |_| ServerAction::Refuses).await;
    let draft = json!({"type": {"webhook": {"url": stage.receiver.url("/")}}, "delivery": {"timeout": "30s"}});
    let path = "/v1/notification/destinations:test";
    let tested = stage.rest().post(path, &draft).await.ok();
    assert_eq!(tested["outcome"], "OUTCOME_UNREACHABLE", "{tested}");
    let says = tested["explanation"].as_str().expect("a sentence");
    assert!(says.contains("refused the stream 9 times"), "{says}");
}

#[tokio::test]
async fn dead_idle_connections_cost_at_most_one_attempt() {
    // Eight connections that each respond once.
    let rule = |request: Request| match (request.connection, request.number) {
        (1..=8, 2..) => ServerAction::FallsSilent,
        _ => ServerAction::Answers,
    };
    let mut stage = Stage::http1(rule).await;
    stage.send_all(60).await;
    let before = stage.receiver.connections();
    stage.send_all(1).await;
    for attempts in stage.send_all(5).await {
        assert!(attempts.len() <= 2, "{attempts:?}");
    }
    assert!(before >= 1);
    assert_eq!(stage.send_all(1).await, [ONCE]);
}

#[tokio::test]
async fn closed_idle_connection_costs_no_attempt() {
    for deed in [
        ServerAction::Closes,
        ServerAction::HalfCloses,
        ServerAction::Resets,
    ] {
        let rule = move |request: Request| match (deed, request.number) {
            (ServerAction::Closes, 1) => ServerAction::Answers,
            _ => deed,
        };
        let mut stage = Stage::http1(rule).await;
        for _ in 0..3 {
            assert_eq!(stage.send_all(1).await, [ONCE], "{deed:?}");
        }
        let answered = stage.receiver.answered();
        assert!(answered.values().all(|times| *times == 1), "{answered:?}");
    }
}

#[tokio::test]
async fn connection_closed_before_its_first_request_costs_one_attempt() {
    let unreachable = ["OUTCOME_UNREACHABLE", "OUTCOME_DELIVERED"];
    let first = |welcome| {
        move |connection| match connection {
            1 => welcome,
            _ => ConnectionAction::Serves,
        }
    };
    for welcome in [
        ConnectionAction::Closes,
        ConnectionAction::Resets,
        ConnectionAction::Hangs,
    ] {
        let mut stage = Stage::http1_at(|_| ServerAction::Answers, first(welcome)).await;
        let attempts = stage.send_all(1).await.remove(0);
        // Whether the request was sent before the connection closed depends on the network.
        assert!(
            attempts == AGAIN || (attempts == unreachable && welcome != ConnectionAction::Hangs),
            "{welcome:?}: {attempts:?}"
        );
        assert_eq!(stage.send_all(1).await, [ONCE], "{welcome:?}");
        assert!(stage.receiver.answered().values().all(|times| *times == 1));
        stage.is_identified();
    }
    for welcome in [
        ConnectionAction::Closes,
        ConnectionAction::Resets,
        ConnectionAction::ClosesInHandshake,
        ConnectionAction::ResetsInHandshake,
        ConnectionAction::Hangs,
    ] {
        let mut stage = Stage::http2_at("1s", |_| ServerAction::Answers, first(welcome)).await;
        // Nothing is sent before the TLS handshake.
        assert_eq!(stage.send_all(1).await, [unreachable], "{welcome:?}");
        assert_eq!(stage.send_all(1).await, [ONCE], "{welcome:?}");
        assert_eq!(stage.receiver.bodies().len(), 2, "{welcome:?}");
    }
}

#[tokio::test]
async fn slow_response_is_awaited_and_a_timeout_drops_the_connection() {
    let rule = |request: Request| match (request.connection, request.number) {
        (1, 1) => ServerAction::Dribbles(Duration::from_millis(10)),
        (1, 2..) => ServerAction::Dribbles(Duration::from_millis(200)),
        _ => ServerAction::Answers,
    };
    for is_http1 in [true, false] {
        let mut stage = if is_http1 {
            Stage::http1(rule).await
        } else {
            Stage::http2("1s", rule).await
        };
        assert_eq!(stage.send_all(1).await, [ONCE]);
        assert_eq!(stage.receiver.connections(), 1);
        assert_eq!(stage.send_all(1).await, [AGAIN], "it takes seconds");
        assert_eq!(stage.receiver.connections(), 2);
        assert_eq!(stage.send_all(1).await, [ONCE]);
        if is_http1 {
            stage.is_identified();
        }
    }
}

#[tokio::test]
async fn message_keeps_its_id_across_connection_failures() {
    for deed in [
        ServerAction::Closes,
        ServerAction::FallsSilent,
        ServerAction::GoesAwayAfter,
    ] {
        let every_third = move |request: Request| match request.number % 3 {
            0 => deed,
            _ => ServerAction::Answers,
        };
        let mut stage = match deed {
            ServerAction::GoesAwayAfter => Stage::http2("1s", every_third).await,
            _ => Stage::http1(every_third).await,
        };
        for _ in 0..5 {
            stage.send_all(1).await;
        }
        stage.is_identified();
    }
}

#[tokio::test]
async fn destination_test_uses_and_reports_its_own_connection() {
    let mut stage = Stage::http2("5s", |request| match request.connection {
        1 => ServerAction::Answers,
        _ => ServerAction::FallsSilent,
    })
    .await;
    assert_eq!(stage.send_all(1).await, [ONCE]);
    let path = "/v1/notification/destinations:test";
    for (draft, connections) in [
        (json!({"name": "hook", "delivery": {"timeout": "1s"}}), 2),
        (
            json!({"type": {"webhook": {"url": stage.receiver.url("/")}}, "delivery": {"timeout": "1s"}}),
            3,
        ),
    ] {
        let tested = stage.rest().post(path, &draft).await.ok();
        assert_eq!(tested["outcome"], "OUTCOME_UNKNOWN", "{tested}");
        let says = tested["explanation"].as_str().expect("a sentence");
        assert!(says.ends_with("(over a new connection)"), "{says}");
        assert_eq!(stage.receiver.connections(), connections);
    }
    assert_eq!(
        stage.send_all(1).await,
        [ONCE],
        "the pooled connection still works"
    );
}
