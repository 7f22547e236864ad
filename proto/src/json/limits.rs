//! Fixed bounds of what is read from JSON and written as JSON.

/// Messages inside one another that the backend's decoder still reads.
pub const MESSAGE_DEPTH: usize = 100;
/// Violated fields listed in one answer; the rest is only counted.
pub const VIOLATIONS: usize = 100;
/// Unknown members that are listed of those that were ignored.
pub const IGNORED: usize = 10;
/// Entries of a list set aside as they do not fit; with more the whole text is refused.
pub const REFUSED_ENTRIES: usize = 1_000;
/// Characters of a client's own text (a key, a value) repeated in an answer.
pub const QUOTED_CHARS: usize = 60;
/// Fields of one message type, so that a `u128` can hold which were seen.
pub const FIELDS: usize = 128;
