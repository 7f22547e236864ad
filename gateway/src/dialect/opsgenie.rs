//! Opsgenie's alert and heartbeat interface, version 2, as far as senders use it.
//!
//! An alert is known by its alias alone: whichever kind of identifier a request names, it is that.
//! Nothing is stored here, so the id of a request tells itself what the request was.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bellwether_proto::cloud::{Event, Severity as WireSeverity, Status};
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::json;
use serde_json_borrow::ObjectAsVec;

use super::{
    Answer, Bodies, Dialect, Endpoint, Fault, FaultContext, Incoming, Note, Outcome, Severity,
    StoredEvent, Success, Translated,
    draft::Draft,
    identity,
    json::{self, Object, Value},
    quoted,
};

/// The dialect.
pub(super) const DIALECT: Dialect = Dialect {
    name: "opsgenie",
    bodies: Bodies::Usual,
    key_in_body: None,
    endpoints: &[
        endpoint(
            Method::POST,
            "/v2/alerts",
            "Accepts an alert in Opsgenie's format.",
            create,
        ),
        endpoint(
            Method::POST,
            "/v2/alerts/{id}/close",
            "Closes an alert of Opsgenie.",
            close,
        ),
        endpoint(
            Method::POST,
            "/v2/alerts/{id}/acknowledge",
            "Acknowledges an alert of Opsgenie.",
            acknowledge,
        ),
        endpoint(
            Method::POST,
            "/v2/alerts/{id}/notes",
            "Writes a note on an alert of Opsgenie; the key has to be allowed to annotate.",
            note,
        ),
        endpoint(
            Method::DELETE,
            ALERT,
            "Closes an alert of Opsgenie; nothing is deleted.",
            delete,
        ),
        Endpoint {
            method: Method::GET,
            path: ALERT,
            about: "Answers an alert of Opsgenie; the key has to be allowed to read.",
            success: StatusCode::OK,
            open: false,
            read: get,
        },
        Endpoint {
            method: Method::GET,
            path: "/v2/alerts/requests/{id}",
            about: "Returns the status of a request to Opsgenie's interface.",
            success: StatusCode::OK,
            open: false,
            read: request,
        },
        endpoint(Method::GET, PING, PINGS, ping),
        endpoint(Method::POST, PING, PINGS, ping),
        endpoint(Method::PUT, PING, PINGS, ping),
        endpoint(Method::PATCH, PING, PINGS, ping),
    ],
    fault,
};

const ALERT: &str = "/v2/alerts/{id}";
const PING: &str = "/v2/heartbeats/{id}/ping";
const PINGS: &str = "Accepts an Opsgenie heartbeat, as a closed event.";

const fn endpoint(
    method: Method,
    path: &'static str,
    about: &'static str,
    read: fn(&Incoming<'_>) -> Result<Translated, Fault>,
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

/// The name of every alert of this dialect; the dimension tells them apart.
const NAME: &str = "opsgenie";
/// That dimension.
const ALIAS: &str = "alias";
/// The name of every heartbeat.
const HEARTBEAT: &str = "opsgenie-heartbeat";
/// What tells heartbeats apart.
const HEARTBEAT_NAME: &str = "heartbeat";

/// Members of an alert that are kept.
const KEPT: [&str; 9] = [
    "entity",
    "tags",
    "details",
    "source",
    "user",
    "note",
    "responders",
    "visibleTo",
    "actions",
];

/// What a request does to an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Create,
    Close,
    Acknowledge,
    AddNote,
    Delete,
}

impl Action {
    const ALL: [Self; 5] = [
        Self::Create,
        Self::Close,
        Self::Acknowledge,
        Self::AddNote,
        Self::Delete,
    ];

    /// Its name, and what is reported when it is done.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Create => ("Create", "Created alert"),
            Self::Close => ("Close", "Closed alert"),
            Self::Acknowledge => ("Acknowledge", "Acknowledged alert"),
            Self::AddNote => ("AddNote", "Note added"),
            Self::Delete => ("Delete", "Deleted alert"),
        }
    }
}

fn create(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    let body = json::body(incoming.body)?;
    let (event, alias) = alert(&body, incoming.fresh).map_err(unprocessable)?;
    let success = processed(Action::Create, &alias, incoming.now_ms);
    Ok(Translated::of(vec![event], success))
}

