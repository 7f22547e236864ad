//! Conditions on JSON documents, with the clauses of queries. A field is a path to a member.

use std::collections::BTreeMap;

use crate::{
    domain::{Clause, Occurrence, Query, Value, value::Fields},
    matching::{
        CompiledQuery, compile,
        compile::{Comparison, Node},
        field::Field,
    },
    violation::Violation,
};

/// Bytes of a text that cost as much as a value.
const STEP_BYTES: usize = 16;

/// The prefix that turns paths in a document into fields of queries.
const INSIDE: &str = "metadata.";

#[derive(Debug)]
pub struct DocumentQuery(CompiledQuery);

impl DocumentQuery {
    pub fn compile(clause: &Clause) -> Result<Self, Vec<Violation>> {
        let clause = scope_to_member(clause);
        let compiled = compile(&Query { clause });
        compiled.map(Self).map_err(|violations| {
            let shorten = |violation: Violation| {
                let path = violation
                    .field
                    .strip_prefix("clause")
                    .unwrap_or(&violation.field);
                let path = path.strip_prefix('.').unwrap_or(path);
                let description = violation.description.replace(INSIDE, "");
                Violation::new(path, description)
            };
            violations.into_iter().map(shorten).collect()
        })
    }

    pub fn matches(&self, document: &Document) -> bool {
        self.0.matches(&document.held)
    }

    /// Returns the maximum number of steps of [`Self::matches`]: for each comparison, the size of
    /// the member at the start of its path.
    pub fn steps(&self, document: &Document) -> usize {
        steps(&self.0.root, document)
    }
}

fn steps(node: &Node, document: &Document) -> usize {
    let all = |nodes: &[Node]| {
        let each = nodes.iter().map(|it| steps(it, document));
        each.fold(1, usize::saturating_add)
    };
    match node {
        Node::And(nodes) | Node::Or(nodes) => all(nodes),
        Node::Not(node) => steps(node, document),
        Node::Compare(field, comparison) => {
            let factor = match comparison {
                Comparison::In(operands) => operands.as_slice().len(),
                Comparison::Matches(_) => 4,
                _ => 1,
            };
            let weight = match field {
                Field::Metadata(path) => document.weight(path),
                _ => 1,
            };
            weight.saturating_mul(factor)
        }
    }
}

#[derive(Debug)]
pub struct Document {
    held: Occurrence,
    weights: BTreeMap<String, usize>,
}

impl Document {
    /// Creates a document. A value other than an object is stored under the empty name.
    pub fn new(value: &serde_json::Value, blank: Occurrence) -> Self {
        let metadata = match to_value(value) {
            Value::Object(fields) => fields,
            other => Fields::from([(String::new(), other)]),
        };
        let weights = metadata.iter().map(|(name, it)| (name.clone(), weight(it)));
        Self {
            weights: weights.collect(),
            held: Occurrence { metadata, ..blank },
        }
    }

    pub fn set_member(&mut self, name: &str, value: &serde_json::Value) {
        let value = to_value(value);
        self.weights.insert(name.to_owned(), weight(&value));
        self.held.metadata.insert(name.to_owned(), value);
    }

    /// Returns the cost of finding and scanning the member at the start of a path.
    fn weight(&self, path: &str) -> usize {
        let steps = path.split('.').count();
        let first = path.split('.').next().unwrap_or_default();
        // Names may contain dots, so any name with this prefix may be the member.
        let begin = self.weights.range(first.to_owned()..);
        let begin = begin.take_while(|(name, _)| name.starts_with(first));
        let weights = begin.filter(|(name, _)| path.starts_with(name.as_str()));
        weights.map(|(_, weight)| weight).max().unwrap_or(&0) + steps
    }
}

fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::Text(text) => 1 + text.len() / STEP_BYTES,
        Value::List(values) => 1 + values.iter().map(weight).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(weight).sum::<usize>(),
    }
}

