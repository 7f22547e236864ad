//! Transitions of delivery and attempt records at the start and end of an attempt; no I/O.

use std::time::Duration;

use bellwether_backend_base::config::DeliveryConfig;

use crate::{
    clock::to_millis,
    domain::{
        Attempt, Delivery, DeliverySettings, DeliveryState, DestinationKind, RecordId, Transcript,
    },
    send::AttemptReport,
    store::record::bytes::Key,
};

/// Time by which a lease outlasts its attempt, so that the attempt's outcome can still be recorded.
pub const LEASE_MARGIN: Duration = Duration::from_secs(10);

/// Timeout of a conversation with a mail server up to the reply to DATA. The greeting alone can
/// take 5 min (RFC 5321, 4.5.3.2).
const MAIL_TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub struct Timeouts {
    /// The timeout except for the response to the text of a mail.
    pub attempt: Duration,
    /// The timeout including the response to the text of a mail, which some mail servers send late.
    pub longest: Duration,
}

pub fn timeouts(
    config: &DeliveryConfig,
    settings: DeliverySettings,
    kind: &DestinationKind,
) -> Timeouts {
    let (attempt, answer) = match kind {
        DestinationKind::Email(_) => (MAIL_TIMEOUT, config.mail_answer_timeout),
        _ => (settings.timeout.unwrap_or(config.timeout), Duration::ZERO),
    };
    Timeouts {
        attempt,
        longest: attempt + answer,
    }
}

/// Returns the delivery and its next attempt as the attempt begins. The lease lasts for `longest`
/// plus a margin.
pub fn begin_attempt(delivery: &Delivery, longest: Duration, now_ms: i64) -> (Delivery, Attempt) {
    let until_ms = now_ms.saturating_add(to_millis(longest + LEASE_MARGIN));
    let begun = Delivery {
        state: DeliveryState::Leased { until_ms },
        attempts: delivery.attempts + 1,
        ..delivery.clone()
    };
    let attempt = new_attempt(begun.id, begun.attempts, now_ms);
    (begun, attempt)
}

pub fn new_attempt(delivery: RecordId, number: u32, start_ms: i64) -> Attempt {
    Attempt {
        delivery,
        number,
        start_ms,
        duration: None,
        outcome: None,
        explanation: String::new(),
        is_reduced: false,
        transcript: Transcript::default(),
    }
}

pub fn ended_attempt(attempt: &Attempt, report: &AttemptReport, is_reduced: bool) -> Attempt {
    Attempt {
        duration: Some(report.duration),
        outcome: Some(report.verdict.outcome),
        explanation: report.verdict.explanation.clone(),
        is_reduced,
        transcript: report.transcript.clone(),
        ..attempt.clone()
    }
}

pub fn attempt_key(delivery: RecordId, number: u32) -> Vec<u8> {
    Key::new().id(delivery).number(number).build()
}
