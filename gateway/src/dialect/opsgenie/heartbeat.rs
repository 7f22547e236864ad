//! Heartbeats: a ping is stored as a closed event; definitions are accepted without effect.

use http::StatusCode;
use serde_json::json;

use super::{accepted, captured, optional_body, search::search, seconds, unprocessable};
use crate::dialect::{
    Answer, Fault, Incoming, Severity, Success, Translated, draft::Draft, json::Object,
};

/// Name of all heartbeats; the dimension distinguishes them.
const HEARTBEAT: &str = "opsgenie-heartbeat";
const DIMENSION: &str = "heartbeat";

pub(super) fn heartbeats(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    search(incoming, HEARTBEAT, |outcome| {
        let names = outcome.listed.results.iter();
        let names = names.filter_map(|event| event.dimensions.get(DIMENSION));
        let found: Vec<_> = names.map(|name| heartbeat(name)).collect();
        json!({"heartbeats": found})
    })
}

fn heartbeat(name: &str) -> serde_json::Value {
    json!({"name": name, "enabled": true, "expired": false})
}

/// Accepts the definition of a heartbeat, which is not stored.
pub(super) fn set_heartbeat(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    let body = optional_body(incoming)?;
    let name = if let Some(name) = incoming.captures.first() {
        name.clone()
    } else {
        let body = Object::of(&body, "").map_err(unprocessable)?;
        let name = body.required_text("name").map_err(unprocessable)?;
        name.into_owned()
    };
    let status = if incoming.captures.is_empty() {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let request_id = incoming.fresh.to_owned();
    let success = Success::whole(move |outcome| {
        let body = json!({
            "result": "Heartbeats are defined in Bellwether; nothing was changed",
            "data": heartbeat(&name),
            "took": seconds(outcome.took),
            "requestId": request_id,
        });
        Answer::json(status, &body)
    });
    Ok(Translated::of(Vec::new(), success))
}

#[expect(clippy::unnecessary_wraps, reason = "all paths share a function type")]
pub(super) fn ping(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    let mut draft = Draft::new(HEARTBEAT);
    draft.dimension(DIMENSION, captured(incoming));
    draft.severity(Severity::Debug);
    draft.closed();
    let request_id = incoming.fresh.to_owned();
    let success = Success::whole(move |outcome| {
        let result = "PONG - Heartbeat received";
        accepted(result, outcome, &request_id)
    });
    Ok(Translated::of(vec![draft.finish()], success))
}
