//! Compares responses with Alertmanager's own description of its API.

use std::sync::LazyLock;

use http::{Method, StatusCode};
use serde_json::Value;

const PREFIX: &str = "/api/v2";

static API: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("../fixtures/alertmanager-0.34-openapi.yaml");
    serde_saphyr::from_str(text).expect("the description is valid YAML")
});

/// Checks a response to a request for a path of Alertmanager's API; other paths pass.
///
/// # Panics
/// Panics if the response differs from the description.
pub fn check_response(method: &Method, path: &str, status: StatusCode, body: &[u8]) {
    let path = path.split('?').next().unwrap_or_default();
    let Some(inner) = path.strip_prefix(PREFIX) else {
        return;
    };
    let inner = match inner.strip_prefix("/silence/") {
        Some(_) => "/silence/{silenceID}",
        None => inner.trim_end_matches('/'),
    };
    let text = String::from_utf8_lossy(body);
    let fail = |why: &str| panic!("{method} {path}: {status}: {why}: {text}");
    let operation = &API["paths"][inner][method.as_str().to_lowercase()];
    if operation.is_null() {
        return;
    }
    let response = resolve(&operation["responses"][status.as_str()]);
    if body.is_empty() {
        assert!(response["schema"].is_null(), "{method} {path}: no body");
        return;
    }
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return fail("not JSON");
    };
    // The description lists neither authentication nor other methods. Errors are strings.
    if !status.is_success() {
        if !value.is_string() {
            fail("not a string");
        }
    } else if response["schema"].is_null() {
        fail("the description has no body");
    } else if let Err(why) = check_value(&value, &response["schema"], "") {
        fail(&why);
    }
}

fn resolve(schema: &Value) -> &Value {
    match schema["$ref"].as_str().and_then(|it| it.strip_prefix('#')) {
        Some(pointer) => API.pointer(pointer).expect("the reference exists"),
        None => schema,
    }
}

fn check_value(value: &Value, schema: &Value, at: &str) -> Result<(), String> {
    let schema = resolve(schema);
    for part in schema["allOf"].as_array().into_iter().flatten() {
        check_value(value, part, at)?;
    }
    let is_type = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        None => true,
        Some(other) => return Err(format!("{at}: unknown type {other}")),
    };
    if !is_type {
        return Err(format!("{at}: expected {}", schema["type"]));
    }
    let text = value.as_str().unwrap_or_default();
    let is_format = match schema["format"].as_str() {
        Some("date-time") => text.parse::<jiff::Timestamp>().is_ok(),
        Some("uri") => url::Url::parse(text).is_ok(),
        _ => true,
    };
    if !is_format {
        return Err(format!("{at}: expected the format {}", schema["format"]));
    }
    let options = schema["enum"].as_array();
    if options.is_some_and(|options| !options.contains(value)) {
        return Err(format!("{at}: expected one of {}", schema["enum"]));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        if value[name].is_null() {
            return Err(format!("{at}.{name}: is missing"));
        }
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let known = &schema["properties"][name];
        let known = if known.is_null() {
            &schema["additionalProperties"]
        } else {
            known
        };
        if known.is_object() {
            check_value(member, known, &format!("{at}.{name}"))?;
        }
    }
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    if schema["minItems"].as_u64().unwrap_or_default() > items.len() as u64 {
        return Err(format!("{at}: has too few items"));
    }
    for (number, item) in items.iter().enumerate() {
        check_value(item, &schema["items"], &format!("{at}[{number}]"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_from_the_description_are_found() {
        let silence = json!({
            "id": "a", "status": {"state": "active"}, "updatedAt": "2026-01-31T08:00:00Z",
            "matchers": [{"name": "a", "value": "b", "isRegex": false}],
            "startsAt": "2026-01-31T08:00:00Z", "endsAt": "2026-01-31T09:00:00Z",
            "createdBy": "ana", "comment": "c", "annotations": {"ticket": "1"},
        });
        let schema = &API["definitions"]["gettableSilence"];
        assert_eq!(check_value(&silence, schema, ""), Ok(()));
        for (pointer, value, why) in [
            ("/id", Value::Null, ".id: is missing"),
            ("/annotations", Value::Null, ".annotations: is missing"),
            (
                "/annotations/ticket",
                json!(1),
                ".annotations.ticket: expected \"string\"",
            ),
            ("/matchers", json!([]), ".matchers: has too few items"),
            (
                "/matchers/0/isRegex",
                json!("no"),
                ".matchers[0].isRegex: expected \"boolean\"",
            ),
            (
                "/status/state",
                json!("on"),
                ".status.state: expected one of",
            ),
            ("/endsAt", json!("soon"), ".endsAt: expected the format"),
        ] {
            let mut wrong = silence.clone();
            *wrong.pointer_mut(pointer).unwrap() = value;
            let found = check_value(&wrong, schema, "").unwrap_err();
            assert!(found.starts_with(why), "{pointer}: {found}");
        }
    }
}
