//! Queries against an occurrence with every kind of field.

use std::collections::BTreeMap;

use super::compile;
use crate::domain::{
    Clause, EventId, Literal, Occurrence, Query, RecordId, Severity, Status, Value,
};

pub(super) fn occurrence() -> Occurrence {
    let dimensions = BTreeMap::from([
        ("host".to_owned(), "Web-01".to_owned()),
        ("env".to_owned(), "PROD".to_owned()),
        ("load".to_owned(), "12.5".to_owned()),
    ]);
    let text = |text: &str| Value::Text(text.to_owned());
    let disk = BTreeMap::from([
        ("free".to_owned(), Value::Number(7.0)),
        (
            "mounts".to_owned(),
            Value::List(vec![text("/"), text("/var")]),
        ),
    ]);
    let metadata = BTreeMap::from([
        ("disk".to_owned(), Value::Object(disk)),
        ("a.b".to_owned(), Value::Bool(true)),
        ("env".to_owned(), text("shadowed")),
        ("owner".to_owned(), text("Stra\u{df}e")),
    ]);
    Occurrence {
        key: RecordId::from_parts(1, 1),
        event: EventId::derive("disk-full", &dimensions),
        number: 1,
        name: "disk-full".into(),
        kind: "storage".into(),
        dimensions,
        metadata,
        summary: "Disk nearly FULL".into(),
        body: String::new(),
        severity: Severity::Error,
        status: Status::Open,
        acknowledged: false,
        start_ms: 1_700_000_000_000,
        last_seen_ms: 1_700_000_060_000,
        close: None,
        count: 3,
        prior_count: 0,
        annotations: Vec::new(),
        history: Vec::new(),
        notified: Vec::new(),
        chain: Vec::new(),
        review_ms: 0,
        content_ms: None,
        evaluation: None,
        received_ms: None,
        reopened: None,
        earlier: Vec::new(),
        causes: Vec::new(),
        covered_by: Vec::new(),
        pending: Vec::new(),
        hold_changes: Vec::new(),
        expire_ms: None,
        reports: crate::domain::Reports::default(),
        flapping: Vec::new(),
        assignee: None,
        trace: None,
        acknowledged_until_ms: None,
        acknowledged_severity: None,
        enriched: Vec::new(),
        age_shift_ms: 0,
        informed: Vec::new(),
    }
}

fn text(value: &str) -> Literal {
    Literal::Text(value.into())
}

fn matches(clause: Clause) -> bool {
    compile(&Query { clause }).unwrap().matches(&occurrence())
}

fn equals(field: &str, literal: Literal) -> bool {
    let clause = Clause::Equals(field.into(), literal);
    let query = Query { clause };
    let compiled = compile(&query).unwrap();
    let result = compiled.matches(&occurrence());
    assert_eq!(
        compiled.explain(&query, &occurrence(), &|_| true).result,
        result,
        "{field}"
    );
    let not = compile(&Query {
        clause: Clause::Not(Box::new(query.clause)),
    })
    .unwrap();
    assert_eq!(not.matches(&occurrence()), !result, "not {field}");
    result
}

#[test]
fn equality_covers_every_kind_of_field() {
    let cases = [
        ("name", text("DISK-FULL"), true),
        ("type", text("storage"), true),
        ("severity", text("error"), true),
        ("severity", text("SEVERITY_ERROR"), true),
        ("severity", Literal::Number(4.0), true),
        ("severity", text("warning"), false),
        ("status", text("Open"), true),
        ("acknowledged", Literal::Bool(false), true),
        ("acknowledged", text("true"), false),
        ("count", Literal::Number(3.0), true),
        ("count", text("3"), true),
        ("startTime", text("2023-11-14T22:13:20Z"), true),
        ("dimensions.host", text("web-01"), true),
        ("host", text("web-01"), true),
        ("env", text("prod"), true),
        ("env", text("shadowed"), false),
        ("metadata.env", text("shadowed"), true),
        ("metadata.disk.free", Literal::Number(7.0), true),
        ("metadata.disk.free", text("7"), true),
        ("disk.mounts", text("/var"), true),
        ("disk.mounts", text("/home"), false),
        ("metadata.a.b", Literal::Bool(true), true),
        ("owner", text("STRASSE"), true),
        ("nowhere", text("x"), false),
        ("dimensions.nowhere", text(""), false),
    ];
    for (field, literal, expected) in cases {
        assert_eq!(
            equals(field, literal.clone()),
            expected,
            "{field} {literal:?}"
        );
    }
}

