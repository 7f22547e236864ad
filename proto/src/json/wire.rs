//! Reads and writes the protobuf wire format: varints, tags and length-delimited records.

/// The wire type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireType {
    /// A varint.
    Varint = 0,
    /// Eight bytes.
    Fixed64 = 1,
    /// A length and that many bytes.
    Bytes = 2,
    /// Four bytes.
    Fixed32 = 5,
}

/// A value in its wire form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A varint.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// A length-delimited record.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32(u32),
}

/// Error for bytes that are not a valid protobuf message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid protobuf message")]
pub struct MalformedError;

/// Reader of the fields of one message.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader at the first byte of a message.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether all bytes were read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads the next field and returns its number and value.
    pub fn read_field(&mut self) -> Result<(u32, Value<'a>), MalformedError> {
        let tag = self.read_varint()?;
        let number = u32::try_from(tag >> 3).ok().ok_or(MalformedError)?;
        let value = match tag & 7 {
            0 => Value::Varint(self.read_varint()?),
            1 => Value::Fixed64(self.read_fixed64()?),
            2 => Value::Bytes(self.read_bytes()?),
            5 => Value::Fixed32(self.read_fixed32()?),
            _ => return Err(MalformedError),
        };
        if number == 0 {
            Err(MalformedError)
        } else {
            Ok((number, value))
        }
    }

    /// Reads a varint.
    ///
    /// # Errors
    /// Returns an error if the bytes are truncated or malformed.
    pub fn read_varint(&mut self) -> Result<u64, MalformedError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(MalformedError)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(MalformedError)
    }

    /// Reads eight bytes.
    pub fn read_fixed64(&mut self) -> Result<u64, MalformedError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(MalformedError)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*head))
    }

    /// Reads four bytes.
    pub fn read_fixed32(&mut self) -> Result<u32, MalformedError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(MalformedError)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*head))
    }

    fn read_bytes(&mut self) -> Result<&'a [u8], MalformedError> {
        let length = usize::try_from(self.read_varint()?)
            .ok()
            .ok_or(MalformedError)?;
        let (head, rest) = self.rest.split_at_checked(length).ok_or(MalformedError)?;
        self.rest = rest;
        Ok(head)
    }
}

/// Returns the last value of a top-level field of a message.
pub fn find_last(bytes: &[u8], number: u32) -> Option<Value<'_>> {
    let mut reader = Reader::new(bytes);
    let mut found = None;
    while let Ok((at, value)) = reader.read_field() {
        if at == number {
            found = Some(value);
        }
    }
    found
}

/// Appends a varint.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_seven_bits(value) | 0x80);
        value >>= 7;
    }
    out.push(low_seven_bits(value));
}

/// Appends the tag of a field.
pub fn put_tag(out: &mut Vec<u8>, number: u32, wire_type: WireType) {
    put_varint(out, u64::from(number) << 3 | wire_type as u64);
}

/// Appends a field.
pub fn put_field(out: &mut Vec<u8>, number: u32, value: Value<'_>) {
    match value {
        Value::Varint(value) => {
            put_tag(out, number, WireType::Varint);
            put_varint(out, value);
        }
        Value::Fixed64(value) => {
            put_tag(out, number, WireType::Fixed64);
            out.extend_from_slice(&value.to_le_bytes());
        }
        Value::Fixed32(value) => {
            put_tag(out, number, WireType::Fixed32);
            out.extend_from_slice(&value.to_le_bytes());
        }
        Value::Bytes(bytes) => put_bytes_field(out, number, bytes),
    }
}

/// Appends a length-delimited field.
pub fn put_bytes_field(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_tag(out, number, WireType::Bytes);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Starts a length-delimited record of unknown length; [`end_delimited`] ends it.
pub fn begin_delimited(out: &mut Vec<u8>) -> usize {
    out.push(0);
    out.len()
}

/// Ends the record that began at `start`. Returns the number of bytes by which it was moved:
/// records of 128 bytes or more need a longer length.
pub fn end_delimited(out: &mut Vec<u8>, start: usize) -> usize {
    let mut length = out.len() - start;
    let mut encoded = [0; 10];
    let mut used = 0;
    while length >= 0x80 {
        encoded[used] = low_seven_bits(length as u64) | 0x80;
        length >>= 7;
        used += 1;
    }
    out[start - 1] = if used == 0 {
        low_seven_bits(length as u64)
    } else {
        encoded[0]
    };
    if used > 0 {
        encoded[used] = low_seven_bits(length as u64);
        out.splice(start..start, encoded[1..=used].iter().copied());
    }
    used
}

fn low_seven_bits(value: u64) -> u8 {
    (value & 0x7f) as u8
}
