//! Tests that the definitions of kinds match the API.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_proto::{
    FILE_DESCRIPTOR_SET,
    json::{
        self,
        descriptor::{FileSet, MessageType},
    },
};
use prost::Message as _;
use serde_json::{Value, json};

use super::{line_format::LineFormat, *};
use crate::{editor, keymap::ACTIONS};

fn sample(kind: &FieldKind) -> Value {
    match kind {
        FieldKind::Text | FieldKind::Secret | FieldKind::Lines | FieldKind::Length => json!("1s"),
        FieldKind::Time => json!("2031-05-06T04:00:00Z"),
        FieldKind::Number(low, _) => json!(low),
        FieldKind::Words | FieldKind::Names(_) => json!(["a"]),
        FieldKind::Toggle => json!(true),
        FieldKind::Choice(words) => json!(words[0]),
        FieldKind::Named(words) => json!(words[1].1),
        FieldKind::Numbers => json!([200]),
        FieldKind::Pairs => json!({"a": "b"}),
        FieldKind::WordPairs(words) => json!({"a": words[0].1}),
        FieldKind::Maps => json!({"a": {"from": "event.name", "map": {"b": "c"}}}),
        FieldKind::LineFormat(form) => {
            let line = match form {
                LineFormat::Methods => "push: phone=1",
                LineFormat::Layers => "ana from 2027-01-04T08:00:00 weekly",
                LineFormat::Steps => "contact ana wait 5m",
            };
            form.parse(line).unwrap()
        }
        FieldKind::Clause => json!({"contains": {"field": "a", "value": "b"}}),
        FieldKind::Section => unreachable!("it is not a field"),
    }
}

#[test]
fn every_form_field_exists_in_its_message() {
    for kind in Kind::ALL {
        for field in spec(*kind)
            .fields
            .iter()
            .filter(|field| field.path != "type" && field.kind != FieldKind::Section)
        {
            let mut draft = Object {
                kind: *kind,
                json: json!({}),
            };
            draft.set(field.path, Some(sample(&field.kind)));
            assert_eq!(editor::check_editor(&draft), Ok(()), "{}", field.path);
            draft.set("nothing", Some(json!(1)));
            assert!(editor::check_editor(&draft).is_err());
        }
    }
}

/// `google.api.FieldBehavior.OUTPUT_ONLY`.
const OUTPUT_ONLY: i32 = 3;
const WHOLE: [&str; 1] = [".bellwether.v1.Clause"];
const WITHOUT_FORM: [(Kind, &str, &str); 4] = [
    (
        Kind::Destination,
        "etag",
        "the console sends back the one that it read",
    ),
    (
        Kind::Rule,
        "etag",
        "the console sends back the one that it read",
    ),
    (
        Kind::Destination,
        "type.webhook.plainHeaders",
        "which headers are shown; `$EDITOR` has it",
    ),
    (
        Kind::Destination,
        "type.webhook.onClear.goneClause",
        "the service accepts it only in `onUpdate`",
    ),
];

/// Collects the JSON paths of all fields that callers may set in a message and its nested messages.
fn settable(
    types: &BTreeMap<String, MessageType>,
    message: &MessageType,
    before: &str,
    found: &mut BTreeSet<String>,
) {
    for field in &message.field {
        let options = field.options.as_ref();
        if options.is_some_and(|it| it.behavior.contains(&OUTPUT_ONLY) || it.deprecated) {
            continue;
        }
        let path = format!("{before}{}", field.json_name);
        match types.get(&field.type_name) {
            Some(inner) if !WHOLE.contains(&field.type_name.as_str()) => {
                settable(types, inner, &format!("{path}."), found);
            }
            _ => {
                found.insert(path);
            }
        }
    }
}

