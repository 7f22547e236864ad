//! Tests of the mappings in `tests/examples/mappings` with the webhooks of other services, and of
//! the REST API of mappings.

mod confirmation;

use std::{fmt::Write as _, fs};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bellwether_tests::{process, rest::Rest, tree, world::World};
use hmac::{Hmac, Mac};
use http::Method;
use serde_json::{Value, json};
use sha2::Sha256;

const MAPPINGS: &str = "/v1/intake/mappings";
const SECRET: &str = "canary-mapping-51c0";

fn example(name: &str) -> Value {
    let path = tree::root().join(format!("tests/examples/mappings/{name}.json"));
    let text = fs::read_to_string(path).unwrap().replace("SECRET", SECRET);
    serde_json::from_str(&text).unwrap()
}

/// Returns the names of all shipped mappings, in order.
fn shipped() -> Vec<String> {
    let folder = fs::read_dir(tree::root().join("tests/examples/mappings")).unwrap();
    let files = folder.map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = files
        .filter_map(|it| it.strip_suffix(".json").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() >= 10, "{names:?}");
    names
}

/// A request in the format that the service of a mapping has published, and the expected event.
struct Request {
    headers: Vec<(String, String)>,
    body: String,
    expected: Value,
}

/// Returns recorded requests from the service of a mapping. `part` selects those about one event,
/// from its opening to its closing, or others.
fn requests_of(name: &str, part: &str) -> Vec<Request> {
    let path = tree::root().join(format!("tests/e2e/mappings/{name}.json"));
    let mut recorded: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let recorded: Vec<Value> = serde_json::from_value(recorded[part].take()).unwrap();
    let recorded = recorded.into_iter().map(|request| {
        let headers = request["headers"].as_object().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Request {
            headers: headers
                .map(|(name, value)| (name.clone(), text(value)))
                .collect(),
            body: match &request["body"] {
                Value::String(form) => form.clone(),
                body => body.to_string(),
            },
            expected: request["expect"].clone(),
        }
    });
    recorded.collect()
}

fn requests(name: &str) -> Vec<(Vec<(String, String)>, String)> {
    let journey = requests_of(name, "journey").into_iter();
    journey.map(|it| (it.headers, it.body)).collect()
}

