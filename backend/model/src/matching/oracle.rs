//! Compares random queries and occurrences with an independent, simple implementation of the
//! contract.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{TriggerSet, compile, tests::occurrence};
use crate::domain::{Clause, Literal, Occurrence, Query, Severity, Status, Value};

/// A value of a field, for the simple implementation.
#[derive(Debug, Clone)]
enum OracleValue {
    Text(String),
    Number(f64),
    Bool(bool),
}

fn fold_case(text: &str) -> String {
    text.to_lowercase().replace('\u{df}', "ss")
}

fn parse_number(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// Returns the values of a field in an occurrence, and whether the field is always a text.
fn field_values(field: &str, occurrence: &Occurrence) -> (Vec<OracleValue>, bool) {
    let dimension = |key: &str| {
        occurrence
            .dimensions
            .get(key)
            .cloned()
            .map(OracleValue::Text)
    };
    match field {
        "name" => (vec![OracleValue::Text(occurrence.name.clone())], true),
        "summary" => (vec![OracleValue::Text(occurrence.summary.clone())], true),
        "severity" => (
            vec![OracleValue::Number(f64::from(occurrence.severity as i32))],
            false,
        ),
        "status" => (
            vec![OracleValue::Number(f64::from(occurrence.status as i32))],
            false,
        ),
        "acknowledged" => (vec![OracleValue::Bool(occurrence.acknowledged)], false),
        "count" => (
            vec![OracleValue::Number(f64::from(
                u32::try_from(occurrence.count).unwrap(),
            ))],
            false,
        ),
        field => match field.split_once('.') {
            Some(("dimensions", key)) => (dimension(key).into_iter().collect(), true),
            Some(("metadata", path)) => (nested_values(&occurrence.metadata, path), false),
            _ => match dimension(field) {
                Some(text) => (vec![text], false),
                None => (nested_values(&occurrence.metadata, field), false),
            },
        },
    }
}

fn nested_values(fields: &BTreeMap<String, Value>, path: &str) -> Vec<OracleValue> {
    let parts: Vec<_> = path.split('.').collect();
    for used in (1..=parts.len()).rev() {
        if let Some(value) = fields.get(&parts[..used].join(".")) {
            return leaf_values(value, &parts[used..].join("."));
        }
    }
    Vec::new()
}

fn leaf_values(value: &Value, path: &str) -> Vec<OracleValue> {
    match value {
        Value::List(values) if path.starts_with(|it: char| it.is_ascii_digit()) => {
            let parts: Vec<_> = path.split('.').collect();
            let entries = values.iter().enumerate();
            let chosen = entries.filter(|(at, _)| at.to_string() == parts[0]);
            let rest = parts[1..].join(".");
            chosen
                .flat_map(|(_, value)| leaf_values(value, &rest))
                .collect()
        }
        Value::List(values) => values
            .iter()
            .flat_map(|value| leaf_values(value, path))
            .collect(),
        Value::Object(fields) if !path.is_empty() => nested_values(fields, path),
        Value::Text(text) if path.is_empty() => vec![OracleValue::Text(text.clone())],
        Value::Number(number) if path.is_empty() => vec![OracleValue::Number(*number)],
        Value::Bool(flag) if path.is_empty() => vec![OracleValue::Bool(*flag)],
        _ => Vec::new(),
    }
}

fn rank_of_word(field: &str, word: &str) -> Option<f64> {
    let index = match field {
        "severity" => Severity::ALL.iter().position(|step| step.as_str() == word),
        "status" => Status::ALL.iter().position(|step| step.as_str() == word),
        _ => None,
    };
    index.map(|index| f64::from(u32::try_from(index).unwrap() + 1))
}

fn equals_literal(field: &str, held: &OracleValue, is_text: bool, literal: &Literal) -> bool {
    match (held, literal) {
        (OracleValue::Text(held), Literal::Text(text)) => fold_case(held) == fold_case(text),
        (OracleValue::Text(held), Literal::Number(value)) if is_text => *held == value.to_string(),
        (OracleValue::Text(held), Literal::Number(value)) => parse_number(held) == Some(*value),
        (OracleValue::Text(held), Literal::Bool(flag)) => fold_case(held) == flag.to_string(),
        (OracleValue::Number(held), Literal::Text(text)) => {
            rank_of_word(field, text).or_else(|| parse_number(text)) == Some(*held)
        }
        (OracleValue::Number(held), Literal::Number(value)) => Some(held) == Some(value),
        (OracleValue::Bool(held), Literal::Text(text)) => held.to_string() == fold_case(text),
        (OracleValue::Bool(held), Literal::Bool(flag)) => held == flag,
        (OracleValue::Number(_), Literal::Bool(_)) | (OracleValue::Bool(_), Literal::Number(_)) => {
            false
        }
    }
}

/// Returns the order of a value relative to the literal, if they are comparable.
fn compare(field: &str, held: &OracleValue, literal: &Literal) -> Option<std::cmp::Ordering> {
    let wanted = match literal {
        Literal::Text(text) => rank_of_word(field, text).or_else(|| parse_number(text)),
        Literal::Number(value) => Some(*value),
        Literal::Bool(_) => None,
    };
    match (held, wanted, literal) {
        (OracleValue::Number(held), Some(wanted), _) => held.partial_cmp(&wanted),
        (OracleValue::Text(held), Some(wanted), _) => parse_number(held)?.partial_cmp(&wanted),
        (OracleValue::Text(held), None, Literal::Text(text)) => {
            Some(fold_case(held).cmp(&fold_case(text)))
        }
        _ => None,
    }
}

fn evaluate(clause: &Clause, occurrence: &Occurrence) -> bool {
    let any = |field: &str, test: &dyn Fn(&OracleValue, bool) -> bool| {
        let (values, is_text) = field_values(field, occurrence);
        values.iter().any(|value| test(value, is_text))
    };
    let text = |held: &OracleValue| match held {
        OracleValue::Text(text) => fold_case(text),
        OracleValue::Number(number) => number.to_string(),
        OracleValue::Bool(flag) => flag.to_string(),
    };
    match clause {
        Clause::And(clauses) => clauses.iter().all(|clause| evaluate(clause, occurrence)),
        Clause::Or(clauses) => clauses.iter().any(|clause| evaluate(clause, occurrence)),
        Clause::Not(clause) => !evaluate(clause, occurrence),
        Clause::Equals(field, literal) => any(field, &|held, is_text| {
            equals_literal(field, held, is_text, literal)
        }),
        Clause::In(field, literals) => any(field, &|held, is_text| {
            let mut literals = literals.iter();
            literals.any(|literal| equals_literal(field, held, is_text, literal))
        }),
        Clause::GreaterAndEquals(field, literal) => any(field, &|held, _| {
            compare(field, held, literal).is_some_and(std::cmp::Ordering::is_ge)
        }),
        Clause::LessAndEquals(field, literal) => any(field, &|held, _| {
            compare(field, held, literal).is_some_and(std::cmp::Ordering::is_le)
        }),
        Clause::Contains(field, part) => {
            any(field, &|held, _| text(held).contains(&fold_case(part)))
        }
        Clause::StartsWith(field, part) => {
            any(field, &|held, _| text(held).starts_with(&fold_case(part)))
        }
        Clause::EndsWith(field, part) => {
            any(field, &|held, _| text(held).ends_with(&fold_case(part)))
        }
        // All generated patterns have one form: a string between two other strings.
        Clause::Matches(field, pattern) => {
            let part = pattern.trim_matches(['.', '*']);
            any(field, &|held, _| {
                text(held).to_lowercase().contains(&part.to_lowercase())
            })
        }
        Clause::Exists(field) => any(field, &|_, _| true),
        Clause::Greater(field, literal) => any(field, &|held, _| {
            compare(field, held, literal).is_some_and(std::cmp::Ordering::is_gt)
        }),
        Clause::Less(field, literal) => any(field, &|held, _| {
            compare(field, held, literal).is_some_and(std::cmp::Ordering::is_lt)
        }),
    }
}

fn word_strategy() -> impl Strategy<Value = String> {
    let words = [
        "a",
        "B",
        "ab",
        "aB",
        "7",
        "7.5",
        "-1",
        "true",
        "error",
        "open",
        "stra\u{df}e",
        "STRASSE",
        "\u{c4}",
        "\u{e4}b",
        "abcab",
    ];
    prop::sample::select(words.to_vec()).prop_map(str::to_owned)
}

fn number_strategy() -> impl Strategy<Value = f64> {
    prop::sample::select(vec![0.0, -0.0, 1.0, 3.0, 4.0, 7.0, 7.5, -1.0])
}

fn field_strategy() -> impl Strategy<Value = String> {
    let fields = [
        "name",
        "summary",
        "severity",
        "status",
        "acknowledged",
        "count",
        "dimensions.k",
        "k",
        "m",
        "m.n",
        "metadata.m",
        "metadata.m.n",
        "metadata.m.n.o",
        "metadata.m.0",
        "metadata.m.1.n",
        "metadata.k",
    ];
    prop::sample::select(fields.to_vec()).prop_map(str::to_owned)
}

fn literal_strategy() -> impl Strategy<Value = Literal> {
    prop_oneof![
        word_strategy().prop_map(Literal::Text),
        number_strategy().prop_map(Literal::Number),
        any::<bool>().prop_map(Literal::Bool),
    ]
}

fn clause_strategy() -> impl Strategy<Value = Clause> {
    let leaf = prop_oneof![
        (field_strategy(), literal_strategy())
            .prop_map(|(field, literal)| Clause::Equals(field, literal)),
        (
            field_strategy(),
            prop::collection::vec(literal_strategy(), 1..4)
        )
            .prop_map(|(field, literals)| Clause::In(field, literals)),
        (field_strategy(), literal_strategy())
            .prop_map(|(field, literal)| Clause::GreaterAndEquals(field, literal)),
        (field_strategy(), literal_strategy())
            .prop_map(|(field, literal)| Clause::LessAndEquals(field, literal)),
        (field_strategy(), word_strategy()).prop_map(|(field, part)| Clause::Contains(field, part)),
        (field_strategy(), word_strategy())
            .prop_map(|(field, part)| Clause::StartsWith(field, part)),
        (field_strategy(), word_strategy()).prop_map(|(field, part)| Clause::EndsWith(field, part)),
        (
            field_strategy(),
            prop::sample::select(vec!["a", "B", "ab", "error", "open"])
        )
            .prop_map(|(field, part)| Clause::Matches(field, format!(".*{part}.*"))),
        field_strategy().prop_map(Clause::Exists),
        (field_strategy(), literal_strategy())
            .prop_map(|(field, literal)| Clause::Greater(field, literal)),
        (field_strategy(), literal_strategy())
            .prop_map(|(field, literal)| Clause::Less(field, literal)),
    ];
    // Only clauses that compile are useful below.
    let leaf = leaf.prop_filter("a value of the field's type", |clause| {
        let clause = clause.clone();
        compile(&Query { clause }).is_ok()
    });
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Clause::And),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Clause::Or),
            inner.prop_map(|clause| Clause::Not(Box::new(clause))),
        ]
    })
}

