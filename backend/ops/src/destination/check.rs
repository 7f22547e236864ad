//! Checks of delivery settings.

use std::{ops::RangeInclusive, time::Duration};

use crate::{
    domain::{Budget, DeliverySettings, DestinationKind},
    limits::{BUDGET_MESSAGES_MAX, BUDGET_PER_MAX, BUDGET_PER_MIN},
    send::supports_digests,
    validate::Violations,
};

const TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30);
const IN_FLIGHT: RangeInclusive<u32> = 1..=64;
const PER_MINUTE: RangeInclusive<u32> = 1..=60_000;
const ATTEMPTS: RangeInclusive<u32> = 1..=8;

pub(super) fn check_settings(
    settings: DeliverySettings,
    kind: Option<&DestinationKind>,
    violations: &mut Violations,
) {
    if settings
        .timeout
        .is_some_and(|timeout| !TIMEOUT.contains(&timeout))
    {
        violations.add("delivery.timeout", "is not 1s to 30s");
    }
    let counts = [
        ("delivery.maxInFlight", settings.max_in_flight, IN_FLIGHT),
        ("delivery.maxPerMinute", settings.max_per_minute, PER_MINUTE),
        ("delivery.maxAttempts", settings.max_attempts, ATTEMPTS),
    ];
    for (field, count, range) in counts {
        if count.is_some_and(|count| !range.contains(&count)) {
            let (least, most) = range.into_inner();
            violations.add(
                field,
                format!("must be {least} to {most}, or 0 for the default"),
            );
        }
    }
    if let Some(settings) = settings.budget {
        check_budget(settings, kind, violations);
    }
}

fn check_budget(budget: Budget, kind: Option<&DestinationKind>, violations: &mut Violations) {
    if let Some(kind) = kind.filter(|kind| !supports_digests(kind)) {
        let word = match kind {
            DestinationKind::Webhook(_) => {
                "a webhook with `onClear`, or with `is_over` and a key such as `thread_id`"
            }
            other => other.as_str(),
        };
        let message = format!(
            "is not supported for {word}, which keeps state per thread and cannot receive digests"
        );
        violations.add("delivery.budget", message);
    }
    if !(1..=BUDGET_MESSAGES_MAX).contains(&budget.messages) {
        let message = format!("is not 1 to {BUDGET_MESSAGES_MAX}");
        violations.add("delivery.budget.messages", message);
    }
    if !(BUDGET_PER_MIN..=BUDGET_PER_MAX).contains(&budget.per) {
        violations.add("delivery.budget.per", "is not 10s to 24h");
    }
    if budget.critical_share > 100 {
        violations.add("delivery.budget.criticalShare", "is not 0 to 100 percent");
    }
}
