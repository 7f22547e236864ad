//! The identity of a stored record that has no natural key.

use std::fmt;

use ulid::Ulid;

/// A time-ordered identity of 128 bits, written as 26 letters and digits (a ULID).
///
/// Time-ordered keys keep new records side by side on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(u128);

impl RecordId {
    /// Makes an identity from milliseconds since 1970 and 80 random bits.
    pub fn from_parts(time_ms: u64, random: u128) -> Self {
        Self(Ulid::from_parts(time_ms, random).0)
    }

    /// The smallest identity made at that time or later.
    pub fn first_at(time_ms: u64) -> Self {
        Self::from_parts(time_ms, 0)
    }

    /// Takes 26 letters and digits as an identity, without regard to letter case.
    pub fn parse(text: &str) -> Option<Self> {
        Ulid::from_string(text).ok().map(|id| Self(id.0))
    }

    /// The key's bytes, in an order that is the order of time.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Reads what [`RecordId::to_bytes`] wrote.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// When it was made, in milliseconds since 1970.
    pub fn time_ms(self) -> u64 {
        Ulid(self.0).timestamp_ms()
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Ulid(self.0), formatter)
    }
}
