//! Resources: masks for which no secret is stored, similar names, stored bodies of responses.

use bellwether_tests::{
    eventually::eventually,
    receiver::{Receiver, Reply},
    world::World,
};
use serde_json::{Value, json};
use tonic::Code;

use super::{event, send, stored, with};

const MASK: &str = "********";
const STORED_BYTES: usize = 16 * 1024;

pub(super) const KINDS: [&str; 3] = ["trigger", "destination", "rule"];

pub(super) fn definition(kind: &str, name: &str) -> Value {
    let clause = json!({"equals": {"field": "name", "stringVal": "x"}});
    match kind {
        "trigger" => json!({"name": name, "type": {"event": {"query": {"clause": clause}}}}),
        "destination" => json!({"name": name, "type": {"webhook": {"url": "http://127.0.0.1:9/"}}}),
        _ => json!({"name": name}),
    }
}

pub(super) fn method(verb: &str, kind: &str) -> String {
    let (first, rest) = kind.split_at(1);
    let kind = first.to_uppercase() + rest;
    format!("{kind}Service/{verb}{kind}")
}

#[tokio::test]
async fn secret_mask_is_rejected_when_no_secret_is_stored() {
    let world = World::start();
    for wire in world.wires() {
        let url = "http://127.0.0.1:9/";
        let servicenow = json!({
            "instanceUrl": "http://127.0.0.1:9", "clientId": "c", "clientSecret": "s",
        });
        for (at, (kind, without, secret)) in [
            (
                "webhook",
                json!({"url": url}),
                json!({"signingSecret": MASK}),
            ),
            (
                "webhook",
                json!({"url": url}),
                json!({"headers": {"authorization": MASK}}),
            ),
            (
                "webhook",
                json!({"url": url}),
                json!({"headers": {"X-Api-Key": MASK}}),
            ),
            ("slack", json!({"channel": "ops"}), json!({"token": MASK})),
            ("msteams", json!({}), json!({"url": MASK})),
            ("pagerduty", json!({}), json!({"routingKey": MASK})),
            (
                "servicenow",
                servicenow.clone(),
                json!({"clientSecret": MASK}),
            ),
            ("servicenow", servicenow, json!({"refreshToken": MASK})),
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("{}-{at}", wire.name());
            let masked = with(&without, &secret);
            let destination = |inside: &Value| json!({"name": name, "type": {kind: inside}});
            let field = secret.as_object().and_then(|secret| secret.keys().next());
            let field = field.expect("a field").as_str();

            let created = json!({"destination": destination(&masked)});
            let tried = destination(&masked);
            for (verb, request) in [
                ("DestinationService/CreateDestination", created.clone()),
                (
                    "DestinationService/CreateDestination",
                    with(&created, &json!({"validateOnly": true})),
                ),
                ("DestinationService/TestDestination", tried),
            ] {
                let refusal = wire.refused(verb, &request).await;
                assert_eq!(
                    refusal.code,
                    Code::InvalidArgument,
                    "{verb} {kind}: {refusal:?}"
                );
                assert!(
                    refusal.message.contains(field),
                    "{verb} {kind}: {refusal:?}"
                );
            }

            // The mask is also rejected when a resource without this secret is updated.
            if ["signingSecret", "headers", "refreshToken"].contains(&field) {
                let plain = json!({"destination": destination(&without)});
                wire.ok("DestinationService/CreateDestination", &plain)
                    .await;
                let update = "DestinationService/UpdateDestination";
                let refusal = wire.refused(update, &created).await;
                assert_eq!(refusal.code, Code::InvalidArgument, "{kind}: {refusal:?}");
                assert!(refusal.message.contains(field), "{kind}: {refusal:?}");
                let got = wire
                    .ok("DestinationService/GetDestination", &json!({"name": name}))
                    .await;
                let got = got.to_string();
                assert!(!got.contains(MASK) || field == "refreshToken", "{got}");
            }
        }
    }
}

