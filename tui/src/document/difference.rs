//! Differences between two strings.

use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, UnifiedDiffConfig};

use crate::theme::Token;

pub(crate) fn diff_lines(before: &str, after: &str, around: u32) -> Vec<(Token, String)> {
    let unified = unified_diff(before, after, around);
    let lines = unified.lines().filter_map(|line| {
        let (token, sign) = match line.chars().next()? {
            '-' => (Token::Bad, '-'),
            '+' => (Token::Good, '+'),
            ' ' => (Token::Dim, ' '),
            _ => return None,
        };
        Some((token, format!("{sign} {}", line[1..].trim_end())))
    });
    lines.collect()
}

/// Returns a unified diff without file names, with this many lines of context.
pub fn unified_diff(before: &str, after: &str, around: u32) -> String {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    let printer = BasicLineDiffPrinter(&input.interner);
    let mut config = UnifiedDiffConfig::default();
    config.context_len(around);
    diff.unified_diff(&printer, config, &input).to_string()
}
