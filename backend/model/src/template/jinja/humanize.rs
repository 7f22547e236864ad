//! Filters that humanize numbers, as in Prometheus templates.

use minijinja::{Environment, Error, Value};

use super::{error::invalid_operation, filters::format_seconds};

/// Prefixes for the powers of 1000, and for their reciprocals.
const LARGE: [&str; 9] = ["", "k", "M", "G", "T", "P", "E", "Z", "Y"];
const SMALL: [&str; 9] = ["", "m", "u", "n", "p", "f", "a", "z", "y"];
/// Units of 1024 and its powers.
const BYTES: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

pub(super) fn add_filters(environment: &mut Environment<'static>) {
    environment.add_filter("humanize", |value: &Value| {
        Ok::<_, Error>(format_with_prefix(number("humanize", value)?))
    });
    environment.add_filter("humanizeBytes", |value: &Value| {
        Ok::<_, Error>(bytes(number("humanizeBytes", value)?))
    });
    environment.add_filter("humanizeDuration", |value: &Value| {
        Ok::<_, Error>(duration(number("humanizeDuration", value)?))
    });
    environment.add_filter("humanizePercentage", |value: &Value| {
        let ratio = number("humanizePercentage", value)?;
        Ok::<_, Error>(format!("{}%", format_digits(ratio * 100.0)))
    });
}

/// Returns a value as a number; a text is parsed.
fn number(filter: &str, value: &Value) -> Result<f64, Error> {
    let read = match value.as_str() {
        Some(text) => text.trim().parse().ok(),
        None => f64::try_from(value.clone()).ok(),
    };
    let number = read.filter(|it: &f64| it.is_finite() && it.abs() < 1e27);
    number.ok_or_else(|| invalid_operation(format!("{filter}: is not a number")))
}

/// Formats a number with four significant digits, without trailing zeros.
fn format_digits(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let mut scale = 0_usize;
    let mut size = number.abs();
    while size < 1_000.0 && scale < 12 {
        size *= 10.0;
        scale += 1;
    }
    let text = format!("{number:.scale$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Divides a number until it is below the step, and returns it with the number of divisions.
fn divide_below(number: f64, step: f64, most: usize) -> (f64, usize) {
    let (mut number, mut count) = (number, 0);
    while number.abs() >= step && count < most {
        number /= step;
        count += 1;
    }
    (number, count)
}

fn format_with_prefix(number: f64) -> String {
    if number == 0.0 || number.abs() >= 1.0 {
        let (number, count) = divide_below(number, 1_000.0, LARGE.len() - 1);
        return format!("{}{}", format_digits(number), LARGE[count]);
    }
    let (mut number, mut count) = (number, 0);
    while number.abs() < 1.0 && count < SMALL.len() - 1 {
        number *= 1_000.0;
        count += 1;
    }
    format!("{}{}", format_digits(number), SMALL[count])
}

fn bytes(number: f64) -> String {
    let (number, count) = divide_below(number, 1_024.0, BYTES.len() - 1);
    format!("{} {}", format_digits(number), BYTES[count])
}

/// Formats seconds as days, hours, minutes and seconds; less than one second with a prefix, as in
/// `5ms`.
fn duration(seconds: f64) -> String {
    if seconds != 0.0 && seconds.abs() < 1.0 {
        return format!("{}s", format_with_prefix(seconds));
    }
    let sign = if seconds < 0.0 { "-" } else { "" };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and the cast saturates"
    )]
    let whole = seconds.abs().round() as u64;
    format!("{sign}{}", format_seconds(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_humanized() {
        #[expect(clippy::type_complexity, reason = "a table")]
        let cases: [(fn(f64) -> String, f64, &str); 19] = [
            (format_with_prefix, 0.0, "0"),
            (format_with_prefix, 1.0, "1"),
            (format_with_prefix, 999.0, "999"),
            (format_with_prefix, 1_234_567.0, "1.235M"),
            (format_with_prefix, -1_500.0, "-1.5k"),
            (format_with_prefix, 0.25, "250m"),
            (format_with_prefix, 0.000_012, "12u"),
            (format_with_prefix, 1e25, "10Y"),
            (bytes, 0.0, "0 B"),
            (bytes, 1_023.0, "1023 B"),
            (bytes, 1_536.0, "1.5 KiB"),
            (bytes, 5_368_709_120.0, "5 GiB"),
            (duration, 0.0, "0s"),
            (duration, 0.12, "120ms"),
            (duration, 59.6, "1m"),
            (duration, 90_061.0, "1d 1h 1m 1s"),
            (duration, -90.0, "-1m 30s"),
            (format_digits, 12.345_6, "12.35"),
            (format_digits, 97.5, "97.5"),
        ];
        for (write, number, text) in cases {
            assert_eq!(write(number), text, "{number}");
        }
    }
}
