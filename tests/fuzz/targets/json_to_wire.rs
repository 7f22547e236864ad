//! JSON of any request becomes wire bytes that decode, and comes back as the same message.
#![no_main]

use std::sync::LazyLock;

use bellwether_gateway::Transcoder;
use libfuzzer_sys::fuzz_target;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};

/// The first byte of an input picks one.
const MESSAGES: &[&str] = &[
    "zenoss.cloud.Events",
    "bellwether.v1.CreateTriggerRequest",
    "bellwether.v1.CreateDestinationRequest",
    "bellwether.v1.CreateRuleRequest",
    "bellwether.v1.SearchEventsRequest",
    "bellwether.v1.AnnotateRequest",
    "bellwether.v1.SetStatusRequest",
];

static SUBJECTS: LazyLock<Vec<(Transcoder, MessageDescriptor)>> = LazyLock::new(|| {
    let set = bellwether_proto::FILE_DESCRIPTOR_SET;
    let pool = DescriptorPool::decode(set).expect("the set was compiled");
    let subject = |name: &&str| {
        let descriptor = pool
            .get_message_by_name(name)
            .expect("the message is known");
        (
            Transcoder::new(set, name).expect("the set was compiled"),
            descriptor,
        )
    };
    MESSAGES.iter().map(subject).collect()
});

fuzz_target!(|input: &[u8]| {
    let Some((pick, json)) = input.split_first() else {
        return;
    };
    let (transcoder, descriptor) = &SUBJECTS[usize::from(*pick) % MESSAGES.len()];
    let Ok(wire) = transcoder.read(json) else {
        return;
    };
    let message =
        DynamicMessage::decode(descriptor.clone(), &*wire).expect("what was read decodes");
    let mut text = Vec::new();
    transcoder
        .write(&wire, &mut text)
        .expect("what was read can be written");
    let again = transcoder
        .read(&text)
        .expect("what was written can be read");
    let message_again = DynamicMessage::decode(descriptor.clone(), &*again).expect("it decodes");
    // No number equals NaN, not even NaN.
    if !text.windows(3).any(|three| three == b"NaN") {
        assert_eq!(message, message_again);
    }
});
