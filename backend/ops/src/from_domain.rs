//! The view of stored values for clients.

/// Like `From`, but can also convert between types of other crates.
pub trait FromDomain<T> {
    fn from_domain(value: T) -> Self;
}
