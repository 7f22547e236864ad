//! Forms keep every object whole.

use serde_json::json;

use super::*;
use crate::data::{FailureKind, FieldError};

#[test]
fn an_object_goes_through_a_form_unchanged() {
    let cases = [
        (
            Kind::Trigger,
            json!({"name":"a","description":"","tags":["x","y"],"type":{"event":{"query":{"clause":
                {"and":{"clauses":[
                    {"greaterAndEquals":{"field":"severity","value":"SEVERITY_ERROR"}},
                    {"not":{"clause":{"equals":{"field":"env","stringVal":"3"}}}}]}}}}}}),
        ),
        (
            Kind::Trigger,
            json!({"name":"nested","description":"","tags":[],"type":{"event":{"query":{"clause":
                {"or":{"clauses":[{"and":{"clauses":[{"contains":{"field":"a","value":"b"}}]}}]}}}}}}),
        ),
        (
            Kind::Destination,
            json!({"name":"w","description":"","tags":[],"type":{"webhook":{
                "url":"https://x","method":"PUT","headers":{"a":"b: c"},"signingSecret":"********"}},
                "delivery":{"timeout":"5s","maxAttempts":3}}),
        ),
        (
            Kind::Rule,
            json!({"name":"r","description":"d","tags":[],"enabled":true,"triggerNames":["a"],
                "destinationNames":["w"],"message":"x\ny","repeat":false,"repeatInterval":"60",
                "sendUpdates":true}),
        ),
    ];
    for (kind, object) in cases {
        let mut form = Form::new(kind, None, object.clone());
        assert_eq!(form.to_json(), object);
        let draft = form.draft().unwrap_or_else(|| panic!("{:?}", form.errors));
        assert_eq!(draft.json, object);
    }
}

#[test]
fn a_nested_query_is_shown_as_json_and_says_why_it_cannot_be_a_list() {
    let clause = json!({"or":{"clauses":[{"and":{"clauses":[
        {"contains":{"field":"a","value":"b"}},{"contains":{"field":"c","value":"d"}}]}}]}});
    let mut input = ClauseInput::read(Some(&clause));
    assert!(input.json.is_some());
    assert!(input.switch().unwrap_err().contains("nested"));
    assert_eq!(input.write(), Some(clause));
}

#[test]
fn switching_a_list_to_json_and_back_keeps_it() {
    let clause = json!({"or":{"clauses":[{"contains":{"field":"a","value":"b"}}]}});
    let mut input = ClauseInput::read(Some(&clause));
    assert!(input.json.is_none());
    input.switch().unwrap();
    assert_eq!(input.write(), Some(clause.clone()));
    input.switch().unwrap();
    assert_eq!(input.write(), Some(clause));
}

#[test]
fn errors_of_the_service_stand_beside_their_fields() {
    let base = json!({"name":"w","type":{"webhook":{"url":"x"}}});
    let mut form = Form::new(Kind::Destination, None, base);
    let error = |path: &str| FieldError {
        path: path.to_owned(),
        message: format!("bad {path}"),
    };
    form.take_failure(&Failure {
        kind: FailureKind::Invalid,
        message: "two fields are wrong".to_owned(),
        fields: vec![error("type.webhook.url"), error("type.webhook.headers[x]")],
    });
    assert_eq!(form.errors["type.webhook.url"], "bad type.webhook.url");
    assert!(form.errors["type.webhook.headers"].contains("[x]"));
    assert_eq!(form.spec().path, "type.webhook.url");
}

#[test]
fn another_type_hides_fields_and_keeps_what_was_typed() {
    let base = json!({"name":"w","type":{"webhook":{"url":"https://x"}}});
    let mut form = Form::new(Kind::Destination, None, base);
    let at = form
        .specs
        .iter()
        .position(|spec| spec.path == "type")
        .unwrap();
    form.inputs[at] = Input::Choice(1);
    assert_eq!(form.to_json()["type"], json!({"email": {}}));
    form.inputs[at] = Input::Choice(0);
    assert_eq!(form.to_json()["type"]["webhook"]["url"], json!("https://x"));
}

#[test]
fn a_number_out_of_bounds_is_told_before_the_service_is_asked() {
    let mut form = Form::new(
        Kind::Rule,
        None,
        json!({"name": "r", "repeatInterval": "-1"}),
    );
    assert!(form.draft().is_none());
    assert!(form.errors["repeatInterval"].contains("from 0 to"));
}
