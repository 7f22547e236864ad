//! The health of a destination, derived from the outcomes of its attempts.

use std::time::Duration;

use crate::{
    clock::to_millis,
    domain::{Destination, Health, HealthState, RecordId, destination::RejectedRecipient},
    send::{Advice, AttemptReport, RecipientAnswer, Verdict, verdict::FailureCause},
};

/// Time without an accepted message after which a receiver that limits its rate counts as failing.
const LIMITED_MAX: Duration = Duration::from_secs(900);

/// Returns a destination's health after an attempt, which may have turned its message into a dead
/// letter. `None` if the health is unchanged.
pub(crate) fn health_after(
    old: Option<&Health>,
    destination: RecordId,
    report: &AttemptReport,
    died: bool,
    now_ms: i64,
    pause_after: Duration,
) -> Option<Health> {
    if old.is_some_and(|old| old.state == HealthState::Paused) {
        return None;
    }
    let verdict = &report.verdict;
    let judged = health_after_verdict(old, destination, verdict, died, now_ms, pause_after);
    let mut next = judged
        .or_else(|| old.cloned())
        .unwrap_or_else(|| Health::new_unattempted(destination, now_ms));
    record_rejected_recipients(&mut next, verdict, now_ms);
    record_requested_pause(&mut next, verdict, now_ms);
    if !verdict.is_about_addresses() && (verdict.has_arrived() || !verdict.advice.is_inconclusive())
    {
        next.record_attempt(report.duration, verdict.has_arrived(), now_ms);
    }
    Some(next)
}

fn record_rejected_recipients(health: &mut Health, verdict: &Verdict, now_ms: i64) {
    for answer in &verdict.recipients {
        let (RecipientAnswer::Reached(address) | RecipientAnswer::Refused { address, .. }) = answer;
        let at = health
            .refused
            .binary_search_by(|it| it.address.cmp(address));
        match (answer, at) {
            (RecipientAnswer::Reached(_), Ok(at)) => {
                health.refused.remove(at);
            }
            (RecipientAnswer::Reached(_), Err(_)) => {}
            (
                RecipientAnswer::Refused {
                    said, is_permanent, ..
                },
                Ok(at),
            ) => {
                let known = &mut health.refused[at];
                known.said.clone_from(said);
                known.is_permanent = *is_permanent;
            }
            (
                RecipientAnswer::Refused {
                    said, is_permanent, ..
                },
                Err(at),
            ) => health.refused.insert(
                at,
                RejectedRecipient {
                    address: address.clone(),
                    said: said.clone(),
                    is_permanent: *is_permanent,
                    since_ms: now_ms,
                },
            ),
        }
    }
}

/// Records the requested pause, so that it survives a restart.
fn record_requested_pause(health: &mut Health, verdict: &Verdict, now_ms: i64) {
    let before = health
        .requested_until_ms
        .filter(|until_ms| *until_ms > now_ms);
    let requested = verdict.advice.requested_wait();
    let requested = requested.map(|wait| now_ms.saturating_add(to_millis(wait)));
    health.requested_until_ms = before.max(requested);
}

/// Returns a destination's health after a verdict, or `None` if it is unchanged.
fn health_after_verdict(
    old: Option<&Health>,
    destination: RecordId,
    verdict: &Verdict,
    died: bool,
    now_ms: i64,
    pause_after: Duration,
) -> Option<Health> {
    let state = old.map(|health| health.state);
    if state == Some(HealthState::Paused) {
        return None;
    }
    let base = || {
        old.cloned()
            .unwrap_or_else(|| Health::new_unattempted(destination, now_ms))
    };
    if verdict.cause() == Some(FailureCause::Message) && !verdict.has_arrived() {
        // Until another message is accepted, a dead letter determines the health.
        return died.then(|| {
            let mut health = base();
            if state != Some(HealthState::Failing) {
                health.state = HealthState::Failing;
                health.since_ms = now_ms;
            }
            health.last_error.clone_from(&verdict.explanation);
            health
        });
    }
    if verdict.has_arrived() {
        return (state != Some(HealthState::Healthy)).then(|| Health {
            state: HealthState::Healthy,
            since_ms: now_ms,
            failures: 0,
            last_error: String::new(),
            ..base()
        });
    }
    // A receiver that limits its rate counts as failing only if it accepts no messages for a while.
    let accepted_ms = old.and_then(|it| it.last_success_ms);
    let is_limited =
        matches!(verdict.advice, Advice::Limited(_)) && state == Some(HealthState::Healthy);
    if is_limited
        && accepted_ms.is_some_and(|it| now_ms.saturating_sub(it) < to_millis(LIMITED_MAX))
    {
        return None;
    }
    // A dead message does not start the period after which a failing destination is paused.
    let failing = old.filter(|it| it.state == HealthState::Failing && it.failures > 0);
    let failing_since_ms = failing.map_or(now_ms, |health| health.since_ms);
    let lasted_ms = now_ms.saturating_sub(failing_since_ms);
    let (state, since_ms) = if lasted_ms >= to_millis(pause_after) {
        (HealthState::Paused, now_ms)
    } else {
        (HealthState::Failing, failing_since_ms)
    };
    Some(Health {
        state,
        since_ms,
        failures: failing
            .map_or(0, |health| health.failures)
            .saturating_add(1),
        last_error: verdict.explanation.clone(),
        ..base()
    })
}

