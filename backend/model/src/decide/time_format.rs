//! Times formatted for people.

use jiff::Timestamp;

/// Formats a time for people.
pub fn format_time(at_ms: i64) -> String {
    let shown = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    Timestamp::from_millisecond(at_ms).map_or_else(|_| "?".into(), shown)
}
