//! The request and response of an attempt as shown to readers: truncated, and with secrets masked.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
};

use base64::{
    Engine as _,
    engine::general_purpose::{GeneralPurpose, STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use http::HeaderMap;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::{Position, Url, form_urlencoded};

use crate::domain::secret::MASK;

pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024;
const HEADER_BYTES_MAX: usize = 1024;
const HEADERS_MAX: usize = 64;
pub(crate) const EXPLANATION_BYTES_MAX: usize = 500;

/// Minimum length, in bytes, of a text whose encoded forms are masked. Those of a shorter text
/// could match by chance, so it is masked only as a separate word.
const DERIVED_BYTES_MIN: usize = 6;

const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Minimum length at which a substring of a signature does not occur by chance. A template, limit
/// or line break may leave only a part of a signature; parts of at least this length are masked.
const SIGNATURE_RUN_BYTES: usize = 12;

/// Secrets to mask, in every encoding that a message may contain.
#[derive(Clone, Default)]
pub struct Masker {
    needles: Vec<String>,
    /// All substrings of [`SIGNATURE_RUN_BYTES`] of all signatures.
    runs: HashSet<[u8; SIGNATURE_RUN_BYTES]>,
}

impl std::fmt::Debug for Masker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Masker({} needles)", self.needles.len())
    }
}

impl Masker {
    /// Adds a secret: the whole text, and the words in it (`Bearer TOKEN`, two signing secrets). Of
    /// a URL, the host is not secret, so only the part after it is added.
    pub fn add(&mut self, secret: &str) {
        let address = Url::parse(secret).ok().filter(Url::has_host);
        let address = address.as_ref().map(|url| {
            let path = &url[Position::BeforePath..Position::AfterQuery];
            [url.as_str(), if path.len() > 1 { path } else { "" }]
        });
        let is_alone = secret_words(secret).count() == 1;
        let words = secret_words(secret).filter(|word| is_alone || word.len() >= DERIVED_BYTES_MIN);
        let parts = words.chain(address.into_iter().flatten());
        for text in [secret.trim()].into_iter().chain(parts) {
            self.add_spellings(text);
            // `Basic` credentials and signing secrets are base64.
            let encoded = text.strip_prefix("whsec_").unwrap_or(text);
            let decoded = STANDARD.decode(encoded).map(String::from_utf8);
            if let Ok(Ok(decoded)) = decoded {
                let (_, password) = decoded.split_once(':').unwrap_or_default();
                for text in [&decoded, password, encoded] {
                    if text.len() >= DERIVED_BYTES_MIN {
                        self.add_spellings(text);
                    }
                }
            }
        }
        // Longest first: a secret that is part of another must not break it up.
        self.needles
            .sort_by_key(|needle| std::cmp::Reverse(needle.len()));
    }

    pub(crate) fn add_signature(&mut self, signature: &str) {
        self.add(signature);
        let runs = signature.as_bytes().windows(SIGNATURE_RUN_BYTES);
        let runs = runs.filter_map(|run| <[u8; SIGNATURE_RUN_BYTES]>::try_from(run).ok());
        self.runs.extend(runs);
    }

    /// Adds the rendered text of a template that contains a secret between its variables.
    pub(crate) fn add_rendered(&mut self, template: &str, filled: &str) {
        let own = template.split("{{").enumerate().map(|(at, part)| match at {
            0 => part,
            _ => part.rsplit("}}").next().unwrap_or_default(),
        });
        let own: Vec<_> = own.filter(|it| it.len() >= DERIVED_BYTES_MIN).collect();
        for text in own.iter().copied() {
            self.add(text);
        }
        // Words from the event are not secret, so only the whole rendered text is added.
        if !own.is_empty() {
            self.add_spellings(filled);
        }
        let length = |needle: &String| std::cmp::Reverse(needle.len());
        self.needles.sort_by_key(length);
    }

    fn add_spellings(&mut self, text: &str) {
        let json = serde_json::Value::from(text).to_string();
        let percent = utf8_percent_encode(text, RESERVED).to_string();
        let form = form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let mut spellings = vec![text.into(), json[1..json.len() - 1].into(), percent, form];
        if text.len() >= DERIVED_BYTES_MIN {
            let bytes = text.as_bytes();
            let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            spellings.push(hex.to_uppercase());
            spellings.push(hex);
            for offset in 0..3 {
                spellings.extend(
                    [STANDARD_NO_PAD, URL_SAFE_NO_PAD].map(|to| base64_within(&to, text, offset)),
                );
            }
        }
        for spelling in spellings {
            if !spelling.is_empty() && !self.needles.contains(&spelling) {
                self.needles.push(spelling);
            }
        }
    }

    pub fn mask(&self, text: &str, limit_bytes: usize) -> String {
        let longest = self.needles.first().map_or(0, String::len);
        // Longer text cannot affect the result: even a secret that begins before the limit ends
        // within this length. `%XX` triples the length.
        let mut text = truncate_bytes(text, limit_bytes.saturating_add(3 * longest)).to_owned();
        for needle in &self.needles {
            text = mask_secret(text, needle);
        }
        text = self.mask_percent(text);
        text = self.mask_runs(text);
        text.truncate(truncate_bytes(&text, limit_bytes).len());
        text
    }

