//! Unexpected responses: too large, endless, and from a newer service.

use std::sync::Arc;

use bellwether_proto::v1;
use bellwether_tests::middleman::{Change, RewritingProxy};
use prost::Message;

use super::*;

/// Memory limit of a console during endless responses, many times as high as its normal use.
const MEMORY_MAX_MIB: u64 = 256;
/// An unknown enumeration value, and two unknown fields in their encoded form.
const NO_VALUE: i32 = 77;
const NO_FIELDS: [u8; 9] = [0x80, 0x7d, 0x01, 0x8a, 0x7d, 0x03, b'n', b'e', b'w'];

fn middleman(world: &World) -> RewritingProxy {
    RewritingProxy::start(world.service().address("grpc"))
}

fn console(world: &World, middleman: &RewritingProxy) -> Terminal {
    console_at(world, &middleman.address().to_string())
}

/// Modifies messages of this type as a newer service would.
fn newer<M: Message + Default + 'static>(change: fn(&mut M)) -> Change {
    Change::Message(Arc::new(move |bytes| {
        let mut message = M::decode(bytes).unwrap();
        change(&mut message);
        let mut bytes = message.encode_to_vec();
        bytes.extend_from_slice(&NO_FIELDS);
        bytes
    }))
}

/// Modifies responses as a newer service would: adds unknown values and fields, and removes a
/// method.
fn speak_newer(middleman: &RewritingProxy) {
    middleman.change(
        "OverviewService/GetOverview",
        newer(|overview: &mut v1::GetOverviewResponse| "9.8.7".clone_into(&mut overview.version)),
    );
    middleman.change(
        "DestinationService/ListDestinations",
        newer(|list: &mut v1::ListDestinationsResponse| {
            for health in list
                .destinations
                .iter_mut()
                .filter_map(|row| row.health.as_mut())
            {
                health.state = NO_VALUE;
            }
        }),
    );
    middleman.change(
        "DeliveryService/ListDeliveries",
        newer(|list: &mut v1::ListDeliveriesResponse| {
            list.deliveries
                .iter_mut()
                .for_each(|row| row.state = NO_VALUE);
        }),
    );
    middleman.change(
        "EventQueryService/SearchEvents",
        newer(|list: &mut v1::SearchEventsResponse| {
            for occurrence in list.results.iter_mut().flat_map(|row| &mut row.occurrences) {
                occurrence.severity = NO_VALUE;
            }
        }),
    );
    middleman.change(
        "EventQueryService/WatchEvents",
        newer(|_: &mut v1::WatchEventsResponse| {}),
    );
    middleman.change("ClientService/ListClients", Change::Missing);
}

fn memory_mib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() / 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_response_is_reported_without_blocking_the_console() {
    let world = World::start();
    let middleman = middleman(&world);
    happen(&world.rest(), &["ash", "birch"]).await;
    middleman.change("EventQueryService/SearchEvents", Change::Oversize);
    middleman.change("EventQueryService/WatchEvents", Change::Oversize);
    let mut console = console(&world, &middleman);
    console.shows(&["Overview", "● connected"]);

    console.press("2");
    console.shows(&["● connected", "not live", "limit of 16 MiB"]);
    console.press("7");
    console.shows(&["● connected", "Last used"]);
    assert_keys_respond(&mut console, "7");
    assert!(memory_mib(console.process()) < MEMORY_MAX_MIB);

    middleman.clear_changes();
    console.press("2");
    console.press("R");
    let screen = console.shows(&["● connected", "live", "it is ash", "it is birch"]);
    assert_stands_once(&screen, &["ash", "birch"]);
    assert_left(console);
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_stream_blocks_neither_keys_nor_memory() {
    let world = World::start();
    let middleman = middleman(&world);
    happen(&world.rest(), &["ash", "birch"]).await;
    let found = world
        .rest()
        .post("/v1/events:search", &serde_json::json!({}))
        .await
        .ok();
    let id = found["results"][0]["id"].as_str().unwrap().to_owned();
    let occurrence = v1::Occurrence {
        id: format!("{id}:1"),
        event_id: id.clone(),
        summary: "it is a flood".to_owned(),
        ..v1::Occurrence::default()
    };
    let event = v1::Event {
        id,
        occurrences: vec![occurrence],
        ..v1::Event::default()
    };
    let reported = v1::WatchEventsResponse {
        events: vec![event; 50],
        resume_token: "on".to_owned(),
        ..v1::WatchEventsResponse::default()
    };
    let endless = Change::Endless(reported.encode_to_vec().into());
    middleman.change("EventQueryService/WatchEvents", endless);
    let mut console = console(&world, &middleman);
    console.shows(&["Overview", "● connected"]);

    console.press("2");
    console.shows(&["it is a flood"]);
    assert_keys_respond(&mut console, "2");
    let held = memory_mib(console.process());
    assert!(held < MEMORY_MAX_MIB, "{held} MiB");
    assert_left(console);
}

#[tokio::test(flavor = "multi_thread")]
async fn console_works_with_a_newer_service() {
    let mut world = World::start();
    let middleman = middleman(&world);
    let receiver = Receiver::start().await;
    crate::journey::set_up(&world.rest(), &receiver).await;
    let event = samples::event("full", "db-1", "SEVERITY_ERROR", "the disk is full");
    let rest = world.rest();
    rest.post("/v1/data-receiver/events", &samples::events(&[event]))
        .await
        .ok();
    let mut console = console(&world, &middleman);
    console.shows(&["● connected"]);
    console.press("2");
    console.shows(&["the disk is full"]);
    console.press("4n");
    console.shows(&["New destination"]);
    console.press("night-shift");
    console.shows(&["night-shift"]);

    assert!(world.terminate().success());
    console.shows(&["✗ not connected", "night-shift"]);
    speak_newer(&middleman);
    world.start_again();
    middleman.redirect_to(world.service().address("grpc"));

    console.shows(&["● connected", "night-shift"]);
    console.press("\x1b");
    console.shows(&["Typed text will be lost"]);
    console.press("y");
    console.shows(&["hook", "unknown"]);
    console.press("1");
    console.shows(&["9.8.7"]);
    console.press("2");
    let screen = console.shows(&["the disk is full", "live"]);
    assert_eq!(screen.matches("the disk is full").count(), 1, "{screen}");
    console.press("6");
    console.shows(&["unknown", "hook"]);
    console.press("7");
    console.shows(&[
        "not supported by this service: this method is gone",
        "● connected",
    ]);
    assert_left(console);
}
