//! Decompression of gzip messages up to their limit, before they are decoded.

use std::{
    io::Write as _,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use flate2::write::GzDecoder;
use http::{HeaderMap, HeaderValue, header::HeaderName};
use http_body::{Frame, SizeHint};
use tonic::{Status, body::Body};

use super::entries::PREFIX_BYTES;

/// Compressed bytes processed at a time. They can expand about a thousandfold.
const STEP_BYTES: usize = 1024;
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPTED: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Returns whether the messages of a call are gzip-compressed. Removes the header, since the
/// service gets the messages decompressed.
pub(super) fn take_gzip_header(headers: &mut HeaderMap) -> bool {
    let is_gzip = headers.get(ENCODING).is_some_and(|it| it == "gzip");
    if is_gzip {
        headers.remove(ENCODING);
    }
    is_gzip
}

pub(super) fn advertise_gzip(headers: &mut HeaderMap) {
    if headers.contains_key(ACCEPTED) {
        headers.insert(ACCEPTED, HeaderValue::from_static("identity,gzip"));
    }
}

pub(super) fn too_large_status(bytes_max: usize) -> Status {
    let message = format!("the message is larger than {bytes_max} bytes");
    Status::resource_exhausted(message)
}

#[derive(Debug)]
pub(super) struct Inflater {
    bytes_max: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Prefix([u8; PREFIX_BYTES], usize),
    Plain(usize),
    Packed(usize, Box<GzDecoder<Vec<u8>>>),
}

impl Inflater {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            state: State::Prefix([0; PREFIX_BYTES], 0),
        }
    }

    /// Processes the next bytes of a body. Returns decompressed messages. `grow` reserves memory
    /// for the given number of additional bytes.
    ///
    /// # Errors
    /// Returns an error if a message is too large or malformed, or the error of `grow`.
    pub(super) fn inflate_bytes(
        &mut self,
        mut bytes: &[u8],
        mut grow: impl FnMut(usize) -> Result<(), Status>,
    ) -> Result<Vec<u8>, Status> {
        let mut inflated = Vec::new();
        while !bytes.is_empty() {
            match &mut self.state {
                State::Prefix(prefix, have) => {
                    let piece = split_front(&mut bytes, PREFIX_BYTES - *have);
                    prefix[*have..][..piece.len()].copy_from_slice(piece);
                    *have += piece.len();
                    if *have == PREFIX_BYTES {
                        let prefix = *prefix;
                        self.begin_message(prefix, &mut inflated)?;
                    }
                }
                State::Plain(left) => {
                    let piece = split_front(&mut bytes, *left);
                    *left -= piece.len();
                    grow(piece.len())?;
                    inflated.extend_from_slice(piece);
                    if *left == 0 {
                        self.state = State::Prefix([0; PREFIX_BYTES], 0);
                    }
                }
                State::Packed(left, decoder) => {
                    let piece = split_front(&mut bytes, (*left).min(STEP_BYTES));
                    *left -= piece.len();
                    let before = decoder.get_ref().len();
                    decoder
                        .write_all(piece)
                        .map_err(|_broken| invalid_compression_status())?;
                    if *left == 0 {
                        decoder
                            .try_finish()
                            .map_err(|_broken| invalid_compression_status())?;
                    }
                    let message = decoder.get_ref();
                    if message.len() > self.bytes_max {
                        return Err(too_large_status(self.bytes_max));
                    }
                    grow(message.len() - before)?;
                    if *left == 0 {
                        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
                        inflated.push(0);
                        inflated.extend_from_slice(&length.to_be_bytes());
                        inflated.extend_from_slice(message);
                        self.state = State::Prefix([0; PREFIX_BYTES], 0);
                    }
                }
            }
        }
        Ok(inflated)
    }

    fn begin_message(
        &mut self,
        prefix: [u8; PREFIX_BYTES],
        inflated: &mut Vec<u8>,
    ) -> Result<(), Status> {
        let [packed, length @ ..] = prefix;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > self.bytes_max {
            return Err(too_large_status(self.bytes_max));
        }
        self.state = match packed {
            1 if length == 0 => return Err(invalid_compression_status()),
            1 => State::Packed(length, Box::new(GzDecoder::new(Vec::new()))),
            _ => {
                // Other flags are left for the service to reject.
                inflated.extend_from_slice(&prefix);
                match length {
                    0 => State::Prefix([0; PREFIX_BYTES], 0),
                    length => State::Plain(length),
                }
            }
        };
        Ok(())
    }
}