    fn mask_runs(&self, text: String) -> String {
        if self.runs.is_empty() {
            return text;
        }
        let (mut masked, mut copied, mut end) = (String::new(), 0, 0);
        // Substrings are ASCII, so their bounds are character boundaries.
        for (at, run) in text.as_bytes().windows(SIGNATURE_RUN_BYTES).enumerate() {
            if !self.runs.contains(run) {
                continue;
            }
            if at > end || end == 0 {
                masked.push_str(&text[copied..at]);
                masked.push_str(MASK);
            }
            end = at + SIGNATURE_RUN_BYTES;
            copied = end;
        }
        masked.push_str(&text[copied..]);
        masked
    }

    /// Masks secrets with an arbitrary subset of their characters percent-encoded.
    fn mask_percent(&self, text: String) -> String {
        if !text.contains('%') || self.needles.is_empty() {
            return text;
        }
        let mut read = Vec::with_capacity(text.len());
        // Offset in the text of each decoded byte.
        let mut from = Vec::with_capacity(text.len() + 1);
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            from.push(at);
            let written = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
            let byte = written.and_then(|hex| u8::from_str_radix(hex, 16).ok());
            read.push(byte.unwrap_or(bytes[at]));
            at += if byte.is_some() { 3 } else { 1 };
        }
        from.push(at);
        let mut masked = String::with_capacity(text.len());
        let (mut at, mut copied) = (0, 0);
        while at < read.len() {
            let mut needles = self.needles.iter().map(String::as_bytes);
            let found = needles.find(|needle| {
                read[at..].starts_with(needle) && is_secret_match(&read, at, needle.len())
            });
            let Some(needle) = found else {
                at += 1;
                continue;
            };
            masked.push_str(&text[from[copied]..from[at]]);
            masked.push_str(MASK);
            at += needle.len();
            copied = at;
        }
        masked.push_str(&text[from[copied]..]);
        masked
    }

    /// Masks a body; invalid UTF-8 is replaced.
    pub(crate) fn mask_body(&self, body: &[u8]) -> String {
        self.mask(&String::from_utf8_lossy(body), BODY_BYTES_MAX)
    }

    pub(crate) fn mask_headers(&self, headers: &HeaderMap) -> BTreeMap<String, String> {
        let mut masked = BTreeMap::<String, String>::new();
        for (name, value) in headers.iter().take(HEADERS_MAX) {
            let value = String::from_utf8_lossy(value.as_bytes());
            let value = self.mask(&value, HEADER_BYTES_MAX);
            masked
                .entry(self.mask(name.as_str(), HEADER_BYTES_MAX))
                .and_modify(|joined| {
                    joined.push_str(", ");
                    joined.push_str(&value);
                })
                .or_insert(value);
        }
        masked
    }
}

fn mask_secret(text: String, secret: &str) -> String {
    let mut copied = 0;
    let mut masked = String::new();
    for (at, _) in text.match_indices(secret) {
        if is_secret_match(text.as_bytes(), at, secret.len()) {
            masked.push_str(&text[copied..at]);
            masked.push_str(MASK);
            copied = at + secret.len();
        }
    }
    if copied == 0 && masked.is_empty() {
        return text;
    }
    masked.push_str(&text[copied..]);
    masked
}

/// Whether a match is a secret. Short secrets occur within other words by chance.
fn is_secret_match(text: &[u8], at: usize, length: usize) -> bool {
    let is_inside = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    length >= DERIVED_BYTES_MIN
        || !(is_inside(text[..at].last()) || is_inside(text.get(at + length)))
}

/// Returns the base64 form that a text has within longer data, if it begins `offset` bytes after a
/// multiple of three. Omits characters that also encode the surrounding data.
fn base64_within(base64: &GeneralPurpose, text: &str, offset: usize) -> String {
    let before = [&b"\0\0"[..offset], text.as_bytes()].concat();
    let whole = before.len() / 3 * 3;
    let written = base64.encode(&before[..whole]);
    written[offset.div_ceil(3) * 4..].to_owned()
}

/// Returns the words of a secret that are secret themselves, excluding schemes such as `Bearer`.
fn secret_words(secret: &str) -> impl Iterator<Item = &str> {
    let is_scheme = |word: &&str| ["basic", "bearer", "token"].contains(&&*word.to_lowercase());
    secret
        .split_whitespace()
        .filter(move |word| !is_scheme(word))
}

