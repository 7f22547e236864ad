//! A load: a number of requests that are kept in flight for some time, and their events.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bellwether_proto::cloud::{self, data_receiver_service_client::DataReceiverServiceClient};
use bellwether_tests::{grpc::Grpc, rest::Rest};
use http::Method;
use tokio::task::JoinSet;

use crate::process::cpu_us;

/// Time for which a figure is measured.
pub(crate) const SPAN: Duration = Duration::from_secs(5);

/// The result of a load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Events per second.
    pub(crate) rate: f64,
    /// Total number of events.
    pub(crate) events: f64,
    /// The 99th percentile of the request times.
    pub(crate) p99: Duration,
    /// CPU time per event of the receiving process, in microseconds.
    pub(crate) cpu_us: f64,
}

/// Time after a load in which the process finishes the work that the load caused.
const TRAIL: Duration = Duration::from_millis(500);

/// Runs a load on a process, and adds the CPU time of the process to the result.
pub(crate) async fn accounted(process: u32, load: impl Future<Output = Load>) -> Load {
    let before = cpu_us(process);
    let load = load.await;
    tokio::time::sleep(TRAIL).await;
    Load {
        cpu_us: (cpu_us(process) - before) / load.events,
        ..load
    }
}

/// Allocates numbers, so that no two events have the same identity.
#[derive(Debug, Clone, Default)]
pub(crate) struct Numbers(Arc<AtomicUsize>);

impl Numbers {
    /// Creates numbers that start from the given one.
    pub(crate) fn from(first: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(first)))
    }

    /// Allocates `count` numbers, and returns the first.
    pub(crate) fn take(&self, count: usize) -> usize {
        self.0.fetch_add(count, Ordering::Relaxed)
    }
}

/// Keeps a number of requests in flight for [`SPAN`], each with `events` events.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(crate) async fn keep_in_flight<F>(
    in_flight: usize,
    events: usize,
    request: impl Fn() -> F + Clone + Send + 'static,
) -> Load
where
    F: Future<Output = ()> + Send + 'static,
{
    let start = Instant::now();
    let mut senders = JoinSet::new();
    for _ in 0..in_flight {
        let request = request.clone();
        senders.spawn(async move {
            let mut times = Vec::new();
            while start.elapsed() < SPAN {
                let sent = Instant::now();
                request().await;
                times.push(sent.elapsed());
            }
            times
        });
    }
    let times: Vec<Duration> = senders.join_all().await.into_iter().flatten().collect();
    let events = (times.len() * events) as f64;
    Load {
        rate: events / start.elapsed().as_secs_f64(),
        events,
        p99: percentile_99(times),
        cpu_us: 0.0,
    }
}

pub(crate) fn percentile_99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

const SUMMARY: &str = "something happened that somebody may want to know";

/// Sends events numbered from `first` over gRPC.
pub(crate) async fn over_grpc(channel: Grpc, first: usize, count: usize) {
    let event = |number: usize| cloud::Event {
        name: "bench".into(),
        dimensions: [("host".to_owned(), format!("h{number}"))].into(),
        summary: SUMMARY.into(),
        severity: cloud::Severity::Warning.into(),
        ..cloud::Event::default()
    };
    let request = cloud::Events {
        detailed_response: false,
        events: (first..first + count).map(event).collect(),
    };
    let answer = DataReceiverServiceClient::new(channel)
        .put_events(request)
        .await;
    let succeeded = answer.expect("an answer").into_inner().succeeded;
    assert_eq!(usize::try_from(succeeded), Ok(count));
}

/// Sends events numbered from `first` over REST.
pub(crate) async fn over_rest(client: Rest, first: usize, count: usize) {
    let mut body = String::with_capacity(count * 160 + 16);
    body.push_str(r#"{"events":["#);
    for number in first..first + count {
        if number > first {
            body.push(',');
        }
        body.push_str(r#"{"name":"bench","dimensions":{"host":"h"#);
        body.push_str(&number.to_string());
        body.push_str(r#""},"summary":""#);
        body.push_str(SUMMARY);
        body.push_str(r#"","severity":"SEVERITY_WARNING"}"#);
    }
    body.push_str("]}");
    let answer = client
        .send(Method::POST, "/v1/data-receiver/events", body)
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}
