//! Tests that planted secrets appear in no response, log line or file.

use std::{collections::BTreeSet, path::Path};

use bellwether_tests::{
    eventually::eventually,
    process,
    receiver::Receiver,
    rest::Rest,
    tls::{Authority, Identity},
    wire,
    world::World,
};
use http::Method;
use serde_json::{Value, json};

use crate::samples;

/// Planted secrets: in a header, in a signing secret, and in secret fields of other destination
/// types.
const HEADER: &str = "Bearer canary-header-7c1e";
const SIGNING: &str = "whsec_Y2FuYXJ5LXNpZ25pbmctc2VjcmV0LTAxMjM0NTY3";
const TOKEN: &str = "xoxb-canary-token-55d0";
const ROUTING: &str = "canaryroutingkey0000000000000000";
const PATH: &str = "canary-in-the-path-90aa";
const PASSWORD: &str = "canary-password-f3b2";
const BASIC: &str = "canary-password-19ab";
const BEARER: &str = "canary-bearer-44f2";
const AWS: &str = "canary-aws-5d16";
const CLIENT: &str = "canary-client-8d03";
const TEAMS: &str = "canary-in-teams-21fe";
const REFRESH: &str = "canary-refresh-6b90";
const MAPPED: &str = "canary-mapping-c7a4";
/// Planted secrets in the settings of the mail server and of the metrics.
const MAIL: &str = "canary-mail-0b5d";
const METRICS: &str = "canary-metrics-2e81";
const TELLING: [&[&str]; 8] = [
    &["config", "check"],
    &["export"],
    &["get", "destinations"],
    &["doctor"],
    &["audit"],
    &["check"],
    &["status"],
    &["--snapshot", "destinations", "--size", "200x50"],
];

fn destinations(receiver: &Receiver, identity: &Identity) -> Vec<Value> {
    let mut webhook = samples::webhook("hook", &receiver.url("/hook"));
    webhook["type"]["webhook"]["headers"] = json!({"authorization": HEADER});
    webhook["type"]["webhook"]["signingSecret"] = json!(SIGNING);
    let mut hidden = samples::webhook("hidden", "");
    hidden["type"]["webhook"]["url"] = json!("");
    hidden["type"]["webhook"]["secretUrl"] = json!(receiver.url(&format!("/{PATH}")));
    let secured = |name: &str, auth: Value| {
        let mut webhook = samples::webhook(name, &receiver.url(&format!("/{name}")));
        webhook["type"]["webhook"]["auth"] = auth;
        webhook
    };
    let token_url = receiver.url("/token");
    let Identity {
        certificate, key, ..
    } = identity;
    vec![
        secured(
            "mtls",
            json!({"mtls": {"certificate": certificate, "privateKey": key}}),
        ),
        webhook,
        hidden,
        secured(
            "basic",
            json!({"basic": {"username": "ada", "password": BASIC}}),
        ),
        secured("bearer", json!({"bearer": {"token": BEARER}})),
        secured(
            "aws",
            json!({"aws": {"accessKeyId": "AK", "secretAccessKey": AWS, "region": "r", "service": "s"}}),
        ),
        secured(
            "oauth",
            json!({"oauth2": {"tokenUrl": token_url, "clientId": "a", "clientSecret": CLIENT}}),
        ),
        json!({"name": "desk", "type": {"servicenow": {
            "instanceUrl": receiver.url(""), "clientId": "bellwether", "clientSecret": PASSWORD,
            "refreshToken": REFRESH,
        }}}),
        json!({"name": "team", "type": {"msteams": {"url": receiver.url(&format!("/{TEAMS}"))}}}),
        json!({"name": "chat", "type": {"slack": {"channel": "#ops", "token": TOKEN}}}),
        json!({"name": "page", "type": {"pagerduty": {"routingKey": ROUTING}}}),
    ]
}

fn mapping() -> Value {
    json!({"name": "tool", "event": {"name": "{{name}}", "dimensions": {"host": "{{host}}"}},
        "signature": {"scheme": "HUB_SHA256", "secret": MAPPED}})
}

fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                found.insert(name.clone());
                fields(member, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn canary_covers_every_secret_field() {
    let receiver = Receiver::start().await;
    let mut planted = BTreeSet::new();
    for value in destinations(&receiver, &Authority::new().issue()) {
        fields(&value, &mut planted);
    }
    fields(&mapping(), &mut planted);
    let secret: BTreeSet<_> = wire::secret_fields().collect();
    assert!(secret.len() >= 10, "{secret:?}");
    let forgotten: Vec<_> = secret.difference(&planted).collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
}

#[tokio::test]
async fn secrets_never_leak_beyond_their_receivers() {
    let receiver = Receiver::start().await;
    let world = World::with_settings(&format!(
        "log_filter = \"trace\"\n[smtp]\nhost = \"127.0.0.1\"\nfrom = \"a@example.net\"\nuser = \"a\"\n\
         password = {MAIL:?}\n[metrics]\nkey = {METRICS:?}\n\
         [providers]\nslack = \"{0}\"\npagerduty = \"{0}\"\n",
        receiver.url("")
    ));
    let rest = world.rest();
    let mut answers = Vec::new();
    let identity = Authority::new().issue();
    for destination in destinations(&receiver, &identity) {
        answers.extend(create_and_test(&rest, &destination).await);
    }
    answers.extend(mapped(&rest).await);
    rest.post(
        "/v1/notification/triggers",
        &samples::trigger("disk", "disk"),
    )
    .await
    .ok();
    let rule = samples::rule("disks", "disk", "hook", "");
    answers.push(rest.post("/v1/notification/rules", &rule).await.text());
    answers.push(
        rest.post("/v1/notification/rules:preview", &rule)
            .await
            .text(),
    );
    let event = samples::event("full", "h", "SEVERITY_ERROR", "disk");
    rest.post("/v1/data-receiver/events", &samples::events(&[event]))
        .await
        .ok();
    answers.extend(reads(&rest).await);

    let sent = receiver.received();
    assert!(sent.iter().any(|request| {
        request
            .headers
            .get("authorization")
            .is_some_and(|value| value == HEADER)
    }));
    let answers = answers.join("\n");
    assert!(answers.contains("********"), "{answers}");
    let answers = [answers, command_output(&world)].concat();
    let backup = tempfile::tempdir().unwrap();
    let folder = backup.path().join("copy");
    let folder = folder.to_str().unwrap();
    let output = process::run(world.command(&["backup", "--without-keys", folder]));
    assert!(output.status.success(), "{output:?}");
    let log = world.service().log();
    let mut secrets = vec![
        HEADER, SIGNING, TOKEN, ROUTING, PATH, PASSWORD, BASIC, BEARER, AWS, CLIENT, TEAMS,
        REFRESH, MAPPED, MAIL, METRICS,
    ];
    // A line of the private key, and credentials as encoded in an `authorization` header.
    secrets.push(identity.key.lines().nth(1).expect("a key has lines"));
    secrets.push("YWRhOmNhbmFyeS1wYXNzd29yZC0xOWFi");
    let admin_key = world.admin_key();
    for secret in &secrets {
        assert!(!answers.contains(secret), "{secret} is in a response");
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    assert!(
        !answers.contains(&admin_key) && !log.contains(&admin_key),
        "the admin's key is shown"
    );
    secrets.push(&admin_key);
    assert_clean(&world.data_dir(), &secrets);
    assert_clean(backup.path(), &secrets);
}

/// Creates a destination, and tests it both as a stored destination and as a draft.
async fn create_and_test(rest: &Rest, destination: &Value) -> Vec<String> {
    let stored = json!({"name": destination["name"]});
    let all = "/v1/notification/destinations";
    let test = "/v1/notification/destinations:test";
    let calls = [
        (all, destination),
        (test, &stored),
        (test, destination),
        (all, destination),
    ];
    let mut answers = Vec::new();
    for (path, body) in calls {
        answers.push(rest.post(path, body).await.text());
    }
    answers
}

/// Returns the responses to calls about a mapping with a secret, and to calls with the metrics key.
async fn mapped(rest: &Rest) -> Vec<String> {
    let sent = json!({"name": "x", "host": "h"});
    let trial = json!({"mapping": mapping(), "body": sent.to_string()});
    let mut answers = Vec::new();
    for (path, body) in [
        ("/v1/intake/mappings", &mapping()),
        ("/v1/intake/mappings:test", &trial),
        ("/v1/intake/webhooks/tool", &sent),
    ] {
        answers.push(rest.post(path, body).await.text());
    }
    let metrics = rest.with_key(Some(METRICS));
    for (rest, path) in [(rest, "/v1/intake/mappings/tool"), (&metrics, "/metrics")] {
        let answer = rest.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answers.push(answer.text());
    }
    answers
}

fn command_output(world: &World) -> String {
    let reported = TELLING.map(|arguments| {
        let mut command = world.command(arguments);
        command
            .arg("--config")
            .arg(world.folder().join("bellwether.toml"));
        let output = process::run(command);
        let text = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        assert!(!text[0].is_empty(), "{arguments:?}: {text:?}");
        text.concat()
    });
    reported.concat()
}

/// Returns all responses of reads, including the transcripts of deliveries.
async fn reads(rest: &Rest) -> Vec<String> {
    let ids = eventually("the deliveries to end", async || {
        let list = rest.get("/v1/notification/deliveries").await.ok();
        let list = list["deliveries"].as_array()?.clone();
        let ended = list.iter().all(|delivery| delivery["endTime"].is_string());
        ended.then(|| {
            list.iter()
                .map(|delivery| delivery["id"].clone())
                .collect::<Vec<_>>()
        })
    })
    .await;
    let mut paths = vec![
        "/v1/notification/destinations".to_owned(),
        "/v1/notification/rules".to_owned(),
        "/v1/notification/deliveries".to_owned(),
        "/v1/audit".to_owned(),
        "/metrics".to_owned(),
    ];
    paths.extend(
        ["hook", "hidden", "desk", "chat", "page", "team"]
            .map(|name| format!("/v1/notification/destinations/{name}")),
    );
    let delivery = |id: &Value| {
        format!(
            "/v1/notification/deliveries/{}",
            id.as_str().expect("an id")
        )
    };
    paths.extend(ids.iter().map(delivery));
    let mut answers = Vec::new();
    for path in paths {
        answers.push(rest.send(Method::GET, &path, "").await.text());
    }
    answers
}

fn assert_clean(folder: &Path, secrets: &[&str]) {
    for entry in std::fs::read_dir(folder).expect("the data folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            assert_clean(&path, secrets);
        } else if path.file_name().is_some_and(|name| name != "admin.key") {
            let bytes = std::fs::read(&path).expect("a file");
            for secret in secrets {
                let found = bytes
                    .windows(secret.len())
                    .any(|window| window == secret.as_bytes());
                assert!(!found, "{secret} is in {}", path.display());
            }
        }
    }
}
