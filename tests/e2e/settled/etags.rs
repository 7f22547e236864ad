//! Conditional updates: a request with an outdated etag makes no change, over REST and gRPC.

use bellwether_tests::{
    rest::{Answer, Rest},
    wire::Wire,
    world::World,
};
use http::Method;
use serde_json::{Value, json};
use tonic::Code;

use super::{
    naming::{KINDS, definition, method},
    with,
};

async fn read_resource(wire: &Wire, kind: &str, name: &str) -> Value {
    let got = wire.ok(&method("Get", kind), &json!({"name": name})).await;
    got[kind].clone()
}

fn update(kind: &str, name: &str, text: &str, etag: Option<&str>) -> Value {
    let mut resource = with(&definition(kind, name), &json!({"description": text}));
    if let Some(etag) = etag {
        resource["etag"] = json!(etag);
    }
    json!({kind: resource})
}

#[tokio::test]
async fn stale_etag_is_rejected_with_advice() {
    let world = World::start();
    for wire in world.wires() {
        for kind in KINDS {
            let name = format!("{} {kind}", wire.name());
            let create = json!({kind: definition(kind, &name)});
            let created = wire.ok(&method("Create", kind), &create).await;
            let stale = created[kind]["etag"].as_str().expect("an etag").to_owned();
            let plain = update(kind, &name, "first", None);
            wire.ok(&method("Update", kind), &plain).await;
            let before = read_resource(&wire, kind, &name).await;
            let current = before["etag"].as_str().expect("an etag").to_owned();
            assert_ne!(current, stale);

            for etag in [
                &stale,
                "\"x\"",
                "nonsense",
                "\"\"",
                &format!("\"x\", {stale}"),
            ] {
                let case = format!("{} {kind} {etag}", wire.name());
                let changed = update(kind, &name, "never", Some(etag));
                let deleted = json!({"name": name, "etag": etag});
                for (verb, request) in [("Update", changed), ("Delete", deleted)] {
                    let refusal = wire.refused(&method(verb, kind), &request).await;
                    assert_eq!(refusal.code, Code::Aborted, "{case}: {refusal:?}");
                    let says = &refusal.message;
                    assert!(says.contains(&format!("{kind} `{name}`")), "{case}: {says}");
                    assert!(says.contains("read it again"), "{case}: {says}");
                    assert_eq!(read_resource(&wire, kind, &name).await, before, "{case}");
                }
            }

            for form in ["ETAG", "*", "\"x\", ETAG", "W/ETAG"] {
                let current = read_resource(&wire, kind, &name).await["etag"].clone();
                let etag = form.replace("ETAG", current.as_str().expect("an etag"));
                let changed = update(kind, &name, form, Some(&etag));
                let updated = wire.ok(&method("Update", kind), &changed).await;
                assert_eq!(updated[kind]["description"], form, "{} {kind}", wire.name());
                assert_ne!(updated[kind]["etag"], current, "{} {kind}", wire.name());
            }
            let current = read_resource(&wire, kind, &name).await["etag"].clone();
            let gone = json!({"name": name, "etag": current});
            wire.ok(&method("Delete", kind), &gone).await;
            // A resource that is created again with the same name is a new resource.
            wire.ok(&method("Create", kind), &create).await;
            let again = update(kind, &name, "never", current.as_str());
            let refusal = wire.refused(&method("Update", kind), &again).await;
            assert_eq!(refusal.code, Code::Aborted, "{kind}: {refusal:?}");
        }
    }
}

async fn request_with_header(
    rest: &Rest,
    verb: Method,
    path: &str,
    header: (&str, &str),
    body: &Value,
) -> Answer {
    let body = match verb {
        Method::PUT => body.to_string(),
        _ => String::new(),
    };
    let answer = rest.try_send(verb, path, &[header], body).await;
    answer.expect("an answer")
}

#[tokio::test]
async fn conditional_headers_work_for_every_kind() {
    let world = World::start();
    let rest = world.rest();
    for kind in KINDS {
        let list = format!("/v1/notification/{kind}s");
        let path = format!("{list}/a");
        let body = definition(kind, "a");
        rest.post(&list, &body).await.ok();
        let first = rest.get(&path).await;
        let stale = first.header("etag").to_owned();
        let known =
            request_with_header(&rest, Method::GET, &path, ("if-none-match", &stale), &body).await;
        assert_eq!(
            (known.status.as_u16(), known.body.len()),
            (304, 0),
            "{kind}"
        );
        let text = with(&body, &json!({"description": "changed"}));
        let changed =
            request_with_header(&rest, Method::PUT, &path, ("if-match", &stale), &text).await;
        assert_eq!(changed.status, 200, "{kind}: {}", changed.text());
        let news =
            request_with_header(&rest, Method::GET, &path, ("if-none-match", &stale), &body).await;
        assert_eq!(news.status, 200, "{kind}");
        assert_eq!(news.json()[kind]["description"], "changed");

        for verb in [Method::PUT, Method::DELETE] {
            let refused =
                request_with_header(&rest, verb.clone(), &path, ("if-match", &stale), &body).await;
            let reported = refused.text();
            let found = (refused.status.as_u16(), refused.code());
            assert_eq!(found, (409, 10), "{verb} {kind}: {reported}");
            assert!(reported.contains(&format!("{kind} `a`")), "{reported}");
            assert!(reported.contains("read it again"), "{reported}");
            let wrong =
                request_with_header(&rest, verb, &path, ("if-match", "\"a\"b\""), &body).await;
            let found = (wrong.status.as_u16(), wrong.code());
            assert_eq!(found, (400, 3), "{}", wrong.text());
            assert!(wrong.text().contains("if-match"), "{}", wrong.text());
        }
        let current = news.header("etag").to_owned();
        let other = with(&body, &json!({"etag": first.json()[kind]["etag"]}));
        let both =
            request_with_header(&rest, Method::PUT, &path, ("if-match", &current), &other).await;
        assert_eq!(both.status, 400, "{kind}: {}", both.text());
        assert!(both.text().contains("etag"), "{kind}: {}", both.text());

        let listed = format!("\"x\", {current}");
        let gone =
            request_with_header(&rest, Method::DELETE, &path, ("if-match", &listed), &body).await;
        assert_eq!(gone.status, 200, "{kind}: {}", gone.text());
        let absent = request_with_header(&rest, Method::PUT, &path, ("if-match", "*"), &body).await;
        assert_eq!(absent.status, 404, "{kind}: {}", absent.text());
    }
}