fn truncate_bytes(text: &str, limit_bytes: usize) -> &str {
    let mut end = limit_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masker(secrets: &[&str]) -> Masker {
        let mut masker = Masker::default();
        for secret in secrets {
            masker.add(secret);
        }
        masker
    }

    #[test]
    fn secrets_are_masked_in_every_spelling() {
        let masker = masker(&[
            "Bearer s3cr/et\"x",
            "whsec_aaaa whsec_bbbb",
            "two-part~* s3cret",
        ]);
        let cases = [
            ("Bearer s3cr/et\"x", "********"),
            ("token=s3cr/et\"x.", "token=********."),
            ("?t=s3cr%2Fet%22x&u", "?t=********&u"),
            ("t=two-part%7E*+s3cret", "t=********"),
            ("/two-part~%2A%20s3cret", "/********"),
            (r#"{"t":"s3cr/et\"x"}"#, r#"{"t":"********"}"#),
            ("whsec_aaaa", "********"),
            ("whsec_bbbb whsec_aaaa", "******** ********"),
            ("nothing", "nothing"),
        ];
        for (text, shown) in cases {
            assert_eq!(masker.mask(text, 100), shown, "{text}");
        }
    }

    #[test]
    fn secrets_are_masked_in_base64_hex_and_percent_encoding() {
        let masker = masker(&["Bearer tr0ub4dor&3~x", "Basic dXNlcjpzM2NyM3QtcGFzcw=="]);
        let hex = String::from("747230756234646f7226337e78");
        for before in ["", "a", "ab", "abc", "user:"] {
            let whole = format!("{before}tr0ub4dor&3~x and more");
            for written in [STANDARD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                let shown = masker.mask(&written, 1_000);
                assert!(shown.contains(MASK), "{before}: {written} became {shown}");
            }
        }
        let cases = [
            (hex.clone(), "********"),
            (hex.to_uppercase(), "********"),
            ("t=%74r0ub4dor%263%7ex!".into(), "t=********!"),
            (
                "%74%72%30%75%62%34%64%6f%72%26%33%7E%78%".into(),
                "********%",
            ),
            ("user:s3cr3t-pass".into(), "********"),
            ("said s3cr3t-pass".into(), "said ********"),
            ("100 % and \u{e4}%C3%A4".into(), "100 % and \u{e4}%C3%A4"),
        ];
        for (text, shown) in cases {
            assert_eq!(masker.mask(&text, 1_000), shown, "{text}");
        }
    }

    #[test]
    fn signature_is_masked_whole_truncated_wrapped_or_encoded() {
        let signature = "AAAAAdJ7yD3sBq9vR-k2mW0xT_zLh4NfUe8cGa5oPiVbQw1t";
        let mut masker = Masker::default();
        masker.add_signature(signature);
        let link = format!("https://bw.example/acknowledge/x?sign={signature}&y");
        let cases = [
            link.clone(),
            link[..link.len() - 9].to_owned(),
            format!("{}=\n{}", &link[..60], &link[60..]),
            signature[20..].to_owned(),
            link.replace('=', "%3D"),
            format!("\u{e4}{signature}\u{e4}{signature}"),
            STANDARD.encode(&link),
        ];
        for text in cases {
            let shown = masker.mask(&text, 1_000);
            let shows = |run: &[u8]| text.as_bytes().windows(run.len()).any(|it| it == run);
            let secret = signature.as_bytes().windows(SIGNATURE_RUN_BYTES);
            let left = secret.filter(|run| shows(run)).filter(|run| {
                let run = std::str::from_utf8(run).unwrap();
                shown.contains(run)
            });
            assert_eq!(left.count(), 0, "{text} became {shown}");
            assert!(shown.contains(MASK), "{text} became {shown}");
        }
        assert_eq!(
            masker.mask("AAAAAdJ7 and R-k2mW0x", 100),
            "AAAAAdJ7 and R-k2mW0x"
        );
    }

    #[test]
    fn short_or_spaced_secrets_leave_other_text_readable() {
        let cases = [
            (" ", "a b c", "a b c"),
            (
                "a",
                "a banana, and {\"token\":\"a\"}",
                "******** banana, and {\"token\":\"********\"}",
            ),
            ("ok", "?t=ok&u=token", "?t=********&u=token"),
            (
                "it is on fire",
                "it is the disk on host a",
                "it is the disk on host a",
            ),
            ("it is on fire", "said: it is on fire!", "said: ********!"),
            ("it is on fire", "t=it%20is%20on%20fire", "t=********"),
            (
                "Bearer s3c",
                "Bearer s3c, s3c, s3cs",
                "********, ********, s3cs",
            ),
            ("hunter22", "xhunter22x", "x********x"),
        ];
        for (secret, text, shown) in cases {
            assert_eq!(
                masker(&[secret]).mask(text, 1_000),
                shown,
                "{secret:?}: {text}"
            );
        }
    }

    #[test]
    fn truncation_never_shows_part_of_a_secret() {
        let masker = masker(&["canary-secret"]);
        for limit_bytes in 0..40 {
            let shown = masker.mask("0123456789 canary-secret and more text", limit_bytes);
            assert!(shown.len() <= limit_bytes);
            assert!(!shown.contains("canary"), "{shown}");
        }
    }

    #[test]
    fn truncation_keeps_characters_whole() {
        assert_eq!(Masker::default().mask("a\u{e4}\u{e4}", 2), "a");
        assert_eq!(Masker::default().mask_body(b"\xffok"), "\u{fffd}ok");
    }
}
