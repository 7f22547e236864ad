//! Notifications: openings, updates, outstanding resolutions.
//!
//! A decision is stored in the commit of the change that causes it, so it can be read as soon as
//! the response to that change arrives.

mod changes;
mod openings;
mod reference;
mod updates;

use bellwether_tests::{receiver::Receiver, wire::Wire, world::World};
use serde_json::{Value, json};

use super::{event, send, set_status, stored, with};

const MINUTE: i64 = 60;
const CREATE_DESTINATION: &str = "DestinationService/CreateDestination";
const CREATE_TRIGGER: &str = "TriggerService/CreateTrigger";
const UPDATE_TRIGGER: &str = "TriggerService/UpdateTrigger";
const DELETE_TRIGGER: &str = "TriggerService/DeleteTrigger";
const CREATE_RULE: &str = "RuleService/CreateRule";
const UPDATE_RULE: &str = "RuleService/UpdateRule";
const DELETE_RULE: &str = "RuleService/DeleteRule";
const ANNOTATE: &str = "EventManagementService/Annotate";

/// Steps, each with the messages that it causes: `opening` or `update` per delivery, followed by
/// `clear` if that flag is set.
type Steps = Vec<(Step, &'static str)>;

enum Step {
    Send(Value),
    Set(Value),
    Rule(Value),
    /// Like [`Step::Rule`], and also notifies of open events.
    RuleForOpen(Value),
    Destination(bool),
    Annotate,
    Trigger(Value),
    /// Like [`Step::Trigger`], and also notifies of open events.
    TriggerForOpen(Value),
    DeleteRule,
    DeleteTrigger,
}

struct Case {
    name: &'static str,
    /// Fields that override those of the default rule, which is enabled and sends no updates.
    rule: Value,
    /// Clause of the trigger in addition to that for the host, if any.
    clause: Option<Value>,
    steps: Steps,
}

fn case(name: &'static str, rule: Value, clause: Option<Value>, steps: Steps) -> Case {
    Case {
        name,
        rule,
        clause,
        steps,
    }
}

fn sent(members: Value) -> Step {
    Step::Send(members)
}

fn closed() -> Step {
    Step::Send(json!({"status": "STATUS_CLOSED"}))
}

fn set(status: &str) -> Step {
    Step::Set(json!({"status": status}))
}

fn acknowledged(acknowledged: bool) -> Step {
    Step::Set(json!({"acknowledged": acknowledged}))
}

fn updates() -> Value {
    json!({"sendUpdates": true})
}

fn compares(field: &str, value: &str) -> Value {
    json!({"equals": {"field": field, "stringVal": value}})
}

fn plain() -> Step {
    sent(json!({}))
}

/// A case that runs over REST or gRPC with its own definitions.
struct Play {
    wire: Wire,
    host: String,
    trigger: Value,
    rule: Value,
    before: usize,
}

impl Play {
    async fn begin(wire: &Wire, hook: &str, number: usize, case: &Case) -> Self {
        let host = format!("{}-{number}", wire.name());
        let destination = json!({"name": host, "type": {"webhook": {"url": hook}}});
        wire.ok(CREATE_DESTINATION, &json!({"destination": destination}))
            .await;
        let rule = json!({
            "name": host,
            "enabled": true,
            "triggerNames": [host],
            "destinationNames": [host],
        });
        let mut play = Self {
            wire: wire.clone(),
            trigger: Value::Null,
            rule: with(&rule, &case.rule),
            host,
            before: 0,
        };
        play.trigger = play.trigger_of(case.clause.as_ref());
        let trigger = json!({"trigger": play.trigger});
        wire.ok(CREATE_TRIGGER, &trigger).await;
        wire.ok(CREATE_RULE, &json!({"rule": play.rule})).await;
        play
    }

    fn trigger_of(&self, clause: Option<&Value>) -> Value {
        let mut clauses = vec![compares("dimensions.host", &self.host)];
        clauses.extend(clause.cloned());
        json!({
            "name": self.host,
            "type": {"event": {"query": {"clause": {"and": {"clauses": clauses}}}}},
        })
    }

    async fn take(&mut self, step: &Step) {
        match step {
            Step::Send(members) => {
                let event = with(&event(&self.host), members);
                send(&self.wire, &[event]).await;
            }
            Step::Set(item) => {
                let answer = set_status(&self.wire, &self.host, item).await;
                assert_eq!(answer["success"], true, "{}: {answer}", self.host);
            }
            Step::Rule(members) | Step::RuleForOpen(members) => {
                self.rule = with(&self.rule, members);
                let notify = matches!(step, Step::RuleForOpen(_));
                self.update(UPDATE_RULE, "rule", &self.rule, notify).await;
            }
            Step::Destination(has) => {
                let names: &[&str] = if *has { &[&self.host] } else { &[] };
                self.rule = with(&self.rule, &json!({"destinationNames": names}));
                self.update(UPDATE_RULE, "rule", &self.rule, false).await;
            }
            Step::Annotate => {
                let id = stored(&self.wire, &self.host).await["id"].clone();
                let note = json!({"annotations": [{"eventId": id, "annotation": "looking"}]});
                let answer = self.wire.ok(ANNOTATE, &note).await;
                let answer = &answer["annotationResponses"][0];
                assert_eq!(answer["success"], true, "{}: {answer}", self.host);
            }
            Step::Trigger(clause) | Step::TriggerForOpen(clause) => {
                self.trigger = self.trigger_of(Some(clause));
                let notify = matches!(step, Step::TriggerForOpen(_));
                self.update(UPDATE_TRIGGER, "trigger", &self.trigger, notify)
                    .await;
            }
            Step::DeleteRule => {
                let request = json!({"name": self.host});
                self.wire.ok(DELETE_RULE, &request).await;
            }
            Step::DeleteTrigger => {
                let request = json!({"name": self.host, "force": true});
                self.wire.ok(DELETE_TRIGGER, &request).await;
            }
        }
    }

    /// Updates a definition. With `notify`, first counts the open events, then notifies about them.
    async fn update(&self, method: &str, kind: &str, definition: &Value, notify: bool) {
        if !notify {
            self.wire.ok(method, &json!({kind: definition})).await;
            return;
        }
        let request = json!({kind: definition, "notifyOpen": true});
        let dry_run = with(&request, &json!({"validateOnly": true}));
        let counted = self.wire.ok(method, &dry_run).await;
        let before = self.decided().await.len();
        assert_eq!(before, self.before, "a preview notifies no one: {counted}");
        self.wire.ok(method, &request).await;
        let reported = self.decided().await.len() - before;
        assert_eq!(counted["notifyCount"], reported, "{}: {counted}", self.host);
    }

    /// Returns all deliveries about the event, oldest first.
    async fn decided(&self) -> Vec<&'static str> {
        let found = json!({"query": {"clause": compares("dimensions.host", &self.host)}});
        let found = self.wire.ok(super::SEARCH, &found).await;
        let Some(id) = found["results"][0]["id"].as_str() else {
            return Vec::new();
        };
        let request = json!({"eventId": id, "pageSize": 1_000});
        let list = self
            .wire
            .ok("DeliveryService/ListDeliveries", &request)
            .await;
        let deliveries = list["deliveries"].as_array().cloned().unwrap_or_default();
        let kind = |delivery: &Value| match delivery["clear"].as_bool() {
            Some(false) => "opening",
            Some(true) => "update",
            None => panic!("`clear` is always present: {delivery}"),
        };
        deliveries.iter().rev().map(kind).collect()
    }
}

async fn hold(cases: impl Fn() -> Vec<Case>) {
    let world = World::start();
    let receiver = Receiver::start().await;
    let mut wrong = Vec::new();
    for wire in world.wires() {
        for (number, case) in cases().into_iter().enumerate() {
            let mut play = Play::begin(&wire, &receiver.url("/"), number, &case).await;
            for (at, (step, expected)) in case.steps.iter().enumerate() {
                play.take(step).await;
                let decided = play.decided().await;
                let news = decided[play.before..].join(" ");
                if news != *expected {
                    let step = at + 1;
                    let name = case.name;
                    let wire = wire.name();
                    wrong.push(format!(
                        "{wire}, {name}, step {step}: {news:?}, not {expected:?}"
                    ));
                    break;
                }
                play.before = decided.len();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
