//! Limits for reading and writing JSON.

/// Maximum nesting of messages that the backend decodes.
pub const MESSAGE_DEPTH: usize = 100;
/// Maximum number of violations listed in a response; the rest is only counted.
pub const VIOLATIONS: usize = 100;
/// Maximum number of unknown members that are listed as ignored.
pub const IGNORED: usize = 10;
/// Maximum number of invalid list entries that are set aside; with more, the whole text is
/// rejected.
pub const REFUSED_ENTRIES: usize = 1_000;
/// Maximum length, in characters, of client text (a key, a value) quoted in a response.
pub const QUOTED_CHARS: usize = 60;
/// Maximum number of fields per message type. A `u128` has one bit for each field that was read.
pub const FIELDS: usize = 128;
