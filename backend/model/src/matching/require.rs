//! Derives keys that an occurrence must contain for a query to match.

use super::{
    compile::{Comparison, Node},
    field::Field,
    fold::FoldedText,
    literal::Operand,
};
use crate::domain::{Severity, Status};

/// Maximum number of keys for a query. A query with more keys is always evaluated.
const KEYS_MAX: usize = 2_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Key<'a> {
    pub(super) field: &'a Field,
    pub(super) want: RequiredValue<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum RequiredValue<'a> {
    /// This string, folded.
    Text(&'a str),
    /// This number, or a string that parses as this number.
    Number(f64),
    /// A string that contains this one, folded.
    Part(&'a FoldedText),
}

/// Returns keys of which every matching occurrence contains at least one; `None` if there are no
/// such keys.
pub(super) fn required_keys(node: &Node) -> Option<Vec<Key<'_>>> {
    let keys = match node {
        // A negation matches nearly every occurrence.
        Node::Not(_) => return None,
        Node::Or(nodes) => {
            let all: Option<Vec<_>> = nodes.iter().map(required_keys).collect();
            all?.concat()
        }
        // Any clause is sufficient; the rarest one is best.
        Node::And(nodes) => nodes
            .iter()
            .filter_map(required_keys)
            .min_by_key(|keys| keys.iter().map(estimate_frequency).sum::<usize>())?,
        Node::Compare(field, comparison) => comparison_keys(field, comparison)?,
    };
    (keys.len() <= KEYS_MAX).then_some(keys)
}

fn comparison_keys<'a>(field: &'a Field, comparison: &'a Comparison) -> Option<Vec<Key<'a>>> {
    let wants = match comparison {
        Comparison::Equals(operand) => equal_values(operand),
        Comparison::In(operands) => operands.as_slice().iter().flat_map(equal_values).collect(),
        Comparison::Contains(part) => vec![RequiredValue::Part(part.text())],
        Comparison::StartsWith(part) | Comparison::EndsWith(part) => {
            vec![RequiredValue::Part(part)]
        }
        Comparison::AtLeast(Operand::Number(least)) => {
            matching_steps(field, |step| step >= *least)?
        }
        Comparison::AtMost(Operand::Number(most)) => matching_steps(field, |step| step <= *most)?,
        Comparison::Above(Operand::Number(least)) => matching_steps(field, |step| step > *least)?,
        Comparison::Below(Operand::Number(most)) => matching_steps(field, |step| step < *most)?,
        Comparison::AtLeast(_)
        | Comparison::AtMost(_)
        | Comparison::Above(_)
        | Comparison::Below(_)
        | Comparison::Matches(_)
        | Comparison::Exists => return None,
    };
    Some(wants.into_iter().map(|want| Key { field, want }).collect())
}

fn equal_values(operand: &Operand) -> Vec<RequiredValue<'_>> {
    match operand {
        Operand::Text(text, number) => {
            let number = number.map(RequiredValue::Number);
            [RequiredValue::Text(text.as_str())]
                .into_iter()
                .chain(number)
                .collect()
        }
        Operand::Number(number) => vec![RequiredValue::Number(*number)],
        Operand::Bool(flag) => vec![RequiredValue::Text(if *flag { "true" } else { "false" })],
    }
}

/// Returns the matching values of a field that has few values.
fn matching_steps<'a>(field: &Field, fits: impl Fn(f64) -> bool) -> Option<Vec<RequiredValue<'a>>> {
    let numbers: Vec<i32> = match field {
        Field::Severity => Severity::ALL.iter().map(|step| *step as i32).collect(),
        Field::Status => Status::ALL.iter().map(|step| *step as i32).collect(),
        _ => return None,
    };
    let fitting = numbers
        .into_iter()
        .map(f64::from)
        .filter(|step| fits(*step));
    Some(fitting.map(RequiredValue::Number).collect())
}

/// Estimates how many occurrences contain a key, on an arbitrary scale.
fn estimate_frequency(key: &Key<'_>) -> usize {
    match (key.field, &key.want) {
        (Field::Severity | Field::Status | Field::Acknowledged, _) => 10_000,
        (_, RequiredValue::Part(part)) => 10 + 100 / part.as_str().len().max(1),
        (Field::Type | Field::Count, _) => 10,
        _ => 1,
    }
}
