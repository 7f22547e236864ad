//! Opsgenie's alert and heartbeat API, version 2, as far as senders use it.
//!
//! An alert is identified by its alias, whichever kind of identifier a request uses. Request ids
//! are not stored, so an id encodes the request itself.

use std::{borrow::Cow, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bellwether_proto::{
    cloud::{Event, Severity as WireSeverity, Status},
    v1::{EventQuery, PageInput, SearchEventsRequest},
};
use http::{Method, StatusCode};
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
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

pub(super) const DIALECT: Dialect = Dialect {
    name: "opsgenie",
    bodies: Bodies::Usual,
    is_json: |_| true,
    key_in_body: None,
    endpoints: &[
        endpoint(
            Method::POST,
            ALERTS,
            "Accepts an alert in Opsgenie's format.",
            create,
        ),
        reading(
            Method::GET,
            ALERTS,
            "Lists alerts of Opsgenie; the key has to be allowed to read.",
            list,
        ),
        reading(
            Method::GET,
            "/v2/alerts/count",
            "Counts alerts of Opsgenie; the key has to be allowed to read.",
            count,
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
        reading(
            Method::GET,
            ALERT,
            "Returns an alert of Opsgenie; the key has to be allowed to read.",
            get,
        ),
        reading(
            Method::GET,
            "/v2/alerts/requests/{id}",
            "Returns the status of a request to Opsgenie's interface.",
            request,
        ),
        endpoint(
            Method::PUT,
            "/v2/alerts/{id}/message",
            "Changes the message of an alert of Opsgenie.",
            |incoming| change(incoming, Action::UpdateMessage),
        ),
        endpoint(
            Method::PUT,
            "/v2/alerts/{id}/description",
            "Changes the description of an alert of Opsgenie.",
            |incoming| change(incoming, Action::UpdateDescription),
        ),
        endpoint(
            Method::PUT,
            "/v2/alerts/{id}/priority",
            "Changes the priority of an alert of Opsgenie.",
            |incoming| change(incoming, Action::UpdatePriority),
        ),
        endpoint(
            Method::POST,
            "/v2/alerts/{id}/unacknowledge",
            "Takes the acknowledgement of an alert of Opsgenie back.",
            |incoming| change(incoming, Action::Unacknowledge),
        ),
        noted("/v2/alerts/{id}/snooze", |it| change(it, Action::Snooze)),
        noted("/v2/alerts/{id}/assign", |it| change(it, Action::Assign)),
        noted("/v2/alerts/{id}/escalate", |it| {
            change(it, Action::Escalate)
        }),
        noted("/v2/alerts/{id}/responders", |it| {
            change(it, Action::AddResponder)
        }),
        noted("/v2/alerts/{id}/teams", |it| change(it, Action::AddTeam)),
        noted("/v2/alerts/{id}/actions/{action}", |it| {
            change(it, Action::Custom)
        }),
        noted("/v2/alerts/{id}/tags", |it| change(it, Action::AddTags)),
        endpoint(Method::DELETE, "/v2/alerts/{id}/tags", NOTED, |it| {
            change(it, Action::RemoveTags)
        }),
        noted("/v2/alerts/{id}/details", |it| {
            change(it, Action::AddDetails)
        }),
        endpoint(Method::DELETE, "/v2/alerts/{id}/details", NOTED, |it| {
            change(it, Action::RemoveDetails)
        }),
        reading(
            Method::GET,
            HEARTBEATS,
            "Lists heartbeats of Opsgenie that were received; the key has to be allowed to read.",
            heartbeats,
        ),
        Endpoint {
            method: Method::POST,
            path: HEARTBEATS,
            about: KEPT_ELSEWHERE,
            success: StatusCode::CREATED,
            open: false,
            read: set_heartbeat,
        },
        reading(
            Method::GET,
            ONE_HEARTBEAT,
            "Returns a heartbeat of Opsgenie.",
            set_heartbeat,
        ),
        reading(Method::PATCH, ONE_HEARTBEAT, KEPT_ELSEWHERE, set_heartbeat),
        reading(Method::DELETE, ONE_HEARTBEAT, KEPT_ELSEWHERE, set_heartbeat),
        reading(
            Method::POST,
            "/v2/heartbeats/{id}/enable",
            KEPT_ELSEWHERE,
            set_heartbeat,
        ),
        reading(
            Method::POST,
            "/v2/heartbeats/{id}/disable",
            KEPT_ELSEWHERE,
            set_heartbeat,
        ),
        endpoint(Method::GET, PING, PINGS, ping),
        endpoint(Method::POST, PING, PINGS, ping),
        endpoint(Method::PUT, PING, PINGS, ping),
        endpoint(Method::PATCH, PING, PINGS, ping),
    ],
    fault,
};

const ALERTS: &str = "/v2/alerts";
const ALERT: &str = "/v2/alerts/{id}";
const NOTED: &str =
    "Writes a note on what Opsgenie would do with an alert, if the key may annotate.";
const HEARTBEATS: &str = "/v2/heartbeats";
const ONE_HEARTBEAT: &str = "/v2/heartbeats/{id}";
const KEPT_ELSEWHERE: &str =
    "Accepts a definition of an Opsgenie heartbeat without effect: heartbeats are defined here.";
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

const fn reading(
    method: Method,
    path: &'static str,
    about: &'static str,
    read: fn(&Incoming<'_>) -> Result<Translated, Fault>,
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

const fn noted(
    path: &'static str,
    read: fn(&Incoming<'_>) -> Result<Translated, Fault>,
) -> Endpoint {
    endpoint(Method::POST, path, NOTED, read)
}

/// Name of every alert of this dialect; the dimension distinguishes them.
const NAME: &str = "opsgenie";
const ALIAS: &str = "alias";
/// Name of every heartbeat; the dimension distinguishes them.
const HEARTBEAT: &str = "opsgenie-heartbeat";
const LIST_USUAL: i32 = 20;
const LIST_MAX: i32 = 100;
const HEARTBEAT_NAME: &str = "heartbeat";

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Create,
    Close,
    Acknowledge,
    Unacknowledge,
    AddNote,
    Delete,
    UpdateMessage,
    UpdateDescription,
    UpdatePriority,
    Snooze,
    Assign,
    Escalate,
    AddResponder,
    AddTeam,
    Custom,
    AddTags,
    RemoveTags,
    AddDetails,
    RemoveDetails,
}

impl Action {
    const ALL: [Self; 19] = [
        Self::Create,
        Self::Close,
        Self::Acknowledge,
        Self::Unacknowledge,
        Self::AddNote,
        Self::Delete,
        Self::UpdateMessage,
        Self::UpdateDescription,
        Self::UpdatePriority,
        Self::Snooze,
        Self::Assign,
        Self::Escalate,
        Self::AddResponder,
        Self::AddTeam,
        Self::Custom,
        Self::AddTags,
        Self::RemoveTags,
        Self::AddDetails,
        Self::RemoveDetails,
    ];

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Create => ("Create", "Created alert"),
            Self::Close => ("Close", "Closed alert"),
            Self::Acknowledge => ("Acknowledge", "Acknowledged alert"),
            Self::Unacknowledge => ("UnAcknowledge", "UnAcknowledged alert"),
            Self::UpdateMessage => ("UpdateMessage", "Message updated"),
            Self::UpdateDescription => ("UpdateDescription", "Description updated"),
            Self::UpdatePriority => ("UpdatePriority", "Priority updated"),
            Self::Snooze => ("Snooze", "Snoozed alert"),
            Self::Assign => ("Assign", "Assigned alert"),
            Self::Escalate => ("Escalate", "Escalated alert"),
            Self::AddResponder => ("AddResponder", "Responder added"),
            Self::AddTeam => ("AddTeam", "Team added"),
            Self::Custom => ("ExecuteCustomAction", "Custom action executed"),
            Self::AddTags => ("AddTags", "Tags added"),
            Self::RemoveTags => ("RemoveTags", "Tags removed"),
            Self::AddDetails => ("AddDetails", "Details added"),
            Self::RemoveDetails => ("RemoveDetails", "Details removed"),
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
    let alias = alert.text(ALIAS).filter(|alias| !alias.is_empty());
    let alias = alias.map_or_else(|| fresh.to_owned(), Cow::into_owned);
    let mut draft = Draft::new(NAME);
    draft.dimension(ALIAS, &*alias);
    draft.summary(&message);
    draft.body(&alert.text("description").unwrap_or_default());
    draft.severity(match alert.get("priority") {
        Some(Value::Str(priority)) if !priority.is_empty() => stated(priority)?,
        // Values other than text are stored unchanged.
        _ => Severity::Warning,
    });
    if alert.get("priority").is_none_or(|it| it.as_str().is_none()) {
        draft.keep_members(&alert, &["priority"]);
    }
    draft.keep_members(&alert, &KEPT);
    Ok((draft.finish(), alias))
}

fn stated(priority: &str) -> Result<Severity, Fault> {
    severity(priority).ok_or_else(|| {
        let found = quoted(priority);
        Fault::invalid(format!("`priority` has to be `P1` to `P5`, and is {found}"))
    })
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
    // Clients expect an id, so entries with only a name are dropped.
    for list in ["responders", "visibleTo"] {
        if let Some(serde_json::Value::Array(list)) = alert.get_mut(list) {
            list.retain(|it| it["id"].is_string());
        }
    }
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

fn change(incoming: &Incoming<'_>, action: Action) -> Result<Translated, Fault> {
    let alias = captured(incoming);
    check_identifier(incoming.query).map_err(unprocessable)?;
    let body = match incoming.body {
        [] => Value::Object(ObjectAsVec::default()),
        bytes => json::body(bytes)?,
    };
    let is_note = action == Action::AddNote;
    let mut text = note_text(&body, is_note).map_err(unprocessable)?;
    let mut draft = Draft::new(NAME);
    draft.dimension(ALIAS, alias);
    let mut is_event = true;
    let new = |name: &str| {
        let body = Object::of(&body, "").map_err(unprocessable)?;
        body.required_text(name).map_err(unprocessable)
    };
    match action {
        Action::Close | Action::Delete => draft.closed(),
        Action::Acknowledge => draft.acknowledged(true),
        Action::Unacknowledge => draft.acknowledged(false),
        Action::UpdateMessage => draft.summary(&new("message")?),
        Action::UpdateDescription => draft.body(&new("description")?),
        Action::UpdatePriority => {
            draft.severity(stated(&new("priority")?).map_err(unprocessable)?);
        }
        other => {
            is_event = false;
            if !is_note {
                text = Some(note_of(other, incoming, &body));
            }
        }
    }
    if matches!(
        action,
        Action::Unacknowledge
            | Action::UpdateMessage
            | Action::UpdateDescription
            | Action::UpdatePriority
    ) {
        // A closed alert stays closed.
        draft.update_only();
    }
    let event = draft.finish();
    let note = text.map(|text| Note {
        event_id: identity::event_id(&event.name, &event.dimensions),
        text,
        required: is_note,
    });
    let events = if is_event { vec![event] } else { Vec::new() };
    let success = processed(action, alias, incoming.now_ms);
    Ok(Translated {
        note,
        ..Translated::of(events, success)
    })
}

/// Returns the captured segment, which every such path has.
fn captured<'a>(incoming: &Incoming<'a>) -> &'a str {
    incoming.captures.first().map_or("", |id| &**id)
}

/// Checks the identifier type. All types refer to the alias, but an unknown one is an error.
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

fn note_text(body: &Value<'_>, is_required: bool) -> Result<Option<String>, Fault> {
    let body = Object::of(body, "")?;
    let note = if is_required {
        Some(body.required_text("note")?)
    } else {
        body.text("note").filter(|note| !note.trim().is_empty())
    };
    let user = body.text("user").filter(|user| !user.is_empty());
    Ok(note.map(|note| match user {
        Some(user) => format!("{user}: {note}"),
        None => note.into_owned(),
    }))
}

/// Returns a note about an action that only Opsgenie supports, with its details.
fn note_of(action: Action, incoming: &Incoming<'_>, body: &Value<'_>) -> String {
    let (_, done) = action.words();
    let mut parts = vec![match (action, incoming.captures.get(1)) {
        (Action::Custom, Some(name)) => format!("Opsgenie: {done}: {name}"),
        _ => format!("Opsgenie: {done}"),
    }];
    if let Value::Object(members) = body {
        let members = members.iter().filter(|(_, value)| !value.is_null());
        parts.extend(members.map(|(name, value)| match value {
            Value::Str(text) => format!("{name}: {text}"),
            other => format!("{name}: {other}"),
        }));
    }
    if !incoming.query.is_empty() {
        parts.push(incoming.query.to_owned());
    }
    parts.join("\n")
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every path is read by a function of one kind"
)]
fn list(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    let request_id = incoming.fresh.to_owned();
    let answer = move |outcome: &Outcome| {
        let alerts = outcome.listed.results.iter().map(|event| {
            let alias = event.dimensions.get(ALIAS).map_or("", String::as_str);
            stored(event, alias)
        });
        let data: serde_json::Value = alerts.collect();
        let body = json!({"data": data, "took": seconds(outcome.took), "requestId": request_id});
        Answer::json(StatusCode::OK, &body)
    };
    Ok(search(incoming, NAME, answer))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every path is read by a function of one kind"
)]
fn count(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    let request_id = incoming.fresh.to_owned();
    let answer = move |outcome: &Outcome| {
        let page = outcome.listed.page_info.clone().unwrap_or_default();
        let count = page.total_count.or(page.count).unwrap_or_default();
        let body = json!({
            "data": {"count": count},
            "took": seconds(outcome.took),
            "requestId": request_id,
        });
        Answer::json(StatusCode::OK, &body)
    };
    Ok(search(incoming, NAME, answer))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every path is read by a function of one kind"
)]
fn heartbeats(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    let request_id = incoming.fresh.to_owned();
    let answer = move |outcome: &Outcome| {
        let names = outcome.listed.results.iter();
        let names = names.filter_map(|event| event.dimensions.get(HEARTBEAT_NAME));
        let found: Vec<_> = names.map(|name| heartbeat(name)).collect();
        let body = json!({
            "data": {"heartbeats": found},
            "took": seconds(outcome.took),
            "requestId": request_id,
        });
        Answer::json(StatusCode::OK, &body)
    };
    Ok(search(incoming, HEARTBEAT, answer))
}

