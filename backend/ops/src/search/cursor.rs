//! Cursors of walks from page to page.

use crate::store::LogPosition;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Position in the change log at which the walk began. An occurrence changed later may have
    /// moved from the part of the order that remains to the part already shown.
    pub(super) begun: LogPosition,
    /// Newest time in the order when the walk began, in milliseconds since the epoch. The walk
    /// stops here, so that it does not chase entries that keep moving to later times.
    pub(super) newest_ms: i64,
    pub(super) at: Position,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Position {
    /// A position in the requested order; empty at the beginning.
    InOrder(Vec<u8>),
    /// A position among the records that the log names after `from`, in the order of their keys.
    Moved {
        /// Log position after which to read.
        from: LogPosition,
        /// Log position at which the end of the order was reached. Later changes are irrelevant.
        through: LogPosition,
        /// Key of the last record; empty at the beginning.
        after: Vec<u8>,
    },
    /// A position in a walk over all occurrences by start time, used if the log no longer contains
    /// the changes.
    Everything(Vec<u8>),
}

const IN_ORDER: u8 = 0;
const MOVED: u8 = 1;
const EVERYTHING: u8 = 2;

impl Cursor {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.begun.to_number().to_be_bytes().to_vec();
        bytes.extend(self.newest_ms.to_be_bytes());
        match &self.at {
            Position::InOrder(place) => {
                bytes.push(IN_ORDER);
                bytes.extend(place);
            }
            Position::Moved {
                from,
                through,
                after,
            } => {
                bytes.push(MOVED);
                bytes.extend(from.to_number().to_be_bytes());
                bytes.extend(through.to_number().to_be_bytes());
                bytes.extend(after);
            }
            Position::Everything(place) => {
                bytes.push(EVERYTHING);
                bytes.extend(place);
            }
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (begun, rest) = bytes.split_first_chunk()?;
        let (newest_ms, rest) = rest.split_first_chunk()?;
        let (kind, rest) = rest.split_first()?;
        let at = match *kind {
            IN_ORDER => Position::InOrder(rest.to_vec()),
            MOVED => {
                let (from, rest) = rest.split_first_chunk()?;
                let (through, after) = rest.split_first_chunk()?;
                Position::Moved {
                    from: position(*from),
                    through: position(*through),
                    after: after.to_vec(),
                }
            }
            EVERYTHING => Position::Everything(rest.to_vec()),
            _ => return None,
        };
        Some(Self {
            begun: position(*begun),
            newest_ms: i64::from_be_bytes(*newest_ms),
            at,
        })
    }
}

fn position(bytes: [u8; 8]) -> LogPosition {
    LogPosition::from_number(u64::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn log_positions() -> impl Strategy<Value = LogPosition> {
        any::<u64>().prop_map(LogPosition::from_number)
    }

    fn positions() -> impl Strategy<Value = Position> {
        prop_oneof![
            any::<Vec<u8>>().prop_map(Position::InOrder),
            any::<Vec<u8>>().prop_map(Position::Everything),
            (log_positions(), log_positions(), any::<Vec<u8>>()).prop_map(
                |(from, through, after)| {
                    Position::Moved {
                        from,
                        through,
                        after,
                    }
                }
            ),
        ]
    }

    proptest! {
        #[test]
        fn cursor_round_trips(begun in log_positions(), newest_ms: i64, at in positions()) {
            let cursor = Cursor { begun, newest_ms, at };
            prop_assert_eq!(Cursor::decode(&cursor.encode()), Some(cursor));
        }

        #[test]
        fn cursor_decoding_never_panics(bytes: Vec<u8>) {
            if let Some(cursor) = Cursor::decode(&bytes) {
                prop_assert_eq!(cursor.encode(), bytes);
            }
        }
    }
}
