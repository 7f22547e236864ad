//! Conditions combined from matchers, simplified where always true or false.

use bellwether_language::filter::{self, Clause, Literal};
use bellwether_proto::{json, v1::Query};
use serde_json::Value;

const CLAUSES_MAX: usize = 500;
const VALUES_MAX: usize = 500;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    Always,
    Never,
    Where(Clause),
}

impl Condition {
    pub(crate) fn all_of(conditions: impl IntoIterator<Item = Self>) -> Self {
        let mut clauses = Vec::new();
        for condition in conditions {
            match condition {
                Self::Always => {}
                Self::Never => return Self::Never,
                Self::Where(Clause::And(inner)) => clauses.extend(inner),
                Self::Where(clause) => clauses.push(clause),
            }
        }
        let mut distinct: Vec<Clause> = Vec::new();
        for clause in clauses {
            if !distinct.contains(&clause) {
                distinct.push(clause);
            }
        }
        match distinct.len() {
            0 => Self::Always,
            1 => distinct.pop().map_or(Self::Always, Self::Where),
            _ => Self::Where(Clause::And(distinct)),
        }
    }

    pub(crate) fn any_of(conditions: impl IntoIterator<Item = Self>) -> Self {
        let mut clauses = Vec::new();
        for condition in conditions {
            match condition {
                Self::Always => return Self::Always,
                Self::Never => {}
                Self::Where(Clause::Or(inner)) => clauses.extend(inner),
                Self::Where(clause) => clauses.push(clause),
            }
        }
        let mut joined = join_values(clauses);
        match joined.len() {
            0 => Self::Never,
            1 => joined.pop().map_or(Self::Never, Self::Where),
            _ => Self::Where(Clause::Or(joined)),
        }
    }

    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Always => Self::Never,
            Self::Never => Self::Always,
            Self::Where(Clause::Not(inner)) => Self::Where(*inner),
            // Negates the clauses one by one, as in a hand-written filter.
            Self::Where(Clause::Or(clauses)) => Self::all_of(
                clauses
                    .into_iter()
                    .map(|clause| Self::Where(clause).negated()),
            ),
            Self::Where(clause) => Self::Where(Clause::Not(Box::new(clause))),
        }
    }

    /// Converts the condition to a filter text, or to a query if the text would be too long.
    ///
    /// # Errors
    /// Returns the reason if it has no equivalent.
    pub(crate) fn to_filter(&self) -> Result<FilterOrQuery, &'static str> {
        let Self::Where(clause) = self else {
            return Err("its matchers match everything or nothing");
        };
        let clause = split_lists(clause);
        if clause_count(&clause) > CLAUSES_MAX {
            return Err("the condition has more than 500 clauses; split the route");
        }
        let text = filter::print_clause(&clause);
        match filter::parse(&text, None) {
            Ok(read) if read.clause == clause => Ok(FilterOrQuery::Filter(text)),
            _ if text.len() > filter::BYTES_MAX => {
                let query = Query {
                    clause: Some((&clause).into()),
                };
                let query = json::to_json(&query).ok();
                let query = query.and_then(|json| serde_json::from_slice(&json).ok());
                query
                    .map(FilterOrQuery::Query)
                    .ok_or("it has no equivalent")
            }
            _ => Err("a regular expression is too large or unsupported"),
        }
    }

    /// Checks whether the condition can match events that are not alerts.
    pub(crate) fn is_open_ended(&self) -> bool {
        fn is_open(clause: &Clause) -> bool {
            match clause {
                Clause::And(clauses) => clauses.iter().all(is_open),
                Clause::Or(clauses) => clauses.iter().any(is_open),
                clause => matches!(clause, Clause::Not(_)),
            }
        }
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Where(clause) => is_open(clause),
        }
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum FilterOrQuery {
    Filter(String),
    Query(Value),
}

