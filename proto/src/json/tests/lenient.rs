//! Lenient reading: unknown fields are ignored, and invalid entries are reported separately.

use super::Subject;
use crate::json::{
    limits,
    read::{self, Options, RejectReason},
};

#[test]
fn lenient_mode_ignores_unknown_fields_but_not_enum_names() {
    let subject = Subject::kinds();
    let read = |json: &str| {
        let options = Options {
            lenient: true,
            ..Default::default()
        };
        read::read(&subject.plan, subject.message, json.as_bytes(), options)
    };
    let found = read(r#"{"x":{"y":[1,{}]},"aBool":true,"child":{"z":null},"x":2}"#).unwrap();
    assert_eq!(subject.write(&found.wire), r#"{"aBool":true,"child":{}}"#);
    assert_eq!(found.ignored, ["x", "child.z", "x"]);
    let many: Vec<String> = (0..30).map(|at| format!(r#""x{at}":0"#)).collect();
    let found = read(&format!("{{{}}}", many.join(","))).unwrap();
    assert_eq!(found.ignored.len(), limits::IGNORED);
    assert!(matches!(
        read(r#"{"aColor":"COLOR_GREEN"}"#),
        Err(RejectReason::Violations(_))
    ));
}

#[test]
fn invalid_entries_are_reported_and_the_others_are_read() {
    let subject = Subject::of_product("zenoss.cloud.Events");
    let list = subject.plan.field(subject.message, "events");
    let read = |json: &str| {
        let options = Options {
            lenient: true,
            list,
            ..Default::default()
        };
        read::read(&subject.plan, subject.message, json.as_bytes(), options)
    };
    let found = read(r#"{"events":[{"name":"a"},{"name":"b","severity":"x"},3,{"name":"d"}]}"#);
    let found = found.unwrap();
    let events = r#"{"events":[{"name":"a"},{"name":"d"}]}"#;
    assert_eq!(subject.write(&found.wire), events);
    let places: Vec<_> = found.refused.iter().map(|one| one.index).collect();
    assert_eq!(places, [1, 2]);
    assert_eq!(found.refused[0].violations.as_slice()[0].field, "severity");
    let event = Subject::of_product("zenoss.cloud.Event");
    assert_eq!(event.write(&found.refused[0].wire), r#"{"name":"b"}"#);
    assert!(found.refused[1].wire.is_empty());

    let fields = |json: &str| match read(json) {
        Err(RejectReason::Violations(violations)) => violations.as_slice()[0].field.clone(),
        other => panic!("{json}: {other:?}"),
    };
    assert_eq!(fields(r#"{"events":{}}"#), "events");
    assert_eq!(
        fields(r#"{"detailedResponse":"x","events":[{}]}"#),
        "detailedResponse"
    );
    assert_eq!(fields(r#"{"evnts":[]}"#), "events");
    let invalid = vec!["0"; limits::REFUSED_ENTRIES + 1].join(",");
    assert_eq!(
        fields(&format!(r#"{{"events":[{invalid}]}}"#)),
        "events[1000]"
    );
    assert!(matches!(
        read(r#"{"events":[{"name":"#),
        Err(RejectReason::Syntax(_))
    ));
}
