//! Parses the delay that a receiver asks for, from `Retry-After` or the body of a 429 response.

use std::time::Duration;

use http::{HeaderMap, header};
use jiff::{Timestamp, fmt::rfc2822};
use serde_json::Value;

/// Returns the delay of `Retry-After`: seconds, possibly fractional, or a date in one of the three
/// HTTP formats. Unreadable values are ignored; a date in the past means no delay.
pub(crate) fn retry_after(headers: &HeaderMap, now_ms: i64) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    seconds(text).or_else(|| {
        let now = Timestamp::from_millisecond(now_ms).ok()?;
        let at = match httpdate::parse_http_date(text) {
            Ok(at) => Timestamp::try_from(at).ok()?,
            // Some servers send an offset other than GMT.
            Err(_other) => rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?,
        };
        Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
    })
}

/// Returns the delay in the body of a response, in the format of Telegram
/// (`parameters.retry_after`) or Discord (`retry_after`).
pub(super) fn retry_after_in_body(body: &[u8]) -> Option<Duration> {
    let said: Value = serde_json::from_slice(body).ok()?;
    let asked = [&said["parameters"]["retry_after"], &said["retry_after"]];
    asked.into_iter().find_map(|asked| match asked {
        Value::Number(number) => seconds(&number.to_string()),
        Value::String(text) => seconds(text.trim()),
        _ => None,
    })
}

fn seconds(text: &str) -> Option<Duration> {
    let is_decimal = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let seconds = text.parse().ok().filter(|_| is_decimal)?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_accepts_seconds_and_dates() {
        // 1994-11-06T08:49:37Z
        let now_ms = 784_111_777_000;
        let cases = [
            ("120", Some(120_000)),
            (" 0 ", Some(0)),
            ("1.5", Some(1_500)),
            ("0.25", Some(250)),
            ("30.000", Some(30_000)),
            ("7.", Some(7_000)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60_000)),
            ("Sun, 06 Nov 1994 08:40:37 GMT", Some(0)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60_000)),
            ("Sun Nov  6 08:50:37 1994", Some(60_000)),
            ("Sun, 06 Nov 1994 09:50:37 +0100", Some(60_000)),
            ("-5", None),
            ("1e3", None),
            ("inf", None),
            (".", None),
            ("1.2.3", None),
            ("soon", None),
            ("", None),
            ("99999999999999999999", None),
        ];
        for (text, milliseconds) in cases {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, text.parse().unwrap())]);
            let expected = milliseconds.map(Duration::from_millis);
            assert_eq!(retry_after(&headers, now_ms), expected, "{text}");
        }
    }

    #[test]
    fn retry_after_is_read_from_telegram_and_discord_bodies() {
        let cases = [
            (
                r#"{"ok":false,"error_code":429,"parameters":{"retry_after":35}}"#,
                Some(35_000),
            ),
            (
                r#"{"message":"You are being rate limited.","retry_after":0.65,"global":false}"#,
                Some(650),
            ),
            (r#"{"parameters":{"retry_after":"12"}}"#, Some(12_000)),
            (r#"{"parameters":{"retry_after":-1}}"#, None),
            (r#"{"parameters":{"migrate_to_chat_id":5}}"#, None),
            (r#"["retry_after"]"#, None),
            ("Too Many Requests: retry after 35", None),
        ];
        for (body, milliseconds) in cases {
            let expected = milliseconds.map(Duration::from_millis);
            assert_eq!(retry_after_in_body(body.as_bytes()), expected, "{body}");
        }
    }
}
