//! What the parser of Jinja leaves to rendering: names of filters, and how long expressions are.

use super::{super::TemplateError, filters::FILTERS};

/// Operators and filters in one expression: each goes one level deeper into the stack.
const OPERATORS_MAX: usize = 500;

/// Words that are operators.
const WORDS: [&str; 7] = ["and", "or", "not", "is", "in", "if", "else"];

/// Refuses filters that there are not, and expressions that are too long.
pub(super) fn check(source: &str) -> Result<(), TemplateError> {
    let mut from = 0;
    while let Some(found) = source[from..].find('{') {
        let at = from + found;
        let rest = &source[at..];
        from = at + 1;
        let end = match rest.as_bytes().get(1) {
            Some(b'#') => {
                from = rest.find("#}").map_or(source.len(), |end| at + end + 2);
                continue;
            }
            Some(b'{') => "}}",
            Some(b'%') => "%}",
            _ => continue,
        };
        from = expression(source, at + 2, end)?;
    }
    Ok(())
}

/// Looks at the expression that begins there; where it ends.
fn expression(source: &str, at: usize, end: &str) -> Result<usize, TemplateError> {
    let mut operators = 0_usize;
    let mut chars = source[at..].char_indices().peekable();
    let mut is_filter = false;
    while let Some((offset, c)) = chars.next() {
        let here = at + offset;
        if source[here..].starts_with(end) {
            return Ok(here + end.len());
        }
        match c {
            '"' | '\'' => {
                // A text, in which nothing is an operator.
                while let Some((_, inside)) = chars.next() {
                    match inside {
                        '\\' => drop(chars.next()),
                        _ if inside == c => break,
                        _ => {}
                    }
                }
            }
            c if c.is_alphabetic() || c == '_' => {
                while chars
                    .next_if(|(_, c)| c.is_alphanumeric() || *c == '_')
                    .is_some()
                {}
                let word_end = chars.peek().map_or(source.len(), |(offset, _)| at + offset);
                let word = &source[here..word_end];
                operators += usize::from(WORDS.contains(&word));
                if is_filter && !FILTERS.contains(&word) {
                    let fault = format!("there is no filter `{word}`");
                    return Err(TemplateError::at(source, here, fault));
                }
                is_filter = false;
            }
            c if c.is_whitespace() => {}
            c => {
                is_filter = c == '|';
                operators += usize::from("+-*/%~|.[(=<>!".contains(c));
            }
        }
        if operators > OPERATORS_MAX {
            let fault = format!("an expression has more than {OPERATORS_MAX} operators");
            return Err(TemplateError::at(source, here, fault));
        }
    }
    Ok(source.len())
}
