//! Conversion between HTML and plain text, for the two parts of a mail.

use std::borrow::Cow;

/// Maximum depth of lists and quotations shown in plain text.
const LEVELS_MAX: usize = 8;
const TAB: &str = "\u{a0}\u{a0}\u{a0}\u{a0}";

/// Converts plain text to HTML, preserving line breaks and indentation.
pub(super) fn html_from_text(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let rest = line.trim_start_matches([' ', '\t']);
        let indent = line[..line.len() - rest.len()].replace('\t', TAB);
        format!(
            "{}{}",
            indent.replace(' ', "\u{a0}"),
            crate::template::escape_html(rest)
        )
    });
    lines.collect::<Vec<_>>().join("<br>\n")
}

pub(super) fn html_to_text(html: &str) -> Cow<'_, str> {
    html_escape::decode_html_entities(html)
}

/// Converts HTML to readable plain text: tags are dropped, blocks become lines and paragraphs, and
/// links keep their address.
pub(super) fn to_text(html: &str) -> String {
    // `lower` has the same length as `html`, so that offsets apply to both.
    let lower = html.to_ascii_lowercase();
    let mut text = TextBuilder::default();
    let mut from = 0;
    while let Some(at) = html[from..].find('<').map(|at| from + at) {
        text.append(&html[from..at]);
        let Some(length) = tag_length(&html[at..]) else {
            text.append("<");
            from = at + 1;
            continue;
        };
        from = at + length;
        match tag_name(&lower[at..from]) {
            name @ ("style" | "script" | "head" | "title") => {
                from = element_end(&lower, from, name);
            }
            name => text.handle_tag(name, &html[at..from], &lower[at..from]),
        }
    }
    text.append(&html[from..]);
    text.finish()
}

#[derive(Default)]
struct TextBuilder {
    text: String,
    /// Pending line breaks; two make a paragraph.
    line_ends: usize,
    is_apart: bool,
    preformatted: usize,
    quotations: usize,
    /// The next item number of each open list; `None` for unnumbered lists.
    lists: Vec<Option<u32>>,
    /// Marker of the next line, if it is a list item.
    mark: Option<String>,
    /// Open links: target, and offset of their text.
    links: Vec<(String, usize)>,
}

impl TextBuilder {
    fn handle_tag(&mut self, name: &str, tag: &str, lower: &str) {
        match name {
            "br" => self.line_ends = (self.line_ends + 1).min(2),
            "td" | "th" => self.is_apart = true,
            "div" | "/div" | "tr" | "/tr" | "/li" | "dt" | "dd" => self.end_line(1),
            "p" | "/p" | "h1" | "/h1" | "h2" | "/h2" | "h3" | "/h3" | "h4" | "/h4" | "h5"
            | "/h5" | "h6" | "/h6" | "table" | "/table" => self.end_line(2),
            "hr" => {
                self.end_line(1);
                self.append_word("----------");
                self.end_line(1);
            }
            "pre" => {
                self.end_line(2);
                self.preformatted += 1;
            }
            "/pre" => {
                self.end_line(2);
                self.preformatted = self.preformatted.saturating_sub(1);
            }
            "blockquote" => {
                self.end_line(2);
                self.quotations += 1;
            }
            "/blockquote" => {
                self.end_line(2);
                self.quotations = self.quotations.saturating_sub(1);
            }
            "ul" | "ol" => {
                self.end_line(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push((name == "ol").then_some(1));
            }
            "/ul" | "/ol" => {
                self.lists.pop();
                self.end_line(if self.lists.is_empty() { 2 } else { 1 });
            }
            "li" => {
                self.end_line(1);
                self.mark = Some(match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "- ".into(),
                });
            }
            "a" => {
                let to = attribute_value(tag, lower, "href").unwrap_or_default();
                self.links.push((to, self.text.len()));
            }
            "/a" => self.end_link(),
            "img" => self.append(&attribute_value(tag, lower, "alt").unwrap_or_default()),
            _ => {}
        }
    }

    fn append(&mut self, html: &str) {
        let text = html_escape::decode_html_entities(html);
        if self.preformatted > 0 {
            // A line break directly after the tag is ignored.
            let is_begun = self.line_ends == 0;
            let text = text
                .strip_prefix('\n')
                .filter(|_| !is_begun)
                .unwrap_or(&text);
            let mut lines = text.split('\n');
            self.append_raw(lines.next().unwrap_or_default());
            for line in lines {
                self.flush_line_ends();
                self.text.push('\n');
                self.append_raw(line);
            }
            return;
        }
        for (index, word) in text.split(|c: char| c.is_ascii_whitespace()).enumerate() {
            self.is_apart |= index > 0;
            if !word.is_empty() {
                self.append_word(word);
            }
        }
    }

