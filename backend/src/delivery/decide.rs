//! State changes of a delivery when an attempt begins, ends, or is lost. No I/O.

use std::time::Duration;

use crate::{
    clock::to_millis,
    delivery::backoff::{AttemptCounts, Backoff, RetryStep},
    domain::{Attempt, Delivery, DeliverySettings, DeliveryState, Outcome},
    limits::{CUT_OFFS_MAX, DEFERRALS_MAX},
    ops::delivery::attempt::LEASE_MARGIN,
    send::{Advice, Verdict, verdict::FailureCause},
};

#[derive(Debug)]
pub(crate) struct RetryContext<'a> {
    pub(crate) backoff: &'a Backoff,
    pub(crate) now_ms: i64,
    /// Random value from 0 to 1 for the jitter.
    pub(crate) random: f64,
    pub(crate) cut_off: u32,
    /// The original due time of a delivery that was tried early to see whether the receiver has
    /// recovered.
    pub(crate) early_for_ms: Option<i64>,
    /// The destination's settings; `None` if it was deleted.
    pub(crate) settings: Option<DeliverySettings>,
}

/// Whether a leased attempt may still begin: it must be able to end before the lease expires.
pub(crate) fn may_begin_attempt(leased: &Delivery, longest: Duration, now_ms: i64) -> bool {
    match leased.state {
        DeliveryState::Leased { until_ms } => {
            now_ms.saturating_add(to_millis(longest + LEASE_MARGIN / 2)) <= until_ms
        }
        _ => false,
    }
}

/// Returns a delivery whose leased attempt did not begin. The attempt does not count.
pub(crate) fn release_lease(
    delivery: &Delivery,
    number: u32,
    around: &RetryContext<'_>,
) -> Delivery {
    let attempts = delivery.attempts.min(number.saturating_sub(1));
    let due_ms = around.early_for_ms.unwrap_or(around.now_ms);
    let state = match delivery.state {
        DeliveryState::Leased { .. } if attempts == 0 => DeliveryState::Pending { due_ms },
        DeliveryState::Leased { .. } => DeliveryState::Retry { due_ms },
        other => other,
    };
    Delivery {
        state,
        attempts,
        ..delivery.clone()
    }
}

/// Error of an attempt whose outcome was not recorded before the process ended.
const CUT_OFF: &str = "the service stopped before this attempt had an outcome";
/// Like [`CUT_OFF`], for an attempt interrupted during rendering after an earlier attempt was
/// interrupted.
const CUT_OFF_RENDERING: &str =
    "the service stopped while rendering the message, as in an earlier attempt";
/// Error of an attempt that was the second in a row to be interrupted during rendering, which is
/// hardly a coincidence.
const POISON: &str =
    "the service stopped twice while rendering the message, and in an earlier attempt";
/// Preliminary error of an attempt whose message is rendered in isolation first.
const RENDERING: &str = "the message is rendered in isolation";

/// Returns an attempt whose lease expired because its process ended.
pub(crate) fn lost_attempt(attempt: &Attempt) -> Attempt {
    let is_rendering = attempt.outcome.is_none() && attempt.explanation == RENDERING;
    let explanation = if is_rendering {
        CUT_OFF_RENDERING
    } else {
        CUT_OFF
    };
    Attempt {
        outcome: Some(Outcome::Unknown),
        explanation: explanation.into(),
        ..attempt.clone()
    }
}

pub(crate) fn rendering_attempt(attempt: &Attempt, is_done: bool) -> Attempt {
    let explanation = if is_done { "" } else { RENDERING };
    Attempt {
        explanation: explanation.into(),
        ..attempt.clone()
    }
}

/// Whether the last attempt of a delivery was interrupted, so that its message may have crashed the
/// service.
pub(crate) fn may_be_poison(delivery: &Delivery) -> bool {
    [CUT_OFF, CUT_OFF_RENDERING].contains(&delivery.last_error.as_str())
}

/// Whether the service stopped during an attempt of a delivery, and then twice while its message
/// was rendered.
pub(crate) fn is_poison(delivery: &Delivery) -> bool {
    delivery.last_error == POISON
}

/// Whether the service stopped during an attempt. An unknown outcome alone does not show this,
/// because a completed attempt can have one too.
pub(crate) fn is_interrupted(attempt: &Attempt) -> bool {
    attempt.outcome == Some(Outcome::Unknown) && attempt.duration.is_none()
}

