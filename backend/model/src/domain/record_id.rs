//! Identities of stored records without a natural key.

use std::fmt;

use ulid::Ulid;

/// A time-ordered 128-bit identity, written as 26 letters and digits (a ULID).
///
/// Time-ordered keys keep new records adjacent on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(u128);

impl RecordId {
    /// Creates an identity from milliseconds since 1970 and 80 random bits.
    pub fn from_parts(time_ms: u64, random: u128) -> Self {
        Self(Ulid::from_parts(time_ms, random).0)
    }

    /// Returns the smallest identity that can be created at a time or later.
    pub fn first_at_time(time_ms: u64) -> Self {
        Self::from_parts(time_ms, 0)
    }

    pub fn parse(text: &str) -> Option<Self> {
        Ulid::from_string(text).ok().map(|id| Self(id.0))
    }

    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Returns the time of creation, in milliseconds since 1970.
    pub fn time_ms(self) -> u64 {
        Ulid(self.0).timestamp_ms()
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Ulid(self.0), formatter)
    }
}
