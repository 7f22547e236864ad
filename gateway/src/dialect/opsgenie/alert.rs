//! Alerts: creating, changing and reading them.

use std::borrow::Cow;

use bellwether_proto::cloud::{Event, Severity as WireSeverity, Status};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::json;

use super::{
    action::{Action, processed_response},
    captured_segment, data_response, parse_optional_body,
    search::search_alerts,
    unprocessable_error,
};
use crate::dialect::{
    DialectError, IncomingRequest, Note, Severity, StoredEvent, Success, Translation,
    draft::EventDraft,
    identity,
    json::{self, Object, Value},
    quote_for_message,
};

/// Name of all events of this dialect; a dimension distinguishes them.
const NAME: &str = "opsgenie";
const ALIAS: &str = "alias";

const STORED: [&str; 9] = [
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

pub(super) fn create_alert(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    let body = json::parse_body(incoming.body)?;
    let (event, alias) = read_alert(&body, incoming.fresh).map_err(unprocessable_error)?;
    let success = processed_response(Action::Create, &alias, incoming.now_ms);
    Ok(Translation::from_events(vec![event], success))
}

fn read_alert(body: &Value<'_>, fresh: &str) -> Result<(Event, String), DialectError> {
    let alert = Object::new(body, "")?;
    let message = alert.required_text("message")?;
    let alias = alert.text(ALIAS).filter(|alias| !alias.is_empty());
    let alias = alias.map_or_else(|| fresh.to_owned(), Cow::into_owned);
    let mut draft = EventDraft::new(NAME);
    draft.add_dimension(ALIAS, &*alias);
    draft.set_summary(&message);
    draft.set_body(&alert.text("description").unwrap_or_default());
    draft.set_severity(match alert.get("priority") {
        Some(Value::Str(priority)) if !priority.is_empty() => parse_priority(priority)?,
        // Values other than text are stored unchanged.
        _ => Severity::Warning,
    });
    if alert.get("priority").is_none_or(|it| it.as_str().is_none()) {
        draft.store_members(&alert, &["priority"]);
    }
    draft.store_members(&alert, &STORED);
    Ok((draft.finish(), alias))
}

fn parse_priority(priority: &str) -> Result<Severity, DialectError> {
    severity(priority).ok_or_else(|| {
        let found = quote_for_message(priority);
        DialectError::new_invalid(format!("`priority` must be `P1` to `P5`, not {found}"))
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

fn priority_name(severity: i32) -> &'static str {
    match WireSeverity::try_from(severity) {
        Ok(WireSeverity::Critical) => "P1",
        Ok(WireSeverity::Error) => "P2",
        Ok(WireSeverity::Info) => "P4",
        Ok(WireSeverity::Debug) => "P5",
        _ => "P3",
    }
}

pub(super) fn close_alert(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    change_alert(incoming, Action::Close)
}

pub(super) fn acknowledge_alert(
    incoming: &IncomingRequest<'_>,
) -> Result<Translation, DialectError> {
    change_alert(incoming, Action::Acknowledge)
}

pub(super) fn delete_alert(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    change_alert(incoming, Action::Delete)
}

pub(super) fn get_alert(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    let alias = captured_segment(incoming).to_owned();
    check_identifier(incoming.query).map_err(unprocessable_error)?;
    let mut draft = EventDraft::new(NAME);
    draft.add_dimension(ALIAS, &*alias);
    let event = draft.finish();
    let request_id = incoming.fresh.to_owned();
    let query = identity::event_id(&event.name, &event.dimensions);
    let success = Success::from_outcome(move |outcome| {
        let found = outcome.found.as_ref();
        let data = found.map_or_else(Default::default, |found| alert_json(found, &alias));
        data_response(StatusCode::OK, &data, outcome, &request_id)
    });
    Ok(Translation {
        query: Some(query),
        ..Translation::from_events(Vec::new(), success)
    })
}

fn alert_json(event: &StoredEvent, alias: &str) -> serde_json::Value {
    let newest = event.occurrences.last().cloned().unwrap_or_default();
    let is_closed = newest.status == i32::from(Status::Closed);
    let time = |ms| {
        let moment = Timestamp::from_millisecond(ms).unwrap_or_default();
        moment.to_string()
    };
    let fields = newest.metadata_fields.unwrap_or_default().fields;
    let present = fields
        .iter()
        .map(|(name, value)| (name.clone(), json::to_json(value)));
    let mut alert: serde_json::Map<_, _> = present.collect();
    // Clients expect these entries to have an id, so entries without one are dropped.
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
        "priority": priority_name(newest.severity),
        "createdAt": time(newest.start_time),
        "lastOccurredAt": time(newest.last_seen),
        "updatedAt": time(newest.close_time.unwrap_or(newest.last_seen)),
    });
    if let serde_json::Value::Object(own) = own {
        alert.extend(own);
    }
    alert.into()
}

pub(super) fn add_note(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    change_alert(incoming, Action::AddNote)
}

pub(super) fn change_alert(
    incoming: &IncomingRequest<'_>,
    action: Action,
) -> Result<Translation, DialectError> {
    let alias = captured_segment(incoming);
    check_identifier(incoming.query).map_err(unprocessable_error)?;
    let body = parse_optional_body(incoming)?;
    let is_note = action == Action::AddNote;
    let mut text = note_text(&body, is_note).map_err(unprocessable_error)?;
    let mut draft = EventDraft::new(NAME);
    draft.add_dimension(ALIAS, alias);
    let mut is_event = true;
    let new = |name: &str| {
        let body = Object::new(&body, "").map_err(unprocessable_error)?;
        body.required_text(name).map_err(unprocessable_error)
    };
    match action {
        Action::Close | Action::Delete => draft.set_closed(),
        Action::Acknowledge => draft.set_acknowledged(true),
        Action::Unacknowledge => draft.set_acknowledged(false),
        Action::UpdateMessage => draft.set_summary(&new("message")?),
        Action::UpdateDescription => draft.set_body(&new("description")?),
        Action::UpdatePriority => {
            draft.set_severity(parse_priority(&new("priority")?).map_err(unprocessable_error)?);
        }
        other => {
            is_event = false;
            if !is_note {
                text = Some(action_note(other, incoming, &body));
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
        // The change must not reopen a closed alert.
        draft.set_update_only();
    }
    let event = draft.finish();
    let note = text.map(|text| Note {
        event_id: identity::event_id(&event.name, &event.dimensions),
        text,
        required: is_note,
    });
    let events = if is_event { vec![event] } else { Vec::new() };
    let success = processed_response(action, alias, incoming.now_ms);
    Ok(Translation {
        note,
        ..Translation::from_events(events, success)
    })
}

/// Checks the identifier type. All types refer to the alias, but an unknown type is an error.
fn check_identifier(query: &str) -> Result<(), DialectError> {
    const KINDS: [&str; 3] = ["id", "alias", "tiny"];
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut kinds = pairs.filter_map(|(key, value)| (key == "identifierType").then_some(value));
    match kinds.find(|kind| !KINDS.contains(kind)) {
        None => Ok(()),
        Some(other) => Err(DialectError::new_invalid(format!(
            "`identifierType` must be `id`, `alias` or `tiny`, not {}",
            quote_for_message(other)
        ))),
    }
}

fn note_text(body: &Value<'_>, is_required: bool) -> Result<Option<String>, DialectError> {
    let body = Object::new(body, "")?;
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

fn action_note(action: Action, incoming: &IncomingRequest<'_>, body: &Value<'_>) -> String {
    let (_, done) = action.name_and_result();
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

pub(super) fn list_alerts(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    search_alerts(incoming, NAME, |outcome| {
        let alerts = outcome.listed.results.iter().map(|event| {
            let alias = event.dimensions.get(ALIAS).map_or("", String::as_str);
            alert_json(event, alias)
        });
        alerts.collect()
    })
}

pub(super) fn count_alerts(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    search_alerts(incoming, NAME, |outcome| {
        let page = outcome.listed.page_info.clone().unwrap_or_default();
        let count = page.total_count.or(page.count).unwrap_or_default();
        json!({"count": count})
    })
}
