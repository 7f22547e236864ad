//! Where spans go: a collector, over OTLP by gRPC.

use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithTonicConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SdkTracerProvider},
};
use tonic::transport::ClientTlsConfig;

use super::TRACER;

/// What the collector knows this service as.
const SERVICE: &str = "bellwether";
/// How long the collector may take for spans; those that do not fit into memory meanwhile are lost.
const EXPORT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long the last spans may take when the service ends.
const END_TIME_MAX: Duration = Duration::from_secs(3);

/// Which collector, and what of.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceConfig {
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    pub endpoint: String,
    /// The share of events without a trace that begin one, from 0 to 1. Of those that come with
    /// one, its sender has decided.
    pub sample: f64,
}

/// The collector cannot be one.
#[derive(Debug, thiserror::Error)]
#[error("traces.endpoint: {0}")]
pub struct BadTraces(String);

/// Spans on their way.
#[derive(Debug)]
pub struct Exporting(SdkTracerProvider);

/// Sends the spans of this process to a collector from now on. It needs not answer yet. Once in a
/// process.
///
/// # Errors
/// When the endpoint is no address.
pub fn export(config: &TraceConfig, version: &str) -> Result<Exporting, BadTraces> {
    let bad = |error: &dyn std::fmt::Display| BadTraces(error.to_string());
    let mut exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(&config.endpoint)
        .with_timeout(EXPORT_TIME_MAX);
    if config.endpoint.starts_with("https:") {
        exporter = exporter.with_tls_config(ClientTlsConfig::new().with_native_roots());
    }
    let exporter = exporter.build().map_err(|error| bad(&error))?;
    let service = Resource::builder()
        .with_service_name(SERVICE)
        .with_attribute(opentelemetry::KeyValue::new(
            "service.version",
            version.to_owned(),
        ))
        .build();
    let of_its_own = Sampler::TraceIdRatioBased(config.sample);
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(service)
        .with_sampler(Sampler::ParentBased(Box::new(of_its_own)))
        .build();
    // A second one in the same process would be a second service, which it never is.
    drop(TRACER.set(provider.tracer(SERVICE)));
    Ok(Exporting(provider))
}

impl Exporting {
    /// Sends what is left.
    pub async fn end(self) {
        let end = move || self.0.shutdown_with_timeout(END_TIME_MAX);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(end).await {
            tracing::warn!(%error, "the last spans did not reach their collector");
        }
    }
}
