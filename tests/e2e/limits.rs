//! Tests that the limits in the API document match the service: each maximum is accepted, and a
//! larger value is rejected with the name of the field.

use bellwether_tests::{rest::Rest, world::World};
use serde_json::{Map, Value, json};

/// Operations whose requests contain all fields that users can define. Operations that validate
/// list entries individually are excluded, because they return success.
const OPERATIONS: [&str; 10] = [
    "/v1/notification/triggers",
    "/v1/notification/destinations",
    "/v1/notification/rules",
    "/v1/notification/calendars",
    "/v1/notification/silences",
    "/v1/notification/inhibitions",
    "/v1/intake/mappings",
    "/v1/views",
    "/v1/events:search",
    "/v1/notification/triggers:test",
];

/// A request, the field under test, and whether the request is valid.
struct Case {
    field: String,
    body: Value,
    is_accepted: bool,
    why: &'static str,
}

/// Path of an object in a request: in the service's notation, and as a JSON pointer.
#[derive(Clone, Default)]
struct Place {
    field: String,
    pointer: String,
}

impl Place {
    fn of(&self, name: &str) -> Self {
        let dot = if self.field.is_empty() { "" } else { "." };
        Self {
            field: format!("{}{dot}{name}", self.field),
            pointer: format!(
                "{}/{}",
                self.pointer,
                name.replace('~', "~0").replace('/', "~1")
            ),
        }
    }
}

struct Walk<'d> {
    document: &'d Value,
    cases: Vec<Case>,
}

impl<'d> Walk<'d> {
    fn resolved(&self, schema: &'d Value) -> &'d Value {
        match schema["$ref"].as_str() {
            Some(reference) => self.document.pointer(&reference[1..]).unwrap(),
            None => schema,
        }
    }

    /// Returns a minimal valid value for a schema; `None` if the schema is infinitely recursive.
    fn sample(&self, schema: &'d Value, depth: usize) -> Option<Value> {
        let schema = self.resolved(schema);
        if let Some(example) = schema["examples"].get(0) {
            return Some(example.clone());
        }
        if let Some(variants) = schema["oneOf"].as_array() {
            let mut variants = variants.iter();
            return variants.find_map(|variant| self.sample(variant, depth));
        }
        if let Some(words) = schema["enum"].as_array() {
            return words.last().cloned();
        }
        let kind = schema["type"].as_str().or(schema["type"][0].as_str());
        Some(match kind {
            Some("object") if schema["properties"].is_object() => {
                let depth = depth.checked_sub(1)?;
                let mut members = Map::new();
                for name in schema["required"].as_array().into_iter().flatten() {
                    let name = name.as_str().unwrap();
                    let value = self.sample(&schema["properties"][name], depth)?;
                    members.insert(name.to_owned(), value);
                }
                Value::Object(members)
            }
            Some("object") => json!({"text": "text"}),
            Some("array") => json!([self.sample(&schema["items"], depth)?]),
            Some("boolean") => json!(true),
            Some("integer" | "number") => json!(schema["minimum"].as_i64().unwrap_or(1).max(1)),
            _ if schema["format"] == "date-time" => json!("2040-01-04T08:00:00Z"),
            _ if schema["format"] == "uri" => json!("https://example.com"),
            _ => json!("text"),
        })
    }

    /// Adds cases for the fields of an object and of the objects in it. `base` is a request that
    /// has the object at `place`; `above` names the enclosing types.
    fn object(&mut self, base: &Value, place: &Place, schema: &'d Value, above: &[&'d str]) {
        let name = schema["$ref"].as_str().unwrap_or_default();
        if above.contains(&name) {
            return;
        }
        let above = [above, &[name]].concat();
        let schema = self.resolved(schema);
        for variant in schema["oneOf"].as_array().into_iter().flatten() {
            if let Some(value) = self.sample(variant, 8) {
                let base = with(base, &place.pointer, value);
                self.fields(&base, place, variant, &above);
            }
        }
        self.fields(base, place, schema, &above);
    }

