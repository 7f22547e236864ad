//! Conversion of queries between wire and domain types.

use bellwether_language::filter::{self, FilterError, ParsedFilter, TimeReference};
use bellwether_proto::v1::{self, clause::Kind, equals::Value as EqualsValue};
use prost_types::{Value, value::Kind as ValueKind};

use crate::{
    domain::{Clause, Literal, Query},
    error::Violation,
    matching::{self, CompiledQuery},
};

/// Converts a query from the wire. Returns `None` after adding a violation if it has no clause.
///
/// An empty clause adds a violation and is replaced by a placeholder, so that the remaining query
/// can be checked as well. Use the query only if no violation was added. `path` is the path of the
/// query in the request, such as `type.event.query`.
pub fn query(
    wire: Option<v1::Query>,
    path: &str,
    violations: &mut Vec<Violation>,
) -> Option<Query> {
    let mut reader = Reader { violations };
    let Some(wire) = wire else {
        reader.add_violation(path, "is required");
        return None;
    };
    let path = format!("{path}.clause");
    let Some(wire) = wire.clause else {
        reader.add_violation(path, "is required");
        return None;
    };
    let clause = reader.clause(wire, &path);
    Some(Query { clause })
}

/// Converts a single clause, as in a search; see [`query`].
pub fn clause(wire: v1::Clause, path: &str, violations: &mut Vec<Violation>) -> Clause {
    Reader { violations }.clause(wire, path)
}

/// Parses and compiles a condition written as text. Returns `None` after adding violations.
pub fn parse_filter(
    wire: &str,
    now_ms: Option<i64>,
    path: &str,
    violations: &mut Vec<Violation>,
) -> Option<(ParsedFilter, CompiledQuery)> {
    let parsed = filter::parse(wire, now_ms.map(TimeReference::in_utc).as_ref())
        .map_err(|error| violations.push(Violation::new(path, error.to_string())))
        .ok()?;
    let clause = parsed.clause.clone();
    match matching::compile(&Query { clause }) {
        Ok(compiled) => Some((parsed, compiled)),
        Err(found) => {
            violations.extend(found.into_iter().map(|violation| {
                let placed = FilterError {
                    at: parsed.position(&violation.field),
                    message: violation.description,
                };
                Violation::new(path, placed.to_string())
            }));
            None
        }
    }
}

struct Reader<'a> {
    violations: &'a mut Vec<Violation>,
}

