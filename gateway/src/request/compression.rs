//! Compression with gzip, of requests and responses.

use std::io::{Read as _, Write as _};

use bytes::Bytes;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use http::{HeaderMap, HeaderValue, header};

use super::Reply;
use crate::{limits, problem::Problem};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentEncoding {
    Plain,
    Gzip,
}

pub(super) fn content_encoding(headers: &HeaderMap) -> Result<ContentEncoding, Problem> {
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    let encoding = match (encodings.next(), encodings.next()) {
        (None, _) => return Ok(ContentEncoding::Plain),
        (Some(one), None) => one.as_bytes().trim_ascii(),
        (Some(_), Some(_)) => return Err(Problem::unknown_encoding()),
    };
    if encoding.is_empty() || encoding.eq_ignore_ascii_case(b"identity") {
        Ok(ContentEncoding::Plain)
    } else if encoding.eq_ignore_ascii_case(b"gzip") || encoding.eq_ignore_ascii_case(b"x-gzip") {
        Ok(ContentEncoding::Gzip)
    } else {
        Err(Problem::unknown_encoding())
    }
}

pub(super) fn decompress(body: &[u8], limit_bytes: usize) -> Result<Bytes, Problem> {
    let mut whole = Vec::new();
    let bound = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
    let read = GzDecoder::new(body)
        .take(bound.saturating_add(1))
        .read_to_end(&mut whole);
    match read {
        Ok(bytes) if bytes > limit_bytes => Err(Problem::body_too_large(limit_bytes)),
        Ok(_) => Ok(whole.into()),
        Err(_) => Err(Problem::invalid(
            "the body is not gzip, although it is marked as compressed",
        )),
    }
}

pub(super) async fn compress(reply: Reply, request_headers: &HeaderMap) -> Reply {
    let bytes = reply.body.len();
    if bytes < limits::COMPRESSED_FROM || !accepts_gzip(request_headers) {
        return reply;
    }
    let body = reply.body.clone();
    let deflate = move || gzip(&body);
    let deflated = if bytes <= limits::COMPRESSED_INLINE_MAX {
        deflate()
    } else {
        // Compressing a large body would block this thread for too long.
        tokio::task::spawn_blocking(deflate).await.ok().flatten()
    };
    let Some(body) = deflated else {
        return reply;
    };
    let mut reply = Reply { body, ..reply };
    let headers = &mut reply.headers;
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    // The compressed body has other bytes, so the tag has to be weak.
    let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
    let weak = tag.filter(|tag| !tag.starts_with("W/"));
    if let Some(Ok(weak)) = weak.map(|tag| HeaderValue::try_from(format!("W/{tag}"))) {
        headers.insert(header::ETAG, weak);
    }
    reply
}

fn gzip(body: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).ok()?;
    Some(encoder.finish().ok()?.into())
}

fn accepts_gzip(request_headers: &HeaderMap) -> bool {
    let lists = request_headers.get_all(header::ACCEPT_ENCODING).iter();
    let entries = lists
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','));
    let mut others = false;
    for entry in entries {
        let mut parts = entry.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let is_refused = parts.any(|part| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.trim().parse() == Ok(0.0_f32))
        });
        if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") {
            return !is_refused;
        }
        others |= name == "*" && !is_refused;
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_used_when_the_client_accepts_it() {
        let table = [
            ("", false),
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000, *", false),
            ("*", true),
            ("*;q=0", false),
            ("br, deflate", false),
        ];
        for (value, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, value.parse().unwrap());
            assert_eq!(accepts_gzip(&headers), expected, "{value}");
        }
    }

    #[test]
    fn content_encoding_is_parsed() {
        let table = [
            ("identity", Some(ContentEncoding::Plain)),
            ("GZip", Some(ContentEncoding::Gzip)),
            ("br", None),
            ("gzip, gzip", None),
        ];
        for (value, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_ENCODING, value.parse().unwrap());
            assert_eq!(content_encoding(&headers).ok(), expected, "{value}");
        }
    }
}
