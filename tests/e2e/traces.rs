//! The trace of an event, from its sender's `traceparent` to the receiver's, and its export to a
//! collector.

use std::sync::{Arc, Mutex};

use bellwether_tests::{
    eventually::eventually,
    receiver::{Receiver, Reply},
    rest::Rest,
    world::World,
};
use http::Method;
use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::any_value::Value,
    trace::v1::Span,
};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, async_trait, transport::Server};

use crate::samples;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SENDER: &str = "00f067aa0ba902b7";

#[derive(Debug, Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

#[async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let of_scopes = request.into_inner().resource_spans.into_iter();
        let scopes = of_scopes.flat_map(|it| it.scope_spans);
        let spans = scopes.flat_map(|it| it.spans);
        self.0.lock().unwrap().extend(spans);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    async fn start() -> (Self, String, JoinSet<()>) {
        let collector = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let service = TraceServiceServer::new(collector.clone());
        let incoming = TcpListenerStream::new(listener);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let server = Server::builder().add_service(service);
            server.serve_with_incoming(incoming).await.unwrap();
        });
        (collector, address, serving)
    }

    fn spans(&self, name: &str) -> Vec<Span> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|it| it.name == name).cloned().collect()
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits = |text, byte| format!("{text}{byte:02x}");
    bytes.iter().fold(String::new(), digits)
}

fn attribute_text(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().find(|it| it.key == key);
    match found.and_then(|it| it.value.clone()?.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("{key}: {other:?}"),
    }
}

async fn send(rest: &Rest, host: &str, traceparent: &str) {
    let event = samples::event("full", host, "SEVERITY_ERROR", "disk is full");
    let body = samples::events(&[event]).to_string();
    let headers = [
        ("traceparent", traceparent),
        ("content-type", "application/json"),
    ];
    let headers = &headers[usize::from(traceparent.is_empty())..];
    let path = "/v1/data-receiver/events";
    let sent = rest.try_send(Method::POST, path, headers, body).await;
    let answer = sent.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}

async fn create_rule(world: &World, receiver: &Receiver) {
    let rest = world.rest();
    samples::disks_to_hook(&rest, receiver).await;
    let rule = samples::rule("page", "disk", "hook", "disk");
    rest.post("/v1/notification/rules", &rule).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn trace_spans_sender_attempts_and_receiver() {
    let (collector, address, _serving) = Collector::start().await;
    let receiver = Receiver::start().await;
    let lines =
        format!("[traces]\nendpoint = \"{address}\"\n[delivery]\nschedule = [\"0s\", \"100ms\"]\n");
    let mut world = World::with_settings(&lines);
    create_rule(&world, &receiver).await;
    receiver.reply([Reply::status(500)]);

    send(&world.rest(), "a", &format!("00-{TRACE}-{SENDER}-01")).await;
    receiver.wait_for(2).await;
    let ended = world.terminate();

    assert!(ended.success());
    let [call] = &collector.spans("PutEvents")[..] else {
        panic!("{:?}", collector.spans("PutEvents"));
    };
    assert_eq!(hexadecimal(&call.trace_id), TRACE);
    assert_eq!(hexadecimal(&call.parent_span_id), SENDER);
    assert_eq!(attribute_text(call, "bellwether.client"), "admin");
    let [decision] = &collector.spans("decide")[..] else {
        panic!("{:?}", collector.spans("decide"));
    };
    assert_eq!(decision.parent_span_id, call.span_id);
    assert_eq!(attribute_text(decision, "bellwether.events"), "1");
    let attempts = collector.spans("deliver");
    let outcomes: Vec<_> = attempts
        .iter()
        .map(|it| attribute_text(it, "bellwether.outcome"))
        .collect();
    assert_eq!(outcomes, ["rejected", "delivered"]);
    for (attempt, received) in attempts.iter().zip(receiver.received()) {
        assert_eq!(attempt.parent_span_id, call.span_id);
        assert_eq!(attribute_text(attempt, "bellwether.destination"), "hook");
        let expected = format!("00-{TRACE}-{}-01", hexadecimal(&attempt.span_id));
        assert_eq!(received.header("traceparent"), expected);
    }
}

#[tokio::test]
async fn trace_is_started_if_absent_and_unsampled_flag_is_respected() {
    let (collector, address, _serving) = Collector::start().await;
    let receiver = Receiver::start().await;
    let world = World::with_settings(&format!("[traces]\nendpoint = \"{address}\"\n"));
    create_rule(&world, &receiver).await;

    send(&world.rest(), "a", "").await;
    send(&world.rest(), "b", &format!("00-{TRACE}-{SENDER}-00")).await;
    receiver.wait_for(2).await;

    let attempt = eventually("the span of the attempt", || async {
        collector.spans("deliver").pop()
    });
    let attempt = attempt.await;
    let received = receiver.received();
    let of = |sampled: &str| {
        let found = received
            .iter()
            .find(|it| it.header("traceparent").ends_with(sampled));
        found.unwrap().header("traceparent").to_owned()
    };
    let (trace, span) = (
        hexadecimal(&attempt.trace_id),
        hexadecimal(&attempt.span_id),
    );
    assert_eq!(of("-01"), format!("00-{trace}-{span}-01"));
    assert!(
        of("-00").starts_with(&format!("00-{TRACE}-")),
        "{}",
        of("-00")
    );
    assert_eq!(collector.spans("deliver").len(), 1);
    assert_eq!(collector.spans("PutEvents").len(), 1);
}

#[tokio::test]
async fn trace_is_propagated_without_a_collector_even_after_a_kill() {
    let receiver = Receiver::start().await;
    receiver.set_default_reply(Reply::status(503));
    let mut world = World::start();
    create_rule(&world, &receiver).await;
    let sender = format!("00-{TRACE}-{SENDER}-01");

    send(&world.rest(), "a", &sender).await;
    send(&world.rest(), "b", "").await;
    send(&world.rest(), "c", "00-no-trace-01").await;
    receiver.wait_for(3).await;
    world.kill();
    receiver.forget();
    receiver.set_default_reply(Reply::status(200));
    world.start_again();
    let rest = world.rest();
    let resumed = json!({"filter": {"states": ["RETRY"]}});
    rest.post("/v1/notification/deliveries:retry", &resumed)
        .await;
    receiver.wait_for(3).await;

    let mut traces: Vec<_> = receiver
        .received()
        .iter()
        .map(|it| it.header("traceparent").to_owned())
        .collect();
    traces.sort();
    traces.dedup();
    assert_eq!(traces, [String::new(), sender]);
}

#[tokio::test]
async fn derived_events_keep_the_trace() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let rest = world.rest();
    samples::disks_to_hook(&rest, &receiver).await;
    let made = json!({"name": "made", "type": {"event": {"nameTemplate": "second",
        "typeTemplate": "second", "summaryTemplate": "it follows",
        "severity": "SEVERITY_ERROR"}}});
    for (kind, draft) in [
        ("destinations", made),
        ("triggers", samples::trigger("second", "follows")),
        ("rules", samples::rule("again", "disk", "made", "")),
        ("rules", samples::rule("page", "second", "hook", "it")),
    ] {
        let path = format!("/v1/notification/{kind}");
        rest.post(&path, &draft).await.ok();
    }
    let sender = format!("00-{TRACE}-{SENDER}-01");
    send(&rest, "a", &sender).await;
    receiver.wait_for(1).await;
    assert_eq!(receiver.received()[0].header("traceparent"), sender);
}
