//! Reads `Retry-After`.

use std::time::Duration;

use http::{HeaderMap, header};
use jiff::{Timestamp, fmt::rfc2822};

/// How long the receiver asks to wait: seconds, or an HTTP date. What cannot be read is ignored; a
/// date that has passed means no wait.
pub(crate) fn retry_after(headers: &HeaderMap, now_ms: i64) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    let now = Timestamp::from_millisecond(now_ms).ok()?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read_and_the_rest_is_ignored() {
        // 1994-11-06T08:49:37Z
        let now_ms = 784_111_777_000;
        let cases = [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:40:37 GMT", Some(0)),
            ("-5", None),
            ("soon", None),
            ("", None),
            ("99999999999999999999", None),
        ];
        for (text, seconds) in cases {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, text.parse().unwrap())]);
            let expected = seconds.map(Duration::from_secs);
            assert_eq!(retry_after(&headers, now_ms), expected, "{text}");
        }
    }
}
