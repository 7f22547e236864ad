//! Names of operations and schemas in the OpenAPI document, without packages: `createRule`, `Rule`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::alertmanager::openapi as alertmanager;

/// The package whose names take precedence.
const OWN: &str = "bellwether.v1.";
const SCHEMAS: &str = "#/components/schemas/";

/// Removes services and tags from the names of operations, and joins their words: `createRule` for
/// `RuleService_CreateRule`.
pub(super) fn shorten_operations(document: &mut Value) {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    let items = paths.filter_map(|(_, item)| item.as_object_mut());
    for (_, operation) in items.flatten() {
        let id = operation["operationId"].as_str().unwrap_or_default();
        operation["operationId"] = operation_name(id).into();
    }
}

fn operation_name(id: &str) -> String {
    // Alertmanager's operations keep their tag, because they have the same names as native ones.
    let is_needed = id.starts_with(alertmanager::TAG);
    let words = id.split('_').skip(usize::from(!is_needed));
    let camel: String = words.map(capitalize).collect();
    map_first_char(&camel, char::to_ascii_lowercase)
}

fn capitalize(word: &str) -> String {
    map_first_char(word, char::to_ascii_uppercase)
}

fn map_first_char(word: &str, change: fn(&char) -> char) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|it| change(&it));
    first.into_iter().chain(chars).collect()
}

/// Removes packages from the names of schemas, and from the references to them. If two names are
/// equal, the one from the other package gets a prefix: `ZenossEvent`.
pub(super) fn shorten_schemas(document: &mut Value) {
    let schemas = document["components"]["schemas"].take();
    let Value::Object(schemas) = schemas else {
        return;
    };
    let mut names: Vec<_> = schemas.keys().cloned().collect();
    names.sort_by_key(|name| !name.starts_with(OWN));
    let (mut short_names, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for name in names {
        let is_package = |part: &&str| part.starts_with(|it: char| it.is_ascii_lowercase());
        let mut short: String = name.split('.').skip_while(is_package).collect();
        if taken.contains(&short) {
            let package = name.split('.').next().unwrap_or_default();
            short = capitalize(package) + &short;
        }
        taken.insert(short.clone());
        short_names.insert(name, short);
    }
    let renamed = schemas.into_iter();
    let renamed = renamed.map(|(name, schema)| (short_names[&name].clone(), schema));
    let mut renamed: Vec<_> = renamed.collect();
    renamed.sort_by(|one, other| one.0.cmp(&other.0));
    document["components"]["schemas"] = Value::Object(renamed.into_iter().collect::<Map<_, _>>());
    replace_refs(document, &short_names);
}

fn replace_refs(value: &mut Value, short_names: &BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let target = value.as_str().filter(|_| name == "$ref");
                let target = target.and_then(|it| it.strip_prefix(SCHEMAS));
                match target.and_then(|it| short_names.get(it)) {
                    Some(short) => *value = format!("{SCHEMAS}{short}").into(),
                    None => replace_refs(value, short_names),
                }
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|it| replace_refs(it, short_names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operation_is_named_in_camel_case() {
        let cases = [
            ("RuleService_CreateRule", "createRule"),
            ("HeartbeatService_BeatByKey_get_key", "beatByKeyGetKey"),
            ("Senders_get_v2_alerts__id__notes", "getV2AlertsIdNotes"),
            ("Alertmanager_GetSilence", "alertmanagerGetSilence"),
        ];
        for (id, name) in cases {
            assert_eq!(operation_name(id), name);
        }
    }

    #[test]
    fn schemas_have_unique_names_without_packages() {
        let reference = |name: &str| json!({"$ref": format!("{SCHEMAS}{name}")});
        let mut document = json!({
            "paths": [reference("zenoss.cloud.Event"), reference("bellwether.v1.Rule.State")],
            "components": {"schemas": {
                "zenoss.cloud.Event": {"type": "object"},
                "bellwether.v1.Event": {"items": reference("zenoss.cloud.Event")},
                "bellwether.v1.Rule.State": {"type": "string"},
                "Error": {"type": "object"},
            }},
        });
        shorten_schemas(&mut document);
        let expected = json!({
            "paths": [reference("ZenossEvent"), reference("RuleState")],
            "components": {"schemas": {
                "ZenossEvent": {"type": "object"},
                "Event": {"items": reference("ZenossEvent")},
                "RuleState": {"type": "string"},
                "Error": {"type": "object"},
            }},
        });
        assert_eq!(document, expected);
    }
}
