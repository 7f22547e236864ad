//! Heartbeats: a ping is stored as a closed event; definitions are accepted without effect.

use http::StatusCode;
use serde_json::json;

use super::{
    accepted_response, captured_segment, elapsed_seconds, parse_optional_body,
    search::search_alerts, unprocessable_error,
};
use crate::dialect::{
    DialectError, DialectResponse, IncomingRequest, Severity, Success, Translation,
    draft::EventDraft, json::Object,
};

/// Name of all heartbeats; a dimension distinguishes them.
const HEARTBEAT: &str = "opsgenie-heartbeat";
const DIMENSION: &str = "heartbeat";

pub(super) fn list_heartbeats(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    search_alerts(incoming, HEARTBEAT, |outcome| {
        let names = outcome.listed.results.iter();
        let names = names.filter_map(|event| event.dimensions.get(DIMENSION));
        let found: Vec<_> = names.map(|name| heartbeat_json(name)).collect();
        json!({"heartbeats": found})
    })
}

fn heartbeat_json(name: &str) -> serde_json::Value {
    json!({"name": name, "enabled": true, "expired": false})
}

/// Accepts the definition of a heartbeat, which is not stored.
pub(super) fn set_heartbeat(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    let body = parse_optional_body(incoming)?;
    let name = if let Some(name) = incoming.captures.first() {
        name.clone()
    } else {
        let body = Object::new(&body, "").map_err(unprocessable_error)?;
        let name = body.required_text("name").map_err(unprocessable_error)?;
        name.into_owned()
    };
    let status = if incoming.captures.is_empty() {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let request_id = incoming.fresh.to_owned();
    let success = Success::from_outcome(move |outcome| {
        let body = json!({
            "result": "Heartbeats are defined in Bellwether; the request had no effect",
            "data": heartbeat_json(&name),
            "took": elapsed_seconds(outcome.took),
            "requestId": request_id,
        });
        DialectResponse::json(status, &body)
    });
    Ok(Translation::from_events(Vec::new(), success))
}

#[expect(clippy::unnecessary_wraps, reason = "all paths share a function type")]
pub(super) fn ping_heartbeat(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    let mut draft = EventDraft::new(HEARTBEAT);
    draft.add_dimension(DIMENSION, captured_segment(incoming));
    draft.set_severity(Severity::Debug);
    draft.set_closed();
    let request_id = incoming.fresh.to_owned();
    let success = Success::from_outcome(move |outcome| {
        let result = "PONG - Heartbeat received";
        accepted_response(result, outcome, &request_id)
    });
    Ok(Translation::from_events(vec![draft.finish()], success))
}
