//! A service with a rule that notifies a destination of one event.

use bellwether_tests::{
    eventually::eventually, providers::StandIn, receiver::Received, rest::Rest, world::World,
};
use serde_json::{Value, json};

use crate::samples;

pub(super) const SUMMARY: &str = "disk /var is 97 % full & \"hot\" <!channel>";

pub(super) struct Stage {
    _world: World,
    pub(super) rest: Rest,
}

impl Stage {
    pub(super) async fn new(world: World, kind: Value, message: &str) -> Self {
        let rest = world.rest();
        let destination = json!({"name": "place", "type": kind});
        rest.post("/v1/notification/destinations", &destination)
            .await
            .ok();
        let trigger = samples::trigger("disk", "disk");
        rest.post("/v1/notification/triggers", &trigger).await.ok();
        let mut rule = samples::rule("teller", "disk", "place", message);
        rule["sendUpdates"] = json!(true);
        rest.post("/v1/notification/rules", &rule).await.ok();
        Self {
            _world: world,
            rest,
        }
    }

    pub(super) async fn say(&self, severity: &str, status: &str) {
        let mut event = samples::event("full", "db-1", severity, SUMMARY);
        event["type"] = json!("disk");
        event["status"] = json!(status);
        event["metadataFields"] = json!({"usedPercent": 97.5, "mount": {"point": "/var"}});
        let answer = self
            .rest
            .post("/v1/data-receiver/events", &samples::events(&[event]))
            .await
            .ok();
        assert_eq!(answer["succeeded"], 1, "{answer}");
    }

    pub(super) async fn opens(&self) {
        self.say("SEVERITY_ERROR", "STATUS_OPEN").await;
    }

    pub(super) async fn gets_worse(&self) {
        self.say("SEVERITY_CRITICAL", "STATUS_OPEN").await;
    }

    pub(super) async fn closes(&self) {
        self.say("SEVERITY_CRITICAL", "STATUS_CLOSED").await;
    }

    pub(super) async fn is_acknowledged(&self) {
        let event = self.event().await;
        let status = json!({"eventId": event["id"], "acknowledged": true});
        let statuses = json!({"statuses": [status]});
        let answer = self
            .rest
            .post("/v1/event-management/status", &statuses)
            .await
            .ok();
        assert_eq!(answer["statusResponses"][0]["success"], true, "{answer}");
    }

    pub(super) async fn event(&self) -> Value {
        let query =
            json!({"query": {"clause": {"equals": {"field": "name", "stringVal": "full"}}}});
        let found = self.rest.post("/v1/events:search", &query).await.ok();
        found["results"][0].clone()
    }

    pub(super) async fn wait_received(&self, provider: &StandIn, count: usize) -> Received {
        let wanted = format!("message {count}");
        let reported = eventually(&wanted, async || {
            let received = provider.accepted();
            (received.len() >= count).then_some(received)
        })
        .await;
        assert_eq!(reported.len(), count, "too many messages");
        reported[count - 1].clone()
    }

    /// Waits until this many deliveries have arrived, and returns them newest first, with their
    /// attempts.
    pub(super) async fn delivered(&self, count: usize) -> Vec<Value> {
        let list = "/v1/notification/deliveries";
        let ended = eventually("the deliveries to end", async || {
            let list = self.rest.get(list).await.ok();
            let deliveries = list["deliveries"].as_array().cloned().unwrap_or_default();
            let ended = deliveries.iter().all(|one| one["endTime"].is_string());
            (ended && deliveries.len() >= count).then_some(deliveries)
        })
        .await;
        assert_eq!(ended.len(), count, "{ended:#?}");
        let mut whole = Vec::new();
        for one in ended {
            assert_eq!(one["state"], "DELIVERED", "{one}");
            let id = one["id"].as_str().expect("an id");
            let answer = self.rest.get(&format!("{list}/{id}")).await.ok();
            whole.push(answer["delivery"].clone());
        }
        whole
    }
}
