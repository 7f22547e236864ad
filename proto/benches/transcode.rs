//! Benchmarks the conversion of a batch of events from JSON to wire bytes and back, against the
//! reference.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its results and panics on the first failure"
)]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use bellwether_proto::json::{wire_from_json, wire_to_json};
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, prost::Message as _};

const EVENTS_TYPE: &str = "zenoss.cloud.Events";
const EVENTS: u32 = 100;
const ROUNDS: usize = 40;

fn main() {
    let set = bellwether_proto::FILE_DESCRIPTOR_SET;
    let pool = DescriptorPool::decode(set).unwrap();
    let theirs = pool.get_message_by_name(EVENTS_TYPE).unwrap();

    let events: Vec<String> = (0..EVENTS).map(event).collect();
    let json = format!(
        r#"{{"detailedResponse":true,"events":[{}]}}"#,
        events.join(",")
    );
    let wire = wire_from_json(EVENTS_TYPE, json.as_bytes()).unwrap();
    println!(
        "{EVENTS} events, {} bytes of JSON, {} on the wire",
        json.len(),
        wire.len()
    );

    let read = best(|| wire_from_json(EVENTS_TYPE, json.as_bytes()).unwrap());
    let write = best(|| wire_to_json(EVENTS_TYPE, &wire).unwrap());
    let reference_read = best(|| reference_read(&theirs, &json));
    let reference_write = best(|| {
        let message = DynamicMessage::decode(theirs.clone(), &*wire).unwrap();
        serde_json::to_vec(&message).unwrap()
    });
    report("JSON to wire", read, reference_read);
    report("wire to JSON", write, reference_write);
}

fn event(number: u32) -> String {
    format!(
        r#"{{"timestamp":1767225600{number:03},"name":"disk-full","dimensions":{{"host":"web-{number}",
        "source":"node-exporter","mount":"/var/lib"}},"type":"disk","severity":"SEVERITY_ERROR",
        "status":"STATUS_OPEN","summary":"/var/lib is 93 % full on web-{number}",
        "metadataFields":{{"used":93.5,"device":"/dev/sda1","tags":["a","b"],"inodes":{{"used":12}}}},
        "acknowledged":false}}"#
    )
}

fn reference_read(descriptor: &MessageDescriptor, json: &str) -> Vec<u8> {
    let mut reader = serde_json::Deserializer::from_str(json);
    DynamicMessage::deserialize(descriptor.clone(), &mut reader)
        .unwrap()
        .encode_to_vec()
}

/// Returns the time of the fastest of several runs, which other load disturbed least.
fn best<T>(mut run: impl FnMut() -> T) -> Duration {
    let time = |()| {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    };
    std::iter::repeat_n((), ROUNDS).map(time).min().unwrap()
}

fn report(what: &str, ours: Duration, theirs: Duration) {
    let per_event_us = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(EVENTS);
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    println!(
        "{what}: {:.2} us an event, reference {:.2} us, {ratio:.1} times as fast",
        per_event_us(ours),
        per_event_us(theirs)
    );
}
