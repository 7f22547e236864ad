//! Parses the delay that a receiver requests, from `Retry-After`, another header or the body.

use std::time::Duration;

use http::HeaderMap;
use jiff::{Timestamp, fmt::rfc2822};
use serde_json::Value;

#[derive(Clone, Copy)]
enum Unit {
    /// Seconds, or a date in one of the three HTTP formats.
    SecondsOrDate,
    Seconds,
    Milliseconds,
    /// Seconds since the epoch, or from now if that would be long past.
    Reset,
}

/// The headers that providers document, most exact first. Providers also state limits that are not
/// used up, so a reset applies only if nothing remains.
const HEADERS: [(&str, Unit); 9] = [
    ("retry-after-ms", Unit::Milliseconds),
    ("x-ms-retry-after-ms", Unit::Milliseconds),
    ("retry-after", Unit::SecondsOrDate),
    ("x-retry-after", Unit::SecondsOrDate),
    ("x-ratelimit-reset-after", Unit::Seconds),
    ("x-rate-limit-retry-after-seconds", Unit::Seconds),
    ("ratelimit-reset", Unit::Reset),
    ("x-ratelimit-reset", Unit::Reset),
    ("x-rate-limit-reset", Unit::Reset),
];

const REMAINING: [&str; 3] = [
    "ratelimit-remaining",
    "x-ratelimit-remaining",
    "x-rate-limit-remaining",
];

/// The members of a body that providers document: Telegram, Matrix, Zulip, Discord and similar
/// ones.
const MEMBERS: [(&str, Unit); 7] = [
    ("/parameters/retry_after", Unit::Seconds),
    ("/retry_after_ms", Unit::Milliseconds),
    ("/error/retry_after_ms", Unit::Milliseconds),
    ("/retry-after", Unit::Seconds),
    ("/retry_after", Unit::Seconds),
    ("/retryAfter", Unit::Seconds),
    ("/error/retry_after", Unit::Seconds),
];

/// The detail of Google's errors that states a delay such as `1.5s`.
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// Returns the delay in the headers. Unreadable values are ignored; a date in the past means no
/// delay.
pub(crate) fn retry_after_from_headers(headers: &HeaderMap, now_ms: i64) -> Option<Duration> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.trim());
    let is_exhausted = REMAINING.iter().any(|name| {
        let remaining = text(name).and_then(|it| it.parse::<f64>().ok());
        remaining.is_some_and(|it| it < 1.0)
    });
    HEADERS.iter().find_map(|(name, unit)| match unit {
        Unit::Reset if !is_exhausted => None,
        unit => read_header(text(name)?, *unit, now_ms),
    })
}

pub(super) fn retry_after_in_body(body: &[u8]) -> Option<Duration> {
    let said: Value = serde_json::from_slice(body).ok()?;
    let stated = MEMBERS.iter().find_map(|(path, unit)| {
        let text = match said.pointer(path)? {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.trim().to_owned(),
            _ => return None,
        };
        read_header(&text, *unit, 0)
    });
    stated.or_else(|| {
        let details = said.pointer("/error/details")?.as_array()?;
        let info = details.iter().find(|it| it["@type"] == RETRY_INFO)?;
        parse_seconds(info["retryDelay"].as_str()?.trim_end_matches('s'))
    })
}

fn read_header(text: &str, unit: Unit, now_ms: i64) -> Option<Duration> {
    match unit {
        Unit::Seconds => parse_seconds(text),
        Unit::Milliseconds => parse_seconds(text).map(|it| it / 1_000),
        Unit::SecondsOrDate => {
            parse_seconds(text).or_else(|| wait_until(parse_date(text)?, now_ms))
        }
        Unit::Reset => {
            let stated = parse_seconds(text)?;
            match i64::try_from(stated.as_millis()) {
                // A year or more is a time, not a delay.
                Ok(at_ms) if stated.as_secs() > 31_536_000 => {
                    wait_until(Timestamp::from_millisecond(at_ms).ok()?, now_ms)
                }
                _ => Some(stated),
            }
        }
    }
}

fn wait_until(at: Timestamp, now_ms: i64) -> Option<Duration> {
    let now = Timestamp::from_millisecond(now_ms).ok()?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

fn parse_date(text: &str) -> Option<Timestamp> {
    match httpdate::parse_http_date(text) {
        Ok(at) => Timestamp::try_from(at).ok(),
        // Some servers send an offset other than GMT.
        Err(_other) => rfc2822::DateTimeParser::new().parse_timestamp(text).ok(),
    }
}

fn parse_seconds(text: &str) -> Option<Duration> {
    let is_decimal = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let seconds = text.parse().ok().filter(|_| is_decimal)?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    // 1994-11-06T08:49:37Z
    const NOW_MS: i64 = 784_111_777_000;

    fn parsed_waits(headers: &[(&'static str, &str)]) -> Option<Duration> {
        let headers = headers.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_str(value).unwrap())
        });
        retry_after_from_headers(&headers.collect(), NOW_MS)
    }

    #[test]
    fn retry_after_accepts_seconds_and_dates() {
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
            let expected = milliseconds.map(Duration::from_millis);
            assert_eq!(parsed_waits(&[("retry-after", text)]), expected, "{text}");
        }
    }

    #[test]
    fn provider_retry_headers_are_parsed_in_their_unit() {
        let cases: [(&[(&'static str, &str)], _); 9] = [
            (&[("retry-after-ms", "250")], Some(250)),
            (
                &[("x-ms-retry-after-ms", "1500"), ("retry-after", "2")],
                Some(1_500),
            ),
            (&[("x-ratelimit-reset-after", "0.65")], Some(650)),
            (&[("x-rate-limit-retry-after-seconds", "3")], Some(3_000)),
            (
                &[("retry-after", "5"), ("x-ratelimit-reset-after", "1")],
                Some(5_000),
            ),
            (
                &[
                    ("x-ratelimit-remaining", "0"),
                    ("x-ratelimit-reset", "784111787"),
                ],
                Some(10_000),
            ),
            (
                &[("ratelimit-remaining", "0"), ("ratelimit-reset", "12")],
                Some(12_000),
            ),
            (
                &[
                    ("x-ratelimit-remaining", "7"),
                    ("x-ratelimit-reset", "784111787"),
                ],
                None,
            ),
            (&[("x-ratelimit-reset", "784111787")], None),
        ];
        for (headers, milliseconds) in cases {
            let expected = milliseconds.map(Duration::from_millis);
            assert_eq!(parsed_waits(headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn retry_fields_in_the_body_are_parsed_in_their_unit() {
        let cases = [
            (
                r#"{"ok":false,"error_code":429,"parameters":{"retry_after":35}}"#,
                Some(35_000),
            ),
            (
                r#"{"message":"You are being rate limited.","retry_after":0.65,"global":false}"#,
                Some(650),
            ),
            (
                r#"{"errcode":"M_LIMIT_EXCEEDED","error":"Too Many Requests","retry_after_ms":2000}"#,
                Some(2_000),
            ),
            (
                r#"{"code":"RATE_LIMIT_HIT","result":"error","retry-after":28.7}"#,
                Some(28_700),
            ),
            (
                r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[
                    {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}]}}"#,
                Some(1_500),
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