#[test]
fn ordering_and_substring_clauses_match() {
    let at_least = |field: &str, literal| matches(Clause::GreaterAndEquals(field.into(), literal));
    let at_most = |field: &str, literal| matches(Clause::LessAndEquals(field.into(), literal));
    assert!(at_least("severity", text("warning")) && at_least("severity", text("error")));
    assert!(!at_least("severity", text("critical")) && at_most("severity", text("critical")));
    assert!(at_least("lastSeen", text("2023-11-14T22:14:20Z")));
    assert!(!at_least("lastSeen", Literal::Number(1_700_000_060_001.0)));
    assert!(at_least("load", Literal::Number(9.0)) && !at_least("nowhere", Literal::Number(0.0)));
    assert!(at_most("metadata.disk.free", text("7.5")));
    assert!(matches(Clause::Contains(
        "summary".into(),
        "nearly full".into()
    )));
    assert!(matches(Clause::StartsWith("host".into(), "WEB".into())));
    assert!(matches(Clause::EndsWith("disk.mounts".into(), "AR".into())));
    assert!(!matches(Clause::EndsWith("summary".into(), "disk".into())));
    assert!(matches(Clause::In(
        "env".into(),
        vec![text("lab"), text("prod")]
    )));
}

#[test]
fn all_violations_are_reported_together() {
    let clause = Clause::And(vec![
        Clause::Equals("severity".into(), text("purple")),
        Clause::Or(vec![]),
        Clause::Not(Box::new(Clause::Contains("count".into(), "1".into()))),
        Clause::In(String::new(), vec![]),
        Clause::GreaterAndEquals("acknowledged".into(), text("true")),
    ]);
    let violations = compile(&Query { clause }).unwrap_err();
    let fields: Vec<_> = violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(
        fields,
        [
            "clause.and.clauses[0].equals.stringVal",
            "clause.and.clauses[1].or.clauses",
            "clause.and.clauses[2].not.clause.contains.field",
            "clause.and.clauses[3].in.field",
            "clause.and.clauses[3].in.values",
            "clause.and.clauses[4].greaterAndEquals.value",
        ]
    );
}

#[test]
fn values_that_a_field_cannot_have_are_refused() {
    let long = "x".repeat(4_097);
    let cases = [
        ("severity", text("purple")),
        ("severity", Literal::Number(6.0)),
        ("severity", Literal::Number(2.5)),
        ("severity", Literal::Bool(true)),
        ("status", text("SEVERITY_ERROR")),
        ("acknowledged", text("maybe")),
        ("acknowledged", Literal::Number(1.0)),
        ("count", text("many")),
        ("count", text("inf")),
        ("count", Literal::Bool(true)),
        ("startTime", text("yesterday")),
        ("name", text(&long)),
        ("dimensions.", text("x")),
    ];
    for (field, literal) in cases {
        let clauses = [
            Clause::Equals(field.into(), literal.clone()),
            Clause::In(field.into(), vec![literal.clone()]),
            Clause::GreaterAndEquals(field.into(), literal.clone()),
        ];
        for clause in clauses {
            let violations = compile(&Query { clause }).unwrap_err();
            assert_eq!(violations.len(), 1, "{field} {literal:?}: {violations:?}");
        }
    }
}

#[test]
fn query_depth_and_size_are_limited() {
    let leaf = || Clause::Equals("name".into(), text("x"));
    let nested = |depth: usize| (1..depth).fold(leaf(), |inner, _| Clause::Not(Box::new(inner)));
    assert!(compile(&Query { clause: nested(32) }).is_ok());
    assert!(compile(&Query { clause: nested(33) }).is_err());
    let wide = |count: usize| Clause::Or((1..count).map(|_| leaf()).collect());
    assert!(compile(&Query { clause: wide(500) }).is_ok());
    assert_eq!(compile(&Query { clause: wide(501) }).unwrap_err().len(), 1);
}
