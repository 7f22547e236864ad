//! The filter language for conditions over events: a parser that reports positions of errors, and a
//! printer.
//!
//! `severity>=error host=db-* (summary~"disk.*full" or has:ticket) -env=lab since=2h`

use std::fmt;

mod clause;
mod elsewhere;
mod lexer;
mod nearest;
mod parser;
mod printer;
#[cfg(test)]
mod tests;
mod time;

pub use self::{
    clause::{Clause, Literal},
    elsewhere::local_field_name,
    nearest::nearest_field,
    printer::{is_search, print_clause, print_condition, print_literal},
    time::TimeReference,
};

/// Maximum length of a filter, in bytes.
pub const BYTES_MAX: usize = 16 * 1024;
/// Maximum nesting depth of clauses.
pub const DEPTH_MAX: usize = 32;

/// A parsed condition, with the positions of its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedFilter {
    /// The condition.
    pub clause: Clause,
    positions: Positions,
    parts: Vec<String>,
    is_either: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Positions {
    at: usize,
    inside: Vec<Positions>,
}

/// A syntax error in a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// Position, in characters from the start.
    pub at: usize,
    /// The message, a sentence fragment.
    pub message: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "at character {}: {}", self.at + 1, self.message)
    }
}

/// Parses a condition. `now` is the reference for `2h` and `09:30`; without it, as for stored
/// conditions, these are errors.
///
/// # Errors
/// Returns the first syntax error.
pub fn parse(text: &str, now: Option<&TimeReference>) -> Result<ParsedFilter, FilterError> {
    parser::parse(text, now)
}

impl ParsedFilter {
    /// Returns the conditions that `and` joins at the top level, each with its text.
    pub fn conjuncts(&self) -> impl Iterator<Item = (&Clause, &str)> {
        let clauses = match &self.clause {
            Clause::And(clauses) if self.parts.len() > 1 => clauses,
            clause => std::slice::from_ref(clause),
        };
        clauses.iter().zip(self.parts.iter().map(String::as_str))
    }

    /// Whether the filter is an `or` of several conditions, without brackets around them.
    pub fn is_disjunction(&self) -> bool {
        self.is_either
    }

    /// Returns the position of the clause at a path such as `clause.and.clauses[1].not.clause`.
    pub fn position(&self, path: &str) -> usize {
        let mut positions = &self.positions;
        for step in path.split('.') {
            let number = step
                .strip_prefix("clauses[")
                .and_then(|rest| rest.strip_suffix(']'));
            let inside = match number {
                Some(number) => number.parse().ok(),
                None => (step == "not").then_some(0),
            };
            if let Some(inside) = inside.and_then(|at: usize| positions.inside.get(at)) {
                positions = inside;
            }
        }
        positions.at
    }

    /// Returns every field that the condition uses, in order, with its position.
    pub fn fields(&self) -> Vec<(&str, usize)> {
        let mut fields = Vec::new();
        collect_fields(&self.clause, &self.positions, &mut fields);
        fields
    }
}

fn collect_fields<'a>(
    clause: &'a Clause,
    positions: &Positions,
    fields: &mut Vec<(&'a str, usize)>,
) {
    let inside: &[Clause] = match clause {
        Clause::And(clauses) | Clause::Or(clauses) => clauses,
        Clause::Not(inner) => std::slice::from_ref(inner),
        comparison => {
            fields.extend(comparison.field().map(|field| (field, positions.at)));
            return;
        }
    };
    for (clause, positions) in inside.iter().zip(&positions.inside) {
        collect_fields(clause, positions, fields);
    }
}
