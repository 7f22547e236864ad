//! Time until an overly expensive template is rejected, compared with a cheap one.

use std::time::{Duration, Instant};

use bellwether_tests::{wire::Wire, world::World};
use serde_json::{Value, json};

use crate::report::{Figure, Goal, Report};

/// A short template whose cost grows with the square of the length of a list.
const SQUARE: &str =
    "{{#event.metadata.m}}{{#event.metadata.m}}{{/event.metadata.m}}{{/event.metadata.m}}";
/// Number of calls of each kind over each protocol.
const CALLS: usize = 20;

pub(crate) async fn measure(report: &mut Report) {
    if !report.wants("templates") {
        return;
    }
    let world = World::start();
    let rest = world.rest();
    let hook = json!({"webhook": {"url": "http://127.0.0.1:9/"}});
    let hook = json!({"name": "hook", "type": hook});
    rest.post("/v1/notification/destinations", &hook).await.ok();
    let event = json!({"name": "full", "dimensions": {"host": "a"},
        "metadataFields": {"m": vec![1; 30_000]}});
    let events = json!({"events": [event]});
    rest.post("/v1/data-receiver/events", &events).await.ok();
    let search = json!({"query": {"filter": "name=full"}});
    let found = rest.post("/v1/events:search", &search).await.ok();
    let event_id = &found["results"][0]["id"];
    let preview = |message: &str| json!({"eventId": event_id, "message": message, "destinationNames": ["hook"]});
    let names = ["n."; 255].concat() + "nn";
    let long = SQUARE.replace("{{/event", &format!("{{{{{names}}}}}{{{{/event"));
    let document = json!({"m": vec![1; 60_000]}).to_string();
    let mapping = json!({"event": {"name": "x", "summary": "{{#m}}{{#m}}{{/m}}{{/m}}",
        "dimensions": {"host": "a"}}});
    let test = json!({"mapping": mapping, "body": document});
    let mut plain = Duration::ZERO;
    let mut costly = Duration::ZERO;
    for wire in world.wires() {
        for _ in 0..CALLS {
            let start = Instant::now();
            let request = preview("{{event.summary}}");
            wire.ok("RuleService/PreviewRule", &request).await;
            plain = plain.max(start.elapsed());
            for (method, request) in [
                ("RuleService/PreviewRule", &preview(SQUARE)),
                ("RuleService/PreviewRule", &preview(&long)),
                ("IntakeMappingService/TestIntakeMapping", &test),
            ] {
                costly = costly.max(time_rejection(&wire, method, request).await);
            }
        }
    }
    let name = "templates: longest refusal of one that costs too much";
    let figure = Figure::new(name, costly.as_secs_f64(), "s").goal(Goal::Most(5.0));
    report.add(figure.beside("a plain one", Some(plain.as_secs_f64())));
}

/// Returns the time of a call that is rejected because of its template's cost.
async fn time_rejection(wire: &Wire, method: &str, request: &Value) -> Duration {
    let start = Instant::now();
    let refusal = wire.refused(method, request).await;
    assert!(refusal.message.contains("steps"), "{}", refusal.message);
    start.elapsed()
}
