//! How a delivery changes when an attempt begins, ends, or is lost: no I/O.

use std::time::Duration;

use crate::{
    clock::millis,
    delivery::backoff::{Backoff, Next, Tried},
    destination::Advice,
    domain::{Attempt, Delivery, DeliverySettings, DeliveryState, Outcome},
    limits::CUT_OFFS_MAX,
    ops::delivery::attempt::LEASE_MARGIN,
};

/// What a decision rests on.
#[derive(Debug)]
pub(crate) struct Circumstances<'a> {
    pub(crate) backoff: &'a Backoff,
    pub(crate) now_ms: i64,
    /// From 0 to 1, for the jitter.
    pub(crate) random: f64,
    /// Attempts before this one that were cut off.
    pub(crate) cut_off: u32,
    /// The destination's settings; none when the destination is gone.
    pub(crate) settings: Option<DeliverySettings>,
}

/// Whether an attempt that was leased may still begin: its end must be known before the lease runs
/// out.
pub(crate) fn may_begin(leased: &Delivery, longest: Duration, now_ms: i64) -> bool {
    match leased.state {
        DeliveryState::Leased { until_ms } => {
            now_ms.saturating_add(millis(longest + LEASE_MARGIN / 2)) <= until_ms
        }
        _ => false,
    }
}

/// A delivery whose attempt of that number was leased and did not begin: it never counted.
pub(crate) fn given_back(delivery: &Delivery, number: u32, now_ms: i64) -> Delivery {
    let attempts = delivery.attempts.min(number.saturating_sub(1));
    let state = match delivery.state {
        DeliveryState::Leased { .. } if attempts == 0 => DeliveryState::Pending { due_ms: now_ms },
        DeliveryState::Leased { .. } => DeliveryState::Retry { due_ms: now_ms },
        other => other,
    };
    Delivery {
        state,
        attempts,
        ..delivery.clone()
    }
}

/// What is reported about an attempt whose end no one lived to record.
const CUT_OFF: &str = "the service stopped before the outcome of this attempt was known";
/// The same while its message was rendered, after an attempt before it had been cut off.
const CUT_OFF_RENDERING: &str = "the service stopped while the message was rendered, after it had stopped during an attempt before";
/// The same once more. A kill can meet any rendering by chance, twice in a row it hardly does.
const POISON: &str = "the service stopped twice while the message was rendered, after it had stopped during an attempt before";
/// What an attempt reports meanwhile.
const RENDERING: &str = "the message is being rendered, apart from others";

/// An attempt whose lease ran out: its process ended before it could report.
pub(crate) fn lost(attempt: &Attempt) -> Attempt {
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

/// An attempt while its message is rendered, or once that has been done.
pub(crate) fn rendering(attempt: &Attempt, is_done: bool) -> Attempt {
    let explanation = if is_done { "" } else { RENDERING };
    Attempt {
        explanation: explanation.into(),
        ..attempt.clone()
    }
}

/// Whether the last attempt of a delivery was cut off, so that its message may be what stops the service.
pub(crate) fn is_suspect(delivery: &Delivery) -> bool {
    [CUT_OFF, CUT_OFF_RENDERING].contains(&delivery.last_error.as_str())
}

/// Whether the service has stopped during an attempt of a delivery, and then twice while its message was rendered.
pub(crate) fn is_poison(delivery: &Delivery) -> bool {
    delivery.last_error == POISON
}

/// Whether an attempt was cut off by a stop of the service. That its end is not known can also be
/// what an attempt reports that lasted.
pub(crate) fn is_cut_off(attempt: &Attempt) -> bool {
    attempt.outcome == Some(Outcome::Unknown) && attempt.duration.is_none()
}

/// A delivery of which this attempt is known to be cut off. That was not the receiver's doing, so it is due
/// immediately.
pub(crate) fn cut_off(delivery: &Delivery, attempt: Option<&Attempt>, now_ms: i64) -> Delivery {
    let last_error = attempt.map_or_else(|| CUT_OFF.into(), |it| lost(it).explanation);
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

/// A delivery whose message stops the service.
pub(crate) fn poison(delivery: &Delivery, now_ms: i64) -> Delivery {
    Delivery {
        state: DeliveryState::Dead,
        end_ms: Some(now_ms),
        ..delivery.clone()
    }
}

/// A delivery that gets no more attempts.
pub(crate) fn used_up(delivery: &Delivery, tried: Tried, now_ms: i64) -> Delivery {
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

/// A delivery after its attempt of that number; none when another client decided meanwhile.
pub(crate) fn after(
    delivery: &Delivery,
    number: u32,
    ended: &Attempt,
    advice: Advice,
    around: &Circumstances<'_>,
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
    let Circumstances { now_ms, random, .. } = *around;
    let (state, end_ms) = match around.settings {
        None => (DeliveryState::Cancelled, Some(now_ms)),
        Some(settings) => {
            let tried = Tried::of(number, around.cut_off + u32::from(is_cut_off(ended)));
            match around.backoff.next(tried, advice, settings, now_ms, random) {
                Next::Retry { due_ms } => (DeliveryState::Retry { due_ms }, None),
                Next::Dead => (DeliveryState::Dead, Some(now_ms)),
            }
        }
    };
    Some(Delivery {
        state,
        end_ms,
        last_error: ended.explanation.clone(),
        may_have_arrived: delivery.may_have_arrived || ended.outcome == Some(Outcome::Unknown),
        ..delivery.clone()
    })
}
