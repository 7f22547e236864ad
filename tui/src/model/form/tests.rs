//! Tests that forms preserve every object.

use serde_json::json;

use super::*;
use crate::{
    data::{FailureKind, FieldError},
    model::field::TextField,
};

#[test]
fn object_passes_through_a_form_unchanged() {
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
fn invalid_line_is_reported_and_keeps_the_condition() {
    let mut input = ClauseInput::read(None);
    assert!(input.error(true).is_some() && input.error(false).is_none());
    input.line = TextField::new("a=1 or b=2");
    input.parse_text();
    let written = input.write();
    assert!(written.is_some());
    input.line = TextField::new("a=1 or");
    input.parse_text();
    assert!(input.error(false).unwrap().starts_with("at character 7"));
    assert_eq!(input.write(), written);
    input.line = TextField::default();
    input.parse_text();
    assert_eq!((input.error(false), input.write()), (None, None));
}

#[test]
fn unsupported_condition_is_retained_unchanged() {
    let clause = json!({"soundsLike":{"field":"a","value":"b"}});
    let input = ClauseInput::read(Some(&clause));
    assert!(input.is_unknown());
    assert_eq!(input.write(), Some(clause));
}

#[test]
fn service_errors_appear_next_to_their_fields() {
    let base = json!({"name":"w","type":{"webhook":{"url":"x"}}});
    let mut form = Form::new(Kind::Destination, None, base);
    let error = |path: &str| FieldError {
        path: path.to_owned(),
        message: format!("bad {path}"),
    };
    form.show_failure(&Failure {
        fields: vec![error("type.webhook.url"), error("type.webhook.headers[x]")],
        ..Failure::new(FailureKind::Invalid, "two fields are wrong")
    });
    assert_eq!(form.errors["type.webhook.url"], "bad type.webhook.url");
    assert!(form.errors["type.webhook.headers"].contains("[x]"));
    assert_eq!(form.spec().path, "type.webhook.url");
}

#[test]
fn changing_the_type_hides_fields_but_keeps_input() {
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
fn out_of_range_number_is_reported_without_a_call() {
    let mut form = Form::new(
        Kind::Rule,
        None,
        json!({"name": "r", "repeatInterval": "-1"}),
    );
    assert!(form.draft().is_none());
    assert!(form.errors["repeatInterval"].contains("from 0 to"));
}

#[test]
fn collapsed_fields_are_saved_validated_and_expanded_on_error() {
    let at = |form: &Form, path: &str| form.specs.iter().position(|it| it.path == path).unwrap();
    let mut form = Form::new(Kind::Rule, None, json!({"name": "r"}));
    let (section, interval) = (at(&form, "#when"), at(&form, "repeatInterval"));
    assert!(form.is_shown(section) && !form.is_shown(interval));
    assert!(form.filled_labels(section).is_empty());
    // Moving between fields stops at headings, and skips collapsed fields.
    form.focus = section;
    form.move_focus(true);
    assert_eq!(form.focus, at(&form, "#gather"));
    form.fill(interval, "60", 0).unwrap();
    assert!(form.is_shown(interval), "existing values are shown");
    form.inputs[section] = Input::Section(false);
    assert_eq!(form.filled_labels(section), ["Repeat after"]);
    assert_eq!(form.to_json()["repeatInterval"], json!(60));
    form.show_failure(&Failure {
        fields: vec![FieldError {
            path: "repeatInterval".to_owned(),
            message: "is too much".to_owned(),
        }],
        ..Failure::new(FailureKind::Invalid, "a field is wrong")
    });
    assert!(form.is_shown(interval));
    assert_eq!(form.focus, interval);
    let stored = json!({"name": "r", "group": {"by": ["host"]}});
    let form = Form::new(Kind::Rule, Some(("r".into(), "1".into())), stored);
    assert!(form.is_shown(at(&form, "group.by")) && !form.is_shown(interval));
}

#[test]
fn saving_expands_invalid_fields_and_skips_counting() {
    let mut form = Form::new(Kind::Rule, None, json!({"name": "r"}));
    let at = |form: &Form, path: &str| form.specs.iter().position(|it| it.path == path).unwrap();
    let (section, interval) = (at(&form, "#when"), at(&form, "repeatInterval"));
    form.inputs[interval] = Input::Text(TextField::new("-1"));
    assert!(!form.is_shown(interval));
    assert!(form.draft().is_none());
    assert!(form.is_shown(interval) && matches!(form.inputs[section], Input::Section(true)));

    let clause = json!({"equals": {"field": "host", "stringVal": "a"}});
    let base = json!({"name": "t", "type": {"event": {"query": {"clause": clause}}}});
    let mut form = Form::new(Kind::Trigger, None, base);
    assert!(form.live_call().is_some());
    form.live.made = Some(Ok(LivePreview::Matching(Some(3))));
    let query = form.inputs.iter_mut().find_map(|input| match input {
        Input::Clause(clause) => Some(clause),
        _ => None,
    });
    let query = query.unwrap();
    query.line.insert(" or");
    query.parse_text();
    form.record_change(0);
    assert!(
        form.live.made.is_none(),
        "the count belongs to another condition"
    );
    assert!(form.live_call().is_none());
}