#[test]
fn every_settable_field_is_in_the_form() {
    let set = FileSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let of_ours = set.file.iter().filter(|it| it.package == "bellwether.v1");
    let types = of_ours.flat_map(|file| &file.message_type);
    let types: BTreeMap<_, _> = types
        .map(|it| (format!(".bellwether.v1.{}", it.name), it.clone()))
        .collect();
    for kind in [Kind::Destination, Kind::Rule] {
        let spec = spec(kind);
        let mut expected = BTreeSet::new();
        let message = &types[&format!(".bellwether.v1.{}", spec.message)];
        settable(&types, message, "", &mut expected);
        let shown = spec.fields.iter().map(|field| field.path);
        let shown: BTreeSet<_> = shown
            .filter(|path| *path != "type" && !path.starts_with('#'))
            .collect();
        for path in &expected {
            let without = WITHOUT_FORM
                .iter()
                .any(|(of, it, _)| *of == kind && it == path);
            // A single form field can contain a map or a list of messages.
            let is_inside = shown.iter().any(|it| {
                path.strip_prefix(it)
                    .is_some_and(|rest| rest.starts_with('.'))
            });
            let is_shown = shown.contains(path.as_str()) || is_inside;
            assert_ne!(is_shown, without, "{kind:?}: {path}");
        }
        for (_, path, _) in WITHOUT_FORM.iter().filter(|(of, ..)| *of == kind) {
            assert!(expected.contains(*path), "{path} is not a field");
        }
    }
}

#[test]
fn hints_in_forms_and_empty_lists_name_existing_actions() {
    let known: Vec<String> = ACTIONS.iter().map(|entry| entry.action.name()).collect();
    for kind in Kind::ALL {
        let spec = spec(*kind);
        assert!(
            !spec.columns.is_empty() && !spec.empty.is_empty(),
            "{kind:?}"
        );
        for field in spec.fields {
            let has_help = !field.help.is_empty() || field.kind == FieldKind::Section;
            assert!(has_help, "{kind:?}: {} has no help", field.path);
        }
        let sentences = spec.fields.iter().map(|field| field.help);
        for sentence in sentences.chain([spec.empty]) {
            for part in sentence.split('‹').skip(1) {
                let name = part.split('›').next().unwrap_or_default();
                assert!(known.iter().any(|it| it == name), "{name} in {sentence}");
            }
        }
    }
}

#[test]
fn writable_kinds_have_the_required_methods() {
    for kind in Kind::ALL {
        let spec = spec(*kind);
        assert_eq!(spec.create.is_some(), kind.is_created(), "{kind:?}");
        assert_eq!(spec.delete.is_some(), kind.is_created(), "{kind:?}");
        assert_eq!(spec.update.is_some(), kind.is_edited(), "{kind:?}");
        assert_eq!(spec.document.is_some(), kind.has_page(), "{kind:?}");
    }
}

#[test]
fn every_method_and_message_exists_in_the_api() {
    let wire = String::from_utf8_lossy(FILE_DESCRIPTOR_SET);
    for kind in Kind::ALL {
        let spec = spec(*kind);
        assert!(wire.contains(spec.service), "{}", spec.service);
        let methods = [
            Some(spec.list),
            spec.create,
            spec.update,
            spec.delete,
            spec.detail,
        ];
        for method in methods.into_iter().flatten() {
            for name in ["Request", "Response"] {
                let name = format!("bellwether.v1.{method}{name}");
                assert_eq!(json::wire_from_json(&name, b"{}"), Ok(vec![]), "{name}");
            }
        }
        let rows = json!({kind.plural(): [{}]}).to_string();
        let listed = format!("bellwether.v1.{}Response", spec.list);
        assert!(
            json::wire_from_json(&listed, rows.as_bytes()).is_ok(),
            "{rows}"
        );
    }
}

#[test]
fn text_shows_empty_fields_and_keeps_unknown_ones() {
    let draft = Object {
        kind: Kind::Trigger,
        json: json!({"name": "a", "later": {"b": 1}}),
    };
    let text = field_text(&draft);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        json,
        json!({"name": "a", "description": "", "tags": [], "later": {"b": 1}})
    );
    assert!(text.find("name") < text.find("description"), "{text}");
}
