//! Metrics of the gateway: requests by operation and status, and traffic.

use std::{pin::Pin, sync::Arc, time::Duration};

use bellwether_process::{
    listen::Pool,
    metrics::{MetricsSource, render_registry},
};
use http::StatusCode;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::ConstGauge, histogram::Histogram},
    registry::Registry,
};

use crate::owner::Owner;

const BUCKETS: [f64; 12] = [
    0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0,
];

pub(crate) const UNMATCHED: &str = "unmatched";

const PREFIX: &str = "bellwether_gateway";

type Requests = Family<(OperationLabel, CodeLabel), Counter>;
type OperationLabel = [(&'static str, Arc<str>); 1];
type CodeLabel = [(&'static str, u16); 1];

#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    operations: Vec<Arc<str>>,
    requests: Requests,
    durations: Family<OperationLabel, Histogram, fn() -> Histogram>,
    request_body_bytes: Counter,
    answer_body_bytes: Counter,
    connections: Counter,
    panics: Counter,
    in_flight: Arc<Pool<Owner>>,
}

impl Metrics {
    /// Creates the metrics: one set per operation, found by index, and one for all other requests.
    /// `in_flight` is the pool of requests in flight.
    pub(crate) fn new(
        operations: impl Iterator<Item = String>,
        in_flight: Arc<Pool<Owner>>,
    ) -> Self {
        let names = operations.chain([UNMATCHED.to_owned()]);
        let mut metrics = Self {
            registry: Registry::with_prefix(PREFIX),
            operations: names.map(Arc::from).collect(),
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            request_body_bytes: Counter::default(),
            answer_body_bytes: Counter::default(),
            connections: Counter::default(),
            panics: Counter::default(),
            in_flight,
        };
        let registry = &mut metrics.registry;
        registry.register("requests", "Completed requests", metrics.requests.clone());
        let durations = metrics.durations.clone();
        registry.register("request_duration_seconds", "Response time", durations);
        let counters = [
            (
                "request_body_bytes",
                "Bytes of accepted request bodies",
                &metrics.request_body_bytes,
            ),
            (
                "answer_body_bytes",
                "Bytes of response bodies",
                &metrics.answer_body_bytes,
            ),
            ("connections", "Accepted connections", &metrics.connections),
            ("panics", "Requests that panicked", &metrics.panics),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        // Common series start at zero, because a series that appears with its first value shows no
        // increase. Other statuses are mostly caused by clients.
        for operation in &metrics.operations {
            for code in [200, 429, 500, 503, 504] {
                let labels = ([("operation", Arc::clone(operation))], [("code", code)]);
                drop(metrics.requests.get_or_create(&labels));
            }
        }
        metrics
    }

    /// Counts a completed request. `operation` is `None` if no path matched.
    pub(crate) fn record_response(
        &self,
        operation: Option<usize>,
        status: StatusCode,
        duration: Duration,
        answer_bytes: usize,
    ) {
        let last = self.operations.len() - 1;
        let operation = &self.operations[operation.unwrap_or(last).min(last)];
        let operation = [("operation", Arc::clone(operation))];
        let durations = self.durations.get_or_create(&operation);
        durations.observe(duration.as_secs_f64());
        drop(durations);
        let labels = (operation, [("code", status.as_u16())]);
        self.requests.get_or_create(&labels).inc();
        self.answer_body_bytes.inc_by(answer_bytes as u64);
    }

    pub(crate) fn record_received(&self, bytes: usize) {
        self.request_body_bytes.inc_by(bytes as u64);
    }

    pub(crate) fn record_connection(&self) {
        self.connections.inc();
    }

    pub(crate) fn record_panic(&self) {
        self.panics.inc();
    }
}

impl MetricsSource for Metrics {
    fn render(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
        let mut now = Registry::with_prefix(PREFIX);
        let in_flight = ConstGauge::new(self.in_flight.permits_in_use());
        now.register("requests_in_flight", "Requests in progress", in_flight);
        Box::pin(async move { render_registry(&self.registry) + &render_registry(&now) })
    }
}
