//! Derives keys that an occurrence must contain for a query to match.

use super::{
    compile::{Comparison, Node},
    field::Field,
    fold::Folded,
    literal::Operand,
};
use crate::domain::{Severity, Status};

/// Maximum number of keys for a query; one with more is always evaluated.
const KEYS_MAX: usize = 2_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key<'a> {
    pub(super) field: &'a Field,
    pub(super) want: Want<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Want<'a> {
    /// This text, folded.
    Text(&'a str),
    /// This number, or a text that parses as it.
    Number(f64),
    /// A text that contains this one, folded.
    Part(&'a Folded),
}

/// Returns keys of which every matching occurrence contains at least one; `None` if there are no
/// such keys.
pub(super) fn required(node: &Node) -> Option<Vec<Key<'_>>> {
    let keys = match node {
        // A negation matches nearly everything.
        Node::Not(_) => return None,
        Node::Or(nodes) => {
            let all: Option<Vec<_>> = nodes.iter().map(required).collect();
            all?.concat()
        }
        // Any clause suffices; the rarest is best.
        Node::And(nodes) => nodes
            .iter()
            .filter_map(required)
            .min_by_key(|keys| keys.iter().map(commonness).sum::<usize>())?,
        Node::Compare(field, comparison) => compared(field, comparison)?,
    };
    (keys.len() <= KEYS_MAX).then_some(keys)
}

fn compared<'a>(field: &'a Field, comparison: &'a Comparison) -> Option<Vec<Key<'a>>> {
    let wants = match comparison {
        Comparison::Equals(operand) => equal(operand),
        Comparison::In(operands) => operands.all().iter().flat_map(equal).collect(),
        Comparison::Contains(part) => vec![Want::Part(part.text())],
        Comparison::StartsWith(part) | Comparison::EndsWith(part) => vec![Want::Part(part)],
        Comparison::AtLeast(Operand::Number(least)) => steps(field, |step| step >= *least)?,
        Comparison::AtMost(Operand::Number(most)) => steps(field, |step| step <= *most)?,
        Comparison::Above(Operand::Number(least)) => steps(field, |step| step > *least)?,
        Comparison::Below(Operand::Number(most)) => steps(field, |step| step < *most)?,
        Comparison::AtLeast(_)
        | Comparison::AtMost(_)
        | Comparison::Above(_)
        | Comparison::Below(_)
        | Comparison::Matches(_)
        | Comparison::Exists => return None,
    };
    Some(wants.into_iter().map(|want| Key { field, want }).collect())
}

fn equal(operand: &Operand) -> Vec<Want<'_>> {
    match operand {
        Operand::Text(text, number) => {
            let number = number.map(Want::Number);
            [Want::Text(text.as_str())]
                .into_iter()
                .chain(number)
                .collect()
        }
        Operand::Number(number) => vec![Want::Number(*number)],
        Operand::Bool(flag) => vec![Want::Text(if *flag { "true" } else { "false" })],
    }
}

/// Returns the matching values of a field that has few.
fn steps<'a>(field: &Field, fits: impl Fn(f64) -> bool) -> Option<Vec<Want<'a>>> {
    let numbers: Vec<i32> = match field {
        Field::Severity => Severity::ALL.iter().map(|step| *step as i32).collect(),
        Field::Status => Status::ALL.iter().map(|step| *step as i32).collect(),
        _ => return None,
    };
    let fitting = numbers
        .into_iter()
        .map(f64::from)
        .filter(|step| fits(*step));
    Some(fitting.map(Want::Number).collect())
}

/// Estimates how many occurrences contain a key, on an arbitrary scale.
fn commonness(key: &Key<'_>) -> usize {
    match (key.field, &key.want) {
        (Field::Severity | Field::Status | Field::Acknowledged, _) => 10_000,
        (_, Want::Part(part)) => 10 + 100 / part.as_str().len().max(1),
        (Field::Type | Field::Count, _) => 10,
        _ => 1,
    }
}