#[tokio::test]
async fn names_differing_in_case_or_invisible_characters_are_rejected() {
    let world = World::start();
    for wire in world.wires() {
        for kind in KINDS {
            for name in [".", "..", "..."] {
                let request = json!({kind: definition(kind, name)});
                let refusal = wire.refused(&method("Create", kind), &request).await;
                assert_eq!(
                    refusal.code,
                    Code::InvalidArgument,
                    "{kind} {name}: {refusal:?}"
                );
            }
            for (case, first, second) in [
                ("letter case", "Disk Full", "disk full"),
                ("letter case of other scripts", "ДИСК", "диск"),
                ("letter case that folds to two", "straße", "STRASSE"),
                ("composed and not", "caf\u{e9}", "cafe\u{301}"),
                ("with a joiner", "क्ष", "क्\u{200d}ष"),
            ] {
                // Use different names for REST and gRPC, with endings that are not similar.
                let [first, second] = [first, second].map(|name| format!("{name} {}", wire.name()));
                let create = method("Create", kind);
                wire.ok(&create, &json!({kind: definition(kind, &first)}))
                    .await;
                let refusal = wire
                    .refused(&create, &json!({kind: definition(kind, &second)}))
                    .await;
                let case = format!("{} {kind}, {case}: {refusal:?}", wire.name());
                assert_eq!(refusal.code, Code::AlreadyExists, "{case}");
                assert!(refusal.message.contains(&first), "{case}");

                // The resource can still be used by its exact name; deleting it frees the name.
                let get = method("Get", kind);
                wire.ok(&get, &json!({"name": first})).await;
                wire.ok(&method("Delete", kind), &json!({"name": first}))
                    .await;
                wire.ok(&create, &json!({kind: definition(kind, &second)}))
                    .await;
                wire.ok(&method("Delete", kind), &json!({"name": second}))
                    .await;
            }
            for (case, name) in [
                ("Hindi", "सर्वर-डिस्क"),
                ("Hindi with a joiner", "क्\u{200d}ष डिस्क"),
                ("Hindi with a non-joiner", "क्\u{200c}ष डिस्क"),
                ("Thai", "เซิร์ฟเวอร์"),
                ("Persian with a non-joiner", "می\u{200c}خواهم"),
                ("Tamil", "வட்டு நிரம்பியது"),
                ("Vietnamese, not composed", "o\u{302}\u{309} đĩa"),
                ("Latin", "größer_9.x-y"),
                ("Chinese", "磁盘已满"),
                ("Latin and Cyrillic", "ops-Анна-CPUзагрузка"),
            ] {
                let name = format!("{name} {}", wire.name());
                let created = wire
                    .ok(
                        &method("Create", kind),
                        &json!({kind: definition(kind, &name)}),
                    )
                    .await;
                assert_eq!(created[kind]["name"], name, "{kind}, {case}");
                let got = wire.ok(&method("Get", kind), &json!({"name": name})).await;
                assert_eq!(got[kind]["name"], name, "{kind}, {case}");
                wire.ok(&method("Delete", kind), &json!({"name": name}))
                    .await;
            }
            for (case, name) in [
                ("a joiner where no script needs one", "disk\u{200d}full"),
                ("a space of no width", "disk\u{200b}full"),
                ("a letter that is not seen", "\u{3164}"),
                ("a letter that is not seen within a word", "disk\u{3164}"),
                ("a half-width letter that is not seen", "disk\u{ffa0}full"),
                ("a joiner of graphemes", "disk\u{34f}full"),
                ("a selector of Mongolian letters", "\u{1820}\u{180b}"),
                ("a control of shorthand", "disk\u{1bca0}full"),
                ("a control of music", "disk\u{1d173}full"),
                ("a selector of variants", "disk\u{e0101}"),
                ("another writing direction", "disk\u{202e}lluf"),
                ("a mark on nothing", "\u{301}disk"),
                ("a control character", "disk\u{7}"),
                ("a slash", "disk/full"),
                ("a space at the end", "disk "),
                ("nothing", ""),
            ] {
                let refusal = wire
                    .refused(
                        &method("Create", kind),
                        &json!({kind: definition(kind, name)}),
                    )
                    .await;
                assert_eq!(
                    refusal.code,
                    Code::InvalidArgument,
                    "{kind}, {case}: {refusal:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn response_bodies_are_stored_up_to_16_kib() {
    let world = World::start();
    let receiver = Receiver::start().await;
    for wire in world.wires() {
        for (length, status) in [
            (900, 200),
            (5_000, 200),
            (12_000, 422),
            (STORED_BYTES, 200),
            (40_000, 422),
        ] {
            let name = format!("{} {length}", wire.name());
            let body: String = ('a'..='z').cycle().take(length).collect();
            receiver.set_default_reply(Reply {
                body: body.clone(),
                ..Reply::status(status)
            });
            let whole = length <= STORED_BYTES;
            let check_body = |response: &Value| {
                let text = response["body"].as_str().expect("a body").to_owned();
                if whole {
                    assert_eq!(text, body, "{name}");
                } else {
                    // A truncation notice may be appended.
                    assert!(text.len() >= STORED_BYTES - 64, "{name}: {}", text.len());
                    assert!(text.len() <= STORED_BYTES + 64, "{name}: {}", text.len());
                    assert!(text.starts_with(&body[..STORED_BYTES - 64]), "{name}");
                }
            };

            let destination = json!({
                "name": name, "type": {"webhook": {"url": receiver.url("/")}},
                "delivery": {"maxAttempts": 1},
            });
            wire.ok(
                "DestinationService/CreateDestination",
                &json!({"destination": destination}),
            )
            .await;
            let tested = wire
                .ok("DestinationService/TestDestination", &json!({"name": name}))
                .await;
            check_body(&tested["response"]);

            let clause = json!({"equals": {"field": "dimensions.host", "stringVal": name}});
            let trigger = json!({"name": name, "type": {"event": {"query": {"clause": clause}}}});
            wire.ok("TriggerService/CreateTrigger", &json!({"trigger": trigger}))
                .await;
            let rule = json!({
                "name": name, "enabled": true, "triggerNames": [name], "destinationNames": [name],
            });
            wire.ok("RuleService/CreateRule", &json!({"rule": rule}))
                .await;
            send(&wire, &[event(&name)]).await;
            let id = stored(&wire, &name).await["id"].clone();
            let response = eventually("an attempt", async || {
                let list = wire
                    .ok("DeliveryService/ListDeliveries", &json!({"eventId": id}))
                    .await;
                let id = list["deliveries"][0]["id"].clone();
                let got = wire
                    .ok("DeliveryService/GetDelivery", &json!({"id": id}))
                    .await;
                let response = got["delivery"]["attempts"][0]["response"].clone();
                response.is_object().then_some(response)
            })
            .await;
            check_body(&response);
        }
    }
}
