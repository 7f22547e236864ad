//! Compares `/openapi.json` with the gateway's behaviour.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::{backend::Act, world::World};

#[tokio::test]
async fn openapi_has_every_path_and_no_dangling_reference() {
    let world = World::new().await;
    let document = world.get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    let table = [
        ("/v1/notification/triggers", "post"),
        ("/v1/notification/triggers/{name}", "put"),
        ("/v1/notification/destinations:test", "post"),
        ("/v1/notification/deliveries/{id}:retry", "post"),
        ("/v1/events/{id}:explain", "get"),
        ("/v1/data-receiver/events", "post"),
        ("/healthz", "get"),
        ("/readyz", "get"),
        ("/metrics", "get"),
    ];
    for (path, method) in table {
        assert!(
            paths[path][method]["operationId"].is_string(),
            "{method} {path}"
        );
    }
    let mut ids = BTreeSet::new();
    for operation in paths
        .values()
        .flat_map(|path| path.as_object().unwrap().values())
    {
        assert!(
            ids.insert(operation["operationId"].to_string()),
            "{operation}"
        );
        assert!(
            !operation["description"].as_str().unwrap().is_empty(),
            "{operation}"
        );
    }
    let mut references = BTreeSet::new();
    collect_references(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

/// Error statuses of the gateway to which no gRPC code maps.
const OF_ITS_OWN: [u16; 3] = [413, 415, 431];

fn is_left_out(method: &str, path: &str, operation: &Value, status: u16) -> bool {
    let has_body = operation["requestBody"].is_object() || method == "delete";
    match status {
        404 => !has_body && !path.contains('{'),
        409 => method == "get",
        413 | 415 => !has_body,
        _ => false,
    }
}

#[tokio::test]
async fn operations_document_every_possible_status() {
    let world = World::new().await;
    let document = world.get("/openapi.json").await.json();
    let mut operations = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            // The responses to other products' senders are defined by those products.
            let others = ["Senders", "Alertmanager", "Health"];
            if others.contains(&operation["tags"][0].as_str().unwrap()) {
                continue;
            }
            operations += 1;
            let documented = operation["responses"].as_object().unwrap();
            let mut given: BTreeSet<u16> = OF_ITS_OWN.into();
            let mut uri = path.replace("{signal}", "start");
            for parameter in ["{name}", "{id}", "{key}"] {
                uri = uri.replace(parameter, "a");
            }
            assert!(!uri.contains('{'), "{uri}: fill its parameter in above");
            for code in 1..=16 {
                let failure = Status::new(Code::from_i32(code), "a sentence");
                world.backend.next(Act::Fail(failure));
                let body = if method == "get" { "" } else { "{}" };
                let answer = world.call(&method.to_uppercase(), &uri, body).await;
                assert_eq!(answer.json()["code"], code, "{method} {path}");
                given.insert(answer.status.as_u16());
            }
            given.retain(|status| !is_left_out(method, path, operation, *status));
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            if parameters
                .into_iter()
                .any(|it| it["name"] == "if-none-match")
            {
                given.insert(304);
            }
            let documented: BTreeSet<u16> = documented
                .keys()
                .filter_map(|status| status.parse().ok())
                .filter(|status| *status != 200)
                .collect();
            assert_eq!(documented, given, "{method} {path}");
        }
    }
    assert!(operations > 30, "{operations}");
}

#[tokio::test]
async fn openapi_has_the_sender_paths() {
    let document = World::new().await.get("/openapi.json").await.json();
    let path = &document["paths"]["/v1/intake/alertmanager/{key}"]["post"];
    assert_eq!(path["tags"][0], "Senders");
    assert_eq!(path["parameters"][0]["name"], "key");
    assert!(path["responses"]["200"].is_object());
    let ping = document["paths"]["/v2/heartbeats/{id}/ping"]
        .as_object()
        .unwrap();
    let methods: Vec<_> = ping.keys().collect();
    assert_eq!(methods, ["get", "patch", "post", "put"]);
    let status = &document["paths"]["/api/v2/status"]["get"];
    assert_eq!(status["security"], json!([]));
}