/// Whether sending is paused. Editing a paused destination resumes it.
pub(crate) fn is_paused_health(health: &Health, destination: &Destination) -> bool {
    health.state == HealthState::Paused && destination.update_ms <= health.since_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE_AFTER: Duration = Duration::from_secs(60);

    fn health_after_outcome(
        old: Option<&Health>,
        verdict: &Verdict,
        now_ms: i64,
    ) -> Option<Health> {
        health_after_verdict(
            old,
            RecordId::from_parts(1, 1),
            verdict,
            true,
            now_ms,
            PAUSE_AFTER,
        )
    }

    #[test]
    fn consecutive_failures_pause_and_success_resets() {
        let failure = Verdict::new_unreachable("refused");
        let first = health_after_outcome(None, &failure, 1_000).unwrap();
        assert_eq!((first.state, first.since_ms), (HealthState::Failing, 1_000));
        let second = health_after_outcome(Some(&first), &failure, 60_999).unwrap();
        assert_eq!((second.state, second.failures), (HealthState::Failing, 2));
        let healthy =
            health_after_outcome(Some(&second), &Verdict::new_delivered("ok"), 61_000).unwrap();
        assert_eq!((healthy.state, healthy.failures), (HealthState::Healthy, 0));
        assert_eq!(
            health_after_outcome(Some(&healthy), &Verdict::new_delivered("ok"), 61_001),
            None
        );
        let paused = health_after_outcome(Some(&second), &failure, 61_000).unwrap();
        assert_eq!(
            (paused.state, paused.since_ms),
            (HealthState::Paused, 61_000)
        );
        assert_eq!(
            health_after_outcome(Some(&paused), &Verdict::new_delivered("late"), 61_001),
            None
        );
    }

    #[test]
    fn acceptance_after_reduced_form_or_rate_limit_is_healthy() {
        let report = |verdict| AttemptReport {
            verdict,
            duration: Duration::ZERO,
            transcript: crate::domain::Transcript::default(),
            times: None,
        };
        let id = RecordId::from_parts(1, 1);
        for advice in [Advice::Reduce, Advice::Limited(None)] {
            let mut health = None;
            for now_ms in 0..20 {
                let refused = report(Verdict::new_rejected("too long", advice));
                health = health_after(health.as_ref(), id, &refused, false, now_ms, PAUSE_AFTER);
                let accepted = report(Verdict::new_delivered("ok"));
                health = health_after(health.as_ref(), id, &accepted, false, now_ms, PAUSE_AFTER);
            }
            let health = health.unwrap();
            assert_eq!(health.state, HealthState::Healthy, "{advice:?}");
            assert!(!health.is_flaky(), "{advice:?}");
        }
    }

    #[test]
    fn rate_limit_is_a_failure_only_after_fifteen_minutes_without_an_accepted_message() {
        let report = |verdict| AttemptReport {
            verdict,
            duration: Duration::ZERO,
            transcript: crate::domain::Transcript::default(),
            times: None,
        };
        let id = RecordId::from_parts(1, 1);
        let (limited, accepted) = (
            report(Verdict::new_rejected("slow down", Advice::Limited(None))),
            report(Verdict::new_delivered("ok")),
        );
        let after = |old: Option<&Health>, report, now_ms| {
            health_after(old, id, report, false, now_ms, PAUSE_AFTER)
        };
        let healthy = after(None, &accepted, 0);
        for (now_ms, expected) in [
            (1, HealthState::Healthy),
            (899_999, HealthState::Healthy),
            (900_000, HealthState::Failing),
        ] {
            let health = after(healthy.as_ref(), &limited, now_ms).unwrap();
            assert_eq!(health.state, expected, "{now_ms}");
        }
        let untried = after(None, &limited, 1).unwrap();
        assert_eq!(untried.state, HealthState::Failing);
    }

    #[test]
    fn dead_message_marks_the_destination_failing_until_one_is_accepted() {
        let refused = Verdict::new_rejected("too long", Advice::GiveUp);
        let id = RecordId::from_parts(1, 1);
        let judge = |old: Option<&Health>, died| {
            health_after_verdict(old, id, &refused, died, 5, PAUSE_AFTER)
        };
        assert_eq!(judge(None, false), None, "it is retried");
        let failing = judge(None, true).unwrap();
        assert_eq!(failing.state, HealthState::Failing);
        assert_eq!((&*failing.last_error, failing.failures), ("too long", 0));
        let later = health_after_verdict(Some(&failing), id, &refused, true, i64::MAX, PAUSE_AFTER)
            .unwrap();
        assert_eq!(later.state, HealthState::Failing, "it is never paused");
        let (unreachable, much_later_ms) = (
            Verdict::new_unreachable("no route"),
            to_millis(PAUSE_AFTER) * 2,
        );
        let failing = health_after_outcome(Some(&later), &unreachable, much_later_ms).unwrap();
        assert_eq!((failing.state, failing.failures), (HealthState::Failing, 1));
        assert_eq!(failing.since_ms, much_later_ms);
        let healthy = health_after_outcome(Some(&later), &Verdict::new_delivered("ok"), 9).unwrap();
        assert_eq!(
            (healthy.state, &*healthy.last_error),
            (HealthState::Healthy, "")
        );
    }
}
