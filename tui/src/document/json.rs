//! JSON in a page, indented and coloured.

use super::{Document, Span, span};
use crate::{text, theme::Token};

impl Document {
    /// Adds a body: JSON is indented and coloured, anything else is unchanged.
    pub(crate) fn body(&mut self, indent: usize, body: &str) {
        let shown = pretty_body(body);
        if shown == body {
            return self.text(Token::Text, indent, body);
        }
        let space = self.columns.saturating_sub(indent + 2);
        for line in shown.lines() {
            // Wrapped lines are not coloured, since a part of a text can look like any token.
            if text::cell_width(line) > space {
                self.text(Token::Text, indent, line);
                continue;
            }
            let mut spans = vec![span(Token::Text, &" ".repeat(indent))];
            spans.extend(highlight(line));
            self.line(spans);
        }
    }
}

fn highlight(line: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (length, token) = match first {
            '"' => {
                let length = quoted_len(rest);
                let is_key = rest[length..].starts_with(": ");
                (length, if is_key { Token::Dim } else { Token::Text })
            }
            first if first.is_ascii_alphanumeric() || first == '-' => {
                let end = rest.find([',', ' ', '}', ']']).unwrap_or(rest.len());
                (end, Token::Info)
            }
            first => (first.len_utf8(), Token::Dim),
        };
        spans.push(span(token, &rest[..length]));
        rest = &rest[length..];
    }
    spans
}

fn quoted_len(line: &str) -> usize {
    let mut escaped = false;
    for (at, char) in line.char_indices().skip(1) {
        if char == '"' && !escaped {
            return at + 1;
        }
        escaped = !escaped && char == '\\';
    }
    line.len()
}

pub(crate) fn pretty_body(body: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(body) {
        Ok(value) if value.is_object() || value.is_array() => indent_json(body),
        _ => body.to_owned(),
    }
}

fn indent_json(json: &str) -> String {
    let mut out = String::new();
    let mut depth = 0_usize;
    let mut quoted = false;
    let mut escaped = false;
    for char in json.chars() {
        if quoted {
            out.push(char);
            quoted = escaped || char != '"';
            escaped = !escaped && char == '\\';
            continue;
        }
        let line = |out: &mut String, depth: usize| {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        };
        match char {
            '{' | '[' => {
                depth += 1;
                out.push(char);
                line(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if out.trim_end().ends_with(['{', '[']) {
                    out.truncate(out.trim_end().len());
                } else {
                    line(&mut out, depth);
                }
                out.push(char);
            }
            ',' => {
                out.push(char);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            char if char.is_whitespace() => {}
            char => {
                quoted = char == '"';
                out.push(char);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_body_is_indented_in_its_original_order() {
        let sent = r#"{"b": [1,2], "a":{"x\"{":"y, z"},"e":[]}"#;
        let shown = r#"{
  "b": [
    1,
    2
  ],
  "a": {
    "x\"{": "y, z"
  },
  "e": []
}"#;
        assert_eq!(pretty_body(sent), shown);
        assert_eq!(pretty_body("plain, text"), "plain, text");
    }

    #[test]
    fn json_line_is_highlighted_without_loss() {
        let line = r#"  "a \" b": "c, 1: {","#;
        let spans = highlight(line);
        let words: String = spans.iter().map(|span| span.text.as_str()).collect();
        assert_eq!(words, line);
        let has = |token: Token, text: &str| spans.contains(&span(token, text));
        assert!(has(Token::Dim, r#""a \" b""#), "{spans:?}");
        assert!(has(Token::Text, r#""c, 1: {""#), "{spans:?}");
        assert_eq!(highlight("-1.5e3,")[0].text, "-1.5e3");
    }
}
