//! Trace contexts, as defined by W3C Trace Context.

use std::fmt;

/// The supported version; later versions start with the same fields.
const VERSION: &str = "00";
const SAMPLED: u8 = 1;

/// A trace and the parent span in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: [u8; 16],
    pub span: [u8; 8],
    pub is_sampled: bool,
}

impl TraceContext {
    /// Size in bytes when stored.
    pub const BYTES: usize = 25;

    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let [version_number] = decode_hex(version)?;
        let is_known = version == VERSION && parts.next().is_none();
        if !is_known && (version == VERSION || version_number == u8::MAX) {
            return None;
        }
        let [flags] = decode_hex(flags)?;
        let (trace, span) = (decode_hex(trace)?, decode_hex(span)?);
        let is_whole = trace != [0; 16] && span != [0; 8];
        is_whole.then_some(Self {
            trace,
            span,
            is_sampled: flags & SAMPLED != 0,
        })
    }

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.trace);
        bytes[16..24].copy_from_slice(&self.span);
        bytes[24] = u8::from(self.is_sampled);
        bytes
    }

    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let (trace, rest) = bytes.split_at(16);
        let (span, flags) = rest.split_at(8);
        Self {
            trace: trace.try_into().unwrap_or_default(),
            span: span.try_into().unwrap_or_default(),
            is_sampled: flags[0] & SAMPLED != 0,
        }
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}-")?;
        self.trace.iter().try_for_each(|it| write!(f, "{it:02x}"))?;
        f.write_str("-")?;
        self.span.iter().try_for_each(|it| write!(f, "{it:02x}"))?;
        write!(f, "-{:02x}", u8::from(self.is_sampled))
    }
}

/// Parses `N` bytes from lower-case hexadecimal digits.
fn decode_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    let is_small = |it: &u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 2 * N || !digits.iter().all(is_small) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn trace_header_round_trips() {
        let context = TraceContext::parse(TEXT).unwrap();
        assert_eq!(context.to_string(), TEXT);
        assert!(context.is_sampled);
        assert_eq!(TraceContext::from_bytes(context.to_bytes()), context);
        let later = TEXT.replacen("00", "cc", 1) + "-more";
        assert_eq!(TraceContext::parse(&later), Some(context));
        let unsampled = TraceContext::parse(&(TEXT[..53].to_owned() + "02"));
        assert!(!unsampled.unwrap().is_sampled);
    }

    #[test]
    fn invalid_trace_headers_are_rejected() {
        let wrong = [
            "",
            "00",
            &TEXT[..54],
            &TEXT.to_uppercase(),
            &(TEXT.to_owned() + "-more"),
            &TEXT.replacen("00", "ff", 1),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ];
        for text in wrong {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
    }
}
