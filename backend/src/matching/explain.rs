//! Why a query matches an occurrence or does not, clause by clause.

use super::compile::{Comparison, CompiledQuery, Node};
use super::field::{Field, Found, Holds};
use crate::domain::{Clause, Literal, Occurrence, Query, Severity, Status, Value};

/// Values of a list that an explanation shows.
const SHOWN_VALUES_MAX: usize = 20;

/// How one clause saw an occurrence.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The kind of clause in the JSON interface: `and`, `equals` and so on.
    pub kind: &'static str,
    /// The field it looked at; empty for a combination.
    pub field: String,
    /// The value it compares with, as its author wrote it.
    pub expected: Option<Value>,
    /// What the occurrence holds: a list when there are several values; none when it lacks the
    /// field.
    pub actual: Option<Value>,
    /// Whether it is true.
    pub result: bool,
    /// The clauses inside it.
    pub clauses: Vec<Explained>,
}

impl CompiledQuery {
    /// Explains the query, which must be the one this was compiled from.
    pub fn explain(&self, query: &Query, occurrence: &Occurrence) -> Explained {
        explain(&query.clause, &self.root, occurrence)
    }
}

fn explain(clause: &Clause, node: &Node, occurrence: &Occurrence) -> Explained {
    let combine = |kind, clauses: Vec<Explained>| Explained {
        kind,
        field: String::new(),
        expected: None,
        actual: None,
        result: node.matches(occurrence),
        clauses,
    };
    let inner = |clauses: &[Clause], nodes: &[Node]| {
        let pairs = clauses.iter().zip(nodes);
        pairs
            .map(|(clause, node)| explain(clause, node, occurrence))
            .collect()
    };
    match (clause, node) {
        (Clause::And(clauses), Node::And(nodes)) => combine("and", inner(clauses, nodes)),
        (Clause::Or(clauses), Node::Or(nodes)) => combine("or", inner(clauses, nodes)),
        (Clause::Not(clause), Node::Not(node)) => {
            combine("not", vec![explain(clause, node, occurrence)])
        }
        (clause, Node::Compare(field, comparison)) => {
            compared(clause, field, comparison, occurrence)
        }
        (_, node) => combine("and", vec![]).with_result(node.matches(occurrence)),
    }
}

impl Explained {
    fn with_result(self, result: bool) -> Self {
        Self { result, ..self }
    }
}

fn compared(
    clause: &Clause,
    field: &Field,
    comparison: &Comparison,
    occurrence: &Occurrence,
) -> Explained {
    let literal = |literal: &Literal| match literal {
        Literal::Text(text) => Value::Text(text.clone()),
        Literal::Number(number) => Value::Number(*number),
        Literal::Bool(flag) => Value::Bool(*flag),
    };
    let (kind, name, expected) = match clause {
        Clause::Equals(name, value) => ("equals", name, literal(value)),
        Clause::In(name, values) => (
            "in",
            name,
            Value::List(values.iter().map(literal).collect()),
        ),
        Clause::GreaterAndEquals(name, value) => ("greaterAndEquals", name, literal(value)),
        Clause::LessAndEquals(name, value) => ("lessAndEquals", name, literal(value)),
        Clause::Contains(name, text) => ("contains", name, Value::Text(text.clone())),
        Clause::StartsWith(name, text) => ("startsWith", name, Value::Text(text.clone())),
        Clause::EndsWith(name, text) => ("endsWith", name, Value::Text(text.clone())),
        Clause::And(_) | Clause::Or(_) | Clause::Not(_) => {
            return Explained {
                kind: "and",
                field: String::new(),
                expected: None,
                actual: None,
                result: false,
                clauses: Vec::new(),
            };
        }
    };
    Explained {
        kind,
        field: name.clone(),
        expected: Some(expected),
        actual: actual(field, occurrence),
        result: field.any(occurrence, &mut |found| comparison.holds(found)),
        clauses: Vec::new(),
    }
}

/// What an occurrence holds in a field, as people write it.
fn actual(field: &Field, occurrence: &Occurrence) -> Option<Value> {
    match field.holds() {
        Holds::Severity => {
            return Some(Value::Text(Severity::enum_name(occurrence.severity).into()));
        }
        Holds::Status => return Some(Value::Text(Status::enum_name(occurrence.status).into())),
        _ => {}
    }
    let mut values = Vec::new();
    field.any(occurrence, &mut |found| {
        values.push(match found {
            Found::Text(text) => Value::Text(text.to_owned()),
            Found::Number(number) => Value::Number(number),
            Found::Bool(flag) => Value::Bool(flag),
        });
        values.len() == SHOWN_VALUES_MAX
    });
    match values.len() {
        0 | 1 => values.pop(),
        _ => Some(Value::List(values)),
    }
}