impl Reader<'_> {
    fn add_violation(&mut self, path: impl Into<String>, description: &str) {
        self.violations.push(Violation::new(path, description));
    }

    // The wire format's limit of 100 levels bounds the recursion.
    fn clause(&mut self, wire: v1::Clause, path: &str) -> Clause {
        let Some(kind) = wire.kind else {
            self.add_violation(
                path,
                "has no condition; expected exactly one of and, or, not, equals, in, \
                 greaterAndEquals, lessAndEquals, contains, startsWith, endsWith, matches, \
                 exists, greater, less",
            );
            return placeholder_clause();
        };
        match kind {
            Kind::And(and) => Clause::And(self.clauses(and.clauses, &format!("{path}.and"))),
            Kind::Or(or) => Clause::Or(self.clauses(or.clauses, &format!("{path}.or"))),
            Kind::Not(not) => {
                let path = format!("{path}.not.clause");
                let Some(clause) = not.clause else {
                    self.add_violation(path, "is required");
                    return placeholder_clause();
                };
                Clause::Not(Box::new(self.clause(*clause, &path)))
            }
            Kind::Equals(equals) => match self.equals_value(equals.value, path) {
                Some(literal) => Clause::Equals(equals.field, literal),
                None => placeholder_clause(),
            },
            Kind::In(within) => self.in_clause(within, path),
            Kind::GreaterAndEquals(compare) => {
                let path = format!("{path}.greaterAndEquals.value");
                self.ordered_comparison(
                    Clause::GreaterAndEquals,
                    compare.field,
                    compare.value,
                    path,
                )
            }
            Kind::LessAndEquals(compare) => {
                let path = format!("{path}.lessAndEquals.value");
                self.ordered_comparison(Clause::LessAndEquals, compare.field, compare.value, path)
            }
            Kind::Greater(compare) => {
                let path = format!("{path}.greater.value");
                self.ordered_comparison(Clause::Greater, compare.field, compare.value, path)
            }
            Kind::Less(compare) => {
                let path = format!("{path}.less.value");
                self.ordered_comparison(Clause::Less, compare.field, compare.value, path)
            }
            Kind::Contains(part) => Clause::Contains(part.field, part.value),
            Kind::StartsWith(part) => Clause::StartsWith(part.field, part.value),
            Kind::EndsWith(part) => Clause::EndsWith(part.field, part.value),
            Kind::Matches(part) => Clause::Matches(part.field, part.value),
            Kind::Exists(there) => Clause::Exists(there.field),
        }
    }

    fn ordered_comparison(
        &mut self,
        clause: fn(String, Literal) -> Clause,
        field: String,
        value: Option<Value>,
        path: String,
    ) -> Clause {
        match self.literal(value, path) {
            Some(literal) => clause(field, literal),
            None => placeholder_clause(),
        }
    }

    fn clauses(&mut self, wire: Vec<v1::Clause>, path: &str) -> Vec<Clause> {
        let numbered = wire.into_iter().enumerate();
        numbered
            .map(|(at, clause)| self.clause(clause, &format!("{path}.clauses[{at}]")))
            .collect()
    }

    fn in_clause(&mut self, wire: v1::In, path: &str) -> Clause {
        let values = wire.values.into_iter().enumerate();
        // Convert all values before stopping at an invalid one, so that every violation is
        // reported.
        let literals: Vec<_> = values
            .map(|(at, value)| self.literal(Some(value), format!("{path}.in.values[{at}]")))
            .collect();
        match literals.into_iter().collect() {
            Some(literals) => Clause::In(wire.field, literals),
            None => placeholder_clause(),
        }
    }

    fn equals_value(&mut self, value: Option<EqualsValue>, path: &str) -> Option<Literal> {
        match value {
            Some(EqualsValue::StringVal(text)) => Some(Literal::Text(text)),
            Some(EqualsValue::BoolVal(truth)) => Some(Literal::Bool(truth)),
            Some(EqualsValue::NumberVal(number)) => {
                self.number(number, format!("{path}.equals.numberVal"))
            }
            None => {
                self.add_violation(
                    format!("{path}.equals"),
                    "has no value; set exactly one of stringVal, numberVal, boolVal",
                );
                None
            }
        }
    }

    fn literal(&mut self, value: Option<Value>, path: String) -> Option<Literal> {
        match value.and_then(|value| value.kind) {
            Some(ValueKind::StringValue(text)) => Some(Literal::Text(text)),
            Some(ValueKind::NumberValue(number)) => self.number(number, path),
            None | Some(ValueKind::NullValue(_)) => {
                self.add_violation(path, "is required: a string or a number");
                None
            }
            Some(ValueKind::BoolValue(_) | ValueKind::StructValue(_) | ValueKind::ListValue(_)) => {
                self.add_violation(path, "is neither a string nor a number");
                None
            }
        }
    }

    fn number(&mut self, number: f64, path: String) -> Option<Literal> {
        if number.is_finite() {
            return Some(Literal::Number(number));
        }
        self.add_violation(path, "is not a finite number");
        None
    }
}

fn placeholder_clause() -> Clause {
    Clause::Contains("summary".into(), "placeholder".into())
}

