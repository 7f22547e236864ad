//! Conversion of destination health to the wire.

use std::time::Duration;

use bellwether_proto::v1::{
    AttemptResult, DestinationHealth, RefusedRecipient, destination_health::State,
};

use super::{HealthSummary, HealthVerdict};
use crate::{
    domain::destination as domain,
    wire::{
        time::{duration, timestamp},
        to_i32,
    },
};

const ATTEMPTS: usize = 5;

pub fn health_to_wire(health_summary: Option<&HealthSummary>) -> DestinationHealth {
    let Some(health_summary) = health_summary else {
        return DestinationHealth {
            state: State::Untried.into(),
            ..DestinationHealth::default()
        };
    };
    let state = match health_summary.verdict {
        HealthVerdict::Untried => State::Untried,
        HealthVerdict::Healthy => State::Healthy,
        HealthVerdict::Slow => State::Slow,
        HealthVerdict::Behind => State::Behind,
        HealthVerdict::Failing => State::Failing,
        HealthVerdict::Paused => State::Paused,
    };
    let health = health_summary.health.as_ref();
    let tried = health.map_or(&[][..], |health| &health.tried);
    let failed = tried.iter().filter(|one| !one.is_delivered).count();
    DestinationHealth {
        state: state.into(),
        since: health.map(|health| timestamp(since_ms(health, health_summary.verdict))),
        last_error: health.map_or_else(String::new, |health| health.last_error.clone()),
        last_success_time: health.and_then(|it| it.last_success_ms).map(timestamp),
        p50: health_summary.p50.map(duration),
        p95: health_summary.p95.map(duration),
        attempt_count: Some(to_i32(tried.len())),
        failed_attempt_count: Some(to_i32(failed)),
        waiting_count: Some(to_i32(health_summary.waiting)),
        oldest_waiting_time: health_summary.oldest_ms.map(timestamp),
        drain_time: health_summary.drain.map(duration),
        refused_recipients: health.map_or_else(Vec::new, |health| {
            health
                .refused
                .iter()
                .map(rejected_recipient_to_wire)
                .collect()
        }),
        last_attempts: tried
            .iter()
            .rev()
            .take(ATTEMPTS)
            .copied()
            .map(attempt_result_to_wire)
            .collect(),
    }
}

fn since_ms(health: &domain::Health, verdict: HealthVerdict) -> i64 {
    match verdict {
        HealthVerdict::Failing => health.failing_since_ms(),
        _ => health.since_ms,
    }
}

fn attempt_result_to_wire(tried: domain::AttemptSummary) -> AttemptResult {
    AttemptResult {
        delivered: Some(tried.is_delivered),
        duration: Some(duration(Duration::from_millis(tried.took_ms.into()))),
    }
}

fn rejected_recipient_to_wire(recipient: &domain::RejectedRecipient) -> RefusedRecipient {
    RefusedRecipient {
        address: recipient.address.clone(),
        answer: recipient.said.clone(),
        permanent: Some(recipient.is_permanent),
        since: Some(timestamp(recipient.since_ms)),
    }
}