fn heartbeat(name: &str) -> serde_json::Value {
    json!({"name": name, "enabled": true, "expired": false})
}

/// Accepts the definition of a heartbeat, which is not stored.
fn set_heartbeat(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    let body = match incoming.body {
        [] => Value::Object(ObjectAsVec::default()),
        bytes => json::body(bytes)?,
    };
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

/// Searches for events of that name, using `status` and the words of an Opsgenie query.
fn search(
    incoming: &Incoming<'_>,
    name: &str,
    answer: impl FnOnce(&Outcome) -> Answer + Send + 'static,
) -> Translated {
    let find = |wanted: &str| {
        let mut pairs = incoming
            .query
            .split('&')
            .filter_map(|it| it.split_once('='));
        let (_, value) = pairs.find(|(key, _)| *key == wanted)?;
        let value = value.replace('+', " ");
        Some(percent_decode_str(&value).decode_utf8_lossy().into_owned())
    };
    let mut filter = format!("name={name}");
    let query = find("query").unwrap_or_default().to_lowercase();
    let query = query.replace(": ", ":").replace('=', ":");
    for (word, statuses) in [("open", "open, suppressed"), ("closed", "closed")] {
        if query
            .split_whitespace()
            .any(|it| it == format!("status:{word}"))
        {
            filter += " status in (";
            filter += statuses;
            filter.push(')');
        }
    }
    let number = |wanted: &str| find(wanted).and_then(|it| it.parse().ok());
    let limit = number("limit").unwrap_or(LIST_USUAL).clamp(1, LIST_MAX);
    Translated {
        search: Some(SearchEventsRequest {
            query: Some(EventQuery {
                filter,
                page_input: Some(PageInput {
                    limit,
                    ..PageInput::default()
                }),
                ..EventQuery::default()
            }),
        }),
        ..Translated::of(Vec::new(), Success::whole(answer))
    }
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

/// Builds the response for a processed request, with an id that encodes it.
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

/// Decodes action, time and alias from a request id.
fn carried_out(request_id: &str) -> Option<(Action, i64, String)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(request_id).ok()?).ok()?;
    let (name, rest) = text.split_once('\n')?;
    let (at_ms, alias) = rest.split_once('\n')?;
    let action = Action::ALL.into_iter().find(|it| it.words().0 == name)?;
    Some((action, at_ms.parse().ok()?, alias.to_owned()))
}

fn seconds(took: Duration) -> f64 {
    // Rounded to milliseconds, as in Opsgenie.
    (took.as_secs_f64() * 1e3).round() / 1e3
}

/// Opsgenie returns 422 for an invalid body.
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