fn split_lists(clause: &Clause) -> Clause {
    let all = |clauses: &[Clause]| clauses.iter().map(split_lists).collect();
    match clause {
        Clause::And(clauses) => Clause::And(all(clauses)),
        Clause::Or(clauses) => Clause::Or(all(clauses)),
        Clause::Not(inner) => Clause::Not(Box::new(split_lists(inner))),
        Clause::In(field, values) if values.len() > VALUES_MAX => {
            let parts = values.chunks(VALUES_MAX);
            Clause::Or(
                parts
                    .map(|part| Clause::In(field.clone(), part.to_vec()))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

/// Merges clauses of a disjunction that compare the same field into one list.
fn join_values(clauses: Vec<Clause>) -> Vec<Clause> {
    let mut joined: Vec<Clause> = Vec::new();
    for clause in clauses {
        let (field, values) = match clause {
            Clause::Equals(field, value) => (field, vec![value]),
            Clause::In(field, values) => (field, values),
            other => {
                if !joined.contains(&other) {
                    joined.push(other);
                }
                continue;
            }
        };
        let place = joined.iter_mut().find_map(|it| match it {
            Clause::In(other, values) if *other == field => Some(values),
            _ => None,
        });
        match place {
            Some(list) => {
                for value in values {
                    if !list.contains(&value) {
                        list.push(value);
                    }
                }
            }
            None => joined.push(Clause::In(field, values)),
        }
    }
    let single = |clause| match clause {
        Clause::In(field, mut values) if values.len() == 1 => {
            let value = values.remove(0);
            Clause::Equals(field, value)
        }
        other => other,
    };
    joined.into_iter().map(single).collect()
}

fn clause_count(clause: &Clause) -> usize {
    1 + match clause {
        Clause::And(clauses) | Clause::Or(clauses) => clauses.iter().map(clause_count).sum(),
        Clause::Not(inner) => clause_count(inner),
        _ => 0,
    }
}

pub(crate) fn equals_condition(field: &str, text: &str) -> Condition {
    Condition::Where(Clause::Equals(
        field.to_owned(),
        Literal::Text(text.to_owned()),
    ))
}

pub(crate) fn one_of_condition<'a>(
    field: &str,
    texts: impl IntoIterator<Item = &'a str>,
) -> Condition {
    Condition::any_of(texts.into_iter().map(|text| equals_condition(field, text)))
}

pub(crate) fn exists_condition(field: &str) -> Condition {
    Condition::Where(Clause::Exists(field.to_owned()))
}

pub(crate) fn matches_condition(field: &str, pattern: &str) -> Condition {
    let pattern = format!("(?-i)^(?:{pattern})$");
    Condition::Where(Clause::Matches(field.to_owned(), pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Condition {
        pub(in super::super) fn to_text(&self) -> String {
            match self.to_filter() {
                Ok(FilterOrQuery::Filter(text)) => text,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn conditions_print_in_their_simplest_form() {
        let (a, b, c) = (
            equals_condition("a", "1"),
            equals_condition("a", "2"),
            equals_condition("b", "x y"),
        );
        let excluded = Condition::any_of([a.clone(), b.clone(), c.clone()]).negated();
        let all = Condition::all_of([
            exists_condition("d"),
            excluded.clone(),
            excluded,
            Condition::Always,
        ]);
        assert_eq!(all.to_text(), r#"has:d -a in ("1", "2") b!="x y""#);
        let both = Condition::all_of([a.clone(), c.clone()]);
        assert_eq!(both.clone().negated().to_text(), r#"-(a="1" b="x y")"#);
        assert_eq!(both.clone().negated().negated(), both);
        assert_eq!(
            Condition::any_of([a.clone(), Condition::Always]),
            Condition::Always
        );
        assert_eq!(
            Condition::all_of([a.clone(), Condition::Never]),
            Condition::Never
        );
        assert_eq!(Condition::any_of([]), Condition::Never);
        assert_eq!(Condition::any_of([a.clone(), a.clone()]), a);
        assert!(a.clone().negated().is_open_ended() && !both.is_open_ended());
        let many = (0..600).map(|at| matches_condition("a", &at.to_string()));
        assert!(Condition::any_of(many).to_filter().is_err());
    }

    #[test]
    fn condition_too_long_for_a_filter_becomes_a_query() {
        let values: Vec<_> = (0..1_200).map(|at| format!("{at:020}")).collect();
        let texts = values.iter().map(String::as_str);
        let Ok(FilterOrQuery::Query(query)) = one_of_condition("a", texts).negated().to_filter()
        else {
            panic!("no query");
        };
        let lists = &query["clause"]["not"]["clause"]["or"]["clauses"];
        let lengths = lists.as_array().unwrap().iter();
        let lengths: Vec<_> = lengths
            .map(|it| it["in"]["values"].as_array().unwrap().len())
            .collect();
        assert_eq!(lengths, [500, 500, 200]);
    }
}
