//! CPU time that the gateway adds to a call.

use std::time::Duration;

use bellwether_proto::v1::{GetTriggerRequest, trigger_service_client::TriggerServiceClient};
use bellwether_tests::world::World;
use serde_json::json;

use crate::{
    load::{Numbers, keep_in_flight, over_grpc, over_rest},
    process::cpu_us,
    report::{Figure, Goal, Report},
};

const IN_FLIGHT: usize = 16;
const BATCH: usize = 100;

pub(crate) async fn measure(report: &mut Report) {
    if !report.wants("gateway") {
        return;
    }
    let world = World::start();
    let process = world.service().id();
    let body = json!({"name": "t", "type": {"event": {"query": {"clause":
        {"equals": {"field": "name", "stringVal": "x"}}}}}});
    world
        .rest()
        .post("/v1/notification/triggers", &body)
        .await
        .ok();

    let channel = world.grpc();
    let read = keep_in_flight(IN_FLIGHT, 1, {
        move || {
            let channel = channel.clone();
            async move {
                let request = GetTriggerRequest { name: "t".into() };
                let answer = TriggerServiceClient::new(channel)
                    .get_trigger(request)
                    .await;
                answer.expect("the trigger");
            }
        }
    });
    let direct = cpu_each(process, read).await;
    let client = world.rest();
    let read = keep_in_flight(IN_FLIGHT, 1, move || {
        let client = client.clone();
        async move {
            client.get("/v1/notification/triggers/t").await.ok();
        }
    });
    let gateway = cpu_each(process, read).await;
    let figure = Figure::new(
        "gateway: a read, more than direct gRPC",
        gateway - direct,
        "us CPU",
    );
    report.add(figure.goal(Goal::Most(15.0)));
    report
        .add(Figure::new("gateway: a read", gateway, "us CPU").beside("direct gRPC", Some(direct)));

    let (numbers, channel) = (Numbers::default(), world.grpc());
    let (again, client) = (numbers.clone(), world.rest());
    let batches = keep_in_flight(IN_FLIGHT, BATCH, move || {
        over_grpc(channel.clone(), numbers.take(BATCH), BATCH)
    });
    let direct = cpu_each(process, batches).await;
    let batches = keep_in_flight(IN_FLIGHT, BATCH, move || {
        over_rest(client.clone(), again.take(BATCH), BATCH)
    });
    let gateway = cpu_each(process, batches).await;
    let name = "gateway: an event in a batch of 100, more";
    report.add(Figure::new(name, gateway - direct, "us CPU").goal(Goal::Most(4.0)));
    let figure = Figure::new("gateway: an event in a batch of 100", gateway, "us CPU");
    report.add(figure.beside("direct gRPC", Some(direct)));
}

/// Returns the service's CPU time per event of a load, in microseconds.
async fn cpu_each(process: u32, load: impl Future<Output = crate::load::Load>) -> f64 {
    // Wait, so that work left by the previous load does not count.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = cpu_us(process);
    let load = load.await;
    (cpu_us(process) - before) / load.events
}
