//! Times in filters: an age, a time of day, a date, or both, in the console's time zone.

use bellwether_language::filter::TimeReference;
use jiff::{Timestamp, tz::TimeZone};

#[derive(Clone, Debug)]
pub(crate) struct Clock(TimeReference);

impl Clock {
    pub(crate) fn new(now_ms: i64, zone: TimeZone) -> Self {
        Self(TimeReference { ms: now_ms, zone })
    }

    pub(super) fn time_reference(&self) -> &TimeReference {
        &self.0
    }

    pub(super) fn write(&self, moment: Timestamp) -> String {
        let zoned = moment.to_zoned(self.0.zone.clone());
        zoned.strftime("%Y-%m-%dT%H:%M:%S").to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_round_trips_in_the_console_time_zone() {
        let now: Timestamp = "2031-05-06T12:00:00Z".parse().unwrap();
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let clock = Clock::new(now.as_millisecond(), zone);
        assert_eq!(clock.write(now), "2031-05-06T14:00:00");
        let read = clock.time_reference().parse_ms("2031-05-06T14:00:00");
        assert_eq!(read, Some(now.as_millisecond()));
    }
}
