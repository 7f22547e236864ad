//! Prints a condition as a filter that parses to the same condition.

use super::{
    Clause, Literal,
    lexer::{Operator, ends_word, has_separator},
    parser::{HAS, resolve_alias, split_foreign_operator, word_to_literal},
};

/// Words with a special meaning at the beginning of a condition.
const KEYWORDS: [&str; 4] = ["and", "or", "not", "in"];
const MOMENTS: [&str; 2] = ["since", "until"];

/// Prints a condition as a filter.
///
/// Parsing the result returns the same condition if the condition came from a filter. A combination
/// of a single clause is printed as that clause.
pub fn print_clause(clause: &Clause) -> String {
    let mut text = String::new();
    write_clause(clause, EnclosingOperator::Nothing, &mut text);
    text
}

/// Returns the filter that compares a field with a value as a user would type it: `5` is a number.
pub fn print_condition(field: &str, text: &str) -> String {
    format!("{}={}", print_name(field), print_literal(text))
}

/// Quotes a value whose unquoted form would be parsed differently.
pub fn print_literal(text: &str) -> String {
    quote_unless(text, needs_no_quotes(text))
}

/// Whether a condition searches the name and the summary for a text. Such a condition is printed as
/// the text only.
pub fn is_search(clause: &Clause) -> bool {
    search_clause_text(clause).is_some()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EnclosingOperator {
    Nothing,
    Either,
    All,
    Negation,
}

fn write_clause(clause: &Clause, inside: EnclosingOperator, text: &mut String) {
    if let Some(searched) = search_clause_text(clause) {
        return text.push_str(&quote_unless(searched, is_plain_search(searched)));
    }
    match clause {
        Clause::And(clauses) | Clause::Or(clauses) if clauses.len() == 1 => {
            write_clause(&clauses[0], inside, text);
        }
        Clause::And(clauses) => {
            let bracketed = matches!(inside, EnclosingOperator::All | EnclosingOperator::Negation);
            write_joined(clauses, " ", EnclosingOperator::All, bracketed, text);
        }
        Clause::Or(clauses) => {
            write_joined(
                clauses,
                " or ",
                EnclosingOperator::Either,
                inside != EnclosingOperator::Nothing,
                text,
            );
        }
        Clause::Not(inner) => match &**inner {
            Clause::Equals(field, value) => {
                write_comparison(field, Operator::NotEqual, value, text);
            }
            Clause::Contains(field, part) => write_stars(field, "!=", (true, part, true), text),
            Clause::StartsWith(field, part) => write_stars(field, "!=", (false, part, true), text),
            Clause::EndsWith(field, part) => write_stars(field, "!=", (true, part, false), text),
            Clause::Matches(field, pattern) => write_match(field, "!~", pattern, text),
            inner => {
                text.push('-');
                write_clause(inner, EnclosingOperator::Negation, text);
            }
        },
        Clause::Equals(field, value) => write_comparison(field, Operator::Equal, value, text),
        Clause::In(field, values) => {
            text.push_str(&print_name(field));
            text.push_str(" in (");
            for (at, value) in values.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { ", " });
                let value = print_value(field, value);
                let is_text = value.starts_with('-') && value.parse::<f64>().is_err();
                text.push_str(&if is_text { quote(&value) } else { value });
            }
            text.push(')');
        }
        Clause::GreaterAndEquals(field, value) => {
            write_comparison(field, Operator::AtLeast, value, text);
        }
        Clause::LessAndEquals(field, value) => {
            write_comparison(field, Operator::AtMost, value, text);
        }
        Clause::Greater(field, value) => write_comparison(field, Operator::Above, value, text),
        Clause::Less(field, value) => write_comparison(field, Operator::Below, value, text),
        Clause::Contains(field, part) => write_stars(field, "=", (true, part, true), text),
        Clause::StartsWith(field, part) => write_stars(field, "=", (false, part, true), text),
        Clause::EndsWith(field, part) => write_stars(field, "=", (true, part, false), text),
        Clause::Matches(field, pattern) => write_match(field, "~", pattern, text),
        Clause::Exists(field) => {
            // A name that cannot follow `has:` is written as a comparison.
            if needs_no_quotes(field) && resolve_alias(field) == *field {
                text.push_str(HAS);
                text.push_str(field);
            } else {
                text.push_str(&print_name(field));
                text.push_str("=*");
            }
        }
    }
}

fn search_clause_text(clause: &Clause) -> Option<&str> {
    let Clause::Or(clauses) = clause else {
        return None;
    };
    match &clauses[..] {
        [
            Clause::Contains(name, one),
            Clause::Contains(summary, other),
        ] if name == "name" && summary == "summary" && one == other && !one.is_empty() => Some(one),
        _ => None,
    }
}

fn write_joined(
    clauses: &[Clause],
    with: &str,
    as_: EnclosingOperator,
    bracketed: bool,
    text: &mut String,
) {
    text.push_str(if bracketed { "(" } else { "" });
    for (at, clause) in clauses.iter().enumerate() {
        text.push_str(if at == 0 { "" } else { with });
        write_clause(clause, as_, text);
    }
    text.push_str(if bracketed { ")" } else { "" });
}

fn write_comparison(field: &str, operator: Operator, value: &Literal, text: &mut String) {
    text.push_str(&print_name(field));
    text.push_str(operator.symbol());
    text.push_str(&print_value(field, value));
}

fn write_stars(
    field: &str,
    sign: &str,
    (before, part, after): (bool, &str, bool),
    text: &mut String,
) {
    text.push_str(&print_name(field));
    text.push_str(sign);
    text.push_str(if before { "*" } else { "" });
    text.push_str(&quote_unless(part, needs_no_quotes(part)));
    text.push_str(if after { "*" } else { "" });
}

fn write_match(field: &str, sign: &str, pattern: &str, text: &mut String) {
    text.push_str(&print_name(field));
    text.push_str(sign);
    text.push_str(&quote(pattern));
}

fn print_value(field: &str, value: &Literal) -> String {
    match value {
        Literal::Number(number) => number.to_string(),
        Literal::Bool(flag) => flag.to_string(),
        Literal::Text(text) => {
            let reads_back = || word_to_literal(field, text, false, None).as_ref() == Ok(value);
            quote_unless(text, needs_no_quotes(text) && reads_back())
        }
    }
}

/// Returns a field name, quoted if its unquoted form would be parsed differently.
fn print_name(field: &str) -> String {
    let is_reserved = MOMENTS.contains(&field) || resolve_alias(field) != field;
    quote_unless(field, is_plain_search(field) && !is_reserved)
}

fn quote_unless(text: &str, is_plain: bool) -> String {
    if is_plain {
        text.to_owned()
    } else {
        quote(text)
    }
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Whether an unquoted text is literal after an operator.
fn needs_no_quotes(text: &str) -> bool {
    let speaks = |character: char| ends_word(character) || matches!(character, '"' | '*' | '\\');
    !text.is_empty() && !text.contains(speaks) && !has_separator(text)
}

/// Whether an unquoted text is literal at the beginning of a condition.
fn is_plain_search(text: &str) -> bool {
    let is_keyword = KEYWORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
    let is_other =
        text.starts_with('-') || text.starts_with(HAS) || split_foreign_operator(text).is_some();
    needs_no_quotes(text) && !is_keyword && !is_other
}
