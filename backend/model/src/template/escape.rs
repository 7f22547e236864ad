//! Escapes values so that they cannot break out of their context.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Characters that are encoded in a path segment, or in a value of a query or form.
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Separates words for programs, and is invisible to readers.
const WORD_JOINER: char = '\u{2060}';

/// The names by which chats mention all members, after an `@`.
const ROOMS: [&str; 7] = [
    "all", "channel", "everyone", "here", "online", "room", "team",
];

/// The escaping of `{{x}}`, by context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    None,
    /// `&`, `<`, `>`, `"` and `'` become HTML entities.
    Html,
    /// For a quoted JSON string.
    Json,
    /// For the value of a header: control characters and line breaks become spaces.
    Header,
    /// For a path segment, or a value of a query or form: all characters except letters, digits,
    /// `-`, `.`, `_` and `~` are percent-encoded. A value of only dots, which would lead up the
    /// path, becomes `_`.
    Percent,
    /// For Slack text in a quoted JSON string.
    SlackJson,
    /// For Slack text: no links, mentions or room mentions.
    Slack,
    /// For Markdown text: special characters are escaped, and no room mentions.
    Markdown,
    /// For text in a card: no links, tags or room mentions; other characters stay unchanged.
    Card,
    /// For text in Telegram's `MarkdownV2`.
    Telegram,
}

impl Escape {
    const ALL: [(Self, &str); 10] = [
        (Self::None, "text"),
        (Self::Html, "html"),
        (Self::Json, "json"),
        (Self::Header, "header"),
        (Self::Percent, "address"),
        (Self::SlackJson, "slack-json"),
        (Self::Slack, "slack"),
        (Self::Markdown, "markdown"),
        (Self::Card, "card"),
        (Self::Telegram, "telegram"),
    ];

    pub(super) fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(it, _)| *it == self);
        found.map_or("text", |(_, name)| name)
    }

    pub(super) fn from_name(name: &str) -> Self {
        let found = Self::ALL.iter().find(|(_, it)| *it == name);
        found.map_or(Self::None, |(it, _)| *it)
    }
}

pub fn escape_text(text: &str, escape: Escape) -> Cow<'_, str> {
    match escape {
        Escape::Html => escape_html(text),
        Escape::Header if text.contains(char::is_control) => {
            text.replace(char::is_control, " ").into()
        }
        Escape::None | Escape::Header => Cow::Borrowed(text),
        Escape::Percent if !text.is_empty() && text.bytes().all(|it| it == b'.') => "_".into(),
        Escape::Percent => utf8_percent_encode(text, &RESERVED).into(),
        Escape::Json => {
            let quoted = Value::from(text).to_string();
            let inner = quoted
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'));
            Cow::Owned(inner.unwrap_or_default().to_owned())
        }
        Escape::Slack => {
            let text = neutralize_mentions(text).replace('&', "&amp;");
            text.replace('<', "&lt;").replace('>', "&gt;").into()
        }
        Escape::SlackJson => {
            let text = escape_text(text, Escape::Slack);
            escape_text(&text, Escape::Json).into_owned().into()
        }
        Escape::Markdown => {
            escape_with_backslash(&neutralize_mentions(text), r"\`*_{}[]<>()#+-!|~").into()
        }
        Escape::Telegram => {
            escape_with_backslash(&neutralize_mentions(text), r"\`*_{}[]<>()#+-=.!|~").into()
        }
        Escape::Card => neutralize_markup(&neutralize_mentions(text)).into(),
    }
}

fn escape_with_backslash(text: &str, signs: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if signs.contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Returns a text without hidden links and tags, otherwise unchanged.
fn neutralize_markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut before = ' ';
    for c in text.chars() {
        let opens_link = before == ']' && matches!(c, '(' | '[' | ':');
        let opens_tag = before == '<' && (c.is_alphabetic() || matches!(c, '/' | '!' | '@' | '#'));
        if opens_link || opens_tag {
            escaped.push(if opens_link { ' ' } else { WORD_JOINER });
        }
        escaped.push(c);
        before = c;
    }
    escaped
}

fn neutralize_mentions(text: &str) -> Cow<'_, str> {
    if !text.contains('@') {
        return Cow::Borrowed(text);
    }
    let mut quiet = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        quiet.push_str(&rest[..=at]);
        rest = &rest[at + 1..];
        // Zulip puts two asterisks around the word.
        let word = rest.trim_start_matches(['*', '_']);
        let word = word.split(|c: char| !c.is_ascii_alphanumeric()).next();
        let word = word.unwrap_or_default().to_ascii_lowercase();
        if ROOMS.contains(&word.as_str()) {
            quiet.push(WORD_JOINER);
        }
    }
    quiet.push_str(rest);
    Cow::Owned(quiet)
}

pub fn escape_html(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strings that chats treat as a mention, a link or a tag.
    const HOSTILE: &str =
        "@all @Channel @here, @**all** <!channel> <users/all> [a](https://e) <at>x</at> [b]: x";

    #[test]
    fn escaped_text_creates_no_mentions_or_links() {
        for place in [
            Escape::Slack,
            Escape::Markdown,
            Escape::Card,
            Escape::Telegram,
        ] {
            let text = escape_text(HOSTILE, place).to_lowercase();
            for call in [
                "@all", "@channel", "@here", "@*", "<!", "<users", "](", "<at", "]: ",
            ] {
                let is_call = text.contains(call) && !text.contains(&format!("\\{call}"));
                assert!(
                    !is_call || (place == Escape::Slack && call.starts_with(']')),
                    "{place:?}: {text}"
                );
            }
        }
        let mail = "mail ada@channelfour.example, a < b, x[1] (y) *z*";
        assert_eq!(escape_text(mail, Escape::Card), mail);
    }
}
