//! Deliveries and attempts.

use std::time::Duration;

use crate::{
    domain::{
        Attempt, Content, Delivery, DeliveryState, DigestMembership, Outcome, RecordId, Transcript,
        delivery::{Recipients, ReportedState, Request, Response, RuleContent},
        destination::KeptValues,
    },
    record::table::{numbers, record},
};

record! {
    Delivery as it {
        1 id, 2 rule, 3 destination, 4 destination_name, 5 event,
        6 number = u32::from(it.state.number()),
        7 due_ms = it.state.due_ms().unwrap_or(0),
        8 test, 9 attempts, 10 last_error, 11 create_ms, 12 end_ms, 13 retry_of, 14 content,
        15 retried_as,
        16 alone = it.folding == DigestMembership::Alone,
        17 folded_into = it.folding.digest_id(),
        18 origin,
        19 reached = it.recipients.reached,
        20 refused = it.recipients.refused,
        21 in_thread, 22 deferrals, 23 awaits_receiver, 24 is_reduced,
        25 behind, 26 may_have_arrived,
    } with {
        state: decode_state(number, due_ms)?,
        folding: decode_folding(folded_into, alone),
        recipients: Recipients { reached, refused },
        kept: KeptValues::default(),
    }
}

fn decode_state(number: u32, due_ms: i64) -> Option<DeliveryState> {
    let states = [
        DeliveryState::Pending { due_ms },
        DeliveryState::Leased { until_ms: due_ms },
        DeliveryState::Retry { due_ms },
        DeliveryState::Delivered,
        DeliveryState::Dead,
        DeliveryState::Cancelled,
        DeliveryState::Folded,
        DeliveryState::Shadowed,
    ];
    let mut states = states.into_iter();
    states.find(|state| u32::from(state.number()) == number)
}

fn decode_folding(digest: Option<RecordId>, alone: bool) -> DigestMembership {
    match digest {
        Some(digest) => DigestMembership::Into(digest),
        None if alone => DigestMembership::Alone,
        None => DigestMembership::Open,
    }
}

record! { Content {
    1 clear, 2 occurrence, 3 rule, 4 trigger, 5 destination_kind, 6 group, 7 thread, 8 digest,
    9 template_language, 10 contact, 11 previous,
} }

record! { ReportedState { 1 severity, 2 status } }

record! { RuleContent {
    1 name, 2 description, 3 message, 4 enabled, 5 repeat_interval_seconds, 6 trigger_names,
    7 destination_names, 8 template_language,
} }

record! {
    Attempt as it {
        1 delivery, 2 number, 3 start_ms,
        4 duration_us = it.duration.map(to_microseconds),
        5 outcome as OptionalForm,
        6 explanation,
        7 request = it.transcript.request,
        8 response = it.transcript.response,
        9 is_reduced,
    } with {
        duration: Option::map(duration_us, Duration::from_micros),
        transcript: Transcript { request, response },
    }
}

fn to_microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

record! { Request { 1 method, 2 url, 3 headers, 4 body } }

record! {
    Response as it {
        1 status = u32::from(it.status), 2 headers, 3 body,
    } with { status: TryFrom::<u32>::try_from(status).ok()? }
}

numbers! { Outcome }
