//! The part of Alertmanager's API with which Prometheus and `amtool` send alerts.

use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::json;

use super::{
    BodyLimit, Dialect, DialectError, DialectResponse, Endpoint, ErrorContext, IncomingRequest,
    Success, Translation, alert,
    json::{self, List, Value},
};

pub(super) const DIALECT: Dialect = Dialect {
    name: "prometheus",
    bodies: BodyLimit::Batches,
    is_json: |_| true,
    key_in_body: None,
    endpoints: &[
        Endpoint {
            method: Method::POST,
            path: "/api/v2/alerts",
            about: "Accepts alerts in the form that Prometheus sends to Alertmanager.",
            success: StatusCode::OK,
            open: false,
            read,
        },
        Endpoint {
            method: Method::GET,
            path: "/api/v2/status",
            about: "Reports that alerts are accepted, as Alertmanager does.",
            success: StatusCode::OK,
            open: true,
            read: status,
        },
    ],
    error_response,
};

/// A minimal valid Alertmanager configuration. In this service, rules determine the receivers.
const CONFIG: &str = "route:\n  receiver: \"null\"\nreceivers:\n  - name: \"null\"\n";

fn read(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    let batch = json::with_list(incoming.body, List::Root, |body, broken| {
        let Value::Array(alerts) = body else {
            return Err(DialectError::new_invalid(
                "the body must be a list of alerts",
            ));
        };
        Ok(alert::read_batch(alerts, "", broken, None, incoming))
    });
    batch?.into_translation(Success::from_outcome(|_| {
        DialectResponse::without_body(StatusCode::OK)
    }))
}

/// Returns the status, which `amtool` requests before it sends alerts.
#[expect(clippy::unnecessary_wraps, reason = "all paths share a function type")]
fn status(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    let since = Timestamp::from_millisecond(incoming.started_ms).unwrap_or_default();
    let version = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "revision": "",
        "branch": "",
        "buildUser": "",
        "buildDate": "",
        "goVersion": "",
    });
    let status = json!({
        "cluster": {"status": "disabled", "peers": []},
        "versionInfo": version,
        "config": {"original": CONFIG},
        "uptime": since.to_string(),
    });
    let success = Success::from_outcome(move |_| DialectResponse::json(StatusCode::OK, &status));
    Ok(Translation::from_events(Vec::new(), success))
}

/// Builds an error response; Alertmanager's errors are JSON strings.
fn error_response(_: &ErrorContext<'_>, error: &DialectError) -> DialectResponse {
    DialectResponse::json(error.status, &json!(error.message))
}
