//! A table of filters, and round trips of texts and conditions.

use proptest::prelude::*;

use super::*;

/// 2026-01-31T08:15:30Z.
const NOW_MS: i64 = 1_769_847_330_000;

fn read(text: &str) -> Clause {
    match parse(text, Some(&TimeReference::in_utc(NOW_MS))) {
        Ok(parsed) => parsed.clause,
        Err(error) => panic!("{text}: {error:?}"),
    }
}

fn text(value: &str) -> Literal {
    Literal::Text(value.into())
}

fn equals(field: &str, value: &str) -> Clause {
    Clause::Equals(field.into(), text(value))
}

fn not(clause: Clause) -> Clause {
    Clause::Not(Box::new(clause))
}

fn searched(word: &str) -> Clause {
    let contains = |field: &str| Clause::Contains(field.into(), word.into());
    Clause::Or(vec![contains("name"), contains("summary")])
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases may be long")]
fn filter_syntax_parses_to_expected_clauses() {
    let since = |at: &str| Clause::GreaterAndEquals("lastSeen".into(), text(at));
    let matched = |field: &str, pattern: &str| Clause::Matches(field.into(), pattern.into());
    let either = || {
        let both = Clause::And(vec![equals("a", "x"), equals("b", "y")]);
        Clause::Or(vec![both, equals("c", "z")])
    };
    let cases = [
        ("disk", searched("disk")),
        ("\"disk full\"", searched("disk full")),
        ("*disk*", searched("disk")),
        ("\"host:db-1\"", searched("host:db-1")),
        ("host\\:db-1", searched("host:db-1")),
        ("12:30", searched("12:30")),
        ("https://a", searched("https://a")),
        ("std::io", searched("std::io")),
        ("\"or\"", searched("or")),
        ("host=db-1", equals("host", "db-1")),
        ("host = \"db 1\"", equals("host", "db 1")),
        ("host=*", Clause::Exists("host".into())),
        ("has:ticket", Clause::Exists("ticket".into())),
        ("host=db-*", Clause::StartsWith("host".into(), "db-".into())),
        (
            "host=*.example",
            Clause::EndsWith("host".into(), ".example".into()),
        ),
        ("host=*db*", Clause::Contains("host".into(), "db".into())),
        (
            "host=\"d b\"*",
            Clause::StartsWith("host".into(), "d b".into()),
        ),
        ("host=a\\*b", equals("host", "a*b")),
        (
            "host=d*-1",
            Clause::Matches("host".into(), "^d(?s:.*)\\-1$".into()),
        ),
        ("host!=db-1", not(equals("host", "db-1"))),
        ("-env=lab", not(equals("env", "lab"))),
        ("not env=lab", not(equals("env", "lab"))),
        ("-disk", not(searched("disk"))),
        (
            "summary~\"disk.*full\"",
            Clause::Matches("summary".into(), "disk.*full".into()),
        ),
        (
            "summary~disk.*(a|b)",
            Clause::Matches("summary".into(), "disk.*(a|b)".into()),
        ),
        (
            "(summary~\\d+)",
            Clause::Matches("summary".into(), "\\d+".into()),
        ),
        (
            "summary!~x",
            not(Clause::Matches("summary".into(), "x".into())),
        ),
        (
            "count>10",
            Clause::Greater("count".into(), Literal::Number(10.0)),
        ),
        (
            "count<-1.5",
            Clause::Less("count".into(), Literal::Number(-1.5)),
        ),
        (
            "count>=3",
            Clause::GreaterAndEquals("count".into(), Literal::Number(3.0)),
        ),
        (
            "severity>=error",
            Clause::GreaterAndEquals("severity".into(), text("error")),
        ),
        (
            "severity<=warning",
            Clause::LessAndEquals("severity".into(), text("warning")),
        ),
        ("build=007", equals("build", "007")),
        ("build=\"7\"", equals("build", "7")),
        (
            "acked=no",
            Clause::Equals("acknowledged".into(), Literal::Bool(false)),
        ),
        ("ok=true", Clause::Equals("ok".into(), Literal::Bool(true))),
        (
            "env in (lab, 3 \"a b\", -4)",
            Clause::In(
                "env".into(),
                vec![
                    text("lab"),
                    Literal::Number(3.0),
                    text("a b"),
                    Literal::Number(-4.0),
                ],
            ),
        ),
        ("since=2h", since("2026-01-31T06:15:30.000Z")),
        ("since=7d", since("2026-01-24T08:15:30.000Z")),
        ("since=07:30", since("2026-01-31T07:30:00.000Z")),
        ("since=2026-01-01T00:00:00Z", since("2026-01-01T00:00:00Z")),
        (
            "until=09:30",
            Clause::Less("startTime".into(), text("2026-01-31T09:30:00.000Z")),
        ),
        (
            "lastSeen<90s",
            Clause::Less("lastSeen".into(), text("2026-01-31T08:14:00.000Z")),
        ),
        (
            "a=x b=y or c=z",
            Clause::Or(vec![
                Clause::And(vec![equals("a", "x"), equals("b", "y")]),
                equals("c", "z"),
            ]),
        ),
        (
            "a=x AND (b=y OR not c=z)",
            Clause::And(vec![
                equals("a", "x"),
                Clause::Or(vec![equals("b", "y"), not(equals("c", "z"))]),
            ]),
        ),
        ("a == b", equals("a", "b")),
        ("a=x && b=y || c=z", either()),
        ("a=x&&b=y||c=z", either()),
        ("a=\"x\"&&b=\"y\"||c=\"z\"", either()),
        ("a=x,b=y || c=z", either()),
        ("!a=x", not(equals("a", "x"))),
        ("! (a=x)", not(equals("a", "x"))),
        ("!!a=x", not(not(equals("a", "x")))),
        ("!has:a", not(Clause::Exists("a".into()))),
        (
            "-disk !full",
            Clause::And(vec![not(searched("disk")), not(searched("full"))]),
        ),
        ("team=R&D", equals("team", "R&D")),
        ("a|b", searched("a|b")),
        ("\"a||b\"", searched("a||b")),
        ("a=\"b && c\"", equals("a", "b && c")),
        ("a=~\"b|c\"", matched("a", "^(?:b|c)$")),
        ("a=~b|c", matched("a", "^(?:b|c)$")),
        (
            "a=~\"b.*\", d!~\"e\"",
            Clause::And(vec![
                matched("a", "^(?:b.*)$"),
                not(matched("d", "^(?:e)$")),
            ]),
        ),
        (
            "a=~\"b?\"",
            Clause::Or(vec![
                matched("a", "^(?:b?)$"),
                not(Clause::Exists("a".into())),
            ]),
        ),
        (
            "a=~\"\" d!~\".*\"",
            Clause::And(vec![
                Clause::Or(vec![
                    matched("a", "^(?:)$"),
                    not(Clause::Exists("a".into())),
                ]),
                not(Clause::Or(vec![
                    matched("d", "^(?:.*)$"),
                    not(Clause::Exists("d".into())),
                ])),
            ]),
        ),
        ("a=~\"(\"", matched("a", "^(?:()$")),
        ("dimensions.a.b=x", equals("dimensions.a.b", "x")),
        ("\"my key\"=x", equals("my key", "x")),
        ("\"or\"=x", equals("or", "x")),
        ("ticket=https\\://a", equals("ticket", "https://a")),
        ("\u{e9}t\u{e9}=chaud", equals("\u{e9}t\u{e9}", "chaud")),
    ];
    for (filter, expected) in cases {
        assert_eq!(read(filter), expected, "{filter}");
        let printed = print_clause(&expected);
        assert_eq!(
            read(&printed),
            expected,
            "{filter} was written as {printed}"
        );
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases may be long")]
fn syntax_errors_report_their_position() {
    let cases = [
        ("", 0, "a condition is missing here"),
        ("a=b or", 6, "a condition is missing here"),
        (
            "or a=b",
            0,
            "a condition is missing before `or`; quote it to search for it",
        ),
        (
            "a=b and and",
            8,
            "a condition is missing before `and`; quote it to search for it",
        ),
        ("(a=b", 0, "this bracket is never closed"),
        ("a=b)", 3, "unexpected `)`"),
        ("\u{e9}=\"x", 2, "this quote is never closed"),
        ("host=", 5, "a value is missing after `host=`"),
        ("=db", 0, "unexpected `=`"),
        ("a=b && ", 7, "a condition is missing here"),
        ("|| a=b", 0, "unexpected `||`"),
        ("a=b !", 5, "a condition is missing here"),
        ("a=&&", 2, "a value is missing after `a=`"),
        ("env in (!5)", 8, "a list value is missing here"),
        ("has:", 0, "`has:` needs a field"),
        ("count>1*", 6, "`>` does not allow `*`; quote it"),
        ("env in ()", 8, "a list value is missing here"),
        (
            "env in (a*)",
            8,
            "a list cannot contain `*`; quote it, or use `=` and `or`",
        ),
        ("a=b,c", 3, "unexpected `,`"),
        (
            "a*b",
            0,
            "a search text allows `*` only at its ends; use `name=` with it",
        ),
        ("*", 0, "`*` alone matches everything; remove it"),
        ("\"\"", 0, "the quotes are empty"),
        ("h*=x", 0, "a field name is missing here"),
        (
            "a=b severity:error",
            4,
            "`severity:error` compares nothing: write `severity=error`, `severity=*error*` for text \
             that contains it, or quote it to search for the text",
        ),
        (
            "host:db-*",
            0,
            "`host:db-*` compares nothing: write `host=db-*`, `host=*db-*` for text that contains \
             it, or quote it to search for the text",
        ),
        (
            "-labels.env:\"a b\"",
            1,
            "`labels.env:a b` compares nothing: write `labels.env=a b`, `labels.env=*a b*` for text \
             that contains it, or quote it to search for the text",
        ),
    ];
    for (filter, at, message) in cases {
        let message = message.to_owned();
        assert_eq!(
            parse(filter, Some(&TimeReference::in_utc(0))).err(),
            Some(FilterError { at, message }),
            "{filter}"
        );
    }
    let stored = parse("since=2h", None).unwrap_err();
    assert_eq!(stored.at, 6);
    assert!(
        stored.message.starts_with("`2h` is relative to now"),
        "{stored:?}"
    );
    let deep = format!("{}a=b{}", "(".repeat(40), ")".repeat(40));
    assert!(
        parse(&deep, None)
            .unwrap_err()
            .message
            .contains("nested more than")
    );
    let long = "a ".repeat(BYTES_MAX);
    assert!(parse(&long, None).unwrap_err().message.contains("bytes"));
}

#[test]
fn clause_paths_map_to_positions_in_the_text() {
    let parsed = parse("a=b (c=d or -e=f) -(g=h)", None).unwrap();
    let places = [
        ("clause.and.clauses[0].equals.field", 0),
        ("clause.and.clauses[1].or.clauses[0].equals.field", 5),
        (
            "clause.and.clauses[1].or.clauses[1].not.clause.equals.stringVal",
            13,
        ),
        ("clause.and.clauses[2].not.clause.equals.field", 20),
    ];
    for (path, at) in places {
        assert_eq!(parsed.position(path), at, "{path}");
    }
    let fields = parsed.fields();
    assert_eq!(fields, [("a", 0), ("c", 5), ("e", 13), ("g", 20)]);
}

/// Builds filters from parts of the syntax, so that many of them are valid.
fn filters() -> impl Strategy<Value = String> {
    let words = [
        "a", "host", "=", "!=", "~", "!~", ">", ">=", "<", "(", ")", "or", "and", "not", "-", "in",
        ",", "*", "\"b c\"", "\\*", "has:x", "5", "-5", "true", "since", "2h", "09:30", " ",
        "severity", "acked", "\"", "007", "d.*e", "\u{e4}", ":", "host:db", "=~", "==", "&&", "||",
        "!", "&", "|", "\"x|\"",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..12)
        .prop_map(|words| words.join(""))
        .boxed()
        .prop_union(
            prop::collection::vec(prop::sample::select(words.to_vec()), 0..12)
                .prop_map(|words| words.join(" "))
                .boxed(),
        )
}

fn values() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,4}", "[ -~]{1,6}", "\\PC{1,4}"]
}

fn clauses() -> impl Strategy<Value = Clause> {
    let field = || values();
    let literal = prop_oneof![
        values().prop_map(Literal::Text),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(Literal::Number),
        any::<bool>().prop_map(Literal::Bool),
    ];
    let literal = || literal.clone();
    let leaf = prop_oneof![
        (field(), literal()).prop_map(|(field, value)| Clause::Equals(field, value)),
        (field(), prop::collection::vec(literal(), 1..4))
            .prop_map(|(field, values)| Clause::In(field, values)),
        (field(), literal()).prop_map(|(field, value)| Clause::GreaterAndEquals(field, value)),
        (field(), literal()).prop_map(|(field, value)| Clause::LessAndEquals(field, value)),
        (field(), literal()).prop_map(|(field, value)| Clause::Greater(field, value)),
        (field(), literal()).prop_map(|(field, value)| Clause::Less(field, value)),
        (field(), values()).prop_map(|(field, value)| Clause::Contains(field, value)),
        (field(), values()).prop_map(|(field, value)| Clause::StartsWith(field, value)),
        (field(), values()).prop_map(|(field, value)| Clause::EndsWith(field, value)),
        (field(), values()).prop_map(|(field, value)| Clause::Matches(field, value)),
        field().prop_map(Clause::Exists),
        values().prop_map(|word| searched(&word)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(Clause::And),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Clause::Or),
            inner.prop_map(not),
        ]
    })
}

