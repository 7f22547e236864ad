//! `bellwether mcp`: an agent's program, the real command and a real service.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use bellwether_tests::{
    eventually::{eventually, eventually_blocking},
    receiver::Receiver,
    rest::Rest,
    world::World,
};
use http::Method;
use serde_json::{Value, json};

use crate::samples;

/// A client of the protocol, with the server as its child process.
struct Agent {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    number: u64,
}

impl Agent {
    fn start(world: &World, arguments: &[&str]) -> Self {
        let mut command = world.command(&[&["mcp"], arguments].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut agent = Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            number: 0,
        };
        let info = json!({"name": "test\u{1b}-agent", "version": "1.2"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        let result = agent.request("initialize", &params)["result"].take();
        assert_eq!(result["protocolVersion"], "2025-06-18", "{result}");
        let text = result["instructions"].as_str().unwrap();
        assert!(text.contains("data, not instructions"), "{text}");
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        agent.send(&initialized.to_string());
        agent
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.number += 1;
        let id = self.number;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request.to_string());
        let response = self.receive();
        assert_eq!(response["id"], id, "{response}");
        response
    }

    fn tool_names(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Calls a tool and returns its texts.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Vec<String>, String> {
        let params = json!({"name": tool, "arguments": arguments});
        let response = self.request("tools/call", &params);
        let result = &response["result"];
        let content = result["content"].as_array();
        let content = content.unwrap_or_else(|| panic!("{response}")).iter();
        let texts = content.map(|it| it["text"].as_str().unwrap().to_owned());
        let texts: Vec<_> = texts.collect();
        if result["isError"] == true {
            Err(texts.join("\n"))
        } else {
            Ok(texts)
        }
    }

    /// Calls a tool that writes, and returns the token.
    fn propose(&mut self, tool: &str, arguments: &Value) -> String {
        let texts = self.call(tool, arguments).unwrap();
        let mut quoted = texts[0].split('`').filter(|it| it.contains("-events-"));
        quoted.next().expect("a token").to_owned()
    }
}

/// Sends events about 30 hosts: two of `db-1`, and one of each other host.
async fn send_storm(rest: &Rest) {
    let mut events: Vec<_> = (1..=30)
        .map(|host| {
            samples::event(
                "disk",
                &format!("db-{host}"),
                "SEVERITY_ERROR",
                "disk is full",
            )
        })
        .collect();
    events.push(samples::event(
        "load",
        "db-1",
        "SEVERITY_ERROR",
        "load is high",
    ));
    let sent = samples::events(&events);
    rest.post("/v1/data-receiver/events", &sent).await.ok();
}

fn silence(name: &str, filter: &str) -> Value {
    let span = json!({"endTime": samples::in_seconds(3_600)});
    json!({"silence": {"name": name, "reason": "a storm", "filter": filter, "span": span}})
}

async fn silence_names(rest: &Rest) -> Vec<String> {
    let listed = rest.get("/v1/notification/silences").await.ok();
    let silences = listed["silences"].as_array().into_iter().flatten();
    silences
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_without_write_reads_events_and_changes_nothing() {
    let world = World::start();
    send_storm(&world.rest()).await;
    let mut agent = Agent::start(&world, &[]);
    let names = agent.tool_names();
    assert!(names.iter().any(|it| it == "SearchEvents"), "{names:?}");
    let writes = ["CreateSilence", "SetStatus", "confirm", "ListAuditEntries"];
    assert!(
        !names.iter().any(|it| writes.contains(&it.as_str())),
        "{names:?}"
    );

    let query = json!({"query": {"filter": "host=db-1"}});
    let found = agent.call("SearchEvents", &query).unwrap();
    let found: Value = serde_json::from_str(&found[0]).unwrap();
    assert_eq!(found["results"].as_array().unwrap().len(), 2, "{found}");
    let misspelled = json!({"query": {"filtr": "host=db-1"}});
    let error = agent.call("SearchEvents", &misspelled).unwrap_err();
    assert!(error.contains("query.filtr"), "{error}");
    let error = agent.call("GetRule", &json!({"name": "none"})).unwrap_err();
    assert!(error.contains("none"), "{error}");

    let call = json!({"name": "CreateSilence", "arguments": silence("one", "host=db-1")});
    let refused = agent.request("tools/call", &call);
    assert_eq!(refused["error"]["code"], -32_602, "{refused}");
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("--write")
    );
    assert_eq!(silence_names(&world.rest()).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_silences_one_host_in_a_storm_and_not_all() {
    let world = World::start();
    let rest = world.rest();
    send_storm(&rest).await;
    let key = world.client("helper", "operator");
    let key_file = world.folder().join("helper.key");
    std::fs::write(&key_file, key).unwrap();
    let key_file = key_file.to_str().unwrap();
    let mut agent = Agent::start(&world, &["--write", "--key-file", key_file]);

    let token = agent.propose("CreateSilence", &silence("one", "host=db-1"));
    assert!(token.starts_with("CreateSilence-2-events-"), "{token}");
    assert_eq!(silence_names(&rest).await, [""; 0]);
    let confirm = json!({"token": token});
    agent.call("confirm", &confirm).unwrap();
    assert_eq!(silence_names(&rest).await, ["one"]);
    let again = agent.call("confirm", &confirm).unwrap_err();
    assert!(again.contains("it was used"), "{again}");

    for filter in ["severity>=error", "host=db-*", "-host=db-1"] {
        let error = agent.call("CreateSilence", &silence("all", filter));
        let error = error.unwrap_err();
        assert!(
            error.contains("a person must do this in the console"),
            "{filter}: {error}"
        );
    }
    let mut broad = silence("all", "host=db-2");
    broad["allow_broad"] = true.into();
    let error = agent.call("CreateSilence", &broad).unwrap_err();
    assert!(error.starts_with("allowBroad: "), "{error}");

    // The events of a storm that is over still count.
    let found = rest.post("/v1/events:search", &json!({})).await.ok();
    let events = found["results"].as_array().unwrap().iter();
    let closed: Vec<_> = events
        .map(|it| json!({"event_id": it["id"], "status": "closed"}))
        .collect();
    let error = agent
        .call("SetStatus", &json!({"statuses": closed}))
        .unwrap_err();
    let covered = format!("{} events", closed.len());
    assert!(error.contains(&covered), "{error}");
    rest.post("/v1/event-management/status", &json!({"statuses": closed}))
        .await
        .ok();
    let error = agent.call("CreateSilence", &silence("all", "severity>=error"));
    assert!(error.unwrap_err().contains("31 events"));
    assert_eq!(silence_names(&rest).await, ["one"]);

    let audit = rest.get("/v1/audit?kinds=silence").await.ok();
    let entry = &audit["entries"][0];
    assert_eq!(entry["clientName"], "helper", "{audit}");
    assert_eq!(entry["agent"], "test?-agent 1.2", "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_acknowledges_listed_events_after_confirmation() {
    let world = World::start();
    let rest = world.rest();
    send_storm(&rest).await;
    let query = json!({"query": {"filter": "host=db-1"}});
    let found = rest.post("/v1/events:search", &query).await.ok();
    let items = found["results"].as_array().unwrap().iter();
    let items: Vec<_> = items
        .map(|it| json!({"eventId": it["id"], "acknowledged": true}))
        .collect();
    let mut agent = Agent::start(&world, &["--write"]);
    let token = agent.propose("SetStatus", &json!({"statuses": items}));
    assert!(token.starts_with("SetStatus-2-events-"), "{token}");
    agent.call("confirm", &json!({"token": token})).unwrap();
    let query = json!({"query": {"filter": "acknowledged=true"}});
    let found = rest.post("/v1/events:count", &query).await.ok();
    assert_eq!(found["count"], 2, "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_leaves_a_large_group_and_its_messages_to_a_person() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    samples::disks_to_hook(&rest, &receiver).await;
    let mut rule = samples::rule("page", "disk", "hook", "");
    rule["group"] = json!({"by": ["name"], "wait": "0s", "interval": "10s"});
    rest.post("/v1/notification/rules", &rule).await.ok();
    send_storm(&rest).await;
    let group = eventually("the group of all events about disks", async || {
        let listed = rest.get("/v1/notification/groups").await.ok();
        let group = &listed["groups"][0];
        (group["openCount"] == 30).then(|| group["id"].clone())
    })
    .await;
    let delivery = eventually("a delivery about the group", async || {
        let listed = rest.get("/v1/notification/deliveries").await.ok();
        let id = &listed["deliveries"][0]["id"];
        id.is_string().then(|| id.clone())
    })
    .await;
    let mut agent = Agent::start(&world, &["--write"]);
    let change = json!({"id": group, "acknowledged": true});
    let error = agent.call("SetGroupStatus", &change).unwrap_err();
    assert!(error.contains("30 events"), "{error}");
    for tool in ["RetryDelivery", "CancelDelivery"] {
        let error = agent.call(tool, &json!({"id": delivery})).unwrap_err();
        assert!(error.contains("30 events"), "{tool}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_extends_and_deletes_a_silence() {
    let world = World::start();
    let rest = world.rest();
    let draft = silence("one", "host=db-1")["silence"].take();
    let named = [("bellwether-agent", "scripts 7")];
    let stored = rest.try_send(
        Method::POST,
        "/v1/notification/silences",
        &named,
        draft.to_string(),
    );
    stored.await.unwrap().ok();
    let mut agent = Agent::start(&world, &["--write"]);
    for (tool, arguments) in [
        ("ExtendSilence", json!({"name": "one", "duration": "600s"})),
        ("DeleteSilence", json!({"name": "one"})),
    ] {
        assert_eq!(silence_names(&rest).await, ["one"]);
        let token = agent.propose(tool, &arguments);
        agent.call("confirm", &json!({"token": token})).unwrap();
    }
    assert_eq!(silence_names(&rest).await, [""; 0]);
    let audit = rest.get("/v1/audit?kinds=silence").await.ok();
    let entries = audit["entries"].as_array().unwrap().iter();
    let agents: Vec<_> = entries.map(|it| it["agent"].as_str().unwrap()).collect();
    let own = "test?-agent 1.2";
    assert_eq!(agents, [own, own, "scripts 7"], "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_response_is_shortened_to_whole_events() {
    let world = World::start();
    let event = |number: usize| {
        let mut event = samples::event("disk", &format!("db-{number}"), "SEVERITY_ERROR", "full");
        event["body"] = "x".repeat(2_000).into();
        event
    };
    let events: Vec<_> = (0..100).map(event).collect();
    let sent = samples::events(&events);
    world
        .rest()
        .post("/v1/data-receiver/events", &sent)
        .await
        .ok();
    let mut agent = Agent::start(&world, &[]);
    let request = json!({"query": {"pageInput": {"limit": 100}}});
    let texts = agent.call("SearchEvents", &request).unwrap();
    let shown: Value = serde_json::from_str(&texts[0]).unwrap();
    let count = shown["results"].as_array().unwrap().len();
    assert!((10..40).contains(&count), "{count}");
    assert!(
        texts[1].contains(&format!("first {count} of 100")),
        "{}",
        texts[1]
    );
}

#[test]
fn server_reports_malformed_messages_and_ends_with_its_input() {
    let world = World::start();
    let mut agent = Agent::start(&world, &[]);
    let table = [
        ("{\"jsonrpc\": ", -32_700),
        ("[]", -32_600),
        ("{\"jsonrpc\": \"2.0\", \"id\": 7}", -32_600),
        (
            "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"none\"}",
            -32_601,
        ),
    ];
    for (line, code) in table {
        agent.send(line);
        let response = agent.receive();
        assert_eq!(response["error"]["code"], code, "{line}: {response}");
    }
    assert!(agent.request("ping", &json!({}))["result"].is_object());
    let Agent {
        mut child, input, ..
    } = agent;
    drop(input);
    let status = eventually_blocking("the server to end", || child.try_wait().unwrap());
    assert!(status.success(), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_reconnects_after_the_service_restarts() {
    let mut world = World::start();
    let mut agent = Agent::start(&world, &[]);
    agent.call("GetOverview", &json!({})).unwrap();
    world.kill();
    let error = agent.call("GetOverview", &json!({})).unwrap_err();
    assert!(error.contains("SERVICE_UNREACHABLE"), "{error}");
    world.start_again();
    agent.call("GetOverview", &json!({})).unwrap();
}
