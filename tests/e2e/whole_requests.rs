//! Tests that a request is evaluated as a whole: a cause holds its effects in the same request,
//! whatever their order, over every path that accepts several events per request.

use bellwether_proto::cloud::{
    self, EventWrapper, Events, data_receiver_service_client::DataReceiverServiceClient,
    event_wrapper::EventType,
};
use bellwether_tests::{
    eventually::eventually, process, receiver::Receiver, rest::Rest, world::World,
};
use http::Method;
use serde_json::{Value, json};

use crate::{postgres::Database, samples};

const EFFECTS: usize = 40;

/// The events of a request: their site, and their names in order.
struct Sent<'a> {
    site: String,
    names: Vec<&'a str>,
}

/// Returns orders of a cause and its effects in a request: with the cause first, last, and in
/// between.
fn orders(cause: &'static str, effect: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    [0, EFFECTS, 1, EFFECTS / 2, EFFECTS - 1]
        .into_iter()
        .map(move |before| {
            let mut names = vec![effect; EFFECTS];
            names.insert(before, cause);
            names
        })
}

async fn set_up(rest: &Rest, receiver: &Receiver) {
    let mut trigger = samples::trigger("all", "any");
    trigger["type"] =
        json!({"event": {"filter": "name=HostDown or name=Effect or name=Other or name=Patched"}});
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    let hook = samples::webhook("hook", &receiver.url("/"));
    rest.post("/v1/notification/destinations", &hook).await.ok();
    let rule = samples::rule("page", "all", "hook", "{{event.name}}");
    rest.post("/v1/notification/rules", &rule).await.ok();
    for field in ["site", "source", "service.namespace"] {
        let inhibition = json!({
            "name": format!("dead by {field}"),
            "enabled": true,
            "sourceFilter": "name=HostDown",
            "targetFilter": "name=Effect",
            "equal": [{"source": format!("dimensions.{field}")}],
        });
        let path = "/v1/notification/inhibitions";
        rest.post(path, &inhibition).await.ok();
        eventually("the inhibition to be active", async || {
            let read = rest.get(&format!("{path}/dead%20by%20{field}")).await.ok();
            (read["inhibition"]["state"] == "ACTIVE").then_some(())
        })
        .await;
    }
}

async fn post(rest: &Rest, path: &str, content_type: &str, body: &Value) {
    let headers = [("content-type", content_type)];
    let answer = rest
        .try_send(Method::POST, path, &headers, body.to_string())
        .await
        .unwrap();
    assert!(answer.status.is_success(), "{path}: {}", answer.text());
}

impl Sent<'_> {
    fn each<T>(&self, make: impl Fn(usize, &str) -> T) -> Vec<T> {
        let all = self.names.iter().enumerate();
        all.map(|(at, name)| make(at, name)).collect()
    }

    fn native(&self) -> Vec<cloud::Event> {
        self.each(|at, name| cloud::Event {
            name: name.into(),
            dimensions: [
                ("site".into(), self.site.clone()),
                ("at".into(), at.to_string()),
            ]
            .into(),
            severity: cloud::Severity::Error.into(),
            ..cloud::Event::default()
        })
    }

    async fn send(&self, world: &World, way: &str) {
        let rest = world.rest();
        let alert = |at: usize, name: &str| {
            let labels = json!({"alertname": name, "site": self.site, "at": at.to_string()});
            json!({"status": "firing", "labels": labels, "annotations": {}})
        };
        let json = "application/json";
        match way {
            "REST" => {
                let events = self.each(|at, name| {
                    let dimensions = json!({"site": self.site, "at": at.to_string()});
                    json!({"name": name, "dimensions": dimensions, "severity": "SEVERITY_ERROR"})
                });
                let path = "/v1/data-receiver/events";
                post(&rest, path, json, &samples::events(&events)).await;
            }
            "gRPC" => {
                let request = Events {
                    events: self.native(),
                    ..Events::default()
                };
                let mut client = DataReceiverServiceClient::new(world.grpc());
                client.put_events(request).await.unwrap();
            }
            "stream" => {
                let wrapped = self.native().into_iter().map(|event| EventWrapper {
                    event_type: Some(EventType::Canonical(event)),
                });
                let stream = futures_util::stream::iter(wrapped.collect::<Vec<_>>());
                let mut client = DataReceiverServiceClient::new(world.grpc());
                client.put_event(stream).await.unwrap();
            }
            "Prometheus" => {
                let alerts = Value::Array(self.each(alert));
                post(&rest, "/api/v2/alerts", json, &alerts).await;
            }
            "Alertmanager" => {
                let message =
                    json!({"version": "4", "status": "firing", "alerts": self.each(alert)});
                post(&rest, "/v1/intake/alertmanager", json, &message).await;
            }
            "CloudEvents" => {
                let batch = Value::Array(self.each(|at, name| {
                    json!({"specversion": "1.0", "id": at.to_string(), "source": self.site,
                        "type": name, "subject": at.to_string(), "severity": "error"})
                }));
                let of = "application/cloudevents-batch+json";
                post(&rest, "/v1/intake/cloudevents", of, &batch).await;
            }
            "OTLP" => {
                let attribute =
                    |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
                let logs = self.each(|at, name| {
                    let resource = json!({"attributes": [
                        attribute("service.namespace", &self.site),
                        attribute("service.name", &at.to_string()),
                    ]});
                    let record = json!({"eventName": name, "severityNumber": 17,
                        "body": {"stringValue": "it is wrong"}});
                    json!({"resource": resource, "scopeLogs": [{"logRecords": [record]}]})
                });
                let request = json!({"resourceLogs": logs});
                post(&rest, "/v1/logs", json, &request).await;
            }
            other => panic!("unknown entry point {other}"),
        }
    }
}

const WAYS: [&str; 7] = [
    "REST",
    "gRPC",
    "stream",
    "Prometheus",
    "Alertmanager",
    "CloudEvents",
    "OTLP",
];

async fn deliveries(rest: &Rest) -> usize {
    let path = "/v1/notification/deliveries?pageSize=1000";
    let all = rest.get(path).await.ok();
    all["deliveries"].as_array().map_or(0, Vec::len)
}

/// Sends a cause with its effects, in each order and over each path, and asserts that each request
/// causes one notification.
async fn causes_are_notified(world: World, receiver: &Receiver) {
    let rest = world.rest();
    set_up(&rest, receiver).await;
    let mut notified = 0;
    for way in WAYS {
        for (order, names) in orders("HostDown", "Effect").enumerate() {
            let site = format!("{way}-{order}");
            Sent { site, names }.send(&world, way).await;
            notified += 1;
            assert_eq!(deliveries(&rest).await, notified, "{way}, order {order}");
        }
    }
    receiver.wait_for(notified).await;
    for request in receiver.received() {
        assert_eq!(request.json()["event"]["name"], "HostDown");
    }
    world_is_whole(world);
}

#[tokio::test]
async fn request_with_cause_and_effects_notifies_once_on_every_path() {
    let receiver = Receiver::start().await;
    causes_are_notified(World::start(), &receiver).await;
}

#[tokio::test]
async fn request_with_cause_and_effects_notifies_once_with_postgres() {
    let Some(database) = Database::start() else {
        return;
    };
    let receiver = Receiver::start().await;
    causes_are_notified(database.world(), &receiver).await;
}

fn world_is_whole(mut world: World) {
    let address = format!("http://{}", world.service().address("grpc"));
    let mut check = process::command(world.folder(), ["check", "--connect", &address]);
    check
        .arg("--key-file")
        .arg(world.data_dir().join("admin.key"));
    let output = process::run(check);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(world.terminate().success());
}
