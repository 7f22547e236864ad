//! Stored secrets are only sent to the address for which they are stored, however a draft omits the
//! secret, and whichever operation sends it. All operations are checked against recording
//! receivers.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bellwether_tests::{
    receiver::{Received, Receiver, Reply},
    rest::{Answer, Rest},
    world::World,
};
use serde_json::{Value, json};

const DESTINATIONS: &str = "/v1/notification/destinations";
const CANARY: &str = "canary-bound-5e1f";
const TOKEN: &str = "canary-token-77ab";
const SIGNING: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
const MASK: &str = "********";
const HOOK: &str = "/hook/a?b=c";
const CLEAR: &str = "/clear/a?b=c";
const TOKENS: &str = "/tokens/a?b=c";

/// A stored secret: the destination, the secret's field, and the fields with the addresses to which
/// the secret is sent.
struct Case {
    kind: Value,
    secret: &'static str,
    field: &'static str,
    addresses: &'static [&'static str],
}

#[expect(clippy::too_many_lines, reason = "a table of destination types")]
fn cases(home: &Receiver) -> Vec<Case> {
    const URL: &[&str] = &["/webhook/url", "/webhook/onClear/url"];
    let webhook = |members: Value| {
        let mut webhook = json!({
            "url": home.url(HOOK),
            "onClear": {"url": home.url(CLEAR), "payload": "{}"},
        });
        let all = webhook.as_object_mut().unwrap();
        all.extend(members.as_object().unwrap().clone());
        json!({"webhook": webhook})
    };
    let case = |kind, secret, field, addresses| Case {
        kind,
        secret,
        field,
        addresses,
    };
    let servicenow = json!({"servicenow": {
        "instanceUrl": home.url(HOOK),
        "tokenUrl": home.url(TOKENS),
        "clientId": "bellwether",
        "clientSecret": CANARY,
        "refreshToken": CANARY,
    }});
    let instance = &["/servicenow/instanceUrl", "/servicenow/tokenUrl"];
    let secret_url = json!({"webhook": {
        "secretUrl": home.url(HOOK),
        "headers": {"x-team": CANARY},
    }});
    let oauth = json!({"auth": {"oauth2": {
        "tokenUrl": home.url(TOKENS),
        "clientId": "bellwether",
        "clientSecret": CANARY,
    }}});
    let authorization = json!({"headers": {"authorization": format!("Bearer {CANARY}")}});
    let basic = json!({"auth": {"basic": {"username": "ops", "password": CANARY}}});
    let bearer = json!({"auth": {"bearer": {"token": CANARY}}});
    vec![
        case(
            webhook(authorization),
            "/webhook/headers/authorization",
            "type.webhook.headers[authorization]",
            URL,
        ),
        case(
            webhook(json!({"headers": {"x-team": CANARY}})),
            "/webhook/headers/x-team",
            "type.webhook.headers[x-team]",
            URL,
        ),
        case(
            webhook(json!({"signingSecret": SIGNING})),
            "/webhook/signingSecret",
            "type.webhook.signingSecret",
            URL,
        ),
        case(
            webhook(basic),
            "/webhook/auth/basic/password",
            "type.webhook.auth.basic.password",
            URL,
        ),
        case(
            webhook(bearer),
            "/webhook/auth/bearer/token",
            "type.webhook.auth.bearer.token",
            URL,
        ),
        case(
            webhook(oauth),
            "/webhook/auth/oauth2/clientSecret",
            "type.webhook.auth.oauth2.clientSecret",
            &[
                "/webhook/url",
                "/webhook/onClear/url",
                "/webhook/auth/oauth2/tokenUrl",
            ],
        ),
        case(
            secret_url,
            "/webhook/headers/x-team",
            "type.webhook.headers[x-team]",
            &["/webhook/secretUrl", "/webhook/onClear"],
        ),
        case(
            servicenow.clone(),
            "/servicenow/clientSecret",
            "type.servicenow.clientSecret",
            instance,
        ),
        case(
            servicenow,
            "/servicenow/refreshToken",
            "type.servicenow.refreshToken",
            instance,
        ),
    ]
}

