//! Every field of every resource, over gRPC, REST and commands: stored, compared, exported and
//! stored again unchanged.

use std::{collections::BTreeSet, fs};

use bellwether_proto::{
    FILE_DESCRIPTOR_SET,
    json::descriptor::{FileSet, MessageType},
};
use bellwether_tests::{process, wire::Wire, world::World};
use prost::Message as _;
use serde_json::{Value, json};

/// Returns resources with all fields of their types, each with a distinct value.
fn documents() -> Vec<(&'static str, Value)> {
    let trigger = json!({"name": "t", "type": {"event": {"query": {"clause":
        {"equals": {"field": "name", "stringVal": "disk"}}}}}});
    let mail = json!({"name": "mail", "templateLanguage": "JINJA", "type": {"email": {
        "to": "Ops <ops@example.net>",
        "subject": "{{ event.severity|upper }}",
        "body": "<p>{{ event.summary }}</p>",
        "cc": "cc@example.net",
        "bcc": "bcc@example.net",
        "from": "Databases <db@example.net>",
        "replyTo": "reply@example.net",
        "listId": "DB <db.example.net>",
        "priority": "SEVERITY",
    }}});
    let slack = json!({"name": "slack", "templateLanguage": "JINJA", "type": {"slack": {
        "channel": "#ops",
        "token": "xoxb-canary",
        "blocks": "[{\"type\": \"divider\"}]",
        "updateFirst": true,
        "broadcastReplies": true,
    }}});
    let pagerduty = json!({"name": "pager", "templateLanguage": "JINJA", "type": {"pagerduty": {
        "routingKey": "0123456789abcdef0123456789canary",
        "class": "{{ event.type }}",
        "component": "{{ event.name }}",
        "group": "{{ tenant }}",
        "customDetails": "{\"a\": \"{{ event.body }}\"}",
        "links": "[{\"href\": \"https://example.net/\"}]",
        "images": "[{\"src\": \"https://example.net/a.png\"}]",
    }}});
    let webhook = json!({"name": "hook", "templateLanguage": "JINJA", "type": {"webhook": {
        "url": "https://example.net/{{ event.name|lower }}",
        "auth": {"oauth2": {
            "tokenUrl": "https://example.net/token",
            "clientId": "client",
            "clientSecret": "canary-secret",
            "scope": "alerts",
            "audience": "https://api.example.net/",
            "params": {"resource": "alerts", "tenant": "a"},
        }},
    }}});
    let signed = json!({"name": "signed", "type": {"webhook": {
        "url": "https://sns.eu-central-1.amazonaws.com/",
        "auth": {"aws": {
            "accessKeyId": "AKIAIOSFODNN7EXAMPLE",
            "secretAccessKey": "canary-secret",
            "region": "eu-central-1",
            "service": "sns",
        }},
    }}});
    let rule = json!({"name": "r", "triggerNames": ["t"], "destinationNames": ["mail", "slack"],
        "message": "{{ event.summary|title }}", "templateLanguage": "JINJA"});
    vec![
        ("trigger", trigger),
        ("destination", mail),
        ("destination", slack),
        ("destination", pagerduty),
        ("destination", webhook),
        ("destination", signed),
        ("rule", rule),
    ]
}

/// Message types whose fields must all be covered, each with the resource and the path of an
/// object.
const WHOLE: [(&str, &str, &str); 5] = [
    ("Email", "mail", "/type/email"),
    ("Slack", "slack", "/type/slack"),
    ("PagerDuty", "pager", "/type/pagerduty"),
    ("OAuth2Auth", "hook", "/type/webhook/auth/oauth2"),
    ("AwsAuth", "signed", "/type/webhook/auth/aws"),
];

fn message(name: &str) -> MessageType {
    let set = FileSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let of_ours = set
        .file
        .into_iter()
        .filter(|it| it.package == "bellwether.v1");
    let mut types = of_ours.flat_map(|file| file.message_type);
    types.find(|it| it.name == name).unwrap()
}

#[test]
fn table_covers_every_field() {
    let documents = documents();
    for (name, draft, place) in WHOLE {
        let (_, draft) = documents
            .iter()
            .find(|(_, it)| it["name"] == draft)
            .unwrap();
        let filled = draft.pointer(place).unwrap().as_object().unwrap().keys();
        let filled: BTreeSet<_> = filled.map(String::as_str).collect();
        let message = message(name);
        let known: BTreeSet<_> = message
            .field
            .iter()
            .map(|it| it.json_name.as_str())
            .collect();
        assert_eq!(filled, known, "{name}");
    }
}

/// Secret fields, by resource and path.
const SECRETS: [(&str, &str); 4] = [
    ("slack", "/type/slack/token"),
    ("pager", "/type/pagerduty/routingKey"),
    ("hook", "/type/webhook/auth/oauth2/clientSecret"),
    ("signed", "/type/webhook/auth/aws/secretAccessKey"),
];

