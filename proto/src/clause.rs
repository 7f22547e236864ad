//! Conversion of the conditions of filters from and to the wire.

use bellwether_language::filter::{Clause, Literal};
use prost_types::{Value, value::Kind as ValueKind};

use crate::bellwether::v1::{self, clause::Kind, equals::Value as EqualsValue};

impl From<&Clause> for v1::Clause {
    fn from(clause: &Clause) -> Self {
        let all = |clauses: &[Clause]| clauses.iter().map(Self::from).collect();
        let kind = match clause {
            Clause::And(clauses) => Kind::And(v1::And {
                clauses: all(clauses),
            }),
            Clause::Or(clauses) => Kind::Or(v1::Or {
                clauses: all(clauses),
            }),
            Clause::Not(clause) => Kind::Not(Box::new(v1::Not {
                clause: Some(Box::new(Self::from(&**clause))),
            })),
            Clause::Equals(field, literal) => Kind::Equals(v1::Equals {
                field: field.clone(),
                value: Some(match literal {
                    Literal::Text(text) => EqualsValue::StringVal(text.clone()),
                    Literal::Number(number) => EqualsValue::NumberVal(*number),
                    Literal::Bool(truth) => EqualsValue::BoolVal(*truth),
                }),
            }),
            Clause::In(field, literals) => Kind::In(v1::In {
                field: field.clone(),
                values: literals.iter().map(value_to_wire).collect(),
            }),
            Clause::GreaterAndEquals(field, literal) => {
                Kind::GreaterAndEquals(v1::GreaterAndEquals {
                    field: field.clone(),
                    value: Some(value_to_wire(literal)),
                })
            }
            Clause::LessAndEquals(field, literal) => Kind::LessAndEquals(v1::LessAndEquals {
                field: field.clone(),
                value: Some(value_to_wire(literal)),
            }),
            Clause::Contains(field, value) => Kind::Contains(v1::Contains {
                field: field.clone(),
                value: value.clone(),
            }),
            Clause::StartsWith(field, value) => Kind::StartsWith(v1::StartsWith {
                field: field.clone(),
                value: value.clone(),
            }),
            Clause::EndsWith(field, value) => Kind::EndsWith(v1::EndsWith {
                field: field.clone(),
                value: value.clone(),
            }),
            Clause::Matches(field, value) => Kind::Matches(v1::Matches {
                field: field.clone(),
                value: value.clone(),
            }),
            Clause::Exists(field) => Kind::Exists(v1::Exists {
                field: field.clone(),
            }),
            Clause::Greater(field, literal) => Kind::Greater(v1::Greater {
                field: field.clone(),
                value: Some(value_to_wire(literal)),
            }),
            Clause::Less(field, literal) => Kind::Less(v1::Less {
                field: field.clone(),
                value: Some(value_to_wire(literal)),
            }),
        };
        Self { kind: Some(kind) }
    }
}

fn value_to_wire(literal: &Literal) -> Value {
    Value {
        kind: Some(match literal {
            Literal::Text(text) => ValueKind::StringValue(text.clone()),
            Literal::Number(number) => ValueKind::NumberValue(*number),
            Literal::Bool(truth) => ValueKind::BoolValue(*truth),
        }),
    }
}

/// Converts a clause of the wire; `None` if part of it lacks a condition or a value.
pub fn from_wire(wire: &v1::Clause) -> Option<Clause> {
    let all = |clauses: &[v1::Clause]| clauses.iter().map(from_wire).collect::<Option<_>>();
    Some(match wire.kind.as_ref()? {
        Kind::And(and) => Clause::And(all(&and.clauses)?),
        Kind::Or(or) => Clause::Or(all(&or.clauses)?),
        Kind::Not(not) => Clause::Not(Box::new(from_wire(not.clause.as_deref()?)?)),
        Kind::Equals(it) => Clause::Equals(
            it.field.clone(),
            match it.value.as_ref()? {
                EqualsValue::StringVal(text) => Literal::Text(text.clone()),
                EqualsValue::NumberVal(number) => Literal::Number(*number),
                EqualsValue::BoolVal(truth) => Literal::Bool(*truth),
            },
        ),
        Kind::In(it) => {
            let values = it.values.iter().map(|it| literal(Some(it)));
            Clause::In(it.field.clone(), values.collect::<Option<_>>()?)
        }
        Kind::GreaterAndEquals(it) => {
            Clause::GreaterAndEquals(it.field.clone(), literal(it.value.as_ref())?)
        }
        Kind::LessAndEquals(it) => {
            Clause::LessAndEquals(it.field.clone(), literal(it.value.as_ref())?)
        }
        Kind::Contains(it) => Clause::Contains(it.field.clone(), it.value.clone()),
        Kind::StartsWith(it) => Clause::StartsWith(it.field.clone(), it.value.clone()),
        Kind::EndsWith(it) => Clause::EndsWith(it.field.clone(), it.value.clone()),
        Kind::Matches(it) => Clause::Matches(it.field.clone(), it.value.clone()),
        Kind::Exists(it) => Clause::Exists(it.field.clone()),
        Kind::Greater(it) => Clause::Greater(it.field.clone(), literal(it.value.as_ref())?),
        Kind::Less(it) => Clause::Less(it.field.clone(), literal(it.value.as_ref())?),
    })
}

fn literal(wire: Option<&Value>) -> Option<Literal> {
    match wire?.kind.as_ref()? {
        ValueKind::StringValue(text) => Some(Literal::Text(text.clone())),
        ValueKind::NumberValue(number) => Some(Literal::Number(*number)),
        ValueKind::BoolValue(truth) => Some(Literal::Bool(*truth)),
        ValueKind::NullValue(_) | ValueKind::StructValue(_) | ValueKind::ListValue(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use bellwether_language::filter;

    use super::*;

    #[test]
    fn clause_round_trips_over_the_wire() {
        let filter =
            "a=1 b!=true (c in (x, 2) or d>=3) e<4 f=*g* h=i* j=*k l~\"m.*\" has:n -(o<=p q>r)";
        let clause = filter::parse(filter, None).unwrap().clause;
        assert_eq!(from_wire(&(&clause).into()), Some(clause));
        assert_eq!(from_wire(&v1::Clause::default()), None);
    }
}
