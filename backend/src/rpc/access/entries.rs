//! Counts the entries of a message while it arrives, before it is decoded.
//!
//! An empty list entry takes two bytes on the wire and about two hundred in memory. A message
//! within the size limit could therefore expand to hundreds of megabytes before its list is found
//! to be too long.

use crate::{error::Error, limits::MESSAGE_ENTRIES_MAX};

pub(super) const PREFIX_BYTES: usize = 5;
const NUMBER_BITS: u32 = 64;

#[derive(Debug)]
pub(super) struct Entries {
    state: ParseState,
    count: usize,
}

#[derive(Debug, Clone, Copy)]
enum ParseState {
    Skip(u64),
    Tag(Varint),
    /// In a varint that is skipped.
    Value,
    Length(Varint),
    /// The message is malformed, which decoding will report.
    Lost,
}

#[derive(Debug, Clone, Copy, Default)]
struct Varint {
    value: u64,
    bits: u32,
}

impl Varint {
    /// Adds a byte. Returns whether it was the last one, or `None` if there are too many entries.
    fn add(&mut self, byte: u8) -> Option<bool> {
        if self.bits >= NUMBER_BITS {
            return None;
        }
        self.value |= u64::from(byte & 0x7f) << self.bits;
        self.bits += 7;
        Some(byte & 0x80 == 0)
    }
}

impl Default for Entries {
    fn default() -> Self {
        Self {
            state: ParseState::Skip(PREFIX_BYTES as u64),
            count: 0,
        }
    }
}

impl Entries {
    /// Creates a parser for a message without a prefix.
    pub(super) fn for_message() -> Self {
        Self {
            state: ParseState::Skip(0),
            count: 0,
        }
    }

    /// Parses the next bytes of the message.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if there are more entries than any request may have.
    pub(super) fn parse_next(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while let Some((&byte, rest)) = bytes.split_first() {
            match &mut self.state {
                ParseState::Lost => return Ok(()),
                ParseState::Skip(0) => self.state = ParseState::Tag(Varint::default()),
                ParseState::Skip(left) => {
                    let skipped =
                        usize::try_from(*left).map_or(bytes.len(), |it| it.min(bytes.len()));
                    *left -= skipped as u64;
                    bytes = &bytes[skipped..];
                }
                ParseState::Value => {
                    if byte & 0x80 == 0 {
                        self.state = ParseState::Tag(Varint::default());
                    }
                    bytes = rest;
                }
                ParseState::Tag(number) => {
                    self.state = match number.add(byte) {
                        None => ParseState::Lost,
                        Some(false) => ParseState::Tag(*number),
                        Some(true) => {
                            self.count += 1;
                            match number.value & 7 {
                                0 => ParseState::Value,
                                1 => ParseState::Skip(8),
                                2 => ParseState::Length(Varint::default()),
                                5 => ParseState::Skip(4),
                                _ => ParseState::Lost,
                            }
                        }
                    };
                    bytes = rest;
                }
                ParseState::Length(number) => {
                    self.state = match number.add(byte) {
                        None => ParseState::Lost,
                        Some(false) => ParseState::Length(*number),
                        Some(true) => ParseState::Skip(number.value),
                    };
                    bytes = rest;
                }
            }
            if self.count > MESSAGE_ENTRIES_MAX {
                let message =
                    format!("has more than {MESSAGE_ENTRIES_MAX} entries; send fewer at a time");
                return Err(Error::invalid("request", message));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bellwether_proto::cloud::{Event, Events};
    use prost::Message;

    use super::*;

    fn count_entries(message: &[u8], step: usize) -> Result<usize, Error> {
        let mut entries = Entries::default();
        let framed = [&[0; PREFIX_BYTES], message].concat();
        for piece in framed.chunks(step) {
            entries.parse_next(piece)?;
        }
        Ok(entries.count)
    }

    #[test]
    fn entries_are_counted_across_any_chunking() {
        let event = Event {
            timestamp: -1,
            name: "x".repeat(300),
            dimensions: [("a".to_owned(), "b".to_owned())].into(),
            ..Event::default()
        };
        let message = Events {
            detailed_response: true,
            events: vec![event; 40],
        };
        let message = message.encode_to_vec();
        for step in [1, 2, 3, 7, 64, 100_000] {
            assert_eq!(count_entries(&message, step).unwrap(), 41, "{step}");
        }
        // Messages with fixed-width fields, and malformed messages.
        assert_eq!(
            count_entries(&[0x0d, 1, 2, 3, 4, 0x09, 1, 2, 3, 4, 5, 6, 7, 8], 3).unwrap(),
            2
        );
        for garbage in [
            &[0xff; 40][..],
            &[0x0b, 0x0b],
            &[0x12, 0xff, 0xff, 0xff, 0xff],
        ] {
            count_entries(garbage, 1).unwrap();
        }
    }

    #[test]
    fn list_with_too_many_entries_is_refused() {
        let bomb = [0x12, 0].repeat(2_000_000);
        for step in [1_000, 16_384] {
            let Err(Error::Invalid(violations)) = count_entries(&bomb, step) else {
                panic!("the list was accepted");
            };
            assert!(violations[0].description.starts_with("has more than"));
        }
    }
}
