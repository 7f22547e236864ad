//! The one text in which people write conditions over events: read, with a position for every
//! fault, and written.
//!
//! `severity>=error host=db-* (summary~"disk.*full" or has:ticket) -env=lab since=2h`

use std::fmt;

mod clause;
mod elsewhere;
mod lexer;
mod moment;
mod nearest;
mod parser;
mod printer;
#[cfg(test)]
mod tests;

pub use self::{
    clause::{Clause, Literal},
    elsewhere::called_here,
    moment::Now,
    nearest::nearest,
    printer::{is_search, part, print, value},
};

/// Longest text that is read, in bytes.
pub const BYTES_MAX: usize = 16 * 1024;
/// How deep clauses may lie in each other.
pub const DEPTH_MAX: usize = 32;

/// A condition that was read, and where its parts are in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The condition.
    pub clause: Clause,
    positions: Positions,
    parts: Vec<String>,
    is_either: bool,
}

/// Where a clause and the clauses inside it begin.
#[derive(Debug, Clone, PartialEq, Default)]
struct Positions {
    at: usize,
    inside: Vec<Positions>,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Characters before the place.
    pub at: usize,
    /// A sentence fragment for people.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "at character {}: {}", self.at + 1, self.message)
    }
}

/// Reads a condition. `now` is what `2h` and `09:30` are counted from; without it, as for what is
/// stored and holds at any time, these are faults.
///
/// # Errors
/// The first thing that is wrong.
pub fn parse(text: &str, now: Option<&Now>) -> Result<Parsed, Fault> {
    parser::parse(text, now)
}

impl Parsed {
    /// The conditions that all have to hold, each with how it is written.
    pub fn parts(&self) -> impl Iterator<Item = (&Clause, &str)> {
        let clauses = match &self.clause {
            Clause::And(clauses) if self.parts.len() > 1 => clauses,
            clause => std::slice::from_ref(clause),
        };
        clauses.iter().zip(self.parts.iter().map(String::as_str))
    }

    /// Whether it is one of several joined by `or`, without brackets around them.
    pub fn is_either(&self) -> bool {
        self.is_either
    }

    /// Where the clause of a path such as `clause.and.clauses[1].not.clause` begins.
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

    /// Every field that the condition looks at, in order, and where.
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
