//! Moments in filters: how long ago, a time of today, a date, or both, in the zone of the console.

use bellwether_proto::filter::Now;
use jiff::{Timestamp, tz::TimeZone};

/// What moments are read with.
#[derive(Clone, Debug)]
pub(crate) struct Clock(Now);

impl Clock {
    pub(crate) fn new(now_ms: i64, zone: TimeZone) -> Self {
        Self(Now { ms: now_ms, zone })
    }

    pub(super) fn now(&self) -> &Now {
        &self.0
    }

    /// Reads `2h`, `09:30`, `2031-05-06` or `2031-05-06T09:30`, in milliseconds since 1970.
    ///
    /// # Errors
    /// A sentence for people when it is none of these.
    pub(super) fn read(&self, text: &str) -> Result<i64, String> {
        let exact = text.parse::<Timestamp>().ok();
        let read = || Timestamp::from_millisecond(self.0.read(text)?).ok();
        let moment = exact.or_else(read).map(Timestamp::as_millisecond);
        moment.ok_or_else(|| {
            format!(
                "`{text}`: write how long ago, as in `30m`, `2h` or `7d`, or a moment, as in \
                 `09:30`, `2031-05-06` or `2031-05-06T09:30`"
            )
        })
    }

    /// A moment as it is meant everywhere, to the second.
    pub(super) fn universal(ms: i64) -> String {
        let moment = Timestamp::from_millisecond(ms).unwrap_or_default();
        format!("{moment:.0}")
    }

    /// A moment so that [`Self::read`] finds it again on any day, to the second.
    pub(super) fn write(&self, ms: i64) -> String {
        let moment = Timestamp::from_millisecond(ms).unwrap_or_default();
        let zoned = moment.to_zoned(self.0.zone.clone());
        zoned.strftime("%Y-%m-%dT%H:%M:%S").to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        let now: Timestamp = "2031-05-06T12:00:00Z".parse().unwrap();
        Clock::new(now.as_millisecond(), TimeZone::fixed(jiff::tz::offset(2)))
    }

    #[test]
    fn moments_are_read_as_people_write_them_in_the_zone_of_the_console() {
        let cases = [
            ("2h", "2031-05-06T10:00:00Z"),
            ("90s", "2031-05-06T11:58:30Z"),
            ("7d", "2031-04-29T12:00:00Z"),
            ("1w", "2031-04-29T12:00:00Z"),
            ("09:30", "2031-05-06T07:30:00Z"),
            ("2031-05-01", "2031-04-30T22:00:00Z"),
            ("2031-05-01T09:30", "2031-05-01T07:30:00Z"),
            ("2031-05-01T09:30:00Z", "2031-05-01T09:30:00Z"),
        ];
        for (text, moment) in cases {
            let moment: Timestamp = moment.parse().unwrap();
            assert_eq!(clock().read(text), Ok(moment.as_millisecond()), "{text}");
            let written = clock().write(moment.as_millisecond());
            assert_eq!(
                clock().read(&written),
                Ok(moment.as_millisecond()),
                "{text}"
            );
        }
        for text in ["", "h", "-2h", "yesterday", "99999999999999d", "25:00", "é"] {
            assert!(
                clock().read(text).unwrap_err().contains("how long ago"),
                "{text}"
            );
        }
    }
}
