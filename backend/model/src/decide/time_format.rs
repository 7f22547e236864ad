//! Times formatted for display.

use jiff::Timestamp;

/// Appends the time until which a state holds, if known.
pub fn with_until(text: &str, until_ms: Option<i64>) -> String {
    let until = until_ms.map(|at_ms| format!(", until {}", format_time(at_ms)));
    format!("{text}{}", until.unwrap_or_default())
}

pub fn format_time(at_ms: i64) -> String {
    let shown = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    Timestamp::from_millisecond(at_ms).map_or_else(|_| "?".into(), shown)
}