fn value_strategy() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        word_strategy().prop_map(Value::Text),
        number_strategy().prop_map(Value::Number),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        let keys = prop::sample::select(vec!["m", "n", "o", "n.o"]).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::List),
            prop::collection::btree_map(keys, inner, 0..3).prop_map(Value::Object),
        ]
    })
}

fn occurrence_strategy() -> impl Strategy<Value = Occurrence> {
    let keys = prop::sample::select(vec!["k", "m", "m.n", "m-n", "z"]).prop_map(str::to_owned);
    let dimensions = prop::collection::btree_map(keys.clone(), word_strategy(), 0..3);
    let metadata = prop::collection::btree_map(keys, value_strategy(), 0..4);
    let severity = prop::sample::select(Severity::ALL.to_vec());
    let status = prop::sample::select(Status::ALL.to_vec());
    let rest = (
        word_strategy(),
        word_strategy(),
        severity,
        status,
        any::<bool>(),
        1..8_u64,
    );
    (dimensions, metadata, rest).prop_map(|(dimensions, metadata, rest)| {
        let (name, summary, severity, status, acknowledged, count) = rest;
        Occurrence {
            name,
            dimensions,
            metadata,
            summary,
            severity,
            status,
            acknowledged,
            count,
            ..occurrence()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn query_results_match_the_contract(clause in clause_strategy(), occurrence in occurrence_strategy()) {
        let query = Query { clause };
        let compiled = compile(&query).unwrap();
        let expected = evaluate(&query.clause, &occurrence);
        prop_assert_eq!(compiled.matches(&occurrence), expected);
        prop_assert_eq!(compiled.explain(&query, &occurrence, &|_| true).result, expected);
    }

    #[test]
    fn trigger_set_agrees_with_individual_queries(
        clauses in prop::collection::vec(clause_strategy(), 0..12),
        occurrences in prop::collection::vec(occurrence_strategy(), 1..4),
    ) {
        let queries: Vec<_> = clauses
            .into_iter()
            .map(|clause| compile(&Query { clause }).unwrap())
            .enumerate()
            .collect();
        let set = TriggerSet::build(queries.clone());
        for occurrence in &occurrences {
            let found: Vec<_> = set.find_matching(occurrence).into_iter().copied().collect();
            let matching = queries.iter().filter(|(_, query)| query.matches(occurrence));
            let expected: Vec<_> = matching.map(|(at, _)| *at).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn arbitrary_queries_never_panic(
        field in "[a-z.]{0,12}",
        text in any::<String>(),
        number in any::<f64>(),
        occurrence in occurrence_strategy(),
    ) {
        let texts = [text.clone(), String::new()];
        let literals = [Literal::Text(text), Literal::Number(number)];
        let mut clauses = Vec::new();
        for literal in literals {
            clauses.push(Clause::Equals(field.clone(), literal.clone()));
            clauses.push(Clause::In(field.clone(), vec![literal.clone()]));
            clauses.push(Clause::LessAndEquals(field.clone(), literal.clone()));
            clauses.push(Clause::Greater(field.clone(), literal));
        }
        for text in texts {
            clauses.push(Clause::Contains(field.clone(), text.clone()));
            clauses.push(Clause::EndsWith(field.clone(), text.clone()));
            clauses.push(Clause::Matches(field.clone(), text));
        }
        for clause in clauses {
            let query = Query { clause };
            if let Ok(compiled) = compile(&query) {
                let set = TriggerSet::build(vec![((), compiled.clone())]);
                let found = !set.find_matching(&occurrence).is_empty();
                prop_assert_eq!(found, compiled.matches(&occurrence));
                prop_assert_eq!(found, compiled.explain(&query, &occurrence, &|_| true).result);
            }
        }
    }
}