/// Returns copies of the address, each with one part changed.
fn elsewhere(address: &str, remote: &Receiver) -> Vec<String> {
    let (_, path) = address
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    vec![
        address.replacen("http://", "https://", 1),
        address.replacen("127.0.0.1", "127.0.0.2", 1),
        address.replacen("127.0.0.1", "localhost", 1),
        remote.url(&format!("/{path}")),
        format!("http://127.0.0.1/{path}"),
        address.replacen("/a?", "/b?", 1),
        address.replacen("/a?", "/a/?", 1),
        address.replacen("/a?", "/a/{{event.id}}?", 1),
        address.replacen("b=c", "b=d", 1),
        address.replacen("?b=c", "", 1),
    ]
}

fn ways(draft: &Value, secret: &str) -> Vec<Value> {
    let (parent, name) = secret.rsplit_once('/').unwrap();
    let with = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        let mut draft = draft.clone();
        let members = draft.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        members.remove(name);
        change(members);
        draft
    };
    let said = |name: &str, value: &str| {
        let (name, value) = (name.to_owned(), json!(value));
        with(&move |members| {
            members.insert(name.clone(), value.clone());
        })
    };
    let mut ways = vec![with(&|_| {}), said(name, ""), said(name, MASK)];
    if parent.ends_with("/headers") {
        let upper = name.to_ascii_uppercase();
        ways.extend([said(&upper, ""), said(&upper, MASK)]);
        let mut without = draft.clone();
        let webhook = without.pointer_mut("/webhook").unwrap();
        webhook.as_object_mut().unwrap().remove("headers");
        ways.push(without);
    }
    ways
}

/// Runs every operation that may send, store or only validate a draft.
async fn deeds(rest: &Rest, name: &str, kind: &Value) -> Vec<(&'static str, Answer)> {
    deeds_of(rest, &json!({"name": name, "type": kind})).await
}

async fn deeds_of(rest: &Rest, draft: &Value) -> Vec<(&'static str, Answer)> {
    let name = draft["name"].as_str().unwrap();
    let apply = |validate_only: bool| {
        let documents = json!([{"destination": draft}]);
        json!({"documents": documents, "validateOnly": validate_only})
    };
    let one = format!("{DESTINATIONS}/{name}");
    let (config, test) = ("/v1/config:apply", format!("{DESTINATIONS}:test"));
    vec![
        ("test", rest.post(&test, draft).await),
        ("PUT", rest.put(&one, draft).await),
        (
            "checked PUT",
            rest.put(&format!("{one}?validateOnly=true"), draft).await,
        ),
        ("apply", rest.post(config, &apply(false)).await),
        ("checked apply", rest.post(config, &apply(true)).await),
    ]
}

fn shows_secret(request: &Received) -> bool {
    let basic = STANDARD.encode(format!("ops:{CANARY}"));
    let text = format!("{:?} {}", request.headers, request.text());
    let is_signed = request.headers.contains_key("webhook-signature");
    is_signed || [CANARY, TOKEN, &basic].iter().any(|it| text.contains(it))
}

async fn recorder() -> Receiver {
    let token = json!({"access_token": TOKEN, "expires_in": 3600});
    Receiver::with_rule(move |_| Reply::json(&token)).await
}

#[tokio::test]
async fn stored_secrets_are_sent_only_to_their_own_address() {
    let world = World::start();
    let rest = world.rest();
    let (home, remote) = (recorder().await, recorder().await);
    let mut tried = 0;
    for (at, case) in cases(&home).into_iter().enumerate() {
        let name = format!("d{at}");
        let created = json!({"name": name, "type": case.kind});
        rest.post(DESTINATIONS, &created).await.ok();
        let one = format!("{DESTINATIONS}/{name}");
        let stored = rest.get(&one).await.ok();
        for address in case.addresses {
            let was = case.kind.pointer(address).and_then(Value::as_str);
            let from = was.map_or_else(|| home.url(HOOK), str::to_owned);
            for to in elsewhere(&from, &remote) {
                let mut draft = case.kind.clone();
                if let Some(value) = draft.pointer_mut(address) {
                    *value = json!(to);
                } else {
                    draft["webhook"]["onClear"] = json!({"url": to});
                }
                for kind in ways(&draft, case.secret) {
                    for (deed, answer) in deeds(&rest, &name, &kind).await {
                        tried += 1;
                        let text = answer.text();
                        assert_eq!(answer.status, 400, "{deed} {kind}: {text}");
                        let named = text.to_ascii_lowercase();
                        let field = case.field.to_ascii_lowercase();
                        assert!(named.contains(&field), "{deed} {kind}: {text}");
                        assert!(!text.contains(CANARY) && !text.contains(SIGNING), "{text}");
                    }
                }
            }
        }
        let now = rest.get(&one).await.ok();
        assert_eq!(
            now["destination"]["etag"], stored["destination"]["etag"],
            "{name}"
        );
        // For the same address, each operation may use the secret, and the receiver gets it.
        home.forget();
        for kind in ways(&case.kind, case.secret) {
            for (deed, answer) in deeds(&rest, &name, &kind).await {
                assert_eq!(answer.status, 200, "{deed} {kind}: {}", answer.text());
            }
        }
        let received = home.received();
        let got = received.iter().filter(|it| shows_secret(it)).count();
        assert!(
            got >= ways(&case.kind, case.secret).len(),
            "{name}: {received:?}"
        );
        for request in received.iter().filter(|it| shows_secret(it)) {
            let of_instance = HOOK.split('?').next().unwrap();
            let is_bound = request.path == HOOK
                || request.path == TOKENS
                || request.path == CLEAR
                || request.path.starts_with(of_instance);
            assert!(is_bound, "{name}: {request:?}");
        }
    }
    let left: Vec<_> = remote.received().into_iter().filter(shows_secret).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(tried > 3_000, "{tried}");
}

