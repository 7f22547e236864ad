//! Calls about resources of any kind, and parsers of their responses.

use bellwether_proto::v1;
use serde_json::{Value, json};

use super::{
    call::{Call, CallResult, decode_json, message, parse_empty},
    outcome::WriteOutcome,
};
use crate::{
    data::{Failure, Kind, Object},
    kind, limits,
};

pub(crate) fn list(kind: Kind, page_token: &str) -> Call {
    let spec = kind::spec(kind);
    let body = json!({"pageSize": limits::RESOURCE_PAGE, "pageToken": page_token});
    Call::new(spec.service, spec.list, body)
}

/// Returns the resources of a page, and the token of the next page, which is empty at the end.
pub(crate) fn parse_list(kind: Kind, answer: CallResult) -> Result<(Vec<Object>, String), Failure> {
    let mut page = decode_json(kind::spec(kind).list, answer)?;
    let rows = match page[kind.plural()].take() {
        Value::Array(rows) => rows
            .into_iter()
            .map(|json| with_fixed_name(kind, json))
            .collect(),
        _ => Vec::new(),
    };
    let next = page["nextPageToken"].as_str().unwrap_or_default();
    Ok((rows, next.to_owned()))
}

pub(crate) fn get(kind: Kind, name: &str) -> Call {
    let spec = kind::spec(kind);
    let body = match spec.naming {
        Some(_) => json!({"id": name, "pageSize": limits::RESOURCE_PAGE}),
        None => json!({"name": name}),
    };
    Call::new(spec.service, spec.detail.unwrap_or_default(), body)
}

pub(crate) fn parse_object(kind: Kind, answer: CallResult) -> Result<Object, Failure> {
    let method = kind::spec(kind).detail.unwrap_or_default();
    let mut answer = decode_json(method, answer)?;
    let mut found = with_fixed_name(kind, answer[kind.singular()].take());
    for (field, value) in answer.as_object().into_iter().flatten() {
        if !value.is_null() {
            found.json[field] = value.clone();
        }
    }
    Ok(found)
}

fn with_fixed_name(kind: Kind, mut json: Value) -> Object {
    if let Some(naming) = kind::spec(kind).naming {
        json["name"] = naming(&json).into();
    }
    Object { kind, json }
}

/// Validates a draft without storing it; `None` if the service cannot validate the kind.
pub(crate) fn validate(draft: &Object, update: bool) -> Option<Call> {
    let spec = kind::spec(draft.kind);
    let method = if update { spec.update } else { spec.create };
    let body = json!({draft.kind.singular(): draft.json, "validateOnly": true});
    let call = Call::new(spec.service, method.unwrap_or_default(), body);
    spec.nested.then_some(call)
}

/// Previews an edit of a schedule: checks it, and warns of a change in the middle of a shift.
pub(crate) fn preview_schedule(draft: &Object) -> Call {
    let body = json!({"schedule": draft.json});
    Call::new("ScheduleService", "PreviewSchedule", body)
}

pub(crate) fn preview_silence(draft: &Object) -> Call {
    let body = json!({"silence": draft.json});
    Call::new("SilenceService", "PreviewSilence", body).with_long_timeout()
}

pub(crate) fn create(draft: &Object) -> Call {
    let spec = kind::spec(draft.kind);
    let body = if spec.nested {
        json!({draft.kind.singular(): draft.json})
    } else {
        draft.json.clone()
    };
    let call = Call::new(spec.service, spec.create.unwrap_or_default(), body);
    call.into_write(match draft.kind {
        Kind::Client => parse_key,
        _ => parse_empty,
    })
}

fn parse_key(answer: CallResult) -> Result<WriteOutcome, Failure> {
    let created: v1::CreateClientResponse = message(answer)?;
    Ok(WriteOutcome::Key {
        name: created.client.unwrap_or_default().name,
        key: created.key,
    })
}

pub(crate) fn update(draft: &Object, etag: &str) -> Call {
    let spec = kind::spec(draft.kind);
    let mut stored = draft.json.clone();
    stored["etag"] = etag.into();
    let body = json!({draft.kind.singular(): stored});
    Call::new(spec.service, spec.update.unwrap_or_default(), body).into_write(parse_empty)
}

/// Deletes a resource, unless it has changed since that version. With `force`, also removes
/// references to it.
pub(crate) fn delete(kind: Kind, name: &str, etag: &str, force: bool) -> Call {
    let spec = kind::spec(kind);
    let mut body = json!({"name": name});
    if kind.is_edited() {
        body["etag"] = etag.into();
        // `force` is sent only if it is set: some requests have no such field, because the resource
        // cannot be deleted while it is in use.
        if force {
            body["force"] = true.into();
        }
    }
    Call::new(spec.service, spec.delete.unwrap_or_default(), body).into_write(parse_empty)
}

/// Creates a silence, which the service names; `allow_broad` confirms a silence that covers many
/// events.
pub(crate) fn silence(fields: &Value, allow_broad: bool) -> Call {
    let body = json!({"silence": fields, "allowBroad": allow_broad});
    Call::new("SilenceService", "CreateSilence", body).into_write(|answer| {
        let created: v1::CreateSilenceResponse = message(answer)?;
        Ok(WriteOutcome::Silence(
            created.silence.unwrap_or_default().name,
        ))
    })
}

#[cfg(test)]
mod tests {
    use bellwether_proto::json;

    use super::*;

    #[test]
    fn delete_requests_encode_as_their_message_type() {
        for kind in Kind::ALL.iter().filter(|kind| kind.is_created()) {
            let call = delete(*kind, "ana", "etag", false);
            let message = format!("bellwether.v1.{}Request", call.method);
            let request = call.body.to_string();
            let encoded = json::wire_from_json(&message, request.as_bytes());
            assert!(encoded.is_ok(), "{message}: {encoded:?}");
        }
    }
}
