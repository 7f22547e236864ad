//! The Protocol Buffers wire format of fields.

use prost::{
    DecodeError,
    encoding::{
        DecodeContext, WireType, check_wire_type, decode_key, decode_varint, encode_key,
        encode_varint, skip_field,
    },
};

use crate::{
    domain::{RecordId, Secret},
    seal::{SealContext, Sealer},
};

const DEPTH_MAX: u32 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl From<DecodeError> for Unreadable {
    fn from(_error: DecodeError) -> Self {
        Self
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Secrets<'a> {
    Of(RecordId, &'a Sealer),
    /// Omitted when writing and empty when reading.
    LeftOut,
}

impl Secrets<'_> {
    pub(crate) fn unless_omitted<T>(self, value: Option<T>) -> Option<T> {
        match self {
            Self::Of(..) => value,
            Self::LeftOut => None,
        }
    }

    /// Seals a secret for a field; `None` if it is empty or omitted.
    pub(crate) fn seal(self, field: &str, secret: &Secret) -> Option<Vec<u8>> {
        let sealed = || self.seal_even_if_empty(field, secret);
        (!secret.is_empty()).then(sealed).flatten()
    }

    /// Seals a secret for a field even if it is empty; `None` if omitted.
    pub(crate) fn seal_even_if_empty(self, field: &str, secret: &Secret) -> Option<Vec<u8>> {
        let Self::Of(record, sealer) = self else {
            return None;
        };
        Some(sealer.seal(SealContext { record, field }, secret))
    }

    /// Opens the sealed secret of a field; `None` if it cannot be opened.
    pub(crate) fn open(self, field: &str, sealed: Option<Vec<u8>>) -> Option<Secret> {
        match (self, sealed) {
            (Self::Of(record, sealer), Some(sealed)) => {
                sealer.open(SealContext { record, field }, &sealed).ok()
            }
            _ => Some(Secret::default()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) bytes: Vec<u8>,
    pub(crate) secrets: Secrets<'a>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(secrets: Secrets<'a>) -> Self {
        let bytes = Vec::new();
        Self { bytes, secrets }
    }

    pub(crate) fn write_bytes(&mut self, tag: u32, bytes: &[u8]) {
        encode_key(tag, WireType::LengthDelimited, &mut self.bytes);
        encode_varint(bytes.len() as u64, &mut self.bytes);
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn write_message(&mut self, tag: u32, write: impl FnOnce(&mut Self)) {
        encode_key(tag, WireType::LengthDelimited, &mut self.bytes);
        let at = self.bytes.len();
        self.bytes.push(0);
        write(self);
        let length = self.bytes.len() - at - 1;
        if let Ok(byte @ 0..0x80) = u8::try_from(length) {
            self.bytes[at] = byte;
            return;
        }
        let mut room = [0; 10];
        let mut rest = &mut room[..];
        encode_varint(length as u64, &mut rest);
        let unused = rest.len();
        let length = &room[..room.len() - unused];
        self.bytes.splice(at..=at, length.iter().copied());
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) rest: &'a [u8],
    pub(crate) secrets: Secrets<'a>,
    pub(crate) depth: u32,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(rest: &'a [u8], secrets: Secrets<'a>) -> Self {
        Self {
            rest,
            secrets,
            depth: DEPTH_MAX,
        }
    }

    pub(crate) fn read_key(&mut self) -> Result<Option<(u32, WireType)>, Unreadable> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        Ok(Some(decode_key(&mut self.rest)?))
    }

    pub(crate) fn read_bytes(&mut self, wire_type: WireType) -> Result<&'a [u8], Unreadable> {
        check_wire_type(WireType::LengthDelimited, wire_type)?;
        let length = decode_varint(&mut self.rest)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.rest.split_off(..length).ok_or(Unreadable)
    }

    pub(crate) fn read_text(&mut self, wire_type: WireType) -> Result<&'a str, Unreadable> {
        std::str::from_utf8(self.read_bytes(wire_type)?).or(Err(Unreadable))
    }

    pub(crate) fn read_message(&mut self, wire_type: WireType) -> Result<Self, Unreadable> {
        let depth = self.depth.checked_sub(1).ok_or(Unreadable)?;
        let rest = self.read_bytes(wire_type)?;
        Ok(Self {
            rest,
            depth,
            ..*self
        })
    }

    pub(crate) fn skip(&mut self, tag: u32, wire_type: WireType) -> Result<(), Unreadable> {
        if self.depth == 0 {
            return Err(Unreadable);
        }
        let context = DecodeContext::default();
        Ok(skip_field(wire_type, tag, &mut self.rest, context)?)
    }
}
