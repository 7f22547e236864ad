//! Conversion of times and durations between wire and domain types.

use std::time::Duration;

use prost_types::Timestamp;

pub fn timestamp(at_ms: i64) -> Timestamp {
    Timestamp {
        seconds: at_ms.div_euclid(1_000),
        // Less than a second in nanoseconds always fits.
        nanos: i32::try_from(at_ms.rem_euclid(1_000) * 1_000_000).unwrap_or_default(),
    }
}

pub fn duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or_default(),
    }
}

pub fn to_millis(at: &Timestamp) -> i64 {
    let seconds_ms = at.seconds.saturating_mul(1_000);
    seconds_ms.saturating_add(i64::from(at.nanos) / 1_000_000)
}

pub fn duration_to_ms(length: &prost_types::Duration) -> i64 {
    let seconds_ms = length.seconds.saturating_mul(1_000);
    seconds_ms.saturating_add(i64::from(length.nanos) / 1_000_000)
}

pub fn duration_from_ms(ms: i64) -> prost_types::Duration {
    duration(Duration::from_millis(ms.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_before_1970_have_nonnegative_nanos() {
        for (at_ms, seconds, nanos) in [(1_500, 1, 500_000_000), (-1, -1, 999_000_000), (0, 0, 0)] {
            assert_eq!(timestamp(at_ms), Timestamp { seconds, nanos });
        }
    }
}
