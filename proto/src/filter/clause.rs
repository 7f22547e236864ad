//! A condition over events, converted from and to the wire.

use prost_types::{Value, value::Kind as ValueKind};

use crate::bellwether::v1::{self, clause::Kind, equals::Value as EqualsValue};

/// One condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Clause {
    /// True if every clause is true.
    And(Vec<Clause>),
    /// True if at least one clause is true.
    Or(Vec<Clause>),
    /// True if the clause is false.
    Not(Box<Clause>),
    /// True if the field equals the literal.
    Equals(String, Literal),
    /// True if the field equals one of the literals.
    In(String, Vec<Literal>),
    /// True if the field is greater than or equal to the literal.
    GreaterAndEquals(String, Literal),
    /// True if the field is less than or equal to the literal.
    LessAndEquals(String, Literal),
    /// True if the field contains the substring.
    Contains(String, String),
    /// True if the field starts with the prefix.
    StartsWith(String, String),
    /// True if the field ends with the suffix.
    EndsWith(String, String),
    /// True if the field matches the regular expression.
    Matches(String, String),
    /// True if the field is present.
    Exists(String),
    /// True if the field is greater than the literal.
    Greater(String, Literal),
    /// True if the field is less than the literal.
    Less(String, Literal),
}

impl Clause {
    /// Returns the field of a comparison; `None` for a combination.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::And(_) | Self::Or(_) | Self::Not(_) => None,
            Self::Equals(field, _)
            | Self::In(field, _)
            | Self::GreaterAndEquals(field, _)
            | Self::LessAndEquals(field, _)
            | Self::Contains(field, _)
            | Self::StartsWith(field, _)
            | Self::EndsWith(field, _)
            | Self::Matches(field, _)
            | Self::Exists(field)
            | Self::Greater(field, _)
            | Self::Less(field, _) => Some(field),
        }
    }
}

/// A value that a field is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// Text; also an RFC 3339 time, or the name of a severity or status.
    Text(String),
    /// A finite number.
    Number(f64),
    /// True or false.
    Bool(bool),
}

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

impl Clause {
    /// Converts a clause of the wire; `None` if part of it lacks a condition or a value.
    pub fn from_wire(wire: &v1::Clause) -> Option<Self> {
        let all =
            |clauses: &[v1::Clause]| clauses.iter().map(Self::from_wire).collect::<Option<_>>();
        Some(match wire.kind.as_ref()? {
            Kind::And(and) => Self::And(all(&and.clauses)?),
            Kind::Or(or) => Self::Or(all(&or.clauses)?),
            Kind::Not(not) => Self::Not(Box::new(Self::from_wire(not.clause.as_deref()?)?)),
            Kind::Equals(it) => Self::Equals(
                it.field.clone(),
                match it.value.as_ref()? {
                    EqualsValue::StringVal(text) => Literal::Text(text.clone()),
                    EqualsValue::NumberVal(number) => Literal::Number(*number),
                    EqualsValue::BoolVal(truth) => Literal::Bool(*truth),
                },
            ),
            Kind::In(it) => {
                let values = it.values.iter().map(|it| literal(Some(it)));
                Self::In(it.field.clone(), values.collect::<Option<_>>()?)
            }
            Kind::GreaterAndEquals(it) => {
                Self::GreaterAndEquals(it.field.clone(), literal(it.value.as_ref())?)
            }
            Kind::LessAndEquals(it) => {
                Self::LessAndEquals(it.field.clone(), literal(it.value.as_ref())?)
            }
            Kind::Contains(it) => Self::Contains(it.field.clone(), it.value.clone()),
            Kind::StartsWith(it) => Self::StartsWith(it.field.clone(), it.value.clone()),
            Kind::EndsWith(it) => Self::EndsWith(it.field.clone(), it.value.clone()),
            Kind::Matches(it) => Self::Matches(it.field.clone(), it.value.clone()),
            Kind::Exists(it) => Self::Exists(it.field.clone()),
            Kind::Greater(it) => Self::Greater(it.field.clone(), literal(it.value.as_ref())?),
            Kind::Less(it) => Self::Less(it.field.clone(), literal(it.value.as_ref())?),
        })
    }
}

fn literal(wire: Option<&Value>) -> Option<Literal> {
    match wire?.kind.as_ref()? {
        ValueKind::StringValue(text) => Some(Literal::Text(text.clone())),
        ValueKind::NumberValue(number) => Some(Literal::Number(*number)),
        ValueKind::BoolValue(truth) => Some(Literal::Bool(*truth)),
        ValueKind::NullValue(_) | ValueKind::StructValue(_) | ValueKind::ListValue(_) => None,
    }
}