fn alert(body: &Value<'_>, fresh: &str) -> Result<(Event, String), Fault> {
    let alert = Object::of(body, "")?;
    let message = alert.required_text("message")?;
    let alias = alert.text(ALIAS)?.filter(|alias| !alias.is_empty());
    let alias = alias.unwrap_or(fresh).to_owned();
    let mut draft = Draft::new(NAME);
    draft.dimension(ALIAS, &*alias);
    draft.summary(message);
    draft.body(alert.text("description")?.unwrap_or_default());
    draft.severity(match alert.text("priority")? {
        None | Some("") => Severity::Warning,
        Some(priority) => severity(priority).ok_or_else(|| {
            let found = quoted(priority);
            Fault::invalid(format!("`priority` has to be `P1` to `P5`, and is {found}"))
        })?,
    });
    draft.keep_members(&alert, &KEPT);
    Ok((draft.finish(), alias))
}

fn severity(priority: &str) -> Option<Severity> {
    Some(match &*priority.to_uppercase() {
        "P1" => Severity::Critical,
        "P2" => Severity::Error,
        "P3" => Severity::Warning,
        "P4" => Severity::Info,
        "P5" => Severity::Debug,
        _ => return None,
    })
}

fn priority(severity: i32) -> &'static str {
    match WireSeverity::try_from(severity) {
        Ok(WireSeverity::Critical) => "P1",
        Ok(WireSeverity::Error) => "P2",
        Ok(WireSeverity::Info) => "P4",
        Ok(WireSeverity::Debug) => "P5",
        _ => "P3",
    }
}

fn close(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    change(incoming, Action::Close)
}

fn acknowledge(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    change(incoming, Action::Acknowledge)
}

fn delete(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    change(incoming, Action::Delete)
}

/// Answers the alert as it is stored.
fn get(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    let alias = captured(incoming).to_owned();
    check_identifier(incoming.query).map_err(unprocessable)?;
    let mut draft = Draft::new(NAME);
    draft.dimension(ALIAS, &*alias);
    let event = draft.finish();
    let request_id = incoming.fresh.to_owned();
    let query = identity::event_id(&event.name, &event.dimensions);
    let success = Success::whole(move |outcome| {
        let data = outcome.found.as_ref().map(|found| stored(found, &alias));
        let body = json!({
            "data": data,
            "took": seconds(outcome.took),
            "requestId": request_id,
        });
        Answer::json(StatusCode::OK, &body)
    });
    Ok(Translated {
        query: Some(query),
        ..Translated::of(Vec::new(), success)
    })
}

/// A stored event as Opsgenie describes an alert.
fn stored(event: &StoredEvent, alias: &str) -> serde_json::Value {
    let newest = event.occurrences.last().cloned().unwrap_or_default();
    let is_closed = newest.status == i32::from(Status::Closed);
    let time = |ms| {
        let moment = Timestamp::from_millisecond(ms).unwrap_or_default();
        moment.to_string()
    };
    let fields = newest.metadata_fields.unwrap_or_default().fields;
    let kept = fields
        .iter()
        .map(|(name, value)| (name.clone(), json::plain(value)));
    let mut alert: serde_json::Map<_, _> = kept.collect();
    let own = json!({
        "id": alias,
        "tinyId": newest.number.to_string(),
        "alias": alias,
        "message": newest.summary,
        "description": newest.body,
        "status": if is_closed { "closed" } else { "open" },
        "acknowledged": newest.acknowledged.unwrap_or_default(),
        "isSeen": newest.acknowledged.unwrap_or_default(),
        "owner": newest.assignee,
        "count": event.count.unwrap_or_default(),
        "priority": priority(newest.severity),
        "createdAt": time(newest.start_time),
        "lastOccurredAt": time(newest.last_seen),
        "updatedAt": time(newest.close_time.unwrap_or(newest.last_seen)),
    });
    if let serde_json::Value::Object(own) = own {
        alert.extend(own);
    }
    alert.into()
}

fn note(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    change(incoming, Action::AddNote)
}

/// Changes the alert that the path names.
fn change(incoming: &Incoming<'_>, action: Action) -> Result<Translated, Fault> {
    let alias = captured(incoming);
    check_identifier(incoming.query).map_err(unprocessable)?;
    let body = match incoming.body {
        [] => Value::Object(ObjectAsVec::default()),
        bytes => json::body(bytes)?,
    };
    let is_note = action == Action::AddNote;
    let text = note_text(&body, is_note).map_err(unprocessable)?;
    let mut draft = Draft::new(NAME);
    draft.dimension(ALIAS, alias);
    match action {
        Action::Close | Action::Delete => draft.closed(),
        Action::Acknowledge => draft.acknowledged(),
        Action::Create | Action::AddNote => {}
    }
    let event = draft.finish();
    let note = text.map(|text| Note {
        event_id: identity::event_id(&event.name, &event.dimensions),
        text,
        required: is_note,
    });
    let events = if is_note { Vec::new() } else { vec![event] };
    let success = processed(action, alias, incoming.now_ms);
    Ok(Translated {
        note,
        ..Translated::of(events, success)
    })
}

