//! Queries.

use crate::{
    domain::{Clause, Literal, Query},
    limits::CLAUSE_DEPTH_MAX,
};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ClauseV1 {
    #[prost(enumeration = "KindV1", tag = "1")]
    kind: i32,
    #[prost(string, tag = "2")]
    field: String,
    #[prost(message, repeated, tag = "3")]
    literals: Vec<LiteralV1>,
    #[prost(message, repeated, tag = "4")]
    clauses: Vec<ClauseV1>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum KindV1 {
    Unknown = 0,
    And = 1,
    Or = 2,
    Not = 3,
    Equals = 4,
    In = 5,
    GreaterAndEquals = 6,
    LessAndEquals = 7,
    Contains = 8,
    StartsWith = 9,
    EndsWith = 10,
    Matches = 11,
    Exists = 12,
    Greater = 13,
    Less = 14,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LiteralV1 {
    #[prost(oneof = "LiteralKindV1", tags = "1, 2, 3")]
    kind: Option<LiteralKindV1>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum LiteralKindV1 {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(bool, tag = "3")]
    Bool(bool),
}

impl From<&Literal> for LiteralV1 {
    fn from(literal: &Literal) -> Self {
        let kind = match literal {
            Literal::Text(text) => LiteralKindV1::Text(text.clone()),
            Literal::Number(number) => LiteralKindV1::Number(*number),
            Literal::Bool(flag) => LiteralKindV1::Bool(*flag),
        };
        Self { kind: Some(kind) }
    }
}

impl LiteralV1 {
    fn into_literal(self) -> Option<Literal> {
        Some(match self.kind? {
            LiteralKindV1::Text(text) => Literal::Text(text),
            LiteralKindV1::Number(number) => Literal::Number(number),
            LiteralKindV1::Bool(flag) => Literal::Bool(flag),
        })
    }
}

impl From<&Query> for ClauseV1 {
    fn from(query: &Query) -> Self {
        Self::from(&query.clause)
    }
}

impl From<&Clause> for ClauseV1 {
    fn from(clause: &Clause) -> Self {
        let combine = |kind: KindV1, clauses: &[Clause]| Self {
            kind: kind.into(),
            clauses: clauses.iter().map(Self::from).collect(),
            ..Self::default()
        };
        let compare = |kind: KindV1, field: &str, literals: &[Literal]| Self {
            kind: kind.into(),
            field: field.to_owned(),
            literals: literals.iter().map(LiteralV1::from).collect(),
            ..Self::default()
        };
        let search = |kind: KindV1, field: &str, text: &str| {
            compare(kind, field, &[Literal::Text(text.to_owned())])
        };
        match clause {
            Clause::And(clauses) => combine(KindV1::And, clauses),
            Clause::Or(clauses) => combine(KindV1::Or, clauses),
            Clause::Not(inner) => combine(KindV1::Not, std::slice::from_ref(inner)),
            Clause::Equals(field, literal) => {
                compare(KindV1::Equals, field, std::slice::from_ref(literal))
            }
            Clause::In(field, literals) => compare(KindV1::In, field, literals),
            Clause::GreaterAndEquals(field, literal) => compare(
                KindV1::GreaterAndEquals,
                field,
                std::slice::from_ref(literal),
            ),
            Clause::LessAndEquals(field, literal) => {
                compare(KindV1::LessAndEquals, field, std::slice::from_ref(literal))
            }
            Clause::Contains(field, text) => search(KindV1::Contains, field, text),
            Clause::StartsWith(field, text) => search(KindV1::StartsWith, field, text),
            Clause::EndsWith(field, text) => search(KindV1::EndsWith, field, text),
            Clause::Matches(field, pattern) => search(KindV1::Matches, field, pattern),
            Clause::Exists(field) => compare(KindV1::Exists, field, &[]),
            Clause::Greater(field, literal) => {
                compare(KindV1::Greater, field, std::slice::from_ref(literal))
            }
            Clause::Less(field, literal) => {
                compare(KindV1::Less, field, std::slice::from_ref(literal))
            }
        }
    }
}

impl ClauseV1 {
    pub(crate) fn into_query(self) -> Option<Query> {
        Some(Query {
            clause: self.into_clause(1)?,
        })
    }

    fn into_clause(self, depth: usize) -> Option<Clause> {
        if depth > CLAUSE_DEPTH_MAX {
            return None;
        }
        let kind = KindV1::try_from(self.kind).ok()?;
        let clauses = self.clauses.into_iter();
        let mut clauses: Vec<_> = clauses
            .map(|clause| clause.into_clause(depth + 1))
            .collect::<Option<_>>()?;
        let literals = self.literals.into_iter();
        let mut literals: Vec<_> = literals
            .map(LiteralV1::into_literal)
            .collect::<Option<_>>()?;
        let field = self.field;
        let text = |literal: Option<Literal>| match literal? {
            Literal::Text(text) => Some(text),
            Literal::Number(_) | Literal::Bool(_) => None,
        };
        Some(match kind {
            KindV1::Unknown => return None,
            KindV1::And => Clause::And(clauses),
            KindV1::Or => Clause::Or(clauses),
            KindV1::Not => Clause::Not(Box::new(clauses.pop()?)),
            KindV1::Equals => Clause::Equals(field, literals.pop()?),
            KindV1::In => Clause::In(field, literals),
            KindV1::GreaterAndEquals => Clause::GreaterAndEquals(field, literals.pop()?),
            KindV1::LessAndEquals => Clause::LessAndEquals(field, literals.pop()?),
            KindV1::Contains => Clause::Contains(field, text(literals.pop())?),
            KindV1::StartsWith => Clause::StartsWith(field, text(literals.pop())?),
            KindV1::EndsWith => Clause::EndsWith(field, text(literals.pop())?),
            KindV1::Matches => Clause::Matches(field, text(literals.pop())?),
            KindV1::Exists => Clause::Exists(field),
            KindV1::Greater => Clause::Greater(field, literals.pop()?),
            KindV1::Less => Clause::Less(field, literals.pop()?),
        })
    }
}
