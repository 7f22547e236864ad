//! A table of accepted and rejected JSON.

use super::{Subject, normalized};
use crate::json::read::RejectReason;

/// Accepted JSON, and its form after a round trip.
const ACCEPTED: &[(&str, &str)] = &[
    ("{}", "{}"),
    (" { } \n", "{}"),
    // Both forms of field names.
    (r#"{"aBool":true}"#, r#"{"aBool":true}"#),
    (r#"{"a_bool":true}"#, r#"{"aBool":true}"#),
    (r#"{"\u0061Bool":true}"#, r#"{"aBool":true}"#),
    // Zero values are omitted, unless zero and absent are distinct.
    (
        r#"{"aBool":false,"anInt32":0,"aString":"","aBytes":"","aColor":0,"aDouble":0}"#,
        "{}",
    ),
    (r#"{"int32s":[],"byString":{},"strings":[]}"#, "{}"),
    (
        r#"{"maybeBool":false,"maybeInt64":0}"#,
        r#"{"maybeBool":false,"maybeInt64":"0"}"#,
    ),
    (
        r#"{"maybeString":"","maybeColor":"COLOR_NONE"}"#,
        r#"{"maybeString":"","maybeColor":"COLOR_NONE"}"#,
    ),
    (r#"{"child":{}}"#, r#"{"child":{}}"#),
    (r#"{"text":""}"#, r#"{"text":""}"#),
    (r#"{"number":0}"#, r#"{"number":0}"#),
    // `null` is absent.
    (
        r#"{"aBool":null,"aString":null,"child":null,"int32s":null,"byString":null}"#,
        "{}",
    ),
    (
        r#"{"maybeBool":null,"time":null,"boolWrapper":null,"aColor":null}"#,
        "{}",
    ),
    (r#"{"text":null,"number":1}"#, r#"{"number":1}"#),
    (r#"{"anyObject":null,"anyList":null}"#, "{}"),
    (r#"{"anyValue":null}"#, r#"{"anyValue":null}"#),
    (r#"{"anyValues":[null,1]}"#, r#"{"anyValues":[null,1]}"#),
    // Integers, quoted or not, and in any integral notation.
    (r#"{"anInt32":"7"}"#, r#"{"anInt32":7}"#),
    (
        r#"{"anInt32":-2147483648,"aUint32":4294967295}"#,
        r#"{"anInt32":-2147483648,"aUint32":4294967295}"#,
    ),
    (r#"{"anInt32":1.0}"#, r#"{"anInt32":1}"#),
    (r#"{"anInt32":1e2}"#, r#"{"anInt32":100}"#),
    (r#"{"anInt32":"1e2"}"#, r#"{"anInt32":100}"#),
    (
        r#"{"anInt64":9223372036854775807}"#,
        r#"{"anInt64":"9223372036854775807"}"#,
    ),
    (
        r#"{"anInt64":"-9223372036854775808"}"#,
        r#"{"anInt64":"-9223372036854775808"}"#,
    ),
    (
        r#"{"aUint64":"18446744073709551615"}"#,
        r#"{"aUint64":"18446744073709551615"}"#,
    ),
    (
        r#"{"aSint32":-1,"aSint64":-2}"#,
        r#"{"aSint32":-1,"aSint64":"-2"}"#,
    ),
    (
        r#"{"aFixed32":1,"aFixed64":2,"aSfixed32":-3,"aSfixed64":-4}"#,
        r#"{"aFixed32":1,"aFixed64":"2","aSfixed32":-3,"aSfixed64":"-4"}"#,
    ),
    // Other numbers.
    (r#"{"aDouble":0.1}"#, r#"{"aDouble":0.1}"#),
    (r#"{"aDouble":5}"#, r#"{"aDouble":5}"#),
    (r#"{"aDouble":"1.5e300"}"#, r#"{"aDouble":1.5e+300}"#),
    (r#"{"aDouble":"NaN"}"#, r#"{"aDouble":"NaN"}"#),
    (
        r#"{"aDouble":"-Infinity","aFloat":"Infinity"}"#,
        r#"{"aFloat":"Infinity","aDouble":"-Infinity"}"#,
    ),
    // Text and bytes.
    (
        r#"{"aString":"\"\\\u0000\ud83d\ude00"}"#,
        "{\"aString\":\"\\\"\\\\\\u0000\u{1f600}\"}",
    ),
    (r#"{"aBytes":"+/8="}"#, r#"{"aBytes":"+/8="}"#),
    (r#"{"aBytes":"-_8"}"#, r#"{"aBytes":"+/8="}"#),
    // Enums by name or number, including unknown numbers.
    (r#"{"aColor":"COLOR_RED"}"#, r#"{"aColor":"COLOR_RED"}"#),
    // The name without the type prefix, in any case.
    (r#"{"aColor":"RED"}"#, r#"{"aColor":"COLOR_RED"}"#),
    (r#"{"aColor":"Red"}"#, r#"{"aColor":"COLOR_RED"}"#),
    (r#"{"aColor":2}"#, r#"{"aColor":"COLOR_BLUE"}"#),
    (r#"{"aColor":-1}"#, r#"{"aColor":"COLOR_BELOW"}"#),
    (r#"{"aColor":77}"#, r#"{"aColor":77}"#),
    (
        r#"{"colors":["COLOR_RED",0,77]}"#,
        r#"{"colors":["COLOR_RED","COLOR_NONE",77]}"#,
    ),
    // Lists and maps.
    (
        r#"{"int32s":[0,1,-1],"sint64s":["-5"]}"#,
        r#"{"int32s":[0,1,-1],"sint64s":["-5"]}"#,
    ),
    (
        r#"{"unpacked":[3,0],"fixed32s":[1,2],"doubles":[0,1.5]}"#,
        r#"{"doubles":[0,1.5],"unpacked":[3,0],"fixed32s":[1,2]}"#,
    ),
    (r#"{"strings":["",""]}"#, r#"{"strings":["",""]}"#),
    (
        r#"{"children":[{},{"aBool":true}]}"#,
        r#"{"children":[{},{"aBool":true}]}"#,
    ),
    (
        r#"{"byString":{"b":"","":"x"}}"#,
        r#"{"byString":{"b":"","":"x"}}"#,
    ),
    (
        r#"{"byInt32":{"-1":{"aBool":true}}}"#,
        r#"{"byInt32":{"-1":{"aBool":true}}}"#,
    ),
    (
        r#"{"byBool":{"true":"1","false":0}}"#,
        r#"{"byBool":{"true":"1","false":"0"}}"#,
    ),
    (
        r#"{"byInt64":{"5":"COLOR_RED","6":0}}"#,
        r#"{"byInt64":{"5":"COLOR_RED","6":"COLOR_NONE"}}"#,
    ),
    (
        r#"{"valuesByString":{"a":null,"b":[{}]}}"#,
        r#"{"valuesByString":{"a":null,"b":[{}]}}"#,
    ),
    // Times and durations.
    (
        r#"{"time":"1970-01-01T00:00:00Z"}"#,
        r#"{"time":"1970-01-01T00:00:00Z"}"#,
    ),
    (
        r#"{"time":"2026-02-28T23:59:59.5+01:30"}"#,
        r#"{"time":"2026-02-28T22:29:59.500Z"}"#,
    ),
    (
        r#"{"time":"2024-02-29T00:00:00.000001Z"}"#,
        r#"{"time":"2024-02-29T00:00:00.000001Z"}"#,
    ),
    (
        r#"{"time":"0001-01-01T00:00:00Z"}"#,
        r#"{"time":"0001-01-01T00:00:00Z"}"#,
    ),
    (
        r#"{"time":"9999-12-31T23:59:59.999999999Z"}"#,
        r#"{"time":"9999-12-31T23:59:59.999999999Z"}"#,
    ),
    (
        r#"{"times":["1969-12-31T23:59:59.25Z"]}"#,
        r#"{"times":["1969-12-31T23:59:59.250Z"]}"#,
    ),
    (r#"{"duration":"1.5s"}"#, r#"{"duration":"1.500s"}"#),
    (
        r#"{"duration":"-0.000000001s"}"#,
        r#"{"duration":"-0.000000001s"}"#,
    ),
    (r#"{"duration":"0s"}"#, r#"{"duration":"0s"}"#),
    (
        r#"{"duration":"315576000000s"}"#,
        r#"{"duration":"315576000000s"}"#,
    ),
    (
        r#"{"mask":"aBool,child.anInt32"}"#,
        r#"{"mask":"aBool,child.anInt32"}"#,
    ),
    (r#"{"mask":""}"#, r#"{"mask":""}"#),
    // Any JSON.
    (
        r#"{"anyObject":{"a":{"b":[1,"x",true,null,{}]},"z":[]}}"#,
        r#"{"anyObject":{"a":{"b":[1,"x",true,null,{}]},"z":[]}}"#,
    ),
    (r#"{"anyObject":{}}"#, r#"{"anyObject":{}}"#),
    (r#"{"anyList":[]}"#, r#"{"anyList":[]}"#),
    (r#"{"anyValue":""}"#, r#"{"anyValue":""}"#),
    (r#"{"anyValue":0}"#, r#"{"anyValue":0}"#),
    (r#"{"anyValue":false}"#, r#"{"anyValue":false}"#),
    (r#"{"anyValue":{}}"#, r#"{"anyValue":{}}"#),
    (r#"{"value":null}"#, r#"{"value":null}"#),
    // Wrappers.
    (
        r#"{"boolWrapper":false,"int64Wrapper":0,"stringWrapper":""}"#,
        r#"{"boolWrapper":false,"int64Wrapper":"0","stringWrapper":""}"#,
    ),
    (
        r#"{"doubleWrapper":1.5,"bytesWrapper":"AQ=="}"#,
        r#"{"doubleWrapper":1.5,"bytesWrapper":"AQ=="}"#,
    ),
];

/// Rejected JSON, and the violated fields.
const REFUSED: &[(&str, &[&str])] = &[
    ("[]", &[""]),
    ("null", &[""]),
    ("\"x\"", &[""]),
    ("1", &[""]),
    (r#"{"aBol":true}"#, &["aBol"]),
    (r#"{"child":{"child":{"x":1}}}"#, &["child.child.x"]),
    (r#"{"aBool":true,"a_bool":true}"#, &["aBool"]),
    (r#"{"aBool":true,"aBool":null}"#, &["aBool"]),
    (r#"{"text":"a","number":1}"#, &["number"]),
    (r#"{"text":"a","value":null}"#, &["value"]),
    (r#"{"aBool":"true"}"#, &["aBool"]),
    (
        r#"{"aBool":1,"aString":1,"anInt32":"x"}"#,
        &["aBool", "aString", "anInt32"],
    ),
    (r#"{"anInt32":2147483648}"#, &["anInt32"]),
    (r#"{"anInt32":0.5}"#, &["anInt32"]),
    (r#"{"anInt32":" 1"}"#, &["anInt32"]),
    (r#"{"anInt32":"+1"}"#, &["anInt32"]),
    (r#"{"anInt32":""}"#, &["anInt32"]),
    (r#"{"aUint32":-1}"#, &["aUint32"]),
    (r#"{"anInt64":9223372036854775808}"#, &["anInt64"]),
    (r#"{"aUint64":"18446744073709551616"}"#, &["aUint64"]),
    (r#"{"aFloat":1e39}"#, &["aFloat"]),
    (r#"{"aDouble":"inf"}"#, &["aDouble"]),
    (r#"{"aDouble":"1."}"#, &["aDouble"]),
    (r#"{"aBytes":"!!"}"#, &["aBytes"]),
    (r#"{"aColor":"COLOR_GREEN"}"#, &["aColor"]),
    (r#"{"aColor":1.5}"#, &["aColor"]),
    (r#"{"aColor":true}"#, &["aColor"]),
    (r#"{"colors":["COLOR_RED","ROT"]}"#, &["colors[1]"]),
    (r#"{"aColor":"color_red"}"#, &["aColor"]),
    (r#"{"aColor":""}"#, &["aColor"]),
    (r#"{"int32s":1}"#, &["int32s"]),
    (r#"{"int32s":{}}"#, &["int32s"]),
    (
        r#"{"int32s":[1,null,"x",[2]]}"#,
        &["int32s[1]", "int32s[2]", "int32s[3]"],
    ),
    (r#"{"strings":[null]}"#, &["strings[0]"]),
    (
        r#"{"children":[null,{"x":1},[]]}"#,
        &["children[0]", "children[1].x", "children[2]"],
    ),
    (r#"{"child":[]}"#, &["child"]),
    (r#"{"child":"x"}"#, &["child"]),
    (r#"{"byString":[]}"#, &["byString"]),
    (
        r#"{"byString":{"a":1,"b":null}}"#,
        &["byString.a", "byString.b"],
    ),
    (r#"{"byString":{"a":"1","b":"2","a":"3"}}"#, &["byString.a"]),
    (r#"{"byBool":{"yes":1}}"#, &["byBool.yes"]),
    (r#"{"byInt32":{"x":{}}}"#, &["byInt32.x"]),
    (r#"{"anyObject":{"a":1,"a":2}}"#, &["anyObject.a"]),
    (r#"{"anyObject":[]}"#, &["anyObject"]),
    (r#"{"anyObject":1}"#, &["anyObject"]),
    (r#"{"anyList":{}}"#, &["anyList"]),
    (r#"{"time":1}"#, &["time"]),
    (r#"{"time":{}}"#, &["time"]),
    (r#"{"time":"2026-02-30T00:00:00Z"}"#, &["time"]),
    (r#"{"time":"2026-02-28 00:00:00Z"}"#, &["time"]),
    (r#"{"time":"2026-02-28T00:00:00"}"#, &["time"]),
    (r#"{"time":"2026-02-28T00:00:60Z"}"#, &["time"]),
    (r#"{"time":"2026-02-28T00:00:00.Z"}"#, &["time"]),
    (r#"{"time":"2026-02-28T00:00:00.1234567890Z"}"#, &["time"]),
    (r#"{"time":"0000-12-31T00:00:00Z"}"#, &["time"]),
    (r#"{"time":"0001-01-01T00:00:00+00:01"}"#, &["time"]),
    (r#"{"duration":"1"}"#, &["duration"]),
    (r#"{"duration":"1.s"}"#, &["duration"]),
    (r#"{"duration":".5s"}"#, &["duration"]),
    (r#"{"duration":"--1s"}"#, &["duration"]),
    (r#"{"duration":"315576000001s"}"#, &["duration"]),
    (r#"{"mask":"a_bool"}"#, &["mask"]),
    (r#"{"boolWrapper":"x"}"#, &["boolWrapper"]),
    (r#"{"boolWrapper":{}}"#, &["boolWrapper"]),
];

const NOT_JSON: &[&str] = &[
    "",
    " ",
    "{",
    "{}x",
    "{}{}",
    r#"{"aBool":tru}"#,
    r#"{"aBool":true,}"#,
    "{'aBool':true}",
    r#"{"aString":"\ud83d"}"#,
    r#"{"aDouble":01}"#,
    r#"{"aDouble":NaN}"#,
    r#"{"aDouble":1e999}"#,
    "{\"aString\":\"\n\"}",
];

#[test]
fn valid_json_is_rewritten_in_canonical_form() {
    let subject = Subject::kinds();
    for (json, canonical) in ACCEPTED {
        let wire = subject
            .read(json)
            .unwrap_or_else(|error| panic!("{json}: {error:?}"));
        assert_eq!(subject.write(&wire), *canonical, "{json}");
        let reference = serde_json::to_value(subject.reference_decode(&wire)).unwrap();
        let ours = serde_json::from_str(canonical).unwrap();
        assert_eq!(normalized(ours), normalized(reference), "{json}");
    }
}

#[test]
fn floats_keep_their_sign_and_shortest_form() {
    // The reference loses both.
    let subject = Subject::kinds();
    assert_eq!(
        subject.write(&subject.read(r#"{"aFloat":0.1}"#).unwrap()),
        r#"{"aFloat":0.1}"#
    );
    for json in [r#"{"aDouble":-0.0}"#, r#"{"aDouble":"-0"}"#] {
        assert_eq!(
            subject.write(&subject.read(json).unwrap()),
            r#"{"aDouble":-0}"#
        );
    }
}

#[test]
fn invalid_json_values_list_every_violated_field() {
    let subject = Subject::kinds();
    for (json, fields) in REFUSED {
        match subject.read(json) {
            Err(RejectReason::Violations(violations)) => {
                let found: Vec<_> = violations.as_slice().iter().map(|it| &*it.field).collect();
                assert_eq!(found, *fields, "{json}");
            }
            other => panic!("{json}: {other:?}"),
        }
    }
}

#[test]
fn syntax_errors_have_line_and_column() {
    let subject = Subject::kinds();
    for json in NOT_JSON {
        match subject.read(json) {
            Err(RejectReason::Syntax(text)) => {
                assert!(
                    text.contains("line") && text.contains("column"),
                    "{json}: {text}"
                );
            }
            other => panic!("{json}: {other:?}"),
        }
    }
}

#[test]
fn violation_names_the_expected_value() {
    let subject = Subject::kinds();
    let table = [
        (
            r#"{"aBol":true}"#,
            "aBol is not a known field; the nearest is `aBool`",
        ),
        (
            r#"{"a_strng":1}"#,
            "a_strng is not a known field; the nearest is `aString`",
        ),
        (
            r#"{"aColor":"RID"}"#,
            "aColor must be a Color, not `RID`; the nearest is `COLOR_RED`",
        ),
        (
            r#"{"anInt32":"x"}"#,
            "anInt32 must be a whole number from -2147483648 to 2147483647, not `x`",
        ),
        (
            r#"{"time":"now"}"#,
            "time must be a time such as `2026-01-31T12:00:00Z`, not `now`",
        ),
        (r#"{"strings":"x"}"#, "strings must be a list, not `x`"),
        (r#"{"child":[]}"#, "child must be an object, not a list"),
        (
            r#"{"aString":{}}"#,
            "aString: expected a string, found an object",
        ),
        (
            r#"{"aString":[]}"#,
            "aString: expected a string, found a list",
        ),
        (
            r#"{"aString":123}"#,
            "aString: expected a string, found 123; quote it",
        ),
        (
            r#"{"aString":-1.0}"#,
            "aString: expected a string, found -1.0; quote it",
        ),
        (
            r#"{"aString":true}"#,
            "aString: expected a string, found true; quote it",
        ),
        (
            r#"{"strings":["x",5]}"#,
            "strings[1]: expected a string, found 5; quote it",
        ),
        (
            r#"{"strings":["x",null]}"#,
            "strings[1]: expected a string, found null",
        ),
        (
            r#"{"text":"","number":1}"#,
            "number cannot be set together with `text`",
        ),
        (
            r#"{"aBool":0,"aString":0}"#,
            "aBool must be true or false, not 0 (and 1 more problem)",
        ),
    ];
    for (json, sentence) in table {
        match subject.read(json) {
            Err(RejectReason::Violations(violations)) => {
                assert_eq!(violations.to_sentence(), sentence);
            }
            other => panic!("{json}: {other:?}"),
        }
    }
}

#[test]
fn violations_truncate_and_escape_client_input() {
    let subject = Subject::kinds();
    let json = format!(
        r#"{{"{}":1,"aBool":"\u001b[2J{}"}}"#,
        "x".repeat(5_000),
        "y".repeat(5_000)
    );
    let Err(RejectReason::Violations(violations)) = subject.read(&json) else {
        panic!("accepted")
    };
    for violation in violations.as_slice() {
        assert!(violation.field.len() < 100, "{violation:?}");
        assert!(violation.description.len() < 200, "{violation:?}");
        assert!(!violation.description.contains('\u{1b}'), "{violation:?}");
    }
}

#[test]
fn violations_beyond_the_limit_are_only_counted() {
    let subject = Subject::kinds();
    let json = format!(r#"{{"int32s":[{}]}}"#, ["true"; 1_000].join(","));
    let Err(RejectReason::Violations(violations)) = subject.read(&json) else {
        panic!("accepted")
    };
    assert_eq!(violations.as_slice().len(), crate::json::limits::VIOLATIONS);
    assert!(
        violations
            .to_sentence()
            .ends_with("(and 999 more problems)"),
        "{}",
        violations.to_sentence()
    );
}

#[test]
fn fields_in_any_order_and_split_messages_are_merged() {
    let subject = Subject::kinds();
    let first = subject
        .read(r#"{"strings":["a"],"child":{"aBool":true},"anInt32":1}"#)
        .unwrap();
    let second = subject
        .read(r#"{"anInt32":2,"strings":["b"],"child":{"anInt32":3}}"#)
        .unwrap();
    let wire = [first, second].concat();
    let expected = r#"{"anInt32":2,"child":{"aBool":true,"anInt32":3},"strings":["a","b"]}"#;
    assert_eq!(
        normalized_text(&subject.write(&wire)),
        normalized_text(expected)
    );
}

fn normalized_text(json: &str) -> serde_json::Value {
    normalized(serde_json::from_str(json).unwrap())
}

#[test]
fn nesting_limit_matches_the_backend_decoder() {
    let subject = Subject::kinds();
    let nested =
        |levels| format!("{}{}", r#"{"child":"#.repeat(levels), "{}") + &"}".repeat(levels);
    let accepted = subject.read(&nested(100)).unwrap();
    subject.reference_decode(&accepted);
    let Err(RejectReason::Violations(violations)) = subject.read(&nested(101)) else {
        panic!("accepted")
    };
    assert!(
        violations.to_sentence().contains("nested more than"),
        "{}",
        violations.to_sentence()
    );
    assert!(matches!(
        subject.read(&nested(200)),
        Err(RejectReason::Syntax(_))
    ));

    // Each level of a `Struct` is three messages on the wire.
    let object = |levels| {
        format!(r#"{{"anyObject":{}{{}}"#, r#"{"a":"#.repeat(levels)) + &"}".repeat(levels + 1)
    };
    let deepest = (1..100)
        .take_while(|levels| subject.read(&object(*levels)).is_ok())
        .last();
    assert_eq!(deepest, Some(33));
    subject.reference_decode(&subject.read(&object(33)).unwrap());
}
