//! Deliveries, attempts and reports of tests from the wire.

use bellwether_proto::v1;

use super::basic::millis;
use crate::{
    client::Answer,
    data::{Attempt, Delivery, DeliveryState, Outcome, Sent, TestReport},
};

pub(super) fn delivery_state(number: i32) -> DeliveryState {
    use v1::delivery::State;
    match State::try_from(number) {
        Ok(State::Pending) => DeliveryState::Pending,
        Ok(State::Leased) => DeliveryState::Leased,
        Ok(State::Retry) => DeliveryState::Retry,
        Ok(State::Delivered) => DeliveryState::Delivered,
        Ok(State::Dead) => DeliveryState::Dead,
        Ok(State::Cancelled) => DeliveryState::Cancelled,
        Ok(State::Unspecified) | Err(_) => DeliveryState::Unknown,
    }
}

pub(in crate::client) fn delivery(from: v1::Delivery) -> Delivery {
    Delivery {
        id: from.id,
        rule_name: from.rule_name,
        trigger_name: from.trigger_name,
        destination_name: from.destination_name,
        event_id: from.event_id,
        occurrence_id: from.occurrence_id,
        state: delivery_state(from.state),
        test: from.test.unwrap_or_default(),
        clear: from.clear.unwrap_or_default(),
        attempt_count: from.attempt_count.unwrap_or_default(),
        last_error: from.last_error,
        retry_of: from.retry_of,
        retried_as: from.retried_as,
        next_attempt_ms: millis(from.next_attempt_time),
        create_ms: millis(from.create_time),
        end_ms: millis(from.end_time),
        attempts: from.attempts.into_iter().map(attempt).collect(),
    }
}

pub(super) fn state_number(state: DeliveryState) -> i32 {
    use v1::delivery::State;
    let state = match state {
        DeliveryState::Unknown => State::Unspecified,
        DeliveryState::Pending => State::Pending,
        DeliveryState::Leased => State::Leased,
        DeliveryState::Retry => State::Retry,
        DeliveryState::Delivered => State::Delivered,
        DeliveryState::Dead => State::Dead,
        DeliveryState::Cancelled => State::Cancelled,
    };
    state.into()
}

pub(super) fn outcome(number: i32) -> Outcome {
    match v1::Outcome::try_from(number) {
        Ok(v1::Outcome::Delivered) => Outcome::Delivered,
        Ok(v1::Outcome::Rejected) => Outcome::Rejected,
        Ok(v1::Outcome::Unreachable) => Outcome::Unreachable,
        Ok(v1::Outcome::Blocked) => Outcome::Blocked,
        Ok(v1::Outcome::Unspecified) => Outcome::UnderWay,
        Ok(v1::Outcome::Unknown) | Err(_) => Outcome::Unknown,
    }
}

pub(super) fn duration_ms(from: &prost_types::Duration) -> i64 {
    from.seconds
        .saturating_mul(1_000)
        .saturating_add(i64::from(from.nanos) / 1_000_000)
}

pub(super) fn attempt(from: v1::Attempt) -> Attempt {
    Attempt {
        number: from.number,
        start_ms: millis(from.start_time),
        duration_ms: from.duration.as_ref().map(duration_ms),
        outcome: outcome(from.outcome),
        explanation: from.explanation,
        request: from.request.map(request),
        response: from.response.map(response),
    }
}

pub(super) fn request(from: v1::RequestTranscript) -> Sent {
    Sent {
        line: format!("{} {}", from.method, from.url),
        headers: from.headers,
        body: from.body,
    }
}

pub(super) fn response(from: v1::ResponseTranscript) -> Sent {
    Sent {
        line: from.status.to_string(),
        headers: from.headers,
        body: from.body,
    }
}

pub(in crate::client) fn test_report(from: v1::TestDestinationResponse) -> Answer {
    Answer::TestReport(Box::new(TestReport {
        attempt: Attempt {
            number: 1,
            start_ms: None,
            duration_ms: from.duration.as_ref().map(duration_ms),
            outcome: outcome(from.outcome),
            explanation: from.explanation,
            request: from.request.map(request),
            response: from.response.map(response),
        },
        delivery_id: from.delivery_id,
    }))
}