fn wrap_documents(documents: &[(&'static str, Value)]) -> Vec<Value> {
    let wrap = |(kind, draft): &(&'static str, Value)| json!({*kind: draft});
    documents.iter().map(wrap).collect()
}

async fn apply(wire: &Wire, documents: &[Value], validate_only: bool) -> Vec<Value> {
    let request = json!({"documents": documents, "validateOnly": validate_only});
    let applied = wire.ok("ConfigService/ApplyConfig", &request).await;
    applied["changes"].as_array().unwrap().clone()
}

fn actions(changes: &[Value]) -> BTreeSet<&str> {
    let actions = changes.iter().map(|it| it["action"].as_str().unwrap());
    actions.collect()
}

/// Asserts that the response contains all fields of the draft, with secrets masked.
fn assert_stored(draft: &Value, answer: &Value, path: &str, name: &str) {
    if SECRETS.contains(&(name, path)) {
        let shown = answer.as_str().unwrap();
        assert!(
            !shown.contains("canary") && !shown.is_empty(),
            "{path}: {shown}"
        );
        return;
    }
    if let Value::Object(fields) = draft {
        for (field, value) in fields {
            assert_stored(value, &answer[field], &format!("{path}/{field}"), name);
        }
        return;
    }
    assert_eq!(draft, answer, "{name}{path}");
}

async fn read_resource(wire: &Wire, kind: &str, name: &str) -> Value {
    let (service, method) = match kind {
        "trigger" => ("TriggerService", "GetTrigger"),
        "destination" => ("DestinationService", "GetDestination"),
        _ => ("RuleService", "GetRule"),
    };
    let got = wire
        .ok(&format!("{service}/{method}"), &json!({"name": name}))
        .await;
    got[kind].clone()
}

/// Returns a valid change of each text, flag and enumeration value in a draft, with its path.
fn edits(draft: &Value, path: &str, name: &str) -> Vec<(String, Value)> {
    match draft {
        Value::Object(fields) => {
            let inner = fields.iter();
            let inner =
                inner.flat_map(|(field, value)| edits(value, &format!("{path}/{field}"), name));
            inner.collect()
        }
        Value::Bool(flag) => vec![(path.to_owned(), json!(!flag))],
        // Secrets are not compared. The fields `priority` and `listId` do not accept every text.
        _ if SECRETS.contains(&(name, path)) => Vec::new(),
        Value::String(_) if path.ends_with("/priority") => vec![(path.to_owned(), json!("HIGH"))],
        Value::String(_) if path.ends_with("/listId") => {
            vec![(path.to_owned(), json!("other.example.net"))]
        }
        Value::String(text) if path.starts_with("/type/email") && text.contains('@') => {
            vec![(path.to_owned(), json!("other@example.net"))]
        }
        Value::String(text) if path.starts_with("/type") && !path.contains("oauth2/tokenUrl") => {
            let other = text.replace("example.net/", "example.net/other/");
            let is_json = text.starts_with("[{") || text.starts_with("{\"");
            let other = match (other == *text, is_json) {
                (false, _) => other,
                (true, false) => format!("{text}x"),
                (true, true) => text.replacen(':', ": ", 1),
            };
            vec![(path.to_owned(), json!(other))]
        }
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn every_field_round_trips_over_rest_and_grpc() {
    for at in 0..2 {
        let world = World::start();
        let wire = &world.wires()[at];
        let documents = documents();
        let all = wrap_documents(&documents);
        let would = apply(wire, &all, true).await;
        assert_eq!(actions(&would), ["CONFIG_ACTION_CREATED"].into());
        let created = apply(wire, &all, false).await;
        assert_eq!(actions(&created), ["CONFIG_ACTION_CREATED"].into());
        let same = apply(wire, &all, true).await;
        assert_eq!(
            actions(&same),
            ["CONFIG_ACTION_UNCHANGED"].into(),
            "{same:#?}"
        );

        // The response equals the request, and can be sent again.
        let mut read = Vec::new();
        for (kind, draft) in &documents {
            let name = draft["name"].as_str().unwrap();
            let mut answer = read_resource(wire, kind, name).await;
            assert_stored(draft, &answer, "", name);
            answer.as_object_mut().unwrap().remove("etag");
            read.push((*kind, answer));
        }
        let again = apply(wire, &wrap_documents(&read), true).await;
        assert_eq!(
            actions(&again),
            ["CONFIG_ACTION_UNCHANGED"].into(),
            "{again:#?}"
        );

        // A dry run detects a change of any field.
        for (kind, draft) in &documents {
            let name = draft["name"].as_str().unwrap();
            for (path, value) in edits(draft, "", name) {
                let mut edited = draft.clone();
                *edited.pointer_mut(&path).unwrap() = value.clone();
                let changes = apply(wire, &[json!({*kind: edited})], true).await;
                assert_eq!(
                    changes[0]["action"], "CONFIG_ACTION_UPDATED",
                    "{name}{path}"
                );
                let shown = |side: &str| changes[0][side][kind].pointer(&path).cloned();
                // Unset flags are omitted.
                let after = shown("after").unwrap_or(json!(false));
                assert_eq!(after, value, "{name}{path}");
                assert_ne!(shown("before"), Some(value), "{name}{path}");
            }
            for language in ["MUSTACHE", ""] {
                if draft["templateLanguage"].is_null() {
                    continue;
                }
                let mut edited = draft.clone();
                edited["templateLanguage"] = json!(language);
                if language.is_empty() {
                    edited.as_object_mut().unwrap().remove("templateLanguage");
                }
                // In Mustache, some expressions of a Jinja template are invalid.
                let request = json!({"documents": [{*kind: edited}], "validateOnly": true});
                match wire.call("ConfigService/ApplyConfig", &request).await {
                    Ok(applied) => assert_eq!(
                        applied["changes"][0]["action"], "CONFIG_ACTION_UPDATED",
                        "{name}: {applied}"
                    ),
                    Err(refusal) => assert!(
                        refusal.message.contains("line 1, column"),
                        "{name}: {refusal:?}"
                    ),
                }
            }
        }
    }
}

#[tokio::test]
async fn exported_configuration_applies_unchanged_elsewhere() {
    let world = World::start();
    let file = world.folder().join("all.yaml");
    let lines = documents().into_iter().map(|(kind, mut draft)| {
        draft["kind"] = json!(kind);
        draft.to_string()
    });
    // JSON is valid YAML.
    fs::write(&file, lines.collect::<Vec<_>>().join("\n---\n")).unwrap();
    let run = |world: &World, arguments: &[&str]| {
        let output = process::run(world.command(arguments));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let out = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), out, said)
    };
    let file = file.to_str().unwrap();
    let (code, _, said) = run(&world, &["apply", "-f", file]);
    assert_eq!(code, Some(0), "{said}");
    let (code, differs, _) = run(&world, &["diff", "-f", file]);
    assert_eq!(code, Some(0), "{differs}");
    let (_, exported, _) = run(&world, &["export"]);
    assert!(!exported.contains("canary"), "{exported}");

    // Every secret that the export omits is supplied by a variable.
    let other = World::start();
    let copy = other.folder().join("copy.yaml");
    fs::write(&copy, &exported).unwrap();
    let copy = copy.to_str().unwrap();
    let apply = |arguments: &[&str]| {
        let mut command = other.command(arguments);
        let variables = exported.split("fromEnv: ").skip(1);
        for variable in variables.map(|rest| rest.split(['}', '\n']).next().unwrap().trim()) {
            let secret = match variable {
                it if it.contains("ROUTING") => "0123456789abcdef0123456789canary",
                it if it.contains("TOKEN") => "xoxb-canary",
                _ => "canary-secret",
            };
            command.env(variable, secret);
        }
        process::run(command)
    };
    let applied = apply(&["apply", "-f", copy]);
    let said = String::from_utf8_lossy(&applied.stderr);
    assert!(applied.status.success(), "{said}\n{exported}");
    let same = apply(&["diff", "-f", copy]);
    let differs = String::from_utf8_lossy(&same.stdout);
    assert!(same.status.success(), "{differs}");
    let (_, again, _) = run(&other, &["export"]);
    assert_eq!(again, exported);
    let (code, differs, _) = run(&other, &["diff", "-f", file]);
    assert_eq!(code, Some(0), "{differs}");
}

#[tokio::test]
async fn document_kind_is_case_insensitive() {
    let world = World::start();
    let file = world.folder().join("kinds.yaml");
    let documents = [
        "kind: Trigger\nname: a\ntype: {event: {filter: name=disk}}\n",
        "kind: DESTINATION\nname: b\ntype: {webhook: {url: \"https://hook.example/\"}}\n",
        "kind: rule\nname: c\ntriggerNames: [a]\ndestinationNames: [b]\n",
        "kind: IntakeMapping\nname: d\nevent: {name: x, dimensions: {host: \"{{h}}\"}}\n",
    ];
    fs::write(&file, documents.join("---\n")).unwrap();
    let applied = process::run(world.command(&["apply", "-f", file.to_str().unwrap()]));
    let said = String::from_utf8_lossy(&applied.stderr);
    assert!(applied.status.success(), "{said}");
    let rest = world.rest();
    for path in [
        "notification/triggers/a",
        "notification/destinations/b",
        "notification/rules/c",
        "intake/mappings/d",
    ] {
        rest.get(&format!("/v1/{path}")).await.ok();
    }
    fs::write(&file, "kind: Dest\nname: b\n").unwrap();
    let refused = process::run(world.command(&["apply", "-f", file.to_str().unwrap()]));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("unknown kind `Dest`"), "{said}");
}
