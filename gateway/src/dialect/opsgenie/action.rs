//! The actions of a request, and later queries for their outcome. Request ids are not stored, so an
//! id encodes the request.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::json;

use super::{accepted_response, captured_segment, data_response};
use crate::dialect::{DialectError, IncomingRequest, Success, Translation};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
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

    /// Returns the name of the action and the text of its result.
    pub(super) fn name_and_result(self) -> (&'static str, &'static str) {
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

/// Builds the response for a processed request, with an id that encodes it.
pub(super) fn processed_response(action: Action, alias: &str, now_ms: i64) -> Success {
    let (name, _) = action.name_and_result();
    let request_id = URL_SAFE_NO_PAD.encode(format!("{name}\n{now_ms}\n{alias}"));
    Success::from_outcome(move |outcome| {
        let mut result = "Request will be processed".to_owned();
        if let Some(why) = &outcome.note_lost {
            result = format!("{result}; its note was not stored: {why}");
        }
        accepted_response(&result, outcome, &request_id)
    })
}

pub(super) fn get_request(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    let request_id = captured_segment(incoming).to_owned();
    let Some((action, at_ms, alias)) = decode_request_id(&request_id) else {
        let message = "Request not found: it was not handled here";
        return Err(DialectError::new(StatusCode::NOT_FOUND, message));
    };
    let (name, status) = action.name_and_result();
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
    let success = Success::from_outcome(move |outcome| {
        data_response(StatusCode::OK, &data, outcome, &request_id)
    });
    Ok(Translation::from_events(Vec::new(), success))
}

fn decode_request_id(request_id: &str) -> Option<(Action, i64, String)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(request_id).ok()?).ok()?;
    let (name, rest) = text.split_once('\n')?;
    let (at_ms, alias) = rest.split_once('\n')?;
    let action = Action::ALL
        .into_iter()
        .find(|it| it.name_and_result().0 == name)?;
    Some((action, at_ms.parse().ok()?, alias.to_owned()))
}
