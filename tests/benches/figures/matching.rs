//! Cost of an event with ten triggers in force, and with ten thousand.

use std::time::Duration;

use bellwether_tests::{rest::Rest, world::World};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    load::{Numbers, keep_in_flight, over_grpc},
    process::cpu_us,
    report::{Figure, Goal, Report},
};

const BATCH: usize = 100;
const IN_FLIGHT: usize = 16;
/// Triggers per rule.
const TRIGGERS_OF_RULE: usize = 100;

pub(crate) async fn measure(report: &mut Report) {
    if !report.wants("matching") {
        return;
    }
    let few = cost_us(10).await;
    let many = cost_us(10_000).await;
    report.add(Figure::new(
        "matching: an event, 10 triggers",
        few,
        "us CPU",
    ));
    let figure = Figure::new("matching: an event, 10,000 triggers", many, "us CPU");
    report.add(
        figure
            .goal(Goal::Most(3.0 * few))
            .beside("with 10", Some(few)),
    );
}

async fn cost_us(triggers: usize) -> f64 {
    let world = World::start();
    define(&world.rest(), triggers).await;
    // The definitions are in force from the next batch on. Let the work of creating them end first.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (numbers, channel, process) = (Numbers::default(), world.grpc(), world.service().id());
    let before = cpu_us(process);
    let load = keep_in_flight(IN_FLIGHT, BATCH, move || {
        over_grpc(channel.clone(), numbers.take(BATCH), BATCH)
    })
    .await;
    (cpu_us(process) - before) / load.events
}

/// Creates triggers that match none of the events but are evaluated for all of them, and rules that
/// use them.
async fn define(rest: &Rest, triggers: usize) {
    let destination = json!({"name": "d", "type": {"webhook": {"url": "http://127.0.0.1:9/"}}});
    rest.post("/v1/notification/destinations", &destination)
        .await
        .ok();
    let mut calls = JoinSet::new();
    for number in 0..triggers {
        let rest = rest.clone();
        calls.spawn(async move {
            rest.post("/v1/notification/triggers", &trigger(number))
                .await
                .ok();
        });
        if calls.len() >= 64 {
            calls.join_next().await;
        }
    }
    calls.join_all().await;
    let names: Vec<String> = (0..triggers).map(|number| format!("t{number}")).collect();
    for (number, names) in names.chunks(TRIGGERS_OF_RULE).enumerate() {
        let rule = json!({"name": format!("r{number}"), "enabled": true,
            "triggerNames": names, "destinationNames": ["d"]});
        rest.post("/v1/notification/rules", &rule).await.ok();
    }
}

/// Returns a trigger: a mix of equals, in, prefixes and contains.
fn trigger(number: usize) -> Value {
    let clause = match number % 4 {
        0 => {
            json!({"equals": {"field": "dimensions.host", "stringVal": format!("other-{number}")}})
        }
        1 => {
            json!({"in": {"field": "dimensions.host", "values": [format!("a-{number}"), format!("b-{number}")]}})
        }
        2 => json!({"startsWith": {"field": "dimensions.host", "value": format!("host-{number}")}}),
        _ => json!({"contains": {"field": "summary", "value": format!("fault {number} of")}}),
    };
    let clause = json!({"and": {"clauses": [
        clause, {"greaterAndEquals": {"field": "severity", "value": "warning"}}]}});
    json!({"name": format!("t{number}"), "type": {"event": {"query": {"clause": clause}}}})
}
