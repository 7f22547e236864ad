//! Explains, clause by clause, why a query does or does not match an occurrence.

use super::compile::{Comparison, CompiledQuery, Node};
use super::field::{Field, FieldValue, ValueType};
use super::subject::Subject;
use crate::domain::{Clause, Literal, Occurrence, Query, Severity, Status, Value};

const SHOWN_VALUES_MAX: usize = 20;

#[derive(Debug, Clone, PartialEq)]
pub struct ClauseEvaluation {
    /// The kind of clause in the JSON interface: `and`, `equals` and so on.
    pub kind: &'static str,
    /// The field; empty for a combination.
    pub field: String,
    /// The value to compare with, as written by the author.
    pub expected: Option<Value>,
    /// The value in the occurrence, as a list if there are several; `None` if the field is missing.
    pub actual: Option<Value>,
    /// Whether the clause matches; false if unknown.
    pub result: bool,
    /// Whether the result is unknown because it depends on a field whose value is not known.
    pub unknown: bool,
    pub clauses: Vec<ClauseEvaluation>,
}

impl ClauseEvaluation {
    pub fn verdict(&self) -> Option<bool> {
        (!self.unknown).then_some(self.result)
    }
}

/// Whether the current value of a field is also its value at the time in question.
pub type FieldIsCurrent<'a> = &'a dyn Fn(&Field) -> bool;

impl CompiledQuery {
    /// Explains the query this was compiled from. A result that depends on unknown fields is
    /// reported as unknown.
    pub fn explain(
        &self,
        query: &Query,
        occurrence: &Occurrence,
        known: FieldIsCurrent<'_>,
    ) -> ClauseEvaluation {
        explain_clause(&query.clause, &self.root, &Subject::new(occurrence), known)
    }
}

fn explain_clause(
    clause: &Clause,
    node: &Node,
    subject: &Subject<'_>,
    known: FieldIsCurrent<'_>,
) -> ClauseEvaluation {
    let inner = |clauses: &[Clause], nodes: &[Node]| -> Vec<ClauseEvaluation> {
        let pairs = clauses.iter().zip(nodes);
        pairs
            .map(|(clause, node)| explain_clause(clause, node, subject, known))
            .collect()
    };
    match (clause, node) {
        (Clause::And(clauses), Node::And(nodes)) => {
            let clauses = inner(clauses, nodes);
            let verdict = combine_verdicts(false, &clauses);
            compound_evaluation("and", verdict, clauses)
        }
        (Clause::Or(clauses), Node::Or(nodes)) => {
            let clauses = inner(clauses, nodes);
            let verdict = combine_verdicts(true, &clauses);
            compound_evaluation("or", verdict, clauses)
        }
        (Clause::Not(clause), Node::Not(node)) => {
            let inner = explain_clause(clause, node, subject, known);
            compound_evaluation("not", inner.verdict().map(|it| !it), vec![inner])
        }
        (clause, Node::Compare(field, comparison)) if known(field) => {
            explain_comparison(clause, field, comparison, subject)
        }
        (clause, Node::Compare(field, comparison)) => ClauseEvaluation {
            actual: None,
            result: false,
            unknown: true,
            ..explain_comparison(clause, field, comparison, subject)
        },
        (_, node) => compound_evaluation("and", Some(node.matches(subject)), Vec::new()),
    }
}

/// Returns `decides` if any clause has that result. Otherwise returns the opposite if all results
/// are known.
fn combine_verdicts(decides: bool, clauses: &[ClauseEvaluation]) -> Option<bool> {
    if clauses.iter().any(|it| it.verdict() == Some(decides)) {
        return Some(decides);
    }
    (!clauses.iter().any(|it| it.unknown)).then_some(!decides)
}

fn compound_evaluation(
    kind: &'static str,
    verdict: Option<bool>,
    clauses: Vec<ClauseEvaluation>,
) -> ClauseEvaluation {
    ClauseEvaluation {
        kind,
        field: String::new(),
        expected: None,
        actual: None,
        result: verdict.unwrap_or(false),
        unknown: verdict.is_none(),
        clauses,
    }
}

fn explain_comparison(
    clause: &Clause,
    field: &Field,
    comparison: &Comparison,
    subject: &Subject<'_>,
) -> ClauseEvaluation {
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
        Clause::Exists(name) => return explain_exists(name, field, occurrence),
        Clause::Greater(name, value) => ("greater", name, literal(value)),
        Clause::Less(name, value) => ("less", name, literal(value)),
        Clause::And(_) | Clause::Or(_) | Clause::Not(_) => {
            return compound_evaluation("and", Some(false), Vec::new());
        }
    };
    ClauseEvaluation {
        kind,
        field: name.clone(),
        expected: Some(expected),
        actual: actual_value(field, occurrence),
        result: field.any_value(occurrence, &mut |found| comparison.is_true(found, subject)),
        unknown: false,
        clauses: Vec::new(),
    }
}

fn explain_exists(name: &str, field: &Field, occurrence: &Occurrence) -> ClauseEvaluation {
    ClauseEvaluation {
        kind: "exists",
        field: name.to_owned(),
        expected: None,
        actual: actual_value(field, occurrence),
        result: field.any_value(occurrence, &mut |_found| true),
        unknown: false,
        clauses: Vec::new(),
    }
}

fn actual_value(field: &Field, occurrence: &Occurrence) -> Option<Value> {
    match field.value_type() {
        ValueType::Severity => {
            return Some(Value::Text(Severity::enum_name(occurrence.severity).into()));
        }
        ValueType::Status => return Some(Value::Text(Status::enum_name(occurrence.status).into())),
        _ => {}
    }
    let mut values = Vec::new();
    field.any_value(occurrence, &mut |found| {
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
