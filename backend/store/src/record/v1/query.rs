//! Queries.

use std::borrow::Cow;

use bellwether_backend_model::limits::CLAUSE_DEPTH_MAX;

use crate::{
    domain::{Clause, Literal, Query},
    record::table::{Reader, Table, Unreadable, Writer, field::message, numbers, one_of, record},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClauseKind {
    And,
    Or,
    Not,
    Equals,
    In,
    GreaterAndEquals,
    LessAndEquals,
    Contains,
    StartsWith,
    EndsWith,
    Matches,
    Exists,
    Greater,
    Less,
}

numbers! { ClauseKind {
    1 And, 2 Or, 3 Not, 4 Equals, 5 In, 6 GreaterAndEquals, 7 LessAndEquals, 8 Contains, 9 StartsWith,
    10 EndsWith, 11 Matches, 12 Exists, 13 Greater, 14 Less,
} }

record! {
    Clause as it {
        1 word = clause_kind(it),
        2 field = clause_field(it),
        3 literals = &*clause_literals(it),
        4 clauses = nested_clauses(it),
    } => decode_clause(word, field, literals, clauses)
}

one_of! { Literal { 1 text Text, 2 number Number, 3 flag Bool } }

impl Table for Query {
    fn write(&self, to: &mut Writer<'_>) {
        self.clause.write(to);
    }

    fn read(from: Reader<'_>) -> Result<Option<Self>, Unreadable> {
        Ok(Clause::read(from)?.map(|clause| Self { clause }))
    }
}

message!(Query);

fn clause_kind(clause: &Clause) -> ClauseKind {
    match clause {
        Clause::And(_) => ClauseKind::And,
        Clause::Or(_) => ClauseKind::Or,
        Clause::Not(_) => ClauseKind::Not,
        Clause::Equals(..) => ClauseKind::Equals,
        Clause::In(..) => ClauseKind::In,
        Clause::GreaterAndEquals(..) => ClauseKind::GreaterAndEquals,
        Clause::LessAndEquals(..) => ClauseKind::LessAndEquals,
        Clause::Contains(..) => ClauseKind::Contains,
        Clause::StartsWith(..) => ClauseKind::StartsWith,
        Clause::EndsWith(..) => ClauseKind::EndsWith,
        Clause::Matches(..) => ClauseKind::Matches,
        Clause::Exists(_) => ClauseKind::Exists,
        Clause::Greater(..) => ClauseKind::Greater,
        Clause::Less(..) => ClauseKind::Less,
    }
}

fn clause_field(clause: &Clause) -> &str {
    match clause {
        Clause::And(_) | Clause::Or(_) | Clause::Not(_) => "",
        Clause::Equals(field, _)
        | Clause::In(field, _)
        | Clause::GreaterAndEquals(field, _)
        | Clause::LessAndEquals(field, _)
        | Clause::Contains(field, _)
        | Clause::StartsWith(field, _)
        | Clause::EndsWith(field, _)
        | Clause::Matches(field, _)
        | Clause::Exists(field)
        | Clause::Greater(field, _)
        | Clause::Less(field, _) => field,
    }
}

fn clause_literals(clause: &Clause) -> Cow<'_, [Literal]> {
    match clause {
        Clause::And(_) | Clause::Or(_) | Clause::Not(_) | Clause::Exists(_) => (&[]).into(),
        Clause::Equals(_, literal)
        | Clause::GreaterAndEquals(_, literal)
        | Clause::LessAndEquals(_, literal)
        | Clause::Greater(_, literal)
        | Clause::Less(_, literal) => std::slice::from_ref(literal).into(),
        Clause::In(_, literals) => literals.into(),
        Clause::Contains(_, text)
        | Clause::StartsWith(_, text)
        | Clause::EndsWith(_, text)
        | Clause::Matches(_, text) => vec![Literal::Text(text.clone())].into(),
    }
}

fn nested_clauses(clause: &Clause) -> &[Clause] {
    match clause {
        Clause::And(clauses) | Clause::Or(clauses) => clauses,
        Clause::Not(inner) => std::slice::from_ref(&**inner),
        _ => &[],
    }
}

fn decode_clause(
    word: ClauseKind,
    field: String,
    mut literals: Vec<Literal>,
    mut clauses: Vec<Clause>,
) -> Option<Clause> {
    if clauses
        .iter()
        .any(|it| clause_depth(it) >= CLAUSE_DEPTH_MAX)
    {
        return None;
    }
    let text = |literal: Option<Literal>| match literal? {
        Literal::Text(text) => Some(text),
        Literal::Number(_) | Literal::Bool(_) => None,
    };
    Some(match word {
        ClauseKind::And => Clause::And(clauses),
        ClauseKind::Or => Clause::Or(clauses),
        ClauseKind::Not => Clause::Not(Box::new(clauses.pop()?)),
        ClauseKind::Equals => Clause::Equals(field, literals.pop()?),
        ClauseKind::In => Clause::In(field, literals),
        ClauseKind::GreaterAndEquals => Clause::GreaterAndEquals(field, literals.pop()?),
        ClauseKind::LessAndEquals => Clause::LessAndEquals(field, literals.pop()?),
        ClauseKind::Contains => Clause::Contains(field, text(literals.pop())?),
        ClauseKind::StartsWith => Clause::StartsWith(field, text(literals.pop())?),
        ClauseKind::EndsWith => Clause::EndsWith(field, text(literals.pop())?),
        ClauseKind::Matches => Clause::Matches(field, text(literals.pop())?),
        ClauseKind::Exists => Clause::Exists(field),
        ClauseKind::Greater => Clause::Greater(field, literals.pop()?),
        ClauseKind::Less => Clause::Less(field, literals.pop()?),
    })
}

fn clause_depth(clause: &Clause) -> usize {
    1 + nested_clauses(clause)
        .iter()
        .map(clause_depth)
        .max()
        .unwrap_or(0)
}
