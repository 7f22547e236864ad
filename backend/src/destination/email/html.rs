//! Between HTML and plain text, for the two parts of a mail.

/// Plain text as HTML that keeps its line breaks.
pub(super) fn from_text(text: &str) -> String {
    crate::template::html(text)
        .replace("\r\n", "\n")
        .replace('\n', "<br>\n")
}

/// HTML as readable plain text: tags go, blocks end lines, character references are read.
pub(super) fn to_text(html: &str) -> String {
    // Of the same length, so that offsets are good in both.
    let lower = html.to_ascii_lowercase();
    let mut text = String::with_capacity(html.len());
    let mut from = 0;
    while let Some(at) = html[from..].find('<').map(|at| from + at) {
        text.push_str(&html[from..at]);
        let Some(length) = tag_length(&html[at..]) else {
            // No tag begins here: it is text.
            text.push('<');
            from = at + 1;
            continue;
        };
        from = at + length;
        match tag_name(&lower[at..from]) {
            name @ ("style" | "script" | "head" | "title") => {
                from = element_end(&lower, from, name);
            }
            "td" | "th" => text.push(' '),
            "br" | "p" | "/p" | "div" | "/div" | "/tr" | "li" | "/table" | "/ul" | "/ol" | "hr"
            | "/h1" | "/h2" | "/h3" | "/h4" => end_line(&mut text),
            _ => {}
        }
    }
    text.push_str(&html[from..]);
    tidy(&read_references(&text))
}

fn end_line(text: &mut String) {
    text.truncate(text.trim_end_matches([' ', '\t']).len());
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// How long the tag or comment is that the text starts with; none when it starts with neither.
fn tag_length(text: &str) -> Option<usize> {
    if text.starts_with("<!--") {
        return Some(text.find("-->").map_or(text.len(), |at| at + 3));
    }
    let begins = |c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!');
    text[1..].chars().next().filter(|c| begins(*c))?;
    // To the next sign of either kind only: looking for the end of many open tags would take long.
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

/// Where the element ends whose start tag ends at the offset; nobody reads its content.
fn element_end(lower: &str, from: usize, name: &str) -> usize {
    let end_tag = lower[from..].find(&format!("</{name}"));
    let end = end_tag.and_then(|at| Some(from + at + lower[from + at..].find('>')? + 1));
    end.unwrap_or(lower.len())
}

fn read_references(text: &str) -> String {
    let references = [
        ("&nbsp;", " "),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        // The last one, so that nothing is read twice.
        ("&amp;", "&"),
    ];
    references
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// No blanks around lines, and never more than one empty line.
fn tidy(text: &str) -> String {
    let mut tidied = String::with_capacity(text.len());
    let mut empty_lines = 0;
    for line in text.lines().map(str::trim) {
        if line.is_empty() {
            empty_lines += 1;
            continue;
        }
        if !tidied.is_empty() {
            tidied.push_str(if empty_lines > 0 { "\n\n" } else { "\n" });
        }
        empty_lines = 0;
        tidied.push_str(line);
    }
    tidied
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn html_becomes_readable_text() {
        let cases = [
            (
                "<p>Hi &amp;lt; <b>you</b></p><p>there</p>",
                "Hi &lt; you\nthere",
            ),
            ("a<br>b<BR/>c", "a\nb\nc"),
            (
                "<style>p { color: red }</style>x<script>1 < 2</script>y",
                "xy",
            ),
            ("<tr><td>Host</td><td>db-1</td></tr>", "Host db-1"),
            ("1 < 2 <!-- no --> 3", "1 < 2  3"),
            ("<", "<"),
            ("<a href=\"https://example.com\">more</a>", "more"),
        ];
        for (html, text) in cases {
            assert_eq!(to_text(html), text, "{html}");
        }
    }

    proptest! {
        #[test]
        fn every_text_survives_the_way_through_html(words in "[a-z<>&\"']{1,20}( [a-z<>&\"']{1,9}){0,3}") {
            prop_assert_eq!(to_text(&from_text(&words)), words);
        }

        #[test]
        fn no_html_makes_it_fail(html in "([<>/a!-]|<style>|</style|<!--|-->|\u{130}|br ){0,40}") {
            to_text(&html);
        }
    }
}
