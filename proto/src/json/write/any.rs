//! Writes `google.protobuf.Any` as an object with the type of its content.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{Writer, scalar};
use crate::json::{
    plan::Shape,
    wire::{MalformedError, Reader, Value},
};

impl<'a> Writer<'a, '_> {
    /// Writes `@type` and the fields of the content. If the content has a special JSON form or an
    /// unknown type, it is written as the member `value`; for an unknown type, the bytes are in
    /// base64.
    pub(super) fn write_any(&mut self, bytes: &'a [u8]) -> Result<(), MalformedError> {
        let (mut type_url, mut held): (&[u8], &[u8]) = (&[], &[]);
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            match reader.read_field()? {
                (1, Value::Bytes(url)) => type_url = url,
                (2, Value::Bytes(value)) => held = value,
                _ => {}
            }
        }
        let type_url = std::str::from_utf8(type_url).ok().ok_or(MalformedError)?;
        self.out.push(b'{');
        if !type_url.is_empty() {
            self.out.extend_from_slice(b"\"@type\":");
            scalar::write_text(type_url, self.out);
            let name = type_url.rsplit('/').next().unwrap_or(type_url);
            match self.plan.by_name.get(name) {
                Some(id) if self.plan.messages[*id].shape == Shape::Plain => {
                    self.write_fields(*id, held, false)?;
                }
                Some(id) => {
                    self.out.extend_from_slice(b",\"value\":");
                    self.write_message(*id, held)?;
                }
                None => {
                    self.out.extend_from_slice(b",\"value\":");
                    scalar::write_text(&STANDARD.encode(held), self.out);
                }
            }
        }
        self.out.push(b'}');
        Ok(())
    }
}
