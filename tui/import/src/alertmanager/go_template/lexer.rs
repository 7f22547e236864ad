//! Splits Go templates into literal text, actions and tokens.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Literal(String),
    /// The text between the braces, without trim markers; empty for a comment.
    Action(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A path of fields: of a variable such as `$x`, of the root for `$`, of the current value for
    /// `.`, or of the preceding parentheses for an empty name.
    Path(String, Vec<String>),
    Word(String),
    Text(String),
    Number(String),
    Open,
    Close,
    Pipe,
    Comma,
    Assign,
}

/// Splits a template, and applies its trim markers.
pub(super) fn split_segments(text: &str) -> Result<Vec<Segment>, String> {
    let mut segments = Vec::new();
    let (mut rest, mut trims_next) = (text, false);
    loop {
        let (literal, after) = match rest.split_once("{{") {
            Some((literal, after)) => (literal, Some(after)),
            None => (rest, None),
        };
        let is_trimmed = after.is_some_and(|it| is_trim_marker(it.strip_prefix('-')));
        let mut literal = literal;
        if trims_next {
            literal = literal.trim_start();
        }
        if is_trimmed {
            literal = literal.trim_end();
        }
        if !literal.is_empty() {
            segments.push(Segment::Literal(literal.to_owned()));
        }
        let Some(after) = after else {
            return Ok(segments);
        };
        let after = if is_trimmed { &after[1..] } else { after };
        let end = action_end(after).ok_or_else(|| "lacks a `}}`".to_owned())?;
        let action = &after[..end];
        rest = &after[end + 2..];
        let inner = action.strip_suffix('-');
        let inner = inner.filter(|it| it.ends_with(char::is_whitespace) || it.ends_with("*/"));
        trims_next = inner.is_some();
        let action = inner.unwrap_or(action).trim();
        let is_comment = action.starts_with("/*");
        segments.push(Segment::Action(if is_comment {
            String::new()
        } else {
            action.to_owned()
        }));
    }
}

/// Whether white space follows the dash, as required of a trim marker.
fn is_trim_marker(after_dash: Option<&str>) -> bool {
    after_dash.is_some_and(|it| it.starts_with(char::is_whitespace))
}

/// Returns the position of the closing braces outside of strings.
fn action_end(text: &str) -> Option<usize> {
    let mut quote: Option<char> = None;
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some('"') if is_escaped => is_escaped = false,
            Some('"') if c == '\\' => is_escaped = true,
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '`' => quote = Some(c),
            None if text[at..].starts_with("}}") => return Some(at),
            _ => {}
        }
    }
    None
}

pub(super) fn tokenize(action: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = action.trim_start();
    while let Some(c) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let (token, length) = match c {
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '|' => (Token::Pipe, 1),
            ',' => (Token::Comma, 1),
            ':' if rest.starts_with(":=") => (Token::Assign, 2),
            '`' => {
                let end = rest[1..].find('`').ok_or("has an open string")?;
                (Token::Text(rest[1..=end].to_owned()), end + 2)
            }
            '"' => {
                let (text, length) = quoted(rest)?;
                (Token::Text(text), length)
            }
            '.' | '$' => {
                let length = rest.find(|c| !is_name(c) && c != '.' && c != '$');
                let length = length.unwrap_or(rest.len());
                let mut parts = rest[..length].split('.');
                let name = parts.next().unwrap_or_default();
                let fields: Vec<_> = parts
                    .map(str::to_owned)
                    .filter(|it| !it.is_empty())
                    .collect();
                let is_after_close = tokens.last() == Some(&Token::Close)
                    && action.len() > rest.len()
                    && action[..action.len() - rest.len()].ends_with(')');
                let name = match name {
                    "" if is_after_close => "",
                    "" => ".",
                    name => name,
                };
                (Token::Path(name.to_owned(), fields), length)
            }
            c if c.is_ascii_digit() || c == '-' => {
                let length = rest[1..].find(|c: char| !c.is_ascii_digit() && c != '.');
                let length = length.map_or(rest.len(), |it| it + 1);
                let number = &rest[..length];
                if number.parse::<f64>().is_err() {
                    return Err(format!("has an unknown part: `{number}`"));
                }
                (Token::Number(number.to_owned()), length)
            }
            c if is_name(c) => {
                let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                (Token::Word(rest[..length].to_owned()), length)
            }
            other => return Err(format!("has an unknown part: `{other}`")),
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// Reads a string in double quotes. Returns its text, and its length in the template.
fn quoted(rest: &str) -> Result<(String, usize), String> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((text, at + 1)),
            '\\' => match chars.next().map(|(_, c)| c) {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(c @ ('"' | '\\')) => text.push(c),
                _ => return Err("has an unknown escape in a string".to_owned()),
            },
            c => text.push(c),
        }
    }
    Err("has an open string".to_owned())
}
