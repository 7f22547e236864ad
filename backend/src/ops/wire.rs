//! Conversions between wire and domain types that several kinds share.

pub mod query;
pub mod time;

/// The view of a value for clients. Like `From`, but also usable between types of two other crates.
pub trait FromDomain<T> {
    fn from_domain(value: T) -> Self;
}

/// Converts a count for the wire, saturating.
pub fn to_i32(count: impl TryInto<i32>) -> i32 {
    count.try_into().unwrap_or(i32::MAX)
}
