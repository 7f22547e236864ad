//! The one text in which people write conditions over events: read, with a position for every
//! fault, and written.
//!
//! `severity>=error host=db-* (summary~"disk.*full" or has:ticket) -env=lab since=2h`

mod lexer;
mod parser;
mod printer;
#[cfg(test)]
mod tests;

use crate::{domain::Clause, error::Violation};

pub use printer::print;

/// A condition that was read, and where its parts stand in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The condition.
    pub clause: Clause,
    positions: Positions,
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

impl Fault {
    /// The fault as one of a field of a request.
    pub fn violation(&self, field: &str) -> Violation {
        let place = self.at + 1;
        Violation::new(field, format!("at character {place}: {}", self.message))
    }
}

/// Reads a condition. `now_ms` is what `2h` and `09:30` are counted from, in milliseconds since
/// 1970; without it, as for what is stored and holds at any time, these are faults.
///
/// # Errors
/// The first thing that is wrong.
pub fn parse(text: &str, now_ms: Option<i64>) -> Result<Parsed, Fault> {
    parser::parse(text, now_ms)
}

impl Parsed {
    /// Puts faults of the condition, whose paths lead from `clause`, to where they stand in the
    /// text.
    pub fn locate(&self, faults: Vec<Violation>) -> Vec<Fault> {
        let located = faults.into_iter().map(|fault| Fault {
            at: self.position(&fault.field),
            message: fault.description,
        });
        located.collect()
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
