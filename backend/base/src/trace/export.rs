//! Exports spans to a collector with OTLP over gRPC.

use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithTonicConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SdkTracerProvider},
};
use tonic::transport::ClientTlsConfig;

use super::TRACER;

const SERVICE: &str = "bellwether";
/// Timeout of an export. Spans that do not fit into memory during the export are lost.
const EXPORT_TIME_MAX: Duration = Duration::from_secs(10);
const END_TIME_MAX: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, PartialEq)]
pub struct TraceConfig {
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    pub endpoint: String,
    /// Fraction of events without a trace that begin a trace, from 0 to 1. For events with a trace,
    /// the sender decides.
    pub sample: f64,
}

#[derive(Debug, thiserror::Error)]
#[error("traces.endpoint: {0}")]
pub struct TraceConfigError(String);

#[derive(Debug)]
pub struct TraceExport(SdkTracerProvider);

/// Starts sending the spans of this process to a collector, which need not be reachable yet. Must
/// be called at most once.
///
/// # Errors
pub fn start_export(config: &TraceConfig, version: &str) -> Result<TraceExport, TraceConfigError> {
    let bad = |error: &dyn std::fmt::Display| TraceConfigError(error.to_string());
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
    // Fails only if the process runs a second service, which never happens.
    drop(TRACER.set(provider.tracer(SERVICE)));
    Ok(TraceExport(provider))
}

impl TraceExport {
    pub async fn shut_down(self) {
        let end = move || self.0.shutdown_with_timeout(END_TIME_MAX);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(end).await {
            tracing::warn!(%error, "failed to send the last spans to the collector");
        }
    }
}