    fn fields(&mut self, base: &Value, place: &Place, schema: &'d Value, above: &[&'d str]) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            if field["readOnly"] == true {
                continue;
            }
            let place = place.of(name);
            let mut base = base.clone();
            if base.pointer(&place.pointer).is_none() {
                let Some(value) = self.sample(field, 8) else {
                    continue;
                };
                base = with(&base, &place.pointer, value);
            }
            let is_required = schema["required"].as_array();
            let is_required = is_required.is_some_and(|all| all.iter().any(|it| it == name));
            if is_required && above.len() > 1 {
                self.add(&base, &place, Value::Null, false, "is missing");
            }
            self.limits(&base, &place, field);
            let inner = if field["items"].is_object() {
                &field["items"]
            } else {
                field
            };
            let resolved = self.resolved(inner);
            if resolved["properties"].is_object() || resolved["oneOf"].is_array() {
                let place = if field["items"].is_object() {
                    Place {
                        field: format!("{}[0]", place.field),
                        pointer: format!("{}/0", place.pointer),
                    }
                } else {
                    place
                };
                self.object(&base, &place, inner, above);
            }
        }
    }

    fn limits(&mut self, base: &Value, place: &Place, field: &'d Value) {
        let list = field["items"].is_object();
        let one = if list { &field["items"] } else { field };
        let value = |value: Value| if list { json!([value]) } else { value };
        let example = one["examples"][0].as_str().unwrap_or_default();
        let padded = |length: u64| {
            let count = usize::try_from(length).unwrap() - example.len();
            json!(format!("{example}{}", "x".repeat(count)))
        };
        if let Some(most) = one["maxLength"].as_u64() {
            self.add(base, place, value(padded(most)), true, "as long as may be");
            self.add(base, place, value(padded(most + 1)), false, "is too long");
        }
        if let Some(least) = one["minimum"].as_i64() {
            self.add(base, place, value(json!(least)), true, "the smallest");
            self.add(base, place, value(json!(least - 1)), false, "is too small");
        }
        if let Some(most) = one["maximum"].as_i64() {
            self.add(base, place, value(json!(most)), true, "the largest");
            self.add(base, place, value(json!(most + 1)), false, "is too large");
        }
        if one["maxLength"] == 100 && one["pattern"].is_string() {
            self.add(base, place, value(json!("a/b")), false, "is not a name");
        }
        if one["enum"].is_array() {
            self.add(
                base,
                place,
                value(json!("none such")),
                false,
                "is not one of the values",
            );
        }
        if let Some(most) = field["maxItems"].as_u64() {
            self.add(
                base,
                place,
                self.entries(one, most),
                true,
                "as many as may be",
            );
            self.add(
                base,
                place,
                self.entries(one, most + 1),
                false,
                "are too many",
            );
        }
        if let Some(most) = field["maxProperties"].as_u64() {
            let pairs = |count: u64| {
                let value = self.sample(&field["additionalProperties"], 8).unwrap();
                let pairs = (0..count).map(|at| (format!("x{at}"), value.clone()));
                Value::Object(pairs.collect())
            };
            let (accepted, refused) = (pairs(most), pairs(most + 1));
            self.add(base, place, accepted, true, "as many as may be");
            self.add(base, place, refused, false, "are too many");
        }
    }

    fn entries(&self, schema: &'d Value, count: u64) -> Value {
        let entry = self.sample(schema, 8).unwrap();
        let different = |at: u64| match &entry {
            Value::String(_) => json!(format!("x{at}")),
            Value::Number(_) => json!(schema["minimum"].as_u64().unwrap_or(0) + at),
            other => other.clone(),
        };
        (0..count).map(different).collect()
    }

    fn add(
        &mut self,
        base: &Value,
        place: &Place,
        value: Value,
        is_accepted: bool,
        why: &'static str,
    ) {
        self.cases.push(Case {
            field: place.field.clone(),
            body: with(base, &place.pointer, value),
            is_accepted,
            why,
        });
    }
}

/// Sets a value in a document; null removes it.
fn with(document: &Value, pointer: &str, value: Value) -> Value {
    let mut document = document.clone();
    let Some((above, name)) = pointer.rsplit_once('/') else {
        return value;
    };
    match document.pointer_mut(above).unwrap() {
        Value::Object(members) if value.is_null() => drop(members.remove(name)),
        Value::Object(members) => drop(members.insert(name.to_owned(), value)),
        Value::Array(list) => list[name.parse::<usize>().unwrap()] = value,
        other => panic!("{other} at {above}"),
    }
    document
}

/// Returns the fields with violations, except for references to missing resources.
async fn violations(rest: &Rest, path: &str, body: &Value) -> Vec<String> {
    let answer = rest.post(path, body).await;
    if answer.status == 200 {
        return Vec::new();
    }
    let json = answer.json();
    let details = json["details"].as_array().cloned().unwrap_or_default();
    let violations = details.iter().flat_map(|detail| {
        let violations = detail["fieldViolations"].as_array().cloned();
        violations.unwrap_or_default()
    });
    let text =
        |violation: &Value, name: &str| violation[name].as_str().unwrap_or_default().to_owned();
    violations
        .filter(|violation| !text(violation, "description").contains(" not found"))
        .map(|violation| text(&violation, "field"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_enforce_the_documented_limits() {
    let world = World::start();
    let rest = world.rest();
    let document = rest.get("/openapi.json").await.ok();
    let (mut count, mut wrong) = (0, Vec::new());
    for path in OPERATIONS {
        let operation = &document["paths"][path]["post"];
        let content = &operation["requestBody"]["content"]["application/json"];
        let mut walk = Walk {
            document: &document,
            cases: Vec::new(),
        };
        let base = content["example"].clone();
        assert!(base.is_object(), "{path} has no example");
        walk.object(&base, &Place::default(), &content["schema"], &[]);
        // A dry run stores no changes.
        let parameters = operation["parameters"].as_array().unwrap();
        let is_dry = parameters
            .iter()
            .any(|parameter| parameter["name"] == "validateOnly");
        let uri = if is_dry {
            format!("{path}?validateOnly=true")
        } else {
            path.to_owned()
        };
        for case in walk.cases {
            count += 1;
            let found = violations(&rest, &uri, &case.body).await;
            let is_named = if case.is_accepted {
                found.contains(&case.field)
            } else {
                let is_it = |field: &String| {
                    // A violation about one of several fields is reported for the enclosing object.
                    field.starts_with(&case.field) || case.field.starts_with(&format!("{field}."))
                };
                found.iter().any(is_it)
            };
            if is_named == case.is_accepted {
                wrong.push(format!("{path} {} {}: {found:?}", case.field, case.why));
            }
        }
    }
    assert!(wrong.is_empty(), "of {count}:\n{}", wrong.join("\n"));
    assert!(count > 300, "{count}");
}
