//! Compares with Google's protobuf for Python on the same JSON (`reference.json`, written by
//! `reference.py`), except for the listed differences.

use prost_reflect::DynamicMessage;
use serde::Deserialize;

use super::{Subject, normalized};

#[derive(Deserialize)]
struct Case {
    json: String,
    /// Absent if the text is rejected.
    wire: Option<String>,
    out: Option<String>,
}

impl Case {
    fn expected(&self, subject: &Subject) -> Option<DynamicMessage> {
        self.wire.as_ref().map(|digits| {
            let bytes: Vec<u8> = (0..digits.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
                .collect();
            subject.reference_decode(&bytes)
        })
    }
}

/// Deliberate differences. Python parses numbers with `int()` and `float()`, and reads empty lists
/// as empty objects. Google's implementations for other languages reject most of these texts.
const DIFFERENCES: &[(&str, &[&str], &[&str])] = &[
    (
        "signs, leading zeros and underscores make no JSON number",
        NUMBERS,
        &[r#""+1""#, r#""01""#, r#""1_000""#],
    ),
    (
        "nor do spaces, other names of infinity, true and false",
        REALS,
        &[r#"" 1""#, r#""1 ""#, r#""inf""#, "true", "false"],
    ),
    ("zero keeps its sign", REALS, &["-0"]),
    (
        "the largest number of 32 bits, as it is written, is taken",
        &["aFloat"],
        &["3.4028235e38"],
    ),
    (
        "an enum is a name or a whole number of 32 bits",
        &["aColor"],
        &[
            "true",
            "false",
            "0.5",
            "1e-2",
            "1e-320",
            "4294967295",
            "4294967296",
            "9223372036854775807",
            "-9223372036854775808",
            r#""0""#,
            r#""1""#,
            r#""-1""#,
            r#"" 1""#,
            r#""1 ""#,
            r#""+1""#,
            r#""01""#,
            r#""1_000""#,
        ],
    ),
    (
        "what is not base64 is refused, not skipped",
        &["aBytes"],
        &[r#""\u0000""#, r#""\ud83d\ude00""#],
    ),
    ("nor is it in a wrapper", &["bytesWrapper"], &[r#""!""#]),
    (
        "a time is written as RFC 3339 says",
        &["time"],
        &[r#""2026-1-31T12:00:00Z""#, r#""2026-01-31T12:00:00.Z""#],
    ),
    (
        "a duration has at most nine digits, and digits after its point",
        &["duration"],
        &[r#""0.0000000001s""#, r#""1.s""#, r#""+1s""#, r#"" 1s""#],
    ),
    ("a list is not an object", &["child"], &["[]"]),
];

const REALS: &[&str] = &["aFloat", "aDouble"];
const NUMBERS: &[&str] = &[
    "anInt32",
    "anInt64",
    "aUint32",
    "aUint64",
    "aSint32",
    "aSint64",
    "aFixed32",
    "aFixed64",
    "aSfixed32",
    "aSfixed64",
    "aFloat",
    "aDouble",
];
/// Deliberate differences in texts that do not consist of one field and its value.
const OTHER_DIFFERENCES: &[&str] = &["[]", r#"{"aBool":true,"a_bool":true}"#];

fn differs_on_purpose(json: &str) -> bool {
    let listed = |field: &str, value: &str| json == format!(r#"{{"{field}":{value}}}"#);
    OTHER_DIFFERENCES.contains(&json)
        || DIFFERENCES.iter().any(|(_, fields, values)| {
            fields
                .iter()
                .any(|field| values.iter().any(|value| listed(field, value)))
        })
}

#[test]
fn json_matches_googles_implementation() {
    let subject = Subject::kinds();
    let cases: Vec<Case> = serde_json::from_str(include_str!("reference.json")).unwrap();
    assert!(cases.len() > 1_000);
    let differ = |case: &&Case| difference(&subject, case).is_some();
    let (on_purpose, by_mistake): (Vec<&Case>, Vec<&Case>) = cases
        .iter()
        .filter(differ)
        .partition(|case| differs_on_purpose(&case.json));
    let sentences: Vec<_> = by_mistake
        .iter()
        .map(|case| difference(&subject, case))
        .collect();
    assert!(sentences.is_empty(), "{sentences:#?}");
    let listed = cases
        .iter()
        .filter(|case| differs_on_purpose(&case.json))
        .count();
    assert_eq!(on_purpose.len(), listed, "a listed difference is none");
}

fn difference(subject: &Subject, case: &Case) -> Option<String> {
    let json = &case.json;
    match (subject.read(json), case.expected(subject)) {
        (Err(_), None) => None,
        (Err(error), Some(_)) => Some(format!("refused: {json} {error:?}")),
        (Ok(_), None) => Some(format!("taken: {json}")),
        (Ok(wire), Some(expected)) => {
            let message = subject.reference_decode(&wire);
            let theirs = case.out.as_deref().expect("an accepted string round-trips");
            let parse = |text: &str| normalized(serde_json::from_str(text).unwrap());
            let ours = subject.write(&wire);
            // NaN never equals NaN. Python writes only seven digits of a float.
            let same = message == expected || json.contains(r#"aN""#);
            let short = json.starts_with(r#"{"aFloat":"#);
            (!same || !(short || parse(&ours) == parse(theirs)))
                .then(|| format!("{json}: {ours}, not {theirs}"))
        }
    }
}
