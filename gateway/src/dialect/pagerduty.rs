//! PagerDuty's Events API, version 2: alerts and changes.

use std::borrow::Cow;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    BodyLimit, Dialect, DialectError, DialectResponse, Endpoint, ErrorContext, IncomingRequest,
    Severity, Success, Translation,
    draft::EventDraft,
    json::{self, Object},
    quote_for_message,
};
use crate::limits;

pub(super) const DIALECT: Dialect = Dialect {
    name: "pagerduty",
    bodies: BodyLimit::Small(limits::PAGERDUTY_BODY_BYTES),
    is_json: |_| true,
    key_in_body: Some(find_routing_key),
    endpoints: &[
        Endpoint {
            method: Method::POST,
            path: "/v2/enqueue",
            about: "Accepts a PagerDuty event: trigger, acknowledge or resolve.",
            success: StatusCode::ACCEPTED,
            open: false,
            read: enqueue_event,
        },
        Endpoint {
            method: Method::POST,
            path: "/v2/change/enqueue",
            about: "Accepts a PagerDuty change event, stored as closed.",
            success: StatusCode::ACCEPTED,
            open: false,
            read: enqueue_change,
        },
    ],
    error_response,
};

/// Name of all events of this dialect; a dimension distinguishes them.
const NAME: &str = "pagerduty";
const DEDUP_KEY: &str = "dedup_key";
const CHANGE: &str = "change";

const STORED: [&str; 7] = [
    "source",
    "severity",
    "timestamp",
    "component",
    "group",
    "class",
    "custom_details",
];
const STORED_AROUND: [&str; 4] = ["client", "client_url", "links", "images"];

fn find_routing_key(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let key = body.get("routing_key")?.as_str()?.trim();
    (!key.is_empty()).then(|| key.to_owned())
}

fn enqueue_event(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    let body = json::parse_body(incoming.body)?;
    let message = Object::new(&body, "")?;
    let (mut wrong, mut draft) = (Vec::new(), EventDraft::new(NAME));
    let action = collect_error(&mut wrong, message.required_text("event_action"));
    let is_known = |action: &str| ["trigger", "acknowledge", "resolve"].contains(&action);
    let action = action.as_deref();
    if let Some(other) = action.filter(|action| !is_known(action)) {
        wrong.push(format!(
            "`event_action` must be `trigger`, `acknowledge` or `resolve`, not {}",
            quote_for_message(other)
        ));
    }
    let key = message.text(DEDUP_KEY).filter(|key| !key.is_empty());
    let is_trigger = action == Some("trigger");
    if key.is_none() && !is_trigger && action.is_some() {
        wrong.push(format!(
            "`{DEDUP_KEY}` is required to acknowledge or resolve"
        ));
    }
    let payload = match message.object("payload") {
        // Only a trigger requires an object; for other actions, the payload can have any type.
        Err(_no_object) if !is_trigger => {
            draft.store_members(&message, &["payload"]);
            None
        }
        read => collect_error(&mut wrong, read).flatten(),
    };
    if payload.is_none() && is_trigger && wrong.is_empty() {
        wrong.push("`payload` is required".into());
    }
    let key = key.map_or_else(|| incoming.fresh.to_owned(), Cow::into_owned);
    draft.add_dimension(DEDUP_KEY, &*key);
    match action {
        Some("acknowledge") => draft.set_acknowledged(true),
        Some("resolve") => draft.set_closed(),
        _ => {}
    }
    if let Some(payload) = &payload {
        fill_payload(&mut draft, payload, is_trigger, &mut wrong);
    }
    draft.store_members(&message, &STORED_AROUND);
    if !wrong.is_empty() {
        return Err(DialectError::from_all(wrong));
    }
    let answer = json!({"status": "success", "message": "Event processed", "dedup_key": key});
    let success =
        Success::from_outcome(move |_| DialectResponse::json(StatusCode::ACCEPTED, &answer));
    Ok(Translation::from_events(vec![draft.finish()], success))
}

/// Copies the payload. A trigger requires some members that are optional for other actions.
fn fill_payload(
    draft: &mut EventDraft,
    payload: &Object<'_>,
    is_trigger: bool,
    wrong: &mut Vec<String>,
) {
    for name in ["summary", "source", "severity"] {
        if is_trigger {
            collect_error(wrong, payload.required_text(name));
        }
    }
    if let Some(summary) = payload.text("summary") {
        draft.set_summary(&summary);
    }
    if let Some(class) = payload.text("class") {
        draft.set_kind(&class);
    }
    match payload.text("severity") {
        Some(word) if !word.is_empty() => match parse_severity(&word) {
            Some(severity) => draft.set_severity(severity),
            None => wrong.push(format!(
                "`payload.severity` must be `critical`, `error`, `warning` or `info`, not {}",
                quote_for_message(&word)
            )),
        },
        _ => {}
    }
    draft.store_members(payload, &STORED);
}

fn parse_severity(word: &str) -> Option<Severity> {
    let known = Severity::from_known_name(word);
    known.filter(|it| *it != Severity::Debug)
}

fn enqueue_change(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    let body = json::parse_body(incoming.body)?;
    let message = Object::new(&body, "")?;
    let Some(payload) = message.object("payload")? else {
        return Err(DialectError::from_all(vec!["`payload` is required".into()]));
    };
    let summary = payload.required_text("summary")?;
    let mut draft = EventDraft::new(NAME);
    draft.add_dimension(DEDUP_KEY, incoming.fresh);
    draft.set_kind(CHANGE);
    draft.set_severity(Severity::Info);
    draft.set_summary(&summary);
    draft.set_closed();
    draft.store_members(&payload, &STORED);
    draft.store_members(&message, &STORED_AROUND);
    let answer = json!({"status": "success", "message": "Change event processed"});
    let success =
        Success::from_outcome(move |_| DialectResponse::json(StatusCode::ACCEPTED, &answer));
    Ok(Translation::from_events(vec![draft.finish()], success))
}

fn collect_error<T>(wrong: &mut Vec<String>, read: Result<T, DialectError>) -> Option<T> {
    read.map_err(|error| wrong.push(error.message)).ok()
}

/// Builds an error response as PagerDuty does. An invalid key also causes 400, because some
/// PagerDuty clients retry after a 403.
fn error_response(_: &ErrorContext<'_>, error: &DialectError) -> DialectResponse {
    let (status, word, message) = match error.status {
        StatusCode::TOO_MANY_REQUESTS => (
            error.status,
            "throttle exceeded",
            "Requests are arriving too quickly",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => (error.status, "invalid event", "Event is too large"),
        other if other.is_server_error() => (other, "error", "Event was not processed"),
        _ => (
            StatusCode::BAD_REQUEST,
            "invalid event",
            "Event object is invalid",
        ),
    };
    let each = if error.each.is_empty() {
        vec![error.message.clone()]
    } else {
        error.each.clone()
    };
    let body = json!({"status": word, "message": message, "errors": each});
    DialectResponse::json(status, &body)
}
