//! The view of stored values for clients.

/// Like `From`, but also usable between types of two other crates.
pub trait FromDomain<T> {
    fn from_domain(value: T) -> Self;
}
