//! How an attempt begins and ends in the records: no I/O.

use std::time::Duration;

use crate::{
    clock::millis,
    config::DeliveryConfig,
    destination::Report,
    domain::{
        Attempt, Delivery, DeliverySettings, DeliveryState, DestinationKind, RecordId, Transcript,
    },
    store::record::bytes::Key,
};

/// How much longer than an attempt a lease is, so that the end can still be recorded.
pub(crate) const LEASE_MARGIN: Duration = Duration::from_secs(10);

/// Timeout of an attempt. A mail server may respond to the text of a mail late.
pub(crate) fn longest(
    config: &DeliveryConfig,
    settings: DeliverySettings,
    kind: &DestinationKind,
) -> Duration {
    let timeout = settings.timeout.unwrap_or(config.timeout);
    match kind {
        DestinationKind::Email(_) => timeout + config.mail_answer_timeout,
        _ => timeout,
    }
}

/// A delivery whose next attempt begins, and that attempt, which takes at most so long.
pub(crate) fn begun(delivery: &Delivery, longest: Duration, now_ms: i64) -> (Delivery, Attempt) {
    let until_ms = now_ms.saturating_add(millis(longest + LEASE_MARGIN));
    let begun = Delivery {
        state: DeliveryState::Leased { until_ms },
        attempts: delivery.attempts + 1,
        ..delivery.clone()
    };
    let attempt = attempt(begun.id, begun.attempts, now_ms);
    (begun, attempt)
}

/// An attempt of which nothing is known but that it began.
pub(crate) fn attempt(delivery: RecordId, number: u32, start_ms: i64) -> Attempt {
    Attempt {
        delivery,
        number,
        start_ms,
        duration: None,
        outcome: None,
        explanation: String::new(),
        transcript: Transcript::default(),
    }
}

/// An attempt that ended.
pub(crate) fn ended(attempt: &Attempt, report: &Report) -> Attempt {
    Attempt {
        duration: Some(report.duration),
        outcome: Some(report.verdict.outcome),
        explanation: report.verdict.explanation.clone(),
        transcript: report.transcript.clone(),
        ..attempt.clone()
    }
}

/// The key of an attempt.
pub(crate) fn attempt_key(delivery: RecordId, number: u32) -> Vec<u8> {
    Key::new().id(delivery).number(number).build()
}