#[tokio::test]
async fn only_resupplied_secrets_are_sent_to_a_new_address() {
    let world = World::start();
    let rest = world.rest();
    let (home, remote) = (recorder().await, recorder().await);
    let hook = |receiver: &Receiver, headers: Value, signing: &str| {
        json!({"webhook": {
            "url": receiver.url(HOOK), "headers": headers, "signingSecret": signing,
        }})
    };
    let headers = json!({"authorization": CANARY});
    let stored = json!({"name": "d", "type": hook(&home, headers.clone(), "")});
    rest.post(DESTINATIONS, &stored).await.ok();
    // A destination of another name and a header of another name have no stored secret.
    let other = json!({"name": "e", "type": hook(&home, json!({"authorization": MASK}), "")});
    let copied = rest.post(DESTINATIONS, &other).await;
    assert_eq!(copied.status, 400, "{}", copied.text());
    for renamed in ["x-authorization", "authorization2", "proxy-authorization"] {
        for value in ["", MASK] {
            let kind = hook(&remote, json!({renamed: value}), "");
            for (deed, answer) in deeds(&rest, "d", &kind).await {
                assert_eq!(answer.status, 400, "{deed} {kind}: {}", answer.text());
            }
        }
    }
    // A draft of another type does not use the secret.
    let pagerduty = json!({"pagerduty": {"routingKey": MASK}});
    for (deed, answer) in deeds(&rest, "d", &pagerduty).await {
        assert_eq!(answer.status, 400, "{deed}: {}", answer.text());
    }
    // A secret header cannot be revealed by listing it as plain.
    let mut plain = hook(&home, json!({"x-team": MASK}), "");
    plain["webhook"]["plainHeaders"] = json!(["x-team"]);
    for (deed, answer) in deeds(&rest, "d", &plain).await {
        assert_eq!(answer.status, 400, "{deed}: {}", answer.text());
    }
    assert!(home.received().is_empty() && remote.received().is_empty());
    // A draft without the header does not send the secret. A draft that sets the secret again may
    // change the address.
    let test = format!("{DESTINATIONS}:test");
    let dropped = json!({"name": "d", "type": hook(&remote, json!({"x-env": "lab"}), "")});
    rest.post(&test, &dropped).await.ok();
    assert!(!remote.received().iter().any(shows_secret));
    let moved = json!({"name": "d", "type": hook(&remote, headers, "")});
    rest.put(&format!("{DESTINATIONS}/d"), &moved).await.ok();
    rest.post(&test, &json!({"name": "d"})).await.ok();
    assert!(remote.received().last().is_some_and(shows_secret));
}

