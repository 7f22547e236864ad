//! Durations in the notation of Prometheus.

use super::super::fields::{Fields, invalid_field_error};
use crate::error::ImportError;

const UNITS: [(&str, u64); 7] = [
    ("ms", 1),
    ("y", 365 * 86_400_000),
    ("w", 7 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
];

/// Parses a field such as `1h30m` and returns milliseconds.
pub(crate) fn read_field(fields: &mut Fields, name: &str) -> Result<Option<u64>, ImportError> {
    let Some(text) = fields.take_text(name)? else {
        return Ok(None);
    };
    let found = parse_ms(&text);
    found.map(Some).ok_or_else(|| {
        invalid_field_error(
            &fields.path_of(name),
            "expected a duration such as 30s or 1h30m",
        )
    })
}

fn parse_ms(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let (mut rest, mut sum) = (text, 0_u64);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, behind) = rest.split_at(end);
        let (unit, unit_ms) = UNITS.iter().find(|(unit, _)| behind.starts_with(unit))?;
        sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(*unit_ms)?)?;
        rest = &behind[unit.len()..];
    }
    (!text.is_empty()).then_some(sum)
}

pub(crate) fn to_wire(ms: u64) -> String {
    let (seconds, rest) = (ms / 1_000, ms % 1_000);
    if rest == 0 {
        format!("{seconds}s")
    } else {
        format!("{seconds}.{rest:03}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_numbers_with_units() {
        let table = [
            ("30s", Some("30s")),
            ("1h30m", Some("5400s")),
            ("1d", Some("86400s")),
            ("1500ms", Some("1.500s")),
            ("1m5ms", Some("60.005s")),
            ("0", Some("0s")),
            ("", None),
            ("5", None),
            ("s", None),
            ("5 s", None),
            ("99999999999999999y", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_ms(text).map(to_wire).as_deref(), expected, "{text}");
        }
    }
}
