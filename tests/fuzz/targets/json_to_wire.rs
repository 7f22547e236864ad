//! The JSON of any request is converted to wire bytes that decode, and back to the same message.
#![no_main]

use std::sync::LazyLock;

use bellwether_proto::json::{wire_from_json, wire_to_json};
use libfuzzer_sys::fuzz_target;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};

/// The message types; the first byte of an input selects one.
const MESSAGES: &[&str] = &[
    "zenoss.cloud.Events",
    "bellwether.v1.CreateTriggerRequest",
    "bellwether.v1.CreateDestinationRequest",
    "bellwether.v1.CreateRuleRequest",
    "bellwether.v1.SearchEventsRequest",
    "bellwether.v1.AnnotateRequest",
    "bellwether.v1.SetStatusRequest",
];

static DESCRIPTORS: LazyLock<Vec<MessageDescriptor>> = LazyLock::new(|| {
    let set = bellwether_proto::FILE_DESCRIPTOR_SET;
    let pool = DescriptorPool::decode(set).expect("the set was compiled");
    let descriptor = |name: &&str| {
        let found = pool.get_message_by_name(name);
        found.expect("the message is known")
    };
    MESSAGES.iter().map(descriptor).collect()
});

fuzz_target!(|input: &[u8]| {
    let Some((pick, json)) = input.split_first() else {
        return;
    };
    let pick = usize::from(*pick) % MESSAGES.len();
    let (name, descriptor) = (MESSAGES[pick], &DESCRIPTORS[pick]);
    let Ok(wire) = wire_from_json(name, json) else {
        return;
    };
    let message =
        DynamicMessage::decode(descriptor.clone(), &*wire).expect("a message that was read decodes");
    let text = wire_to_json(name, &wire).expect("a message that was read can be written");
    let again = wire_from_json(name, &text).expect("a message that was written can be read");
    let message_again = DynamicMessage::decode(descriptor.clone(), &*again).expect("it decodes");
    // Skip NaN, which does not even equal itself.
    if !text.windows(3).any(|three| three == b"NaN") {
        assert_eq!(message, message_again);
    }
});