/// The captured segment; every path that is read has one.
fn captured<'a>(incoming: &Incoming<'a>) -> &'a str {
    incoming.captures.first().map_or("", |id| &**id)
}

/// All kinds of identifiers lead to the alias, but one that is misspelt is reported.
fn check_identifier(query: &str) -> Result<(), Fault> {
    const KINDS: [&str; 3] = ["id", "alias", "tiny"];
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut kinds = pairs.filter_map(|(key, value)| (key == "identifierType").then_some(value));
    match kinds.find(|kind| !KINDS.contains(kind)) {
        None => Ok(()),
        Some(other) => Err(Fault::invalid(format!(
            "`identifierType` has to be `id`, `alias` or `tiny`, and is {}",
            quoted(other)
        ))),
    }
}

/// The note of a request, with who wrote it.
fn note_text(body: &Value<'_>, is_required: bool) -> Result<Option<String>, Fault> {
    let body = Object::of(body, "")?;
    let note = if is_required {
        Some(body.required_text("note")?)
    } else {
        body.text("note")?.filter(|note| !note.trim().is_empty())
    };
    let user = body.text("user")?.filter(|user| !user.is_empty());
    Ok(note.map(|note| match user {
        Some(user) => format!("{user}: {note}"),
        None => note.to_owned(),
    }))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every path is read by a function of one kind"
)]
fn ping(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    let mut draft = Draft::new(HEARTBEAT);
    draft.dimension(HEARTBEAT_NAME, captured(incoming));
    draft.severity(Severity::Debug);
    draft.closed();
    let request_id = incoming.fresh.to_owned();
    let success = Success::whole(move |outcome| {
        let result = "PONG - Heartbeat received";
        accepted(result, outcome, &request_id)
    });
    Ok(Translated::of(vec![draft.finish()], success))
}

/// Says that a request was carried out, under an id that reports what it was.
fn processed(action: Action, alias: &str, now_ms: i64) -> Success {
    let (name, _) = action.words();
    let request_id = URL_SAFE_NO_PAD.encode(format!("{name}\n{now_ms}\n{alias}"));
    Success::whole(move |outcome| {
        let mut result = "Request will be processed".to_owned();
        if let Some(why) = &outcome.note_lost {
            result = format!("{result}; its note is not kept: {why}");
        }
        accepted(&result, outcome, &request_id)
    })
}

fn accepted(result: &str, outcome: &Outcome, request_id: &str) -> Answer {
    let body = json!({
        "result": result,
        "took": seconds(outcome.took),
        "requestId": request_id,
    });
    Answer::json(StatusCode::ACCEPTED, &body)
}

fn request(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    let request_id = captured(incoming).to_owned();
    let Some((action, at_ms, alias)) = carried_out(&request_id) else {
        let message = "Request not found: it is none that was answered here";
        return Err(Fault::new(StatusCode::NOT_FOUND, message));
    };
    let (name, status) = action.words();
    let data = json!({
        "success": true,
        "isSuccess": true,
        "action": name,
        "status": status,
        "processedAt": Timestamp::from_millisecond(at_ms).unwrap_or_default().to_string(),
        "integrationId": "",
        "alertId": alias,
        "alias": alias,
    });
    let success = Success::whole(move |outcome| {
        let body = json!({
            "data": data,
            "took": seconds(outcome.took),
            "requestId": request_id,
        });
        Answer::json(StatusCode::OK, &body)
    });
    Ok(Translated::of(Vec::new(), success))
}

/// What a request did, and to which alert: read from its id.
fn carried_out(request_id: &str) -> Option<(Action, i64, String)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(request_id).ok()?).ok()?;
    let (name, rest) = text.split_once('\n')?;
    let (at_ms, alias) = rest.split_once('\n')?;
    let action = Action::ALL.into_iter().find(|it| it.words().0 == name)?;
    Some((action, at_ms.parse().ok()?, alias.to_owned()))
}

fn seconds(took: Duration) -> f64 {
    // Milliseconds are as exact as Opsgenie is.
    (took.as_secs_f64() * 1e3).round() / 1e3
}

/// Opsgenie reports on a body that says something wrong with 422.
fn unprocessable(fault: Fault) -> Fault {
    Fault {
        status: StatusCode::UNPROCESSABLE_ENTITY,
        ..fault
    }
}

fn fault(context: &FaultContext<'_>, fault: &Fault) -> Answer {
    let body = json!({
        "message": fault.message,
        "took": seconds(context.took),
        "requestId": context.request_id,
    });
    Answer::json(fault.status, &body)
}
