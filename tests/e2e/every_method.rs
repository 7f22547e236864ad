//! Calls every method with other gRPC implementations. Unlike tonic, they reject an error response
//! whose stream does not end with its headers.

use std::{
    collections::BTreeSet,
    io::Write as _,
    process::{Command, Stdio},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bellwether_proto::json::{self, example};
use bellwether_tests::{tree, wire, world::World};
use bytes::{BufMut as _, Bytes};
use http::Response;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::{Value, json};

use crate::{
    foreign::python,
    generated::{Folder, node},
    samples,
};

/// Methods of other services that the server offers, and whether the client and the server stream.
const OF_OTHERS: [(&str, bool, bool); 5] = [
    (
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        false,
        false,
    ),
    ("/grpc.health.v1.Health/Check", false, false),
    ("/grpc.health.v1.Health/Watch", false, true),
    (
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        true,
        true,
    ),
    (
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        true,
        true,
    ),
];

struct Call {
    path: String,
    client_streams: bool,
    server_streams: bool,
    sent: &'static str,
    message: Vec<u8>,
}

/// Replaces values that documented examples cannot contain: times in the near future, and an
/// address of this machine.
fn valid(input: &str, mut example: Value) -> Value {
    for pointer in ["/span/endTime", "/silence/span/endTime"] {
        if let Some(end) = example.pointer_mut(pointer) {
            *end = json!(samples::in_seconds(3_600));
        }
    }
    if input == "bellwether.v1.TestDestinationRequest" {
        example["type"] = json!({"webhook": {"url": "http://127.0.0.1:9/"}});
    }
    example
}

/// Returns two calls of each method, with an empty message and with its example, and a call that
/// causes an error of maximum length.
fn calls() -> Vec<Call> {
    let plan = json::shared_plan();
    let mut calls = Vec::new();
    for method in wire::methods() {
        let service = method.parent_service().full_name().to_owned();
        let input = method.input().full_name().to_owned();
        let example = example::message_example(plan, plan.by_name[&*input]);
        let example = example.unwrap_or_else(|| panic!("{input} has no example"));
        let example = valid(&input, example);
        let example = json::wire_from_json(&input, example.to_string().as_bytes());
        let example = example.unwrap_or_else(|error| panic!("the example of {input}: {error}"));
        for (sent, message) in [("empty", Vec::new()), ("example", example)] {
            calls.push(Call {
                path: format!("/{service}/{}", method.name()),
                client_streams: method.is_client_streaming(),
                server_streams: method.is_server_streaming(),
                sent,
                message,
            });
        }
    }
    calls.extend(
        OF_OTHERS.map(|(path, client_streams, server_streams)| Call {
            path: path.to_owned(),
            client_streams,
            server_streams,
            sent: "empty",
            message: Vec::new(),
        }),
    );
    let tags: Vec<_> = (0..1_000)
        .map(|at| format!("{at}/{}", "é".repeat(90)))
        .collect();
    let wrong = json!({"trigger": {"name": "é/".repeat(2_000), "tags": tags}}).to_string();
    let wrong = json::wire_from_json("bellwether.v1.CreateTriggerRequest", wrong.as_bytes());
    calls.push(Call {
        path: "/bellwether.v1.TriggerService/CreateTrigger".into(),
        client_streams: false,
        server_streams: false,
        sent: "much that is wrong",
        message: wrong.unwrap(),
    });
    calls
}

/// Returns the input for the clients: the calls, the address, and descriptors of error details.
fn client_input(world: &World, calls: &[Call]) -> String {
    let described = |call: &Call| {
        json!({
            "path": call.path,
            "clientStreams": call.client_streams,
            "serverStreams": call.server_streams,
            "sent": call.sent,
            "message": STANDARD.encode(&call.message),
        })
    };
    json!({
        "address": world.service().address("grpc"),
        "key": world.admin_key(),
        "details": STANDARD.encode(tonic_types::pb::FILE_DESCRIPTOR_SET),
        "calls": calls.iter().map(described).collect::<Vec<_>>(),
    })
    .to_string()
}

/// Runs a client that reads the calls and prints one line per call.
fn run(mut client: Command, calls: &str) -> Vec<Value> {
    let mut child = client
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // A client that ends early reports the reason on standard error.
    drop(input.write_all(calls.as_bytes()));
    drop(input);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let printed = String::from_utf8_lossy(&output.stdout);
    let lines = printed.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// Whether the details contain a message of this type that satisfies the condition.
fn has(details: &Value, name: &str, holds: impl Fn(&Value) -> bool) -> bool {
    let mut details = details.as_array().into_iter().flatten();
    details.any(|one| one["@type"].as_str().is_some_and(|it| it.ends_with(name)) && holds(one))
}

/// Returns what is wrong with the error in a result; `None` if the result is correct.
fn error_of(result: &Value) -> Option<&'static str> {
    let (code, details) = (
        result["code"].as_str().unwrap_or_default(),
        &result["details"],
    );
    let is_own = !OF_OTHERS.iter().any(|(path, ..)| result["path"] == *path);
    match code {
        "OK" => None,
        "" | "UNKNOWN" | "INTERNAL" | "CANCELLED" | "DEADLINE_EXCEEDED" | "UNAVAILABLE" => {
            Some("is not the service's error")
        }
        _ if result["message"].as_str().is_none_or(str::is_empty) => Some("has no message"),
        _ if is_own
            && !has(details, "google.rpc.ErrorInfo", |it| {
                it["domain"] == "bellwether"
            }) =>
        {
            Some("has no reason")
        }
        "INVALID_ARGUMENT" if is_own => {
            let has_fields = has(details, "google.rpc.BadRequest", |it| {
                let fields = it["fieldViolations"].as_array();
                fields.is_some_and(|all| all.iter().all(|one| one["description"] != ""))
            });
            (!has_fields).then_some("names no field")
        }
        _ => None,
    }
}

fn check(calls: &[Call], results: &[Value]) {
    let called = |path: &str, sent: &str| format!("{path} {sent}");
    let expected: BTreeSet<_> = calls.iter().map(|it| called(&it.path, it.sent)).collect();
    let text = |result: &Value, name: &str| result[name].as_str().unwrap_or_default().to_owned();
    let reported = |it: &Value| called(&text(it, "path"), &text(it, "sent"));
    let found: BTreeSet<_> = results.iter().map(reported).collect();
    assert_eq!(found, expected);
    let wrong = results.iter().filter_map(|result| {
        let error = error_of(result)?;
        Some(format!("{error}: {result}"))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let refused = results.iter().filter(|result| result["code"] != "OK");
    assert!(refused.count() > 50, "too few calls were rejected");
}

#[tokio::test(flavor = "multi_thread")]
async fn grpcio_reads_the_code_and_details_of_every_error() {
    let Some(python) = python("grpc") else {
        return;
    };
    let (world, calls) = (World::start(), calls());
    let mut client = Command::new(python);
    client.arg(tree::root().join("tests/e2e/every_method.py"));
    check(&calls, &run(client, &client_input(&world, &calls)));
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_js_reads_the_code_and_details_of_every_error() {
    let world = World::start();
    let (Some(node), Some(folder)) = (node(), Folder::new(&world).await) else {
        return;
    };
    let calls = calls();
    let mut client = Command::new(node);
    client.arg("every_method.mjs").current_dir(folder.path());
    check(&calls, &run(client, &client_input(&world, &calls)));
}

/// Calls a method, and returns the start of its response without reading the body.
async fn call(world: &World, path: &str, key: &str, message: &[u8]) -> Response<Incoming> {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let mut framed = vec![0];
    framed.put_u32(u32::try_from(message.len()).unwrap());
    framed.put_slice(message);
    let address = world.service().address("grpc");
    let request = http::Request::post(format!("http://{address}{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("authorization", key)
        .body(Full::from(framed));
    client.request(request.unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn error_response_of_every_method_is_trailers_only() {
    let world = World::start();
    let with_key = format!("Bearer {}", world.admin_key());
    let mut count = 0;
    for call in calls() {
        let cases = [
            (with_key.as_str(), call.sent, &*call.message),
            (&with_key, "malformed", &[0xff; 4]),
            ("Bearer unknown", "unauthenticated", &call.message),
        ];
        for (key, sent, message) in cases {
            let response = self::call(&world, &call.path, key, message).await;
            let is_error = response.headers().contains_key("grpc-status");
            let ends = response.body().is_end_stream();
            assert_eq!(is_error, ends, "{} {sent}: {response:?}", call.path);
            // The response's headers are sent before a client stream is read.
            let must_fail = sent == "malformed" && !call.client_streams;
            assert!(is_error || !must_fail, "{}: {response:?}", call.path);
            count += usize::from(is_error);
        }
    }
    assert!(count > 300, "only {count} calls were rejected");
}
