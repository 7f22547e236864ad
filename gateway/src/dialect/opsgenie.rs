//! Opsgenie's alert and heartbeat API, version 2: the parts that senders use.
//!
//! An alert is identified by its alias, regardless of the kind of identifier in a request.

mod action;
mod alert;
mod heartbeat;
mod search;

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;
use serde_json_borrow::ObjectAsVec;

use self::{
    action::{Action, get_request},
    alert::{
        acknowledge_alert, add_note, change_alert, close_alert, count_alerts, create_alert,
        delete_alert, get_alert, list_alerts,
    },
    heartbeat::{list_heartbeats, ping_heartbeat, set_heartbeat},
};
use super::{
    BodyLimit, Dialect, DialectError, DialectResponse, Endpoint, ErrorContext, IncomingRequest,
    Outcome, Translation,
    json::{self, Value},
};

pub(super) const DIALECT: Dialect = Dialect {
    name: "opsgenie",
    bodies: BodyLimit::Usual,
    is_json: |_| true,
    key_in_body: None,
    endpoints: &[
        endpoint(
            Method::POST,
            ALERTS,
            "Accepts an alert in Opsgenie's format.",
            create_alert,
        ),
        read_endpoint(
            Method::GET,
            ALERTS,
            "Lists Opsgenie alerts; the key must be allowed to read.",
            list_alerts,
        ),
        read_endpoint(
            Method::GET,
            "/v2/alerts/count",
            "Counts Opsgenie alerts; the key must be allowed to read.",
            count_alerts,
        ),
        endpoint(
            Method::POST,
            "/v2/alerts/{id}/close",
            "Closes an Opsgenie alert.",
            close_alert,
        ),
        endpoint(
            Method::POST,
            "/v2/alerts/{id}/acknowledge",
            "Acknowledges an Opsgenie alert.",
            acknowledge_alert,
        ),
        endpoint(
            Method::POST,
            "/v2/alerts/{id}/notes",
            "Adds a note to an Opsgenie alert; the key must be allowed to annotate.",
            add_note,
        ),
        endpoint(
            Method::DELETE,
            ALERT,
            "Closes an Opsgenie alert without deleting it.",
            delete_alert,
        ),
        read_endpoint(
            Method::GET,
            ALERT,
            "Returns an Opsgenie alert; the key must be allowed to read.",
            get_alert,
        ),
        read_endpoint(
            Method::GET,
            "/v2/alerts/requests/{id}",
            "Returns the status of a request to the Opsgenie API.",
            get_request,
        ),
        endpoint(
            Method::PUT,
            "/v2/alerts/{id}/message",
            "Changes the message of an Opsgenie alert.",
            |incoming| change_alert(incoming, Action::UpdateMessage),
        ),
        endpoint(
            Method::PUT,
            "/v2/alerts/{id}/description",
            "Changes the description of an Opsgenie alert.",
            |incoming| change_alert(incoming, Action::UpdateDescription),
        ),
        endpoint(
            Method::PUT,
            "/v2/alerts/{id}/priority",
            "Changes the priority of an Opsgenie alert.",
            |incoming| change_alert(incoming, Action::UpdatePriority),
        ),
        endpoint(
            Method::POST,
            "/v2/alerts/{id}/unacknowledge",
            "Removes the acknowledgement of an Opsgenie alert.",
            |incoming| change_alert(incoming, Action::Unacknowledge),
        ),
        note_endpoint("/v2/alerts/{id}/snooze", |it| {
            change_alert(it, Action::Snooze)
        }),
        note_endpoint("/v2/alerts/{id}/assign", |it| {
            change_alert(it, Action::Assign)
        }),
        note_endpoint("/v2/alerts/{id}/escalate", |it| {
            change_alert(it, Action::Escalate)
        }),
        note_endpoint("/v2/alerts/{id}/responders", |it| {
            change_alert(it, Action::AddResponder)
        }),
        note_endpoint("/v2/alerts/{id}/teams", |it| {
            change_alert(it, Action::AddTeam)
        }),
        note_endpoint("/v2/alerts/{id}/actions/{action}", |it| {
            change_alert(it, Action::Custom)
        }),
        note_endpoint("/v2/alerts/{id}/tags", |it| {
            change_alert(it, Action::AddTags)
        }),
        endpoint(Method::DELETE, "/v2/alerts/{id}/tags", NOTED, |it| {
            change_alert(it, Action::RemoveTags)
        }),
        note_endpoint("/v2/alerts/{id}/details", |it| {
            change_alert(it, Action::AddDetails)
        }),
        endpoint(Method::DELETE, "/v2/alerts/{id}/details", NOTED, |it| {
            change_alert(it, Action::RemoveDetails)
        }),
        read_endpoint(
            Method::GET,
            HEARTBEATS,
            "Lists Opsgenie heartbeats that were received; the key must be allowed to read.",
            list_heartbeats,
        ),
        Endpoint {
            method: Method::POST,
            path: HEARTBEATS,
            about: IGNORED_DEFINITION,
            success: StatusCode::CREATED,
            open: false,
            read: set_heartbeat,
        },
        read_endpoint(
            Method::GET,
            ONE_HEARTBEAT,
            "Returns an Opsgenie heartbeat.",
            set_heartbeat,
        ),
        read_endpoint(
            Method::PATCH,
            ONE_HEARTBEAT,
            IGNORED_DEFINITION,
            set_heartbeat,
        ),
        read_endpoint(
            Method::DELETE,
            ONE_HEARTBEAT,
            IGNORED_DEFINITION,
            set_heartbeat,
        ),
        read_endpoint(
            Method::POST,
            "/v2/heartbeats/{id}/enable",
            IGNORED_DEFINITION,
            set_heartbeat,
        ),
        read_endpoint(
            Method::POST,
            "/v2/heartbeats/{id}/disable",
            IGNORED_DEFINITION,
            set_heartbeat,
        ),
        endpoint(Method::GET, PING, PINGS, ping_heartbeat),
        endpoint(Method::POST, PING, PINGS, ping_heartbeat),
        endpoint(Method::PUT, PING, PINGS, ping_heartbeat),
        endpoint(Method::PATCH, PING, PINGS, ping_heartbeat),
    ],
    error_response,
};

