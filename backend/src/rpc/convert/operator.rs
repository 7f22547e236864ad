//! Conversion of operator actions on events.

use bellwether_proto::v1;
use prost_types::Duration;

use super::time::duration_to_ms;
use crate::{
    clock::to_millis,
    domain::{EventId, Name, OccurrenceId, Status},
    error::Error,
    lifecycle::{Assignment, StateChange},
    limits::{ACKNOWLEDGEMENT_MAX, ACKNOWLEDGEMENT_MIN},
    ops::{annotate::AnnotationItem, edit::OccurrenceTarget, set_status::StatusItem},
};

pub fn annotation(item: v1::AnnotationItem) -> Result<AnnotationItem, Error> {
    Ok(AnnotationItem {
        target: target(&item.event_id, &item.occurrence_id)?,
        annotation: (!item.annotation_id.is_empty()).then_some(item.annotation_id),
        text: item.annotation,
    })
}

pub(super) fn acknowledge_for(
    length: Option<&Duration>,
    acknowledged: Option<bool>,
) -> Result<Option<i64>, Error> {
    let for_ms = length.map(duration_to_ms);
    if for_ms.is_some() && acknowledged != Some(true) {
        let message = "is allowed only if `acknowledged` is true";
        return Err(Error::invalid("acknowledgeFor", message));
    }
    let bounds = to_millis(ACKNOWLEDGEMENT_MIN)..=to_millis(ACKNOWLEDGEMENT_MAX);
    if let Some(for_ms) = for_ms.filter(|it| !bounds.contains(it)) {
        let (least, most) = (bounds.start() / 1_000, bounds.end() / 1_000);
        let message = format!("is {} s; expected {least} to {most} s", for_ms / 1_000);
        return Err(Error::invalid("acknowledgeFor", message));
    }
    Ok(for_ms)
}

pub fn status(item: &v1::StatusItem, without_updates: bool) -> Result<StatusItem, Error> {
    let status = match item.status {
        0 => None,
        number => Some(Status::from_number(number).ok_or_else(|| {
            Error::invalid(
                "status",
                format!("{number} is not a known value; expected 0 to 3"),
            )
        })?),
    };
    let for_ms = acknowledge_for(item.acknowledge_for.as_ref(), item.acknowledged)?;
    Ok(StatusItem {
        target: target(&item.event_id, &item.occurrence_id)?,
        change: StateChange {
            severity: None,
            status,
            acknowledged: item.acknowledged,
            acknowledge_for_ms: for_ms,
            assignment: assignment(item.assignee.as_deref())?,
            without_updates,
            informed: Vec::new(),
        },
    })
}

/// Converts an assignment. `None` leaves the assignee unchanged; an empty name removes the
/// assignee.
pub fn assignment(assignee: Option<&str>) -> Result<Assignment, Error> {
    Ok(match assignee {
        None => Assignment::Unchanged,
        Some("") => Assignment::Unassigned,
        Some(name) => {
            let name = Name::parse(name).map_err(|message| Error::invalid("assignee", message))?;
            Assignment::Client(name)
        }
    })
}

fn target(event_id: &str, occurrence_id: &str) -> Result<OccurrenceTarget, Error> {
    if event_id.is_empty() {
        return Err(Error::invalid("eventId", "is required"));
    }
    let event = EventId::parse(event_id)
        .ok_or_else(|| Error::NotFound(format!("event `{event_id}` not found")))?;
    if occurrence_id.is_empty() {
        return Ok(OccurrenceTarget::Newest(event));
    }
    let id = OccurrenceId::parse(occurrence_id).filter(|id| id.event == event);
    let id = id
        .ok_or_else(|| Error::NotFound(format!("the event has no occurrence `{occurrence_id}`")))?;
    Ok(OccurrenceTarget::Exactly(id))
}
