//! What differs between two texts.

use crate::theme::Token;

/// What changes, line by line, with so many lines around it.
pub(crate) fn difference(before: &str, after: &str, around: usize) -> Vec<(Token, String)> {
    let diff = similar::TextDiff::from_lines(before, after);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(around) {
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (token, sign) = match change.tag() {
                similar::ChangeTag::Delete => (Token::Bad, '-'),
                similar::ChangeTag::Insert => (Token::Good, '+'),
                similar::ChangeTag::Equal => (Token::Dim, ' '),
            };
            lines.push((token, format!("{sign} {}", change.value().trim_end())));
        }
    }
    lines
}