proptest! {
    #[test]
    fn parsed_filter_round_trips_through_print(filter in filters()) {
        if let Ok(parsed) = parse(&filter, Some(&TimeReference::in_utc(NOW_MS))) {
            let printed = print_clause(&parsed.clause);
            let again = parse(&printed, None).map(|parsed| parsed.clause);
            prop_assert_eq!(again, Ok(parsed.clause), "{}", printed);
        }
    }

    #[test]
    fn every_clause_round_trips_through_print(clause in clauses()) {
        let printed = print_clause(&clause);
        let again = parse(&printed, None).map(|parsed| parsed.clause);
        prop_assert_eq!(again, Ok(clause), "{}", printed);
    }

    #[test]
    fn parser_never_panics_and_error_position_is_in_the_text(filter in "\\PC{0,40}") {
        if let Err(error) = parse(&filter, Some(&TimeReference::in_utc(NOW_MS))) {
            prop_assert!(error.at <= filter.chars().count());
        }
    }
}

#[test]
fn dates_and_times_use_the_zone_of_the_reader() {
    let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(2));
    let now = TimeReference { ms: NOW_MS, zone };
    let cases = [
        ("lastSeen>09:30", "2026-01-31T07:30:00.000Z"),
        ("lastSeen>2026-01-30", "2026-01-29T22:00:00.000Z"),
        ("lastSeen>2026-01-30T09:30", "2026-01-30T07:30:00.000Z"),
        ("lastSeen>2026-01-30T09:30:10", "2026-01-30T07:30:10.000Z"),
        ("lastSeen>1h", "2026-01-31T07:15:30.000Z"),
        // Times with an offset are left unchanged.
        ("lastSeen>2026-01-30T09:30:00Z", "2026-01-30T09:30:00Z"),
        (
            "lastSeen>2026-01-30T09:30:00-05:00",
            "2026-01-30T09:30:00-05:00",
        ),
        ("lastSeen>2026-02-30", "2026-02-30"),
    ];
    for (filter, moment) in cases {
        let read = parse(filter, Some(&now)).unwrap().clause;
        let wanted = Clause::Greater("lastSeen".into(), text(moment));
        assert_eq!(read, wanted, "{filter}");
    }
    let stored = parse("lastSeen>2026-01-30", None).unwrap().clause;
    let wanted = Clause::Greater("lastSeen".into(), text("2026-01-30T00:00:00.000Z"));
    assert_eq!(stored, wanted, "a stored condition is read in UTC");
}

#[test]
fn filter_value_is_quoted_only_when_needed() {
    for (field, value, filter) in [
        ("host", "db-1", "host=db-1"),
        ("host", "db 1", "host=\"db 1\""),
        ("host", "a*\"b\"", "host=\"a*\\\"b\\\"\""),
        ("since", "x", "\"since\"=x"),
        ("count", "5", "count=5"),
    ] {
        assert_eq!(print_condition(field, value), filter);
    }
}