#[tokio::test]
async fn secrets_are_bound_to_the_variables_of_their_address() {
    let world = World::start();
    let rest = world.rest();
    let home = recorder().await;
    let kind_at = |url: &str, default: &str, other: &str, header: &str| {
        let value = |default: &str| json!({"from": "event.severity", "default": default});
        json!({"webhook": {
            "url": home.url(url),
            "values": {"where": value(default), "other": value(other)},
            "headers": {"authorization": header},
            "payload": "{\"a\": \"{{values.other}}\"}",
        }})
    };
    let kind = |default: &str, other: &str, header: &str| {
        kind_at("/{{values.where}}/hook", default, other, header)
    };
    // The meaning of an address depends on the template language.
    let other = recorder().await;
    let fixed = json!({"webhook": {
        "url": other.url("/hook"), "headers": {"authorization": CANARY},
    }});
    for (name, stored, is_bound) in [
        ("template", kind("ours", "a", CANARY), true),
        ("fixed", fixed, false),
    ] {
        let mut draft = json!({"name": name, "type": stored});
        rest.post(DESTINATIONS, &draft).await.ok();
        draft["type"]["webhook"]["headers"]["authorization"] = json!(MASK);
        draft["templateLanguage"] = json!("JINJA");
        for (deed, answer) in deeds_of(&rest, &draft).await {
            assert_eq!(answer.status == 400, is_bound, "{deed}: {}", answer.text());
        }
    }
    assert!(other.received().iter().any(shows_secret));
    // Templates can reach the values without their full names.
    let section = "/{{#values}}{{where}}{{/values}}/hook";
    let stored = json!({"name": "s", "type": kind_at(section, "ours", "a", CANARY)});
    rest.post(DESTINATIONS, &stored).await.ok();
    for (deed, answer) in deeds(&rest, "s", &kind_at(section, "theirs", "a", MASK)).await {
        assert_eq!(answer.status, 400, "{deed}: {}", answer.text());
    }
    let stored = json!({"name": "d", "type": kind("ours", "a", CANARY)});
    rest.post(DESTINATIONS, &stored).await.ok();
    for (deed, answer) in deeds(&rest, "d", &kind("theirs", "a", MASK)).await {
        assert_eq!(answer.status, 400, "{deed}: {}", answer.text());
        let field = "type.webhook.headers[authorization]";
        assert!(answer.text().contains(field), "{deed}: {}", answer.text());
    }
    assert!(home.received().is_empty());
    for (deed, answer) in deeds(&rest, "d", &kind("ours", "b", MASK)).await {
        assert_eq!(answer.status, 200, "{deed}: {}", answer.text());
    }
    let received = home.received();
    assert!(received.iter().any(shows_secret));
    assert!(
        received.iter().all(|it| it.path == "/ours/hook"),
        "{received:?}"
    );
}

#[tokio::test]
async fn headers_are_secret_unless_listed_as_plain_and_harmless() {
    let world = World::start();
    let rest = world.rest();
    let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln";
    // The header, its value, whether `plainHeaders` lists it, and whether reads return it.
    let table = [
        ("x-env", "lab", true, true),
        ("X-Env", "lab", true, true),
        ("accept", "application/vnd.github+json", true, true),
        ("content-type", "text/plain", false, true),
        ("x-env", "lab", false, false),
        ("x-env", "Bearer abc", true, false),
        ("x-env", "basic b3BzOnB3", true, false),
        ("x-env", "token 123", true, false),
        ("x-env", token, true, false),
        ("x-env", "xoxb-1-2", true, false),
        ("x-env", "ghp_0123456789", true, false),
        ("authorization", "abc", false, false),
        ("x-api-key", "abc", false, false),
        ("cookie", "a=b", false, false),
    ];
    for (at, (header, value, is_listed, is_shown)) in table.into_iter().enumerate() {
        let mut webhook = json!({"url": "http://127.0.0.1:9/", "headers": {header: value}});
        if is_listed {
            webhook["plainHeaders"] = json!([header]);
        }
        let name = format!("d{at}");
        let draft = json!({"name": name, "type": {"webhook": webhook}});
        rest.post(DESTINATIONS, &draft).await.ok();
        let one = format!("{DESTINATIONS}/{name}");
        let read = rest.get(&one).await.ok()["destination"].clone();
        let shown = &read["type"]["webhook"]["headers"][header];
        let expected = if is_shown { value } else { MASK };
        assert_eq!(shown, expected, "{header}: {value}");
        // A destination can be written back as read.
        let again = rest.put(&one, &read).await.ok();
        assert_eq!(
            again["destination"]["type"], read["type"],
            "{header}: {value}"
        );
    }
    for header in ["authorization", "x-api-key", "Cookie", "x-auth-token"] {
        let webhook = json!({
            "url": "http://127.0.0.1:9/", "headers": {header: "a"}, "plainHeaders": [header],
        });
        let draft = json!({"name": "x", "type": {"webhook": webhook}});
        let refused = rest.post(DESTINATIONS, &draft).await;
        assert_eq!(refused.status, 400, "{header}: {}", refused.text());
    }
}
