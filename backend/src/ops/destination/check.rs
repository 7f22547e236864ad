//! What the settings of how messages are delivered must be.

use std::{ops::RangeInclusive, time::Duration};

use crate::{domain::DeliverySettings, ops::validate::Faults};

const TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30);
const IN_FLIGHT: RangeInclusive<u32> = 1..=64;
const PER_MINUTE: RangeInclusive<u32> = 1..=60_000;
const ATTEMPTS: RangeInclusive<u32> = 1..=8;

/// Checks how messages are delivered.
pub(super) fn settings(settings: DeliverySettings, faults: &mut Faults) {
    if settings
        .timeout
        .is_some_and(|timeout| !TIMEOUT.contains(&timeout))
    {
        faults.add("delivery.timeout", "is not 1s to 30s");
    }
    let counts = [
        ("delivery.maxInFlight", settings.max_in_flight, IN_FLIGHT),
        ("delivery.maxPerMinute", settings.max_per_minute, PER_MINUTE),
        ("delivery.maxAttempts", settings.max_attempts, ATTEMPTS),
    ];
    for (field, count, range) in counts {
        if count.is_some_and(|count| !range.contains(&count)) {
            let (least, most) = range.into_inner();
            faults.add(
                field,
                format!("is not {least} to {most}, or 0 for the default"),
            );
        }
    }
}
