//! Parts that messages of several kinds have in common, between the wire and the domain.

pub mod query;
pub mod time;

/// What shows a value to clients. As `From`, which no crate can implement between two others.
pub trait Shows<T> {
    /// It, showing a value.
    fn of(value: T) -> Self;
}

/// A count as the wire carries it; more than fits is the most that fits.
pub fn count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// A number as the wire carries it.
pub fn number(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