const ALERTS: &str = "/v2/alerts";
const ALERT: &str = "/v2/alerts/{id}";
const NOTED: &str =
    "Adds a note about the action that Opsgenie would perform, if the key may annotate.";
const HEARTBEATS: &str = "/v2/heartbeats";
const ONE_HEARTBEAT: &str = "/v2/heartbeats/{id}";
const IGNORED_DEFINITION: &str =
    "Accepts and ignores an Opsgenie heartbeat definition; heartbeats are defined here.";
const PING: &str = "/v2/heartbeats/{id}/ping";
const PINGS: &str = "Accepts an Opsgenie heartbeat as a closed event.";

const fn endpoint(
    method: Method,
    path: &'static str,
    about: &'static str,
    read: fn(&IncomingRequest<'_>) -> Result<Translation, DialectError>,
) -> Endpoint {
    Endpoint {
        method,
        path,
        about,
        success: StatusCode::ACCEPTED,
        open: false,
        read,
    }
}

const fn read_endpoint(
    method: Method,
    path: &'static str,
    about: &'static str,
    read: fn(&IncomingRequest<'_>) -> Result<Translation, DialectError>,
) -> Endpoint {
    Endpoint {
        method,
        path,
        about,
        success: StatusCode::OK,
        open: false,
        read,
    }
}

const fn note_endpoint(
    path: &'static str,
    read: fn(&IncomingRequest<'_>) -> Result<Translation, DialectError>,
) -> Endpoint {
    endpoint(Method::POST, path, NOTED, read)
}

/// Returns the first captured segment. Every path that calls this function has one.
fn captured_segment<'a>(incoming: &IncomingRequest<'a>) -> &'a str {
    incoming.captures.first().map_or("", |id| &**id)
}

fn data_response(
    status: StatusCode,
    data: &serde_json::Value,
    outcome: &Outcome,
    request_id: &str,
) -> DialectResponse {
    let body = json!({
        "data": data,
        "took": elapsed_seconds(outcome.took),
        "requestId": request_id,
    });
    DialectResponse::json(status, &body)
}

fn parse_optional_body<'a>(incoming: &IncomingRequest<'a>) -> Result<Value<'a>, DialectError> {
    match incoming.body {
        [] => Ok(Value::Object(ObjectAsVec::default())),
        bytes => json::parse_body(bytes),
    }
}

fn accepted_response(result: &str, outcome: &Outcome, request_id: &str) -> DialectResponse {
    let body = json!({
        "result": result,
        "took": elapsed_seconds(outcome.took),
        "requestId": request_id,
    });
    DialectResponse::json(StatusCode::ACCEPTED, &body)
}

fn elapsed_seconds(took: Duration) -> f64 {
    // Rounded to milliseconds, as in Opsgenie.
    (took.as_secs_f64() * 1e3).round() / 1e3
}

/// Changes the status to 422, as Opsgenie does for an invalid body.
fn unprocessable_error(error: DialectError) -> DialectError {
    DialectError {
        status: StatusCode::UNPROCESSABLE_ENTITY,
        ..error
    }
}

fn error_response(context: &ErrorContext<'_>, error: &DialectError) -> DialectResponse {
    let body = json!({
        "message": error.message,
        "took": elapsed_seconds(context.took),
        "requestId": context.request_id,
    });
    DialectResponse::json(error.status, &body)
}