fn split_front<'a>(bytes: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (piece, rest) = bytes.split_at(most.min(bytes.len()));
    *bytes = rest;
    piece
}

fn invalid_compression_status() -> Status {
    Status::invalid_argument("the message is not gzip, although it is marked as compressed")
}

/// A body that is decompressed without accounting for memory.
pub(super) struct InflatedBody {
    body: Body,
    inflate: Inflater,
    ended: bool,
}

impl InflatedBody {
    pub(super) fn new(body: Body, bytes_max: usize) -> Self {
        Self {
            body,
            inflate: Inflater::new(bytes_max),
            ended: false,
        }
    }
}

impl http_body::Body for InflatedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            let frame = match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => frame,
                other => return other,
            };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            match self.inflate.inflate_bytes(&data, |_| Ok(())) {
                // A part of a message can be empty when decompressed.
                Ok(inflated) if inflated.is_empty() => {}
                Ok(inflated) => return Poll::Ready(Some(Ok(Frame::data(inflated.into())))),
                Err(status) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(status)));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::new()
    }
}

#[cfg(test)]
mod tests {
    use flate2::{Compression, write::GzEncoder};
    use tonic::Code;

    use super::*;

    fn frame_message(packed: u8, message: &[u8]) -> Vec<u8> {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[packed][..], &length, message].concat()
    }

    fn gzip(message: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(message).unwrap();
        frame_message(1, &encoder.finish().unwrap())
    }

    fn inflate_in_steps(body: &[u8], step: usize) -> Result<(Vec<u8>, usize), Status> {
        let mut inflate = Inflater::new(100_000);
        let (mut all, mut grown) = (Vec::new(), 0);
        for piece in body.chunks(step) {
            all.extend(inflate.inflate_bytes(piece, |more| {
                grown += more;
                Ok(())
            })?);
        }
        Ok((all, grown))
    }

    #[test]
    fn messages_are_inflated_across_any_chunking() {
        let long = b"some text ".repeat(9_000);
        let body = [
            gzip(b"one"),
            frame_message(0, b"two"),
            gzip(&long),
            gzip(b""),
            frame_message(0, b""),
        ];
        let plain = [&b"one"[..], b"two", &long, b"", b""];
        let expected: Vec<_> = plain.iter().flat_map(|it| frame_message(0, it)).collect();
        let bytes = plain.iter().map(|it| it.len()).sum::<usize>();
        for step in [1, 2, 7, 1_000, 1_000_000] {
            let (found, grown) = inflate_in_steps(&body.concat(), step).unwrap();
            assert!(found == expected, "{step}");
            assert_eq!(grown, bytes, "{step}");
        }
    }

    #[test]
    fn inflation_stops_at_the_size_limit() {
        assert!(inflate_in_steps(&gzip(&vec![0; 100_000]), 4_096).is_ok());
        for body in [
            gzip(&vec![0; 100_001]),
            gzip(&vec![0; 64 << 20]),
            frame_message(0, &vec![0; 100_001]),
        ] {
            let status = inflate_in_steps(&body, 4_096).unwrap_err();
            assert_eq!(status.code(), Code::ResourceExhausted);
        }
        let mut cut = gzip(b"some text");
        cut.truncate(20);
        cut[4] = 15;
        for body in [frame_message(1, b"text"), frame_message(1, b""), cut] {
            let status = inflate_in_steps(&body, 4_096).unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{body:?}");
        }
    }
}
