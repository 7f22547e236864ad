//! Parses times and durations.

use jiff::civil::DateTime;

/// The Unix epoch as a civil time, which unlike `jiff::Timestamp` covers all of year 9999.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Maximum length of a duration, positive or negative: about 10,000 years.
const DURATION_S: i64 = 315_576_000_000;

/// Parses an RFC 3339 time from year 1 to 9999 into seconds since 1970 and nanoseconds.
pub(super) fn parse_timestamp(text: &str) -> Option<(i64, i32)> {
    let bytes = text.as_bytes();
    let (date_time, rest) = bytes.split_at_checked(19)?;
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators.iter().any(|(at, byte)| date_time[*at] != *byte) {
        return None;
    }
    let part = |from, to| parse_decimal(&date_time[from..to]);
    let (year, second) = (i16::try_from(part(0, 4)?).ok()?, to_i8(part(17, 19)?)?);
    let (month, day) = (to_i8(part(5, 7)?)?, to_i8(part(8, 10)?)?);
    let (hour, minute) = (to_i8(part(11, 13)?)?, to_i8(part(14, 16)?)?);
    let (nanos, offset) = match rest.strip_prefix(b".") {
        Some(fraction) => {
            let digits = fraction
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            (parse_nanoseconds(&fraction[..digits])?, &fraction[digits..])
        }
        None => (0, rest),
    };
    let local = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    let seconds = local.duration_since(EPOCH).as_secs() - parse_offset_s(offset)?;
    (-62_135_596_800..=253_402_300_799)
        .contains(&seconds)
        .then_some((seconds, nanos))
}

fn parse_offset_s(text: &[u8]) -> Option<i64> {
    let (sign, hours, minutes) = match text {
        b"Z" => return Some(0),
        [b'+', h1, h2, b':', m1, m2] => (1, [*h1, *h2], [*m1, *m2]),
        [b'-', h1, h2, b':', m1, m2] => (-1, [*h1, *h2], [*m1, *m2]),
        _ => return None,
    };
    let (hours, minutes) = (parse_decimal(&hours)?, parse_decimal(&minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Parses a duration such as `1.5s` into seconds and nanoseconds of the same sign.
pub(super) fn parse_duration(text: &str) -> Option<(i64, i32)> {
    let number = text.strip_suffix('s')?;
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, number),
    };
    let (whole, nanos) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, parse_nanoseconds(fraction.as_bytes())?),
        None => (number, 0),
    };
    let seconds = parse_decimal(whole.as_bytes())?;
    let in_range = seconds < DURATION_S || (seconds == DURATION_S && nanos == 0);
    in_range.then_some((i64::from(sign) * seconds, sign * nanos))
}

fn parse_nanoseconds(digits: &[u8]) -> Option<i32> {
    let count = u32::try_from(digits.len())
        .ok()
        .filter(|count| (1..=9).contains(count))?;
    i32::try_from(parse_decimal(digits)? * 10_i64.pow(9 - count)).ok()
}

fn parse_decimal(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits.iter().try_fold(0_i64, |value, byte| {
        byte.is_ascii_digit()
            .then(|| value * 10 + i64::from(byte - b'0'))
    })
}

fn to_i8(value: i64) -> Option<i8> {
    i8::try_from(value).ok()
}
