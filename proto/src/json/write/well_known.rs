//! Writes the types of `google.protobuf` that have a special JSON form.

use std::io::Write as _;

use jiff::{SignedDuration, civil::DateTime};

use super::{Writer, scalar};
use crate::json::{
    plan::{Kind, MessageId},
    wire::{MalformedError, Reader, Value},
};

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

const INFALLIBLE: &str = "writing to memory does not fail";

impl<'a> Writer<'a, '_> {
    pub(super) fn write_timestamp(&mut self, bytes: &[u8]) -> Result<(), MalformedError> {
        let (seconds, nanos) = read_parts(bytes)?;
        let time = EPOCH
            .checked_add(SignedDuration::from_secs(seconds))
            .ok()
            .ok_or(MalformedError)?;
        if time.year() < 1 || !(0..1_000_000_000).contains(&nanos) {
            return Err(MalformedError);
        }
        let (year, month, day) = (time.year(), time.month(), time.day());
        let (hour, minute, second) = (time.hour(), time.minute(), time.second());
        write!(
            self.out,
            "\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        )
        .expect(INFALLIBLE);
        self.write_fraction(nanos);
        self.out.extend_from_slice(b"Z\"");
        Ok(())
    }

    pub(super) fn write_duration(&mut self, bytes: &[u8]) -> Result<(), MalformedError> {
        let (seconds, nanos) = read_parts(bytes)?;
        if seconds.signum() * i64::from(nanos.signum()) < 0 || nanos.abs() > 999_999_999 {
            return Err(MalformedError);
        }
        let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
        write!(self.out, "\"{sign}{}", seconds.unsigned_abs()).expect(INFALLIBLE);
        self.write_fraction(nanos.abs());
        self.out.extend_from_slice(b"s\"");
        Ok(())
    }

    /// Writes a fraction of a second with zero, three, six or nine digits.
    fn write_fraction(&mut self, nanos: i32) {
        let written = match nanos {
            0 => Ok(()),
            _ if nanos % 1_000_000 == 0 => write!(self.out, ".{:03}", nanos / 1_000_000),
            _ if nanos % 1_000 == 0 => write!(self.out, ".{:06}", nanos / 1_000),
            _ => write!(self.out, ".{nanos:09}"),
        };
        written.expect(INFALLIBLE);
    }

    pub(super) fn write_field_mask(&mut self, bytes: &[u8]) -> Result<(), MalformedError> {
        let mut camel = String::new();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let (1, Value::Bytes(path)) = reader.read_field()? else {
                continue;
            };
            if !camel.is_empty() {
                camel.push(',');
            }
            let mut upper = false;
            for char in std::str::from_utf8(path)
                .ok()
                .ok_or(MalformedError)?
                .chars()
            {
                match char {
                    '_' => upper = true,
                    _ if upper => {
                        camel.push(char.to_ascii_uppercase());
                        upper = false;
                    }
                    _ => camel.push(char),
                }
            }
        }
        scalar::write_text(&camel, self.out);
        Ok(())
    }

    /// Writes a message as its only field, a list or a map.
    pub(super) fn write_only_field(
        &mut self,
        id: MessageId,
        bytes: &'a [u8],
        empty: &str,
    ) -> Result<(), MalformedError> {
        let message = &self.plan.messages[id];
        let base = self.scan_fields(message, bytes)?;
        let count = self.found.len() - base;
        match message.fields.first() {
            Some(field) if count > 0 => self.write_field(field, base, count)?,
            _ => self.out.extend_from_slice(empty.as_bytes()),
        }
        self.found.truncate(base);
        Ok(())
    }

    pub(super) fn write_struct_value(
        &mut self,
        id: MessageId,
        bytes: &'a [u8],
    ) -> Result<(), MalformedError> {
        let message = &self.plan.messages[id];
        let mut reader = Reader::new(bytes);
        let mut last = None;
        while !reader.is_empty() {
            let (number, value) = reader.read_field()?;
            if let Some(index) = message.field_index_by_number(number) {
                last = Some((message.fields[index].kind, value));
            }
        }
        let Some((kind, value)) = last else {
            self.out.extend_from_slice(b"null");
            return Ok(());
        };
        self.write_value(kind, value)
    }

    pub(super) fn write_wrapper(
        &mut self,
        id: MessageId,
        bytes: &'a [u8],
    ) -> Result<(), MalformedError> {
        let kind = self.plan.messages[id]
            .fields
            .first()
            .map_or(Kind::Bool, |field| field.kind);
        let mut reader = Reader::new(bytes);
        let mut last = scalar::zero_value(kind);
        while !reader.is_empty() {
            if let (1, value) = reader.read_field()? {
                last = value;
            }
        }
        self.write_value(kind, last)
    }
}

/// Reads seconds and nanoseconds, which are fields 1 and 2 of both times and durations.
fn read_parts(bytes: &[u8]) -> Result<(i64, i32), MalformedError> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        match reader.read_field()? {
            (1, Value::Varint(value)) => seconds = value.cast_signed(),
            (2, Value::Varint(value)) => {
                nanos = i32::try_from(value.cast_signed())
                    .ok()
                    .ok_or(MalformedError)?;
            }
            _ => {}
        }
    }
    Ok((seconds, nanos))
}