    fn end_line(&mut self, line_ends: usize) {
        self.line_ends = self.line_ends.max(line_ends);
        self.is_apart = false;
    }

    /// Appends a word, after a space if one is pending.
    fn append_word(&mut self, word: &str) {
        if !self.begin_line() && self.is_apart {
            self.text.push(' ');
        }
        self.is_apart = false;
        self.push(word);
    }

    fn append_raw(&mut self, line: &str) {
        if !line.is_empty() {
            self.begin_line();
            self.push(line);
        }
    }

    fn push(&mut self, text: &str) {
        let shown = |c: char| match c {
            '\t' => '\t',
            '\u{a0}' => ' ',
            c if c.is_control() => ' ',
            c => c,
        };
        self.text.extend(text.chars().map(shown));
    }

    /// Flushes pending line breaks and starts the next line with list and quotation markers.
    /// Returns whether a line was started.
    fn begin_line(&mut self) -> bool {
        self.flush_line_ends();
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            return false;
        }
        let quotations = self.quotations.min(LEVELS_MAX);
        self.text.push_str(&"> ".repeat(quotations));
        let mark = self.mark.take();
        let levels = self.lists.len().min(LEVELS_MAX);
        let levels = levels - usize::from(mark.is_some()).min(levels);
        self.text.push_str(&"  ".repeat(levels));
        self.text.push_str(&mark.unwrap_or_default());
        true
    }

    fn flush_line_ends(&mut self) {
        let due = std::mem::take(&mut self.line_ends);
        if due > 0 && !self.text.is_empty() {
            self.text
                .truncate(self.text.trim_end_matches([' ', '\t']).len());
            let there = self.text.len() - self.text.trim_end_matches('\n').len();
            self.text.push_str(&"\n".repeat(due.saturating_sub(there)));
        }
    }

    /// Appends the address of a link after its text, unless they are equal.
    fn end_link(&mut self) {
        let Some((to, begin)) = self.links.pop() else {
            return;
        };
        let to = to.trim();
        let shown = self.text.get(begin..).unwrap_or_default().trim();
        let address = match to.split_once(':') {
            Some(("http" | "https", rest)) if shown == rest.trim_start_matches('/') => return,
            Some(("http" | "https", _)) => to,
            Some(("mailto", rest)) => rest.split('?').next().unwrap_or_default(),
            _ => return,
        };
        if shown.is_empty() {
            self.append_word(address);
        } else if shown != address {
            let after = format!("({address})");
            self.is_apart = true;
            self.append_word(&after);
        }
    }

    fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        let begin = self.text.len() - self.text.trim_start_matches('\n').len();
        self.text.split_off(begin)
    }
}

/// Returns the value of an attribute of a tag; `lower` is the tag in lower case.
fn attribute_value(tag: &str, lower: &str, name: &str) -> Option<String> {
    let mut from = 0;
    loop {
        let at = from + lower[from..].find(name)?;
        from = at + name.len();
        let is_apart = lower[..at].ends_with(|c: char| c.is_ascii_whitespace());
        let value = tag[from..].trim_start().strip_prefix('=');
        let (true, Some(value)) = (is_apart, value) else {
            continue;
        };
        let value = value.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let value = match quote {
            Some(quote) => value[1..].split(quote).next(),
            None => value
                .split(|c: char| c.is_ascii_whitespace() || c == '>')
                .next(),
        };
        return Some(html_escape::decode_html_entities(value?).into_owned());
    }
}

/// Returns the length of the tag or comment at the start of the text; `None` if there is none.
fn tag_length(text: &str) -> Option<usize> {
    if text.starts_with("<!--") {
        return Some(text.find("-->").map_or(text.len(), |at| at + 3));
    }
    let begins = |c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!');
    text[1..].chars().next().filter(|c| begins(*c))?;
    // Stop at the next `<` or `>`: searching for the end of many unclosed tags would be slow.
    let end = 1 + text[1..].find(['<', '>'])?;
    text[end..].starts_with('>').then_some(end + 1)
}

