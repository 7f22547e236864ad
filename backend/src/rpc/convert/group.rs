//! Conversion of groups and of requests about them.

use bellwether_proto::v1;

use super::{
    operator::{acknowledge_for, assignment},
    time::timestamp,
    to_i32,
};
use crate::{
    domain::{GroupId, Name, Occurrence, RecordId, Status},
    error::Error,
    lifecycle::{Assignment, StateChange},
    ops::{
        group::list::{Filter, GroupView},
        page::PageRequest,
    },
    validate::Violations,
};

const NO_GROUP_ID: &str = "is not a group id; expected `group-` and 26 letters and digits";

pub fn list(request: v1::ListGroupsRequest) -> Result<(Filter, PageRequest), Error> {
    use v1::group::State;
    let mut violations = Violations::default();
    violations.check_entries("ruleNames", request.rule_names.len());
    let is_open = |state| match state {
        State::Open => Some(true),
        State::Over => Some(false),
        State::Unspecified => None,
    };
    let states = violations.convert_each("states", &request.states, "OPEN and OVER", is_open);
    violations.finish()?;
    let filter = Filter {
        rule_names: request.rule_names,
        is_open: match (states.contains(&true), states.contains(&false)) {
            (open, over) if open == over => None,
            (open, _) => Some(open),
        },
    };
    Ok((
        filter,
        PageRequest::new(request.page_size, request.page_token),
    ))
}

pub fn group_request(request: v1::GetGroupRequest) -> Result<(RecordId, PageRequest), Error> {
    let page = PageRequest::new(request.page_size, request.page_token);
    Ok((id(&request.id)?, page))
}

fn id(text: &str) -> Result<RecordId, Error> {
    GroupId::parse(text).ok_or_else(|| Error::invalid("id", NO_GROUP_ID))
}

pub fn group_change(request: &v1::SetGroupStatusRequest) -> Result<(RecordId, StateChange), Error> {
    let status = Status::from_number(request.status).filter(|it| *it != Status::Open);
    if status.is_none() && request.status != 0 {
        let message = "must be STATUS_SUPPRESSED or STATUS_CLOSED; only open members change";
        return Err(Error::invalid("status", message));
    }
    let assignment = assignment(request.assignee.as_deref())?;
    if status.is_none() && request.acknowledged.is_none() && assignment == Assignment::Unchanged {
        let message = "is required unless `acknowledged` or `assignee` is set";
        return Err(Error::invalid("status", message));
    }
    let for_ms = acknowledge_for(request.acknowledge_for.as_ref(), request.acknowledged)?;
    let change = StateChange {
        status,
        acknowledged: request.acknowledged,
        acknowledge_for_ms: for_ms,
        assignment,
        ..StateChange::default()
    };
    Ok((id(&request.id)?, change))
}

pub fn group(view: GroupView) -> v1::Group {
    let GroupView {
        group,
        open_count,
        acknowledged,
    } = view;
    let is_open = open_count > 0;
    let state = if is_open {
        v1::group::State::Open
    } else {
        v1::group::State::Over
    };
    let next_ms = group.last_ms.saturating_add(group.interval_ms);
    let names = group.destinations.iter();
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    v1::Group {
        id: GroupId(group.id).to_string(),
        rule_name: group.rule_name.to_string(),
        by: group
            .by
            .into_iter()
            .map(|(field, value)| v1::SharedValue { field, value })
            .collect(),
        state: state.into(),
        open_count: Some(to_i32(open_count)),
        member_count: Some(number(group.member_count)),
        message_count: Some(number(group.message_count)),
        acknowledged: Some(acknowledged),
        destination_names: names
            .map(|(_, name): &(_, Name)| name.to_string())
            .collect(),
        create_time: Some(timestamp(group.create_ms)),
        last_message_time: Some(timestamp(group.last_ms)),
        next_message_time: is_open.then(|| timestamp(next_ms)),
        end_time: group.end_ms.map(timestamp),
        shadow: group.shadow,
    }
}

pub fn member(occurrence: Occurrence) -> v1::GroupMember {
    v1::GroupMember {
        event_id: occurrence.event.to_string(),
        occurrence_id: occurrence.id().to_string(),
        event_name: occurrence.name,
        summary: occurrence.summary,
        severity: occurrence.severity as i32,
        status: occurrence.status as i32,
        acknowledged: Some(occurrence.acknowledged),
        start_time: Some(timestamp(occurrence.start_ms)),
    }
}
