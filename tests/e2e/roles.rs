//! Authorization of every method over gRPC and every operation over REST, for each kind of key.

use std::time::Duration;

use bellwether_tests::{eventually::eventually, grpc, process, rest::Rest, wire, world::World};
use http::Method;
use tonic::{Code, client::Grpc, codegen::http::uri::PathAndQuery};
use tonic_prost::ProstCodec;

const PATIENCE: Duration = Duration::from_secs(120);
/// Time to wait for an error of a permitted call that has not ended.
const LET_IN: Duration = Duration::from_millis(300);
const WORTHLESS: [&str; 4] = ["none", "wrong", "revoked", "ended"];
const ROLES: [&str; 5] = ["ingest", "viewer", "operator", "editor", "admin"];

/// Returns one key of each kind; `None` means no key.
fn keys(world: &World) -> Vec<(&'static str, Option<String>)> {
    let revoked = world.client("a-revoked", "admin");
    run(world, &["client", "revoke", "a-revoked"]);
    let soon = jiff::Timestamp::now() + Duration::from_secs(2);
    let soon = soon.to_string();
    let create = [
        "client",
        "create",
        "an-ended",
        "--role",
        "admin",
        "--expires",
    ];
    let ended = run(world, &[&create[..], &[&soon]].concat());
    let mut keys = vec![
        ("none", None),
        ("wrong", Some("bw_wrong".to_owned())),
        ("revoked", Some(revoked)),
        ("ended", Some(ended)),
    ];
    for role in ROLES {
        keys.push((role, Some(world.client(&format!("one-{role}"), role))));
    }
    keys
}

fn run(world: &World, arguments: &[&str]) -> String {
    let output = process::run(world.command(arguments));
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the method and the minimum role of an operation. The role is stated in the options of
/// the method; in Alertmanager's API, it depends on whether the operation reads. `None` for
/// operations of other products.
fn lowest(id: &str) -> Option<(String, String)> {
    if let Some(name) = id.strip_prefix("alertmanager") {
        let reads = name.starts_with("Get");
        let role = if reads { "viewer" } else { "operator" };
        return Some((name.to_owned(), role.to_owned()));
    }
    let is_of = |name: &str| {
        let (first, rest) = name.split_at(1);
        let camel = first.to_lowercase() + rest;
        id.strip_prefix(&camel)
            .is_some_and(|rest| rest.is_empty() || name == "BeatByKey")
    };
    let method = wire::methods().find(|it| is_of(it.name()))?;
    Some((method.name().to_owned(), wire::role(&method)))
}

fn is_allowed(kind: &str, lowest: &str) -> bool {
    let rank = |role| ROLES.iter().position(|it| *it == role);
    match (kind, lowest) {
        (_, "none") => true,
        (kind, _) if WORTHLESS.contains(&kind) => false,
        (_, "any") | ("admin", _) => true,
        ("ingest", _) | (_, "ingest") => kind == lowest,
        _ => rank(kind) >= rank(lowest),
    }
}

/// Makes a call with an empty request. Returns the status, or OK if a stream began.
async fn call(channel: &grpc::Grpc, path: &str, is_let_in: bool) -> Code {
    let mut client = Grpc::new(channel.clone());
    client.ready().await.unwrap();
    let path = PathAndQuery::try_from(path).unwrap();
    let messages = tokio_stream::once(());
    let answer = client.streaming(
        tonic::Request::new(messages),
        path,
        ProstCodec::<(), ()>::default(),
    );
    let first = async {
        match answer.await {
            Ok(answer) => answer.into_inner().message().await.map(|_| ()),
            Err(status) => Err(status),
        }
    };
    let patience = if is_let_in { LET_IN } else { PATIENCE };
    match tokio::time::timeout(patience, first).await {
        Ok(Err(status)) => status.code(),
        Ok(Ok(())) | Err(_) => Code::Ok,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_enforces_its_role() {
    let world = World::start();
    let keys = keys(&world);
    let address = world.service().address("grpc");
    let ended = grpc::channel(address, keys[3].1.as_deref());
    eventually("the key to expire", async || {
        let code = call(&ended, "/bellwether.v1.ClientService/GetCaller", false).await;
        (code == Code::Unauthenticated).then_some(())
    })
    .await;
    let mut count = 0;
    for method in wire::methods() {
        let (service, name) = (method.parent_service().clone(), method.name().to_owned());
        let lowest = wire::role(&method);
        let path = format!("/{}/{name}", service.full_name());
        for (kind, key) in &keys {
            // Links and heartbeat addresses are authorized by their signature instead of a key.
            let is_link = service.name() == "LinkService" || name == "BeatByKey";
            let is_let_in = is_allowed(kind, &lowest) && !is_link;
            let channel = grpc::channel(address, key.as_deref());
            let code = call(&channel, &path, is_let_in).await;
            let expected = match (is_let_in, is_link || WORTHLESS.contains(kind)) {
                (false, true) => code == Code::Unauthenticated,
                (false, false) => code == Code::PermissionDenied,
                (true, _) => !matches!(code, Code::Unauthenticated | Code::PermissionDenied),
            };
            assert!(expected, "{path} with the key `{kind}`: {code:?}");
            count += 1;
        }
    }
    assert!(count > 600, "{count}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_enforces_its_role() {
    let world = World::start();
    let keys = keys(&world);
    let rests: Vec<(&str, Rest)> = keys
        .iter()
        .map(|(kind, key)| (*kind, world.rest().with_key(key.as_deref())))
        .collect();
    eventually("the key to expire", async || {
        let answer = rests[3].1.get("/v1/notification/rules").await;
        (answer.status == 401).then_some(())
    })
    .await;
    let document = world.rest().get("/openapi.json").await.ok();
    let mut count = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let path = ["{name}", "{id}", "{silenceID}"]
            .iter()
            .fold(path.clone(), |path, it| path.replace(it, "x"));
        for (method, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap_or_default();
            // Skip the dialects, which have their own errors and are granted to each client.
            let Some((name, lowest)) = lowest(id) else {
                continue;
            };
            // A beat URL is authorized by its signature instead of a key.
            if name == "BeatByKey" {
                continue;
            }
            assert_eq!(operation["x-required-role"], lowest, "{id}");
            let verb = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            for (kind, rest) in &rests {
                let answer = rest.send(verb.clone(), &path, "{}").await;
                let status = answer.status.as_u16();
                let expected = match (is_allowed(kind, &lowest), WORTHLESS.contains(kind)) {
                    (false, true) => status == 401,
                    (false, false) => status == 403,
                    (true, _) => status != 401 && status != 403,
                };
                let said = answer.text();
                assert!(expected, "{verb} {path} with the key `{kind}`: {said}");
                count += 1;
            }
        }
    }
    assert!(count > 500, "{count}");
}