fn tag_name(tag: &str) -> &str {
    let inside = tag.trim_matches(['<', '>']);
    let end = inside
        .char_indices()
        .find(|(at, c)| c.is_whitespace() || (*c == '/' && *at > 0));
    end.map_or(inside, |(at, _)| &inside[..at])
}

/// Returns the end of the element whose start tag ends at `from`; its content is skipped.
fn element_end(lower: &str, from: usize, name: &str) -> usize {
    let end_tag = lower[from..].find(&format!("</{name}"));
    let end = end_tag.and_then(|at| Some(from + at + lower[from + at..].find('>')? + 1));
    end.unwrap_or(lower.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn html_converts_to_readable_text() {
        let cases = [
            (
                "<p>Hi &amp;lt; <b>you</b></p><p>there</p>",
                "Hi &lt; you\n\nthere",
            ),
            ("a<br>b<BR/>c<br><br>d", "a\nb\nc\n\nd"),
            ("one\n  line   of&nbsp;&nbsp;text", "one line of  text"),
            (
                "<style>p { color: red }</style>x<script>1 < 2</script>y",
                "xy",
            ),
            ("<tr><td>Host</td><td>db-1</td></tr>", "Host db-1"),
            ("1 < 2 <!-- no --> 3", "1 < 2 3"),
            ("<", "<"),
            // Links keep their address, even without text.
            (
                "See <a href=\"https://example.com/a?b=1&amp;c=2\">the  run</a>.",
                "See the run (https://example.com/a?b=1&c=2).",
            ),
            (
                "<A class=x HREF='https://x.example/'>x</A>",
                "x (https://x.example/)",
            ),
            (
                "<a href=https://x.example/a>https://x.example/a</a>",
                "https://x.example/a",
            ),
            ("<a href=\"https://x.example\">x.example</a>", "x.example"),
            (
                "<a href=\"https://x.example\"><img src=l></a>",
                "https://x.example",
            ),
            (
                "<a href=\"mailto:ops@x.example?subject=a\">Ops</a>",
                "Ops (ops@x.example)",
            ),
            (
                "<a href=\"#top\">up</a> <a>no</a></a> <a data-href=\"https://x\">x</a>",
                "up no x",
            ),
            // Character references.
            (
                "5 &euro; &ndash; 10&nbsp;&#8364; &uuml;ber &#x1F514; &hellip; &nosuch;",
                "5 \u{20ac} \u{2013} 10 \u{20ac} \u{fc}ber \u{1f514} \u{2026} &nosuch;",
            ),
            // Paragraphs, lists, quotations and preformatted text.
            (
                "<h1>Head</h1>text<div>a</div><div>b</div>",
                "Head\n\ntext\na\nb",
            ),
            (
                "<ul><li>one</li><li>two<ul><li>in<br>side</li></ul></li></ul>end",
                "- one\n- two\n  - in\n    side\n\nend",
            ),
            ("<ol><li>a<li>b</ol>", "1. a\n2. b"),
            ("a<blockquote>b<br>c</blockquote>d", "a\n\n> b\n> c\n\nd"),
            (
                "x<pre>\nroot:\n  a: 1\n\n\tb\n</pre>y",
                "x\n\nroot:\n  a: 1\n\n\tb\n\ny",
            ),
        ];
        for (html, text) in cases {
            assert_eq!(to_text(html), text, "{html}");
        }
    }

    #[test]
    fn plain_text_keeps_lines_and_indentation() {
        for text in ["a\n  b\n\n    c", "  first", "a\n\n\nb", "\u{fc} & <b>"] {
            let html = html_from_text(text);
            let shown: Vec<_> = html.split("<br>\n").map(html_to_text).collect();
            assert_eq!(shown.join("\n").replace('\u{a0}', " "), text);
        }
    }

    #[test]
    fn deeply_nested_html_converts_quickly() {
        for tag in [
            "<ul><li>",
            "<blockquote>x",
            "<a href='https://x.example'>",
            "<pre>",
            "<b",
        ] {
            let html = tag.repeat(50_000);
            assert!(to_text(&html).len() < 40 * html.len(), "{tag}");
        }
    }

    proptest! {
        #[test]
        fn text_survives_html_round_trip(words in "[a-z<>&\"']{1,20}( [a-z<>&\"']{1,9}){0,3}") {
            prop_assert_eq!(to_text(&html_from_text(&words)), words);
        }

        #[test]
        fn to_text_never_panics(html in "([<>/a!-]|<style>|</style|<!--|-->|\u{130}|br ){0,40}") {
            to_text(&html);
        }
    }
}