/// Converts a condition given as clauses, as text, or as both if they are equivalent. Returns
/// `None` if there is none, or after adding a violation.
pub fn query_or_filter(
    (wire, text): (Option<v1::Query>, &str),
    (query_path, filter_path): (&str, &str),
    violations: &mut Vec<Violation>,
) -> Option<Query> {
    let clauses = match wire {
        None => None,
        wire => query(wire, query_path, violations),
    };
    if text.is_empty() {
        return clauses;
    }
    if clauses
        .as_ref()
        .is_some_and(|it| filter::print_clause(&it.clause) == text)
    {
        return clauses;
    }
    if clauses.is_some() {
        let message = format!("differs from `{query_path}`; set only one of them");
        violations.push(Violation::new(filter_path, message));
        return clauses;
    }
    let (parsed, _) = parse_filter(text, None, filter_path, violations)?;
    let clause = parsed.clause;
    Some(Query { clause })
}

pub fn to_wire(query: &Query) -> v1::Query {
    v1::Query {
        clause: Some((&query.clause).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clause_with_kind(kind: Kind) -> v1::Clause {
        v1::Clause { kind: Some(kind) }
    }

    #[test]
    fn incomplete_clauses_are_reported_by_path() {
        let equals = v1::Equals {
            field: "name".into(),
            value: None,
        };
        let order = v1::GreaterAndEquals {
            field: "count".into(),
            value: None,
        };
        let within = v1::In {
            field: "name".into(),
            values: vec![
                Value::from("a"),
                Value::from(true),
                Value::from(f64::INFINITY),
            ],
        };
        let clauses = vec![
            v1::Clause { kind: None },
            clause_with_kind(Kind::Equals(equals)),
            clause_with_kind(Kind::GreaterAndEquals(order)),
            clause_with_kind(Kind::In(within)),
            clause_with_kind(Kind::Not(Box::new(v1::Not { clause: None }))),
        ];
        let wire = v1::Query {
            clause: Some(clause_with_kind(Kind::And(v1::And { clauses }))),
        };
        let mut violations = Vec::new();
        assert!(query(Some(wire), "type.event.query", &mut violations).is_some());
        let fields: Vec<_> = violations
            .iter()
            .map(|violation| violation.field.as_str())
            .collect();
        let clauses = "type.event.query.clause.and.clauses";
        let expected = [
            format!("{clauses}[0]"),
            format!("{clauses}[1].equals"),
            format!("{clauses}[2].greaterAndEquals.value"),
            format!("{clauses}[3].in.values[1]"),
            format!("{clauses}[3].in.values[2]"),
            format!("{clauses}[4].not.clause"),
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn query_without_a_clause_is_invalid() {
        let cases = [(None, "q"), (Some(v1::Query { clause: None }), "q.clause")];
        for (wire, field) in cases {
            let mut violations = Vec::new();
            assert_eq!(query(wire, "q", &mut violations), None);
            assert_eq!(violations[0].field, field);
        }
    }

    #[test]
    fn every_clause_round_trips() {
        let text = || Literal::Text("a".into());
        let clause = Clause::And(vec![
            Clause::Or(vec![Clause::Equals("f".into(), Literal::Bool(true))]),
            Clause::Not(Box::new(Clause::Equals("f".into(), text()))),
            Clause::Equals("f".into(), Literal::Number(1.5)),
            Clause::In("f".into(), vec![text(), Literal::Number(2.0)]),
            Clause::GreaterAndEquals("f".into(), text()),
            Clause::LessAndEquals("f".into(), Literal::Number(3.0)),
            Clause::Contains("f".into(), "v".into()),
            Clause::StartsWith("f".into(), "v".into()),
            Clause::EndsWith("f".into(), "v".into()),
            Clause::Matches("f".into(), "v.*w".into()),
            Clause::Exists("f".into()),
            Clause::Greater("f".into(), Literal::Number(3.0)),
            Clause::Less("f".into(), text()),
        ]);
        let mut violations = Vec::new();
        let sent = Query { clause };
        let back = query(Some(to_wire(&sent)), "q", &mut violations);
        assert_eq!(back, Some(sent));
        assert_eq!(violations, []);
    }
}
