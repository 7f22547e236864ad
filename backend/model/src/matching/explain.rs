//! Explains clause by clause why a query matches an occurrence or not.

use super::compile::{Comparison, CompiledQuery, Node};
use super::field::{Field, FieldValue, Holds};
use super::subject::Subject;
use crate::domain::{Clause, Literal, Occurrence, Query, Severity, Status, Value};

const SHOWN_VALUES_MAX: usize = 20;

/// The evaluation of a clause.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The kind of clause in the JSON interface: `and`, `equals` and so on.
    pub kind: &'static str,
    /// The field; empty for a combination.
    pub field: String,
    /// The value it compares with, as its author wrote it.
    pub expected: Option<Value>,
    /// The value in the occurrence, a list if there are several; `None` if the field is missing.
    pub actual: Option<Value>,
    /// Whether it matches; false if unknown.
    pub result: bool,
    /// Whether the result is unknown because it depends on a field whose value is not known.
    pub unknown: bool,
    /// The nested clauses.
    pub clauses: Vec<Explained>,
}

impl Explained {
    /// Whether it matches; `None` if unknown.
    pub fn verdict(&self) -> Option<bool> {
        (!self.unknown).then_some(self.result)
    }
}

/// Whether the current value of a field is also its value at the time in question.
pub type Known<'a> = &'a dyn Fn(&Field) -> bool;

impl CompiledQuery {
    /// Explains the query this was compiled from. A result that depends on unknown fields is
    /// reported as unknown.
    pub fn explain(&self, query: &Query, occurrence: &Occurrence, known: Known<'_>) -> Explained {
        explain(&query.clause, &self.root, &Subject::new(occurrence), known)
    }
}

fn explain(clause: &Clause, node: &Node, subject: &Subject<'_>, known: Known<'_>) -> Explained {
    let inner = |clauses: &[Clause], nodes: &[Node]| -> Vec<Explained> {
        let pairs = clauses.iter().zip(nodes);
        pairs
            .map(|(clause, node)| explain(clause, node, subject, known))
            .collect()
    };
    match (clause, node) {
        (Clause::And(clauses), Node::And(nodes)) => {
            let clauses = inner(clauses, nodes);
            let verdict = unless_any(false, &clauses);
            combination("and", verdict, clauses)
        }
        (Clause::Or(clauses), Node::Or(nodes)) => {
            let clauses = inner(clauses, nodes);
            let verdict = unless_any(true, &clauses);
            combination("or", verdict, clauses)
        }
        (Clause::Not(clause), Node::Not(node)) => {
            let inner = explain(clause, node, subject, known);
            combination("not", inner.verdict().map(|it| !it), vec![inner])
        }
        (clause, Node::Compare(field, comparison)) if known(field) => {
            compared(clause, field, comparison, subject)
        }
        (clause, Node::Compare(field, comparison)) => Explained {
            actual: None,
            result: false,
            unknown: true,
            ..compared(clause, field, comparison, subject)
        },
        (_, node) => combination("and", Some(node.matches(subject)), Vec::new()),
    }
}

/// Returns `decides` if any clause has that result; otherwise the opposite, if all are known.
fn unless_any(decides: bool, clauses: &[Explained]) -> Option<bool> {
    if clauses.iter().any(|it| it.verdict() == Some(decides)) {
        return Some(decides);
    }
    (!clauses.iter().any(|it| it.unknown)).then_some(!decides)
}

fn combination(kind: &'static str, verdict: Option<bool>, clauses: Vec<Explained>) -> Explained {
    Explained {
        kind,
        field: String::new(),
        expected: None,
        actual: None,
        result: verdict.unwrap_or(false),
        unknown: verdict.is_none(),
        clauses,
    }
}

fn compared(
    clause: &Clause,
    field: &Field,
    comparison: &Comparison,
    subject: &Subject<'_>,
) -> Explained {
    let occurrence = subject.occurrence;
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
        Clause::Matches(name, pattern) => ("matches", name, Value::Text(pattern.clone())),
        Clause::Exists(name) => return exists(name, field, occurrence),
        Clause::Greater(name, value) => ("greater", name, literal(value)),
        Clause::Less(name, value) => ("less", name, literal(value)),
        Clause::And(_) | Clause::Or(_) | Clause::Not(_) => {
            return combination("and", Some(false), Vec::new());
        }
    };
    Explained {
        kind,
        field: name.clone(),
        expected: Some(expected),
        actual: actual(field, occurrence),
        result: field.any(occurrence, &mut |found| comparison.holds(found, subject)),
        unknown: false,
        clauses: Vec::new(),
    }
}

fn exists(name: &str, field: &Field, occurrence: &Occurrence) -> Explained {
    Explained {
        kind: "exists",
        field: name.to_owned(),
        expected: None,
        actual: actual(field, occurrence),
        result: field.any(occurrence, &mut |_found| true),
        unknown: false,
        clauses: Vec::new(),
    }
}

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
            FieldValue::Text(text) => Value::Text(text.to_owned()),
            FieldValue::Number(number) => Value::Number(number),
            FieldValue::Bool(flag) => Value::Bool(flag),
        });
        values.len() == SHOWN_VALUES_MAX
    });
    match values.len() {
        0 | 1 => values.pop(),
        _ => Some(Value::List(values)),
    }
}