/// Converts a JSON value. Its depth is bounded, because the parser of bodies refuses deeper
/// nesting.
fn to_value(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::Number(number) => number
            .as_f64()
            .filter(|it| it.is_finite())
            .map_or_else(|| Value::Text(number.to_string()), Value::Number),
        serde_json::Value::String(text) => Value::Text(text.clone()),
        serde_json::Value::Array(list) => Value::List(list.iter().map(to_value).collect()),
        serde_json::Value::Object(members) => {
            let members = members.iter();
            Value::Object(
                members
                    .map(|(key, it)| (key.clone(), to_value(it)))
                    .collect(),
            )
        }
    }
}

/// Rewrites a clause so that its fields are members of the document.
fn scope_to_member(clause: &Clause) -> Clause {
    let all = |clauses: &[Clause]| clauses.iter().map(scope_to_member).collect();
    // An empty field name stays empty, and is reported as such.
    let at = |field: &str| match field {
        "" => String::new(),
        field => format!("{INSIDE}{field}"),
    };
    match clause {
        Clause::And(clauses) => Clause::And(all(clauses)),
        Clause::Or(clauses) => Clause::Or(all(clauses)),
        Clause::Not(clause) => Clause::Not(Box::new(scope_to_member(clause))),
        Clause::Equals(field, literal) => Clause::Equals(at(field), literal.clone()),
        Clause::In(field, literals) => Clause::In(at(field), literals.clone()),
        Clause::GreaterAndEquals(field, it) => Clause::GreaterAndEquals(at(field), it.clone()),
        Clause::LessAndEquals(field, it) => Clause::LessAndEquals(at(field), it.clone()),
        Clause::Contains(field, text) => Clause::Contains(at(field), text.clone()),
        Clause::StartsWith(field, text) => Clause::StartsWith(at(field), text.clone()),
        Clause::EndsWith(field, text) => Clause::EndsWith(at(field), text.clone()),
        Clause::Matches(field, text) => Clause::Matches(at(field), text.clone()),
        Clause::Exists(field) => Clause::Exists(at(field)),
        Clause::Greater(field, literal) => Clause::Greater(at(field), literal.clone()),
        Clause::Less(field, literal) => Clause::Less(at(field), literal.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{domain::Literal, matching::tests::occurrence};

    #[test]
    fn document_fields_are_matched_by_path() {
        let document = json!({
            "ok": true,
            "status": "success",
            "severity": "P1",
            "result": {"code": 7, "tags": ["a", "b"]},
            "lines": [{"text": "one"}, {"text": "two"}],
        });
        let text = |text: &str| Literal::Text(text.into());
        let equals = |field: &str, literal| Clause::Equals(field.into(), literal);
        let table = [
            (equals("ok", Literal::Bool(true)), true),
            (equals("status", text("success")), true),
            (equals("status", text("open")), false),
            (equals("severity", text("P1")), true),
            (equals("result.code", Literal::Number(7.0)), true),
            (equals("result.tags", text("b")), true),
            (equals("result.tags.1", text("b")), true),
            (equals("result.tags.0", text("b")), false),
            (equals("result.tags.01", text("b")), false),
            (equals("lines.1.text", text("two")), true),
            (equals("lines.0.text", text("two")), false),
            (equals("lines.2.text", text("two")), false),
            (equals("lines.text", text("two")), true),
            (Clause::Exists("name".into()), false),
            (Clause::Exists("result".into()), false),
            (
                Clause::Not(Box::new(equals("ok", Literal::Bool(true)))),
                false,
            ),
        ];
        for (clause, expected) in table {
            let query = DocumentQuery::compile(&clause).unwrap();
            let document = Document::new(&document, occurrence());
            assert_eq!(query.matches(&document), expected, "{clause:?}");
        }
        let wrong = Clause::And(vec![Clause::Matches("a".into(), "(".into())]);
        let violations = DocumentQuery::compile(&wrong).unwrap_err();
        assert_eq!(violations[0].field, "and.clauses[0].matches.value");
        let nameless = DocumentQuery::compile(&Clause::Exists(String::new())).unwrap_err();
        assert_eq!(nameless[0].field, "exists.field");
    }
}