fn hmac(body: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

/// Sends a request as the service does, signed if the service signs its requests.
async fn send(
    rest: &Rest,
    name: &str,
    headers: &[(String, String)],
    body: &str,
) -> bellwether_tests::rest::Answer {
    let signature = match name {
        "github" => Some((
            "x-hub-signature-256",
            format!("sha256={}", hex(&hmac(body))),
        )),
        "sentry" => Some(("sentry-hook-signature", hex(&hmac(body)))),
        _ => None,
    };
    let mut all: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    if let Some((name, value)) = &signature {
        all.push((name, value));
    }
    let path = format!("/v1/intake/webhooks/{name}");
    let sent = rest
        .try_send(Method::POST, &path, &all, body.to_owned())
        .await;
    sent.unwrap()
}

async fn newest(rest: &Rest, kind: &str) -> Vec<Value> {
    let clause = json!({"equals": {"field": "type", "stringVal": kind}});
    let query = json!({"query": {"clause": clause}});
    let found = rest.post("/v1/events:search", &query).await.ok();
    found["results"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn shipped_mappings_open_and_close_events() {
    let world = World::start();
    let rest = world.rest();
    let (open, closed) = ("STATUS_OPEN", "STATUS_CLOSED");
    let (error, critical, info) = ("SEVERITY_ERROR", "SEVERITY_CRITICAL", "SEVERITY_INFO");
    let table = [
        (
            "aws-sns",
            error,
            "cpu-high: Threshold Crossed: 1 datapoint (12.0) was not greater than the threshold (80.0).",
            false,
        ),
        (
            "azure-event-grid",
            info,
            "Microsoft.ResourceNotifications.HealthResources.AvailabilityStatusChanged: \
             /subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/shop/providers/Microsoft.Storage/storageAccounts/shop",
            false,
        ),
        ("azure-monitor", error, "vm-cpu on web-1", false),
        (
            "google-cloud-monitoring",
            critical,
            "CPU of the shop: CPU utilization for shop-1 is above the threshold of 0.6 with a value of 0.9.",
            false,
        ),
        (
            "datadog",
            error,
            "[Recovered] CPU is high on host:db-1",
            false,
        ),
        ("github", error, "Build on main: success", false),
        ("sentry", critical, "TypeError: cart is undefined", true),
        ("statuspage", critical, "Virginia Is Down", false),
        ("uptime-kuma", error, "[Shop] [\u{2705} Up] 200 - OK", false),
        ("zabbix", error, "Disk space is low on /var", true),
    ];
    for (name, severity, summary, is_acknowledged) in table {
        rest.post(MAPPINGS, &example(name)).await.ok();
        let requests = requests(name);
        let last = requests.len() - 1;
        let mut severities = Vec::new();
        for (at, (headers, body)) in requests.iter().enumerate() {
            let answer = send(&rest, name, headers, body).await;
            assert_eq!(answer.status, 200, "{name} {at}: {}", answer.text());
            let events = newest(&rest, name).await;
            assert_eq!(events.len(), 1, "{name} {at}: {events:#?}");
            let occurrence = &events[0]["occurrences"][0];
            let status = if at == last { closed } else { open };
            assert_eq!(occurrence["status"], status, "{name} {at}");
            assert_eq!(occurrence["number"], 1, "{name} {at}");
            severities.push(occurrence["severity"].clone());
            if at == last {
                assert_eq!(occurrence["summary"], summary, "{name}");
                assert_eq!(occurrence["acknowledged"], is_acknowledged, "{name}");
                assert!(occurrence["metadataFields"]["data"].is_object(), "{name}");
            }
        }
        assert_eq!(severities[0], severity, "{name}");
    }
}

#[tokio::test]
async fn published_documents_map_to_the_expected_events() {
    let world = World::start();
    let rest = world.rest();
    for name in shipped() {
        let mapping = example(&name);
        let journey = requests_of(&name, "journey").into_iter();
        let all = journey.chain(requests_of(&name, "others"));
        for (at, request) in all.enumerate() {
            let headers: Value = request.headers.into_iter().collect();
            let test = json!({"mapping": mapping, "body": request.body, "headers": headers});
            let shown = rest.post(&format!("{MAPPINGS}:test"), &test).await.ok();
            let expected = request.expected.as_object().unwrap();
            assert_eq!(shown["faults"], Value::Null, "{name} {at}: {shown:#}");
            if expected.contains_key("dropped") {
                assert_eq!(shown["droppedCount"], 1, "{name} {at}: {shown:#}");
                assert_eq!(shown["events"], Value::Null, "{name} {at}: {shown:#}");
                continue;
            }
            let event = &shown["events"][0];
            for (field, value) in expected {
                let found = match &event[field] {
                    Value::Null if field == "acknowledged" => &Value::Bool(false),
                    found => found,
                };
                assert_eq!(found, value, "{name} {at}: {field}");
            }
            if !expected.contains_key("status") {
                assert_eq!(event["status"], Value::Null, "{name} {at}: open");
            }
        }
    }
}

#[tokio::test]
async fn webhook_without_the_required_signature_is_rejected() {
    let world = World::start();
    let rest = world.rest();
    rest.post(MAPPINGS, &example("github")).await.ok();
    let (headers, body) = requests("github").remove(0);
    let path = "/v1/intake/webhooks/github";
    let unsigned = rest.send(Method::POST, path, body.clone()).await;
    assert_eq!(unsigned.status, 403, "{}", unsigned.text());
    assert!(
        unsigned.text().contains("x-hub-signature-256"),
        "{}",
        unsigned.text()
    );
    let wrong = [("x-hub-signature-256", "sha256=00")];
    let wrong = rest
        .try_send(Method::POST, path, &wrong, body.clone())
        .await;
    let wrong = wrong.unwrap();
    assert_eq!(wrong.status, 403, "{}", wrong.text());
    assert!(newest(&rest, "github").await.is_empty());
    // The secret is never returned, and an update that omits it does not remove it.
    let shown = rest.get(&format!("{MAPPINGS}/github")).await.text();
    assert!(
        shown.contains("********") && !shown.contains(SECRET),
        "{shown}"
    );
    let mut draft = example("github");
    draft["signature"].as_object_mut().unwrap().remove("secret");
    let update = rest.put(&format!("{MAPPINGS}/github"), &draft).await;
    update.ok();
    let signed = send(&rest, "github", &headers, &body).await;
    assert_eq!(signed.status, 200, "{}", signed.text());
    let audit = rest.get("/v1/audit").await.text();
    assert!(
        audit.contains("\"mapping\"") && !audit.contains(SECRET),
        "{audit}"
    );
}

#[test]
fn connect_page_has_three_steps_for_each_shipped_mapping() {
    let page = fs::read_to_string(tree::root().join("docs/connect.md")).unwrap();
    let mut shown: Vec<_> = page
        .split("\n## ")
        .skip(2)
        .map(|section| {
            let steps: Vec<_> = (1..5)
                .filter(|step| section.contains(&format!("\n{step}. ")))
                .collect();
            assert_eq!(steps, [1, 2, 3], "{section}");
            let (before, _) = section.split_once(".json`").unwrap();
            let name = before.rsplit('`').next().unwrap().to_owned();
            let path = format!("https://bellwether.example.com/v1/intake/webhooks/{name}/KEY");
            assert!(section.contains(&path), "{section}");
            name
        })
        .collect();
    shown.sort();
    assert_eq!(shown, shipped());
}

#[tokio::test]
async fn webhook_validation_handshakes_are_completed() {
    let world = World::start();
    let rest = world.rest();
    for name in ["aws-sns", "azure-event-grid"] {
        rest.post(MAPPINGS, &example(name)).await.ok();
    }
    let event = json!([{
        "id": "2d1781af-3a4c-4d7c-bd0c-e34b19da4e66",
        "topic": "/subscriptions/11111111-2222-3333-4444-555555555555",
        "subject": "",
        "eventType": "Microsoft.EventGrid.SubscriptionValidationEvent",
        "data": {
            "validationCode": "512d38b6-c7b8-40c8-89fe-f46f9e9622b6",
            "validationUrl": "https://rp-eastus2.eventgrid.azure.net:553/eventsubscriptions/a/validate?id=1",
        },
        "metadataVersion": "1",
        "dataVersion": "1",
    }]);
    let answer = rest
        .post("/v1/intake/webhooks/azure-event-grid", &event)
        .await;
    let code = json!({"validationResponse": "512d38b6-c7b8-40c8-89fe-f46f9e9622b6"});
    assert_eq!(answer.ok(), code);
    // Without the handshake, the mapping converts the confirmation to an event.
    let confirmation = |url: &str| {
        json!({
            "Type": "SubscriptionConfirmation",
            "MessageId": "165545c9-2a5c-472c-8df2-7ff2be2b3b1b",
            "Token": "canary-token-2336412f",
            "TopicArn": "arn:aws:sns:us-east-1:123456789012:alarms",
            "Message": "You have chosen to subscribe to the topic.",
            "SubscribeURL": url,
        })
    };
    let elsewhere = confirmation("https://127.0.0.1/?Action=ConfirmSubscription");
    let path = "/v1/intake/webhooks/aws-sns";
    let refused = rest.post(path, &elsewhere).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(
        refused.text().contains("SubscribeURL"),
        "{}",
        refused.text()
    );
    let shown = rest.get(&format!("{MAPPINGS}/aws-sns")).await.ok()["mapping"].take();
    let rejected = &shown["rejectedDocuments"][0];
    assert!(
        rejected["reason"]
            .as_str()
            .unwrap()
            .contains("SubscribeURL"),
        "{shown:#}"
    );
    assert!(!shown.to_string().contains("canary-token"), "{shown:#}");
    let end = json!({"Type": "UnsubscribeConfirmation", "Message": "m", "SubscribeURL": "x"});
    let ended = rest.post(path, &end).await;
    assert_eq!(ended.ok(), json!({"succeeded": 0, "dropped": 0}));
    assert!(newest(&rest, "aws-sns").await.is_empty());
    assert!(newest(&rest, "azure-event-grid").await.is_empty());
}

#[tokio::test]
async fn cloudevents_sender_can_request_permission() {
    let world = World::start();
    let rest = world.rest();
    rest.post(MAPPINGS, &example("azure-event-grid")).await.ok();
    let paths = [
        "/v1/intake/cloudevents",
        "/v1/intake/webhooks/azure-event-grid",
    ];
    for path in paths {
        let origin = [("webhook-request-origin", "eventemitter.example.com")];
        let request = rest
            .try_send(Method::OPTIONS, path, &origin, String::new())
            .await;
        let allowed = request.unwrap();
        assert_eq!(allowed.status, 200, "{path}: {}", allowed.text());
        let header = |name: &str| allowed.headers[name].to_str().unwrap();
        assert_eq!(header("webhook-allowed-origin"), "eventemitter.example.com");
        assert_eq!(header("webhook-allowed-rate"), "*");
        let without = rest.send(Method::OPTIONS, path, "").await;
        assert_eq!(without.status, 400, "{path}: {}", without.text());
        let anonymous = rest.with_key(None);
        let refused = anonymous
            .try_send(Method::OPTIONS, path, &origin, String::new())
            .await;
        let refused = refused.unwrap();
        assert_eq!(refused.status, 401, "{path}: {}", refused.text());
        assert!(refused.headers.get("webhook-allowed-origin").is_none());
    }
}

#[tokio::test]
async fn rejected_and_dropped_documents_are_shown_and_logged() {
    let world = World::start();
    let rest = world.rest();
    let mapping = json!({
        "name": "shop",
        "each": "orders",
        "drop": {"exists": {"field": "item.test"}},
        "event": {"name": "late", "dimensions": {"order": "{{item.id}}"}},
    });
    rest.post(MAPPINGS, &mapping).await.ok();
    let path = "/v1/intake/webhooks/shop";
    let orders = json!({"orders": [{"id": 1}, {"test": true, "password": SECRET}, {"x": 1}]});
    assert_eq!(rest.post(path, &orders).await.status, 400);
    assert_eq!(
        rest.send(Method::POST, path, format!("token={SECRET}"))
            .await
            .status,
        400
    );
    for at in 0..25 {
        let dropped = json!({"orders": [{"test": at}]});
        rest.post(path, &dropped).await.ok();
    }
    let shown = rest.get(&format!("{MAPPINGS}/shop")).await.ok()["mapping"].take();
    let rejected = shown["rejectedDocuments"].as_array().unwrap();
    assert_eq!(rejected.len(), 20);
    assert_eq!(rejected[0]["dropped"], true);
    assert_eq!(rejected[0]["document"], r#"{"test":24}"#);
    assert_eq!(rejected[0]["sizeBytes"], 11);
    assert!(rejected[0]["time"].is_string() && rejected[0]["client"].is_string());
    let listed = rest.get(MAPPINGS).await.text();
    assert!(!listed.contains("rejectedDocuments"), "{listed}");
    // The documents are stored separately for each key.
    let mut create = world.command(&["client", "create", "sender", "--role", "ingest"]);
    create.args(["--dialect", "webhooks"]);
    let created = process::run(create).stdout;
    let key = String::from_utf8(created).unwrap().trim().to_owned();
    let sender = rest.with_key(Some(&key));
    assert_eq!(sender.post(path, &orders).await.status, 400);
    let shown = rest.get(&format!("{MAPPINGS}/shop")).await.ok()["mapping"].take();
    let rejected = shown["rejectedDocuments"].as_array().unwrap();
    let of_sender: Vec<_> = rejected
        .iter()
        .filter(|it| it["client"] == "sender")
        .collect();
    assert_eq!((rejected.len(), of_sender.len()), (22, 2), "{shown:#}");
    assert!(
        of_sender[0]["reason"]
            .as_str()
            .unwrap()
            .contains("dimensions: is required")
    );
    assert_eq!(
        of_sender[1]["document"],
        r#"{"password":"********","test":true}"#
    );
    assert!(!shown.to_string().contains(SECRET), "{shown:#}");
    let log = fs::read_to_string(world.folder().join("log")).unwrap();
    let line = log
        .lines()
        .find(|it| it.contains("rejected a webhook document"))
        .unwrap();
    assert!(
        line.contains("shop") && line.contains("dimensions: is required"),
        "{line}"
    );
    assert!(!log.contains(SECRET));
}

fn signed_with(key: &[u8], body: &str, stamp: u64) -> Vec<(String, String)> {
    let code = |text: &str| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().to_vec()
    };
    let standard = STANDARD.encode(code(&format!("msg_1.{stamp}.{body}")));
    let headers = [
        (
            "x-hub-signature-256",
            format!("sha256={}", hex(&code(body))),
        ),
        ("sentry-hook-signature", hex(&code(body))),
        ("webhook-id", "msg_1".into()),
        ("webhook-timestamp", stamp.to_string()),
        ("webhook-signature", format!("v1,{standard}")),
    ];
    headers.map(|(name, value)| (name.into(), value)).into()
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one journey through all schemes")]
async fn secrets_are_bound_to_their_scheme_and_never_empty() {
    let world = World::start();
    let rest = world.rest();
    let standard = format!("whsec_{}", STANDARD.encode(SECRET));
    let schemes = [
        ("HUB_SHA256", SECRET),
        ("SENTRY", SECRET),
        ("STANDARD_WEBHOOKS", standard.as_str()),
    ];
    #[expect(
        clippy::disallowed_methods,
        reason = "the signature contains the real time"
    )]
    let now = std::time::SystemTime::now();
    let stamp = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let (_, body) = requests("github").remove(0);
    let forged = signed_with(b"", &body, stamp);
    let forged: Vec<_> = forged
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    for (from, secret) in schemes {
        let mut draft = example("github");
        draft["name"] = json!(from);
        draft["signature"] = json!({"scheme": from, "secret": secret});
        rest.post(MAPPINGS, &draft).await.ok();
        let one = format!("{MAPPINGS}/{from}");
        for (to, _) in schemes {
            for secret in [None, Some(""), Some("********")] {
                let mut edit = draft.clone();
                edit["signature"] = json!({"scheme": to});
                if let Some(secret) = secret {
                    edit["signature"]["secret"] = json!(secret);
                }
                let apply = |validate_only: bool| json!({"documents": [{"mapping": edit}], "validateOnly": validate_only});
                let answers = [
                    rest.put(&format!("{one}?validateOnly=true"), &edit).await,
                    rest.put(&one, &edit).await,
                    rest.post("/v1/config:apply", &apply(true)).await,
                    rest.post("/v1/config:apply", &apply(false)).await,
                ];
                for answer in answers {
                    let text = answer.text();
                    let expected = if from == to { 200 } else { 400 };
                    assert_eq!(answer.status, expected, "{from} {to} {secret:?}: {text}");
                    let names = from == to || text.contains("signature.secret");
                    assert!(names, "{from} {to}: {text}");
                }
                let path = format!("/v1/intake/webhooks/{from}");
                let answer = rest
                    .try_send(Method::POST, &path, &forged, body.clone())
                    .await;
                assert_eq!(answer.unwrap().status, 403, "{from} {to} {secret:?}");
            }
        }
        let key: &[u8] = SECRET.as_bytes();
        let signed = signed_with(key, &body, stamp);
        let signed: Vec<_> = signed
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        let path = format!("/v1/intake/webhooks/{from}");
        let answer = rest
            .try_send(Method::POST, &path, &signed, body.clone())
            .await;
        let answer = answer.unwrap();
        assert_eq!(answer.status, 200, "{from}: {}", answer.text());
    }
    for wrong in ["", "********", "whsec_", "whsec_?", SECRET] {
        let mut draft = example("github");
        draft["name"] = json!("wrong");
        draft["signature"] = json!({"scheme": "STANDARD_WEBHOOKS", "secret": wrong});
        let refused = rest.post(MAPPINGS, &draft).await;
        assert_eq!(refused.status, 400, "{wrong}: {}", refused.text());
    }
}

#[tokio::test]
async fn standard_webhook_with_an_old_timestamp_is_rejected() {
    let world = World::start();
    let rest = world.rest();
    let key = STANDARD.encode(SECRET);
    let mapping = json!({
        "name": "orders",
        "each": "data.lines",
        "drop": {"equals": {"field": "item.test", "boolVal": true}},
        "event": {
            "name": "{{type}}",
            "type": "orders",
            "dimensions": {"order": "{{item.id}}", "gone": "{{item.nothing}}"},
            "severity": {"from": "item.level", "map": {"7": "SEVERITY_CRITICAL"}},
        },
        "signature": {"scheme": "STANDARD_WEBHOOKS", "secret": format!("whsec_{key}")},
    });
    rest.post(MAPPINGS, &mapping).await.ok();
    let lines =
        json!([{"id": 1, "level": 7}, {"id": 2, "test": true}, {"id": 3, "level": "warning"}]);
    let body = json!({"type": "order.late", "data": {"lines": lines}}).to_string();
    let send = async |age_s: i64| {
        let stamp = (jiff::Timestamp::now().as_second() - age_s).to_string();
        let signature = STANDARD.encode(hmac(&format!("msg_1.{stamp}.{body}")));
        let signatures = format!("v1,AAAA v1,{signature}");
        let headers = [
            ("webhook-id", "msg_1"),
            ("webhook-timestamp", stamp.as_str()),
            ("webhook-signature", signatures.as_str()),
        ];
        let path = "/v1/intake/webhooks/orders";
        rest.try_send(Method::POST, path, &headers, body.clone())
            .await
            .unwrap()
    };
    let old = send(3_600).await;
    assert_eq!(old.status, 403, "{}", old.text());
    let accepted = send(0).await;
    assert_eq!(accepted.ok(), json!({"succeeded": 2, "dropped": 1}));
    let events = newest(&rest, "orders").await;
    let mut reported: Vec<_> = events
        .iter()
        .map(|event| {
            let severity = event["occurrences"][0]["severity"].as_str().unwrap();
            format!("{} {severity}", event["dimensions"])
        })
        .collect();
    reported.sort();
    assert_eq!(
        reported,
        [
            "{\"order\":\"1\"} SEVERITY_CRITICAL",
            "{\"order\":\"3\"} SEVERITY_WARNING"
        ]
    );
}

#[tokio::test]
async fn mapping_can_be_tested_and_invalid_fields_are_reported() {
    let world = World::start();
    let rest = world.rest();
    let (headers, body) = requests("statuspage").remove(0);
    let headers: Value = headers.into_iter().collect();
    let test = json!({"mapping": example("statuspage"), "body": body, "headers": headers});
    let shown = rest.post(&format!("{MAPPINGS}:test"), &test).await.ok();
    assert_eq!(shown["events"][0]["summary"], "Virginia Is Down");
    assert_eq!(shown["events"][0]["dimensions"]["incident"], "lbkhbwn21v5q");
    assert_eq!(shown["droppedCount"], 0);
    assert_eq!(
        shown["emptyTemplates"],
        json!(["event.dimensions[component] is empty in 1 of 1 events, first in events[0]"])
    );
    assert!(
        newest(&rest, "statuspage").await.is_empty(),
        "nothing is ingested"
    );

    let change = |change: fn(&mut Value)| {
        let mut draft = example("statuspage");
        change(&mut draft);
        draft
    };
    let table: [(Value, &str); 9] = [
        (change(|it| it["event"] = Value::Null), "\"event\""),
        (change(|it| it["event"]["name"] = "".into()), "event.name"),
        (
            change(|it| it["event"]["summary"] = "{{#x}}".into()),
            "event.summary",
        ),
        (
            change(|it| it["event"]["dimensions"] = json!({})),
            "event.dimensions",
        ),
        (
            change(|it| it["event"]["dimensions"] = json!({"name": "x"})),
            "event.dimensions[name]",
        ),
        (
            change(|it| it["event"]["closed"] = json!({"matches": {"field": "a", "value": "("}})),
            "event.closed.matches.value",
        ),
        (change(|it| it["drop"] = json!({})), "\"drop\""),
        (
            change(|it| it["signature"] = json!({"secret": "x"})),
            "signature.scheme",
        ),
        (
            change(|it| it["signature"] = json!({"scheme": "SENTRY", "secret": "********"})),
            "signature.secret",
        ),
    ];
    for (draft, field) in table {
        let answer = rest.post(MAPPINGS, &draft).await;
        assert_eq!(answer.status, 400, "{field}: {}", answer.text());
        assert!(answer.text().contains(field), "{field}: {}", answer.text());
    }
}

#[tokio::test]
async fn unmappable_bodies_never_succeed() {
    let world = World::start();
    let rest = world.rest();
    rest.post(MAPPINGS, &example("statuspage")).await.ok();
    assert_eq!(
        rest.post(MAPPINGS, &example("statuspage")).await.status,
        409
    );
    let wrong = [("", 400), ("[", 400), ("7", 400), ("{}", 200)];
    for (body, status) in wrong {
        let path = "/v1/intake/webhooks/statuspage";
        let answer = rest.send(Method::POST, path, body.to_owned()).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
    }
    // An invalid event is reported, and never results in success.
    let nameless = json!({"incident": {"id": "x"}, "page": {}}).to_string();
    let mut unnamed = example("statuspage");
    unnamed["event"]["name"] = "{{nothing}}".into();
    unnamed["event"]["type"] = "".into();
    rest.put(&format!("{MAPPINGS}/statuspage"), &unnamed)
        .await
        .ok();
    let path = "/v1/intake/webhooks/statuspage";
    let refused = rest.send(Method::POST, path, nameless).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert_eq!(
        rest.delete(&format!("{MAPPINGS}/statuspage")).await.status,
        200
    );
    let gone = rest.send(Method::POST, path, "{}").await;
    assert_eq!(gone.status, 404, "{}", gone.text());
}
