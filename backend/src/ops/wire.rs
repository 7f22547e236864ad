//! Conversions between wire and domain types that several kinds share.

pub mod event;
mod hold;
pub mod json;
pub mod query;
pub mod time;

use std::collections::BTreeMap;

pub use hold::holds;

use crate::domain::Severity;

/// The view of a value for clients. Like `From`, but also usable between types of two other crates.
pub trait FromDomain<T> {
    fn from_domain(value: T) -> Self;
}

/// Converts a count for the wire, saturating.
pub fn to_i32(count: impl TryInto<i32>) -> i32 {
    count.try_into().unwrap_or(i32::MAX)
}

/// Converts a count for the wire, saturating.
pub fn to_i64(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// Converts counts by severity, with the names of the severities on the wire.
pub fn count_by_name(counts: BTreeMap<Severity, usize>) -> BTreeMap<String, i32> {
    let counts = counts.into_iter();
    counts
        .map(|(severity, count)| (severity.enum_name().to_owned(), to_i32(count)))
        .collect()
}