#[tokio::test]
async fn openapi_documents_response_headers() {
    let document = World::new().await.get("/openapi.json").await.json();
    let headers = |answer: &Value| -> BTreeSet<String> {
        let own = answer["headers"].as_object().unwrap();
        own.keys().cloned().collect()
    };
    let common = ["ratelimit", "ratelimit-policy", "x-request-id"];
    let more = BTreeMap::from([
        ("401", "www-authenticate"),
        ("429", "retry-after"),
        ("503", "retry-after"),
    ]);
    for (status, answer) in document["components"]["responses"].as_object().unwrap() {
        let own = more.get(&**status).into_iter().chain(&common);
        let expected = own.map(|name| (*name).to_owned()).collect();
        assert_eq!(headers(answer), expected, "{status}");
    }
    let with_key = |operation: &&Value| {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let mut names = parameters.map(|parameter| &parameter["name"]);
        names.any(|name| name == "idempotency-key")
    };
    let items = document["paths"].as_object().unwrap().values();
    let operations = items.flat_map(|item| item.as_object().unwrap().values());
    let taking: Vec<_> = operations.filter(with_key).collect();
    assert_eq!(taking.len(), 1);
    assert_eq!(taking[0]["operationId"], "putEvents");
    let answered = headers(&taking[0]["responses"]["200"]);
    assert!(answered.contains("idempotent-replayed"), "{answered:?}");
}

#[tokio::test]
async fn openapi_documents_field_constraints_and_roles() {
    let document = World::new().await.get("/openapi.json").await.json();
    let schema = |name: &str| &document["components"]["schemas"][name];
    assert_eq!(schema("Trigger")["required"], json!(["name", "type"]));
    // In response schemas, fields that are always present are required.
    let page = schema("ListTriggersResponse");
    assert_eq!(page["required"], json!(["totalSize"]));
    let destination = schema("DestinationType")["oneOf"].as_array().unwrap();
    assert_eq!(destination.len(), 7);
    for variant in destination {
        let members = variant["properties"].as_object().unwrap();
        assert_eq!(members.len(), 1, "{variant}");
        assert_eq!(variant["required"][0], **members.keys().next().unwrap());
    }
    let tags = &schema("Rule")["properties"]["tags"];
    assert_eq!(tags["type"], json!(["array", "null"]));
    assert_eq!(
        (&tags["maxItems"], &tags["items"]["maxLength"]),
        (&json!(20), &json!(100))
    );
    let created = &schema("Rule")["properties"]["createTime"];
    assert_eq!(created["readOnly"], true);
    let token = &schema("Slack")["properties"]["token"];
    assert_eq!(token["format"], "password");
    let metadata = &schema("ZenossEvent")["properties"]["metadataFields"]["$ref"];
    assert_eq!(metadata, "#/components/schemas/Struct");
    assert_eq!(schema("Struct")["additionalProperties"], true);
    let create = &document["paths"]["/v1/notification/triggers"]["post"];
    assert_eq!(create["x-required-role"], "editor");
    assert_eq!(create["tags"], json!(["Triggers"]));
    let example = &create["requestBody"]["content"]["application/json"]["example"];
    assert_eq!(example["name"], "disk full");
    assert_eq!(document["info"]["license"]["identifier"], "Apache-2.0");
}

#[tokio::test]
async fn openapi_marks_schemas_that_allow_unknown_fields() {
    let document = World::new().await.get("/openapi.json").await.json();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Events"]["additionalProperties"], true);
    assert_eq!(schemas["Events"]["properties"]["events"]["type"], "array");
    assert_eq!(schemas["Trigger"]["additionalProperties"], false);
    let parameters = &document["paths"]["/v1/notification/triggers"]["get"]["parameters"];
    let names: Vec<_> = parameters
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].clone())
        .collect();
    let own = ["pageSize", "pageToken", "names", "tags", "q"];
    assert_eq!(names, [&own[..], &["if-none-match"]].concat());
}

fn collect_references(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                into.insert(reference.clone());
            }
            map.values()
                .for_each(|value| collect_references(value, into));
        }
        Value::Array(list) => list
            .iter()
            .for_each(|value| collect_references(value, into)),
        _ => {}
    }
}
