//! Conversions between wire and domain types that several kinds share.

pub mod query;
pub mod time;

/// The view of a value for clients. Like `From`, but also usable between types of two other crates.
pub trait Shows<T> {
    /// Converts a value to its view.
    fn of(value: T) -> Self;
}

/// Converts a count for the wire, saturating.
pub fn count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Converts a number for the wire, saturating.
pub fn number(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