/// Returns a delivery whose attempt was interrupted. The delivery is due immediately, because the
/// interruption was not the receiver's fault.
pub(crate) fn delivery_after_interruption(
    delivery: &Delivery,
    attempt: Option<&Attempt>,
    now_ms: i64,
) -> Delivery {
    let last_error = attempt.map_or_else(|| CUT_OFF.into(), |it| lost_attempt(it).explanation);
    let (state, end_ms) = if delivery.test {
        (DeliveryState::Dead, Some(now_ms))
    } else {
        (DeliveryState::Retry { due_ms: now_ms }, None)
    };
    Delivery {
        state,
        end_ms,
        last_error: if last_error == CUT_OFF_RENDERING && delivery.last_error == last_error {
            POISON.into()
        } else {
            last_error
        },
        may_have_arrived: true,
        ..delivery.clone()
    }
}

pub(crate) fn poisoned_delivery(delivery: &Delivery, now_ms: i64) -> Delivery {
    Delivery {
        state: DeliveryState::Dead,
        end_ms: Some(now_ms),
        ..delivery.clone()
    }
}

/// Returns a delivery that is not sent because its receiver knows nothing about the thread.
pub(crate) fn skipped_delivery(delivery: &Delivery, reason: String, now_ms: i64) -> Delivery {
    Delivery {
        state: DeliveryState::Cancelled,
        end_ms: Some(now_ms),
        last_error: reason,
        ..delivery.clone()
    }
}

pub(crate) fn exhausted_delivery(
    delivery: &Delivery,
    tried: AttemptCounts,
    now_ms: i64,
) -> Delivery {
    let last_error = match tried.cut_off {
        CUT_OFFS_MAX.. => format!(
            "the service stopped during {} attempts, perhaps because of this message",
            tried.cut_off
        ),
        _ => delivery.last_error.clone(),
    };
    Delivery {
        state: DeliveryState::Dead,
        end_ms: Some(now_ms),
        last_error,
        ..delivery.clone()
    }
}

/// Whether an attempt failed and counts against the limit of its delivery.
pub(crate) fn counts_against_limit(verdict: &Verdict, early_for_ms: Option<i64>) -> bool {
    let is_early = early_for_ms.is_some() && verdict.advice.cause() != FailureCause::Message;
    verdict.outcome != Outcome::Delivered && !verdict.advice.is_inconclusive() && !is_early
}

/// Returns a delivery after an attempt, or `None` if another client has changed it since.
pub(crate) fn delivery_after_attempt(
    delivery: &Delivery,
    number: u32,
    ended: &Attempt,
    advice: Advice,
    around: &RetryContext<'_>,
) -> Option<Delivery> {
    let is_ours =
        matches!(delivery.state, DeliveryState::Leased { .. }) && delivery.attempts == number;
    let is_delivered = delivery.state == DeliveryState::Delivered;
    if ended.outcome == Some(Outcome::Delivered) {
        return (!is_delivered).then(|| Delivery {
            state: DeliveryState::Delivered,
            end_ms: Some(around.now_ms),
            ..delivery.clone()
        });
    }
    if !is_ours {
        return None;
    }
    let RetryContext { now_ms, random, .. } = *around;
    let awaits_receiver = advice.cause() != FailureCause::Message && !is_interrupted(ended);
    let early_for_ms = around.early_for_ms.filter(|_| awaits_receiver);
    let is_deferred = early_for_ms.is_some() || matches!(advice, Advice::Limited(_));
    let is_first_refusal = advice == Advice::Reduce;
    let (state, end_ms) = match (around.settings, early_for_ms) {
        (None, _) => (DeliveryState::Cancelled, Some(now_ms)),
        (_, Some(due_ms)) => {
            let due_ms = due_ms.max(now_ms);
            (DeliveryState::Retry { due_ms }, None)
        }
        (Some(_), _) if is_first_refusal => (DeliveryState::Retry { due_ms: now_ms }, None),
        (Some(settings), None) => {
            let cut_off = around.cut_off + u32::from(is_interrupted(ended));
            let tried = AttemptCounts::from_delivery(delivery, number, cut_off);
            match around.backoff.next(tried, advice, settings, now_ms, random) {
                RetryStep::Retry { due_ms } => (DeliveryState::Retry { due_ms }, None),
                RetryStep::Dead => (DeliveryState::Dead, Some(now_ms)),
            }
        }
    };
    let mut next = Delivery {
        state,
        end_ms,
        awaits_receiver,
        is_reduced: delivery.is_reduced || is_first_refusal,
        last_error: ended.explanation.clone(),
        may_have_arrived: delivery.may_have_arrived || ended.outcome == Some(Outcome::Unknown),
        ..delivery.clone()
    };
    if is_deferred && next.deferrals < DEFERRALS_MAX {
        next.deferrals += 1;
    } else if is_deferred {
        // A deferred attempt beyond the first ones is not stored.
        next.attempts = number.saturating_sub(1);
    }
    Some(next)
}
