//! Converts messages of this crate to JSON and back, by their Rust type and by name.

use crate::{
    cloud::Event,
    json::{self, Error, read::RejectReason},
    v1::{CreateRuleRequest, Rule, Trigger},
};

#[test]
fn typed_message_round_trips_through_canonical_json() {
    let rule = Rule {
        name: "disk".to_owned(),
        enabled: Some(false),
        trigger_names: vec!["full".to_owned()],
        repeat_interval: Some(3_600),
        ..Rule::default()
    };
    let text = json::to_json(&rule).unwrap();
    assert_eq!(
        String::from_utf8(text.clone()).unwrap(),
        r#"{"name":"disk","enabled":false,"triggerNames":["full"],"repeatInterval":"3600"}"#
    );
    assert_eq!(json::from_json::<Rule>(&text).unwrap(), rule);
}

#[test]
fn message_by_name_converts_to_and_from_wire_bytes() {
    let wire =
        json::wire_from_json("zenoss.cloud.Event", br#"{"name":"disk","severity":5}"#).unwrap();
    let event = <Event as prost::Message>::decode(&*wire).unwrap();
    assert_eq!((&*event.name, event.severity), ("disk", 5));
    assert_eq!(
        json::wire_to_json("zenoss.cloud.Event", &wire).unwrap(),
        br#"{"name":"disk","severity":"SEVERITY_CRITICAL"}"#
    );
}

#[test]
fn every_invalid_field_is_reported_with_its_path() {
    let text = br#"{"type":{"event":{"query":{"clause":{"and":{"clauses":[{"equals":{"feild":"severity"}}]}}}}},
        "tags":"one"}"#;
    let refused = json::from_json::<Trigger>(text).unwrap_err();
    let Error::Rejected(RejectReason::Violations(violations)) = refused else {
        panic!("{refused}");
    };
    let fields: Vec<_> = violations
        .as_slice()
        .iter()
        .map(|one| &*one.field)
        .collect();
    assert_eq!(
        fields,
        [
            "type.event.query.clause.and.clauses[0].equals.feild",
            "tags"
        ]
    );
    assert!(
        violations.as_slice()[0]
            .description
            .contains("the nearest is `field`")
    );
}

#[test]
fn invalid_json_and_invalid_messages_cause_clear_errors() {
    let of_text = |text: &[u8]| {
        json::from_json::<CreateRuleRequest>(text)
            .unwrap_err()
            .to_string()
    };
    assert!(
        of_text(b"{\"rule\":").starts_with("not JSON: EOF"),
        "{}",
        of_text(b"{\"rule\":")
    );
    assert_eq!(of_text(b"[]"), "the body must be a JSON object");
    assert_eq!(
        json::wire_from_json("bellwether.v1.Rull", b"{}")
            .unwrap_err()
            .to_string(),
        "unknown message type bellwether.v1.Rull"
    );
    assert_eq!(
        json::wire_to_json("bellwether.v1.Rule", b"\xff")
            .unwrap_err()
            .to_string(),
        "not a valid protobuf message"
    );
}
