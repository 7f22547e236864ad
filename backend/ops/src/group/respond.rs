//! The response of a group between its messages: the member that carries the response, and the
//! reports of its steps.
//!
//! The carrier is an open, unacknowledged member. Each step is committed together with a check of
//! the carrier, so no step runs once all members are acknowledged.

use futures_util::future::try_join3;

use crate::{
    cause_lookup::decide_with_causes,
    commit::commit,
    decide::{
        Causes, Notices, Snapshot, Step, StepKind, Transition, UnansweredNotice,
        notified_occurrence, notify, shown_members,
    },
    decision_context::{DecisionContext, new_id},
    domain::{
        Group, GroupContent, Notified, Occurrence, RecordId, Response, ResponseHold, ResponseState,
        Status,
    },
    error::Error,
    group::notify::member_keys,
    intake::Intake,
    limits::{
        GROUP_ALL_SHOWN_MAX, GROUP_SHOWN_MAX, RESPONSE_HELD_REVIEW_MS, RESPONSE_MOVES_AT_ONCE,
    },
    loop_guard::{RecordedReports, Reports},
    page_cancel::cancel_pages,
    revision,
    store::{Changes, EngineError, Lane, Membership, Store, Stored, record::bytes::read_id},
};

/// Returns the group response that another member should carry instead. A held response is retried
/// whenever its carrier is evaluated, because another member may no longer be held.
fn response_to_move(carrier: &Occurrence, now_ms: i64) -> Option<(RecordId, &Response)> {
    let mut responses = carrier
        .notified
        .iter()
        .filter_map(|it| Some((it.group?, it.response.as_deref()?)));
    let is_due = |it: &Response| {
        let is_held = it.state == ResponseState::Held;
        is_held || it.review_ms.is_some_and(|review_ms| review_ms <= now_ms)
    };
    let is_closed = carrier.status == Status::Closed;
    responses.find(|(_, it)| is_due(it) && it.should_move_to_group(is_closed, carrier.acknowledged))
}

/// Whether an occurrence carries a group response that another member should carry instead.
pub fn should_move(carrier: &Occurrence, now_ms: i64) -> bool {
    response_to_move(carrier, now_ms).is_some()
}

/// Moves the group responses that these occurrences should no longer carry to other members.
/// Returns whether any response was moved.
pub async fn move_carried_responses(
    (deciding, intake): (&DecisionContext, &Intake),
    carrier: &Occurrence,
) -> Result<bool, Error> {
    if !should_move(carrier, deciding.clock.now_ms()) {
        return Ok(false);
    }
    let store = &deciding.store;
    let key: Vec<u8> = carrier.key.to_bytes().into();
    let decide = async || {
        let causes = Causes::default();
        decide_with_causes(store, &causes, || move_response(deciding, &key, &causes)).await
    };
    let ((reports, is_moved), _) = commit(store, Lane::Bulk, decide).await?;
    intake.report_all(reports);
    Ok(is_moved)
}

#[expect(clippy::too_many_lines, reason = "one decision about one read state")]
async fn move_response(
    deciding: &DecisionContext,
    key: &[u8],
    causes: &Causes,
) -> Result<(Changes, (RecordedReports, bool)), Error> {
    let store = &deciding.store;
    let now_ms = deciding.clock.now_ms();
    let snapshot = deciding.ruleset.refresh().await?;
    let mut changes = store.new_changes();
    changes.depend_on(&snapshot);
    let mut reports = Reports::default();
    let Some(carrier) = store.get::<Occurrence>(key.to_vec()).await? else {
        return Ok((changes, (RecordedReports::default(), false)));
    };
    let Some((id, response)) = response_to_move(&carrier.value, now_ms) else {
        return Ok((changes, (RecordedReports::default(), false)));
    };
    let mut response = response.clone();
    let unanswered = response.unanswered_policy().cloned();
    let group = store.get::<Group>(id.to_bytes().into()).await?;
    let mut next = carrier.value.clone();
    let in_force = (&*snapshot, causes);
    // If the group was deleted, no member is left.
    let found = match &group {
        Some(_) => find_candidate(deciding, in_force, (&carrier.value, id), &response).await?,
        None => ResponseCandidate::NoMember(Vec::new()),
    };
    let mut about = carrier.value.notified.iter();
    let about = about.find(|it| it.group == Some(id));
    let is_left = match (found, &group) {
        (ResponseCandidate::Carrier, _) => {
            return Ok((changes, (RecordedReports::default(), false)));
        }
        (ResponseCandidate::Member(stored, mut member, mut notices), Some(group)) => {
            if unanswered.is_some() {
                // From now on, the report of the unanswered response names this member.
                notices.unanswered = member_unanswered_notices(&mut member, id);
            }
            for delivery in &notices.deliveries {
                changes.insert(delivery);
            }
            reports.add_reports(&notices, &member, now_ms);
            changes.update(&stored, &member);
            let moved = Group {
                responder: Some(member.key),
                ..group.value.clone()
            };
            changes.update(group, &moved);
            response.is_unanswered = false;
            false
        }
        _ if carrier.value.status == Status::Closed => {
            response.end_steps(now_ms);
            true
        }
        _ if carrier.value.acknowledged => {
            response.acknowledge(carrier.value.severity);
            true
        }
        (ResponseCandidate::NoMember(holds), _) => {
            // The response is retried as soon as any of the holds ends.
            response.held_by.clear();
            response.add_holds(holds);
            response.review_ms = Some(now_ms.saturating_add(RESPONSE_HELD_REVIEW_MS));
            true
        }
        (ResponseCandidate::Member(..), None) => true,
    };
    set_response(&mut next, id, is_left.then(|| response.clone()));
    let said = about.map_or_else(Vec::new, |it| {
        UnansweredNotice::from_change(unanswered.as_ref(), &response, (it, &carrier.value))
    });
    reports.add_reports(&unanswered_notices(said), &carrier.value, now_ms);
    let is_moved = next != carrier.value;
    if is_moved {
        let changed = vec![(&carrier.value, &next)];
        cancel_pages(store, changed, Vec::new(), now_ms, &mut changes).await?;
        changes.update(&carrier, &next);
    }
    let reports = reports.record(&mut changes);
    Ok((changes, (reports, is_moved)))
}

fn unanswered_notices(unanswered: Vec<UnansweredNotice>) -> Notices {
    Notices {
        unanswered,
        ..Notices::default()
    }
}

fn member_unanswered_notices(member: &mut Occurrence, group: RecordId) -> Vec<UnansweredNotice> {
    let shown = member.clone();
    let said = group_entry(member, group).and_then(|it| {
        Some(UnansweredNotice::from_change(
            None,
            it.response.as_deref()?,
            (it, &shown),
        ))
    });
    said.unwrap_or_default()
}

fn group_entry(member: &mut Occurrence, group: RecordId) -> Option<&mut Notified> {
    let mut notified = member.notified.iter_mut();
    notified.find(|it| it.group == Some(group))
}

fn set_response(member: &mut Occurrence, group: RecordId, response: Option<Response>) {
    if let Some(entry) = group_entry(member, group) {
        entry.response = response.map(Box::new);
    }
}

enum ResponseCandidate {
    Carrier,
    /// Another member: the stored occurrence, the occurrence with the response, and the notices to
    /// send.
    Member(Box<Stored<Occurrence>>, Box<Occurrence>, Notices),
    /// No member can take over the response. Contains the holds of unacknowledged members.
    NoMember(Vec<ResponseHold>),
}

/// Returns the current carrier if its response was held and no longer is. Otherwise, returns the
/// first other member that is neither acknowledged nor held, with its next step. If there is none
/// and the carrier was closed, returns an open member that is acknowledged.
async fn find_candidate(
    deciding: &DecisionContext,
    (snapshot, causes): (&Snapshot, &Causes),
    (carrier, group): (&Occurrence, RecordId),
    response: &Response,
) -> Result<ResponseCandidate, Error> {
    let store = &deciding.store;
    let now_ms = deciding.clock.now_ms();
    let is_closed = carrier.status == Status::Closed;
    let mut members = member_keys(store, Membership::Unacknowledged, group, usize::MAX).await?;
    if is_closed {
        members.extend(member_keys(store, Membership::Open, group, usize::MAX).await?);
    }
    members.retain(|key| read_id(key, 0) != Some(carrier.key));
    if response.state == ResponseState::Held && !is_closed && !carrier.acknowledged {
        members.insert(0, carrier.key.to_bytes().into());
    }
    let mut holds = Vec::new();
    for keys in members.chunks(RESPONSE_MOVES_AT_ONCE) {
        let found = store.get_many::<Occurrence>(keys.to_vec()).await?;
        let found: Vec<_> = found.into_iter().flatten().collect();
        let past =
            revision::read_past_definitions(store, snapshot, found.iter().map(|it| &it.value))
                .await?;
        let past = past.with_causes(causes);
        for stored in found {
            let mut member = stored.value.clone();
            let adopted = response_for_member(response, &member, now_ms);
            set_response(&mut member, group, Some(adopted));
            let step = Step {
                kind: StepKind::Check,
                transition: Transition::default(),
                matches: &snapshot.matching_triggers(&member),
                now_ms,
                past: &past,
            };
            let mut notices = notify(&mut member, &step, snapshot, &mut || new_id(now_ms));
            let now = group_entry(&mut member, group).and_then(|it| it.response.as_deref());
            let Some(now) = now else { continue };
            if !is_carried_over(response.state, now.state) {
                holds.extend(&now.held_by);
            } else if member.key == carrier.key {
                return Ok(ResponseCandidate::Carrier);
            } else {
                add_group_content((store, snapshot), vec![&mut notices]).await?;
                let (stored, member) = (Box::new(stored), Box::new(member));
                return Ok(ResponseCandidate::Member(stored, member, notices));
            }
        }
    }
    Ok(ResponseCandidate::NoMember(holds))
}

fn response_for_member(response: &Response, member: &Occurrence, now_ms: i64) -> Response {
    let mut adopted = response.clone();
    match adopted.state {
        ResponseState::Stopped => return adopted,
        _ if member.acknowledged => adopted.acknowledge(member.severity),
        ResponseState::Acknowledged => {}
        _ => adopted.state = ResponseState::Active,
    }
    adopted.review_ms = Some(now_ms);
    adopted
}

fn is_carried_over(before: ResponseState, after: ResponseState) -> bool {
    match after {
        ResponseState::Active | ResponseState::Acknowledged => true,
        ResponseState::Stopped => before == ResponseState::Stopped,
        ResponseState::Held | ResponseState::Ended => false,
    }
}

pub async fn add_group_content(
    (store, snapshot): (&Store, &Snapshot),
    notices: Vec<&mut Notices>,
) -> Result<(), EngineError> {
    let snippets = &snapshot.settings().templates;
    let mut reports = Vec::new();
    for notices in notices {
        let of_groups = std::mem::take(&mut notices.of_groups);
        for delivery in &mut notices.deliveries {
            let mut of_groups = of_groups.iter();
            if let Some((_, group)) = of_groups.find(|(id, _)| *id == delivery.id) {
                let names_all = delivery.content.names_all_members(snippets);
                reports.push((delivery, (*group, names_all)));
            }
        }
    }
    let read = |store: Store, (group, names_all)| async move {
        read_content(&store, group, names_all).await
    };
    let groups = reports.iter().map(|(_, group)| *group);
    let contents = store.read_each(groups, read).await?;
    for ((delivery, _), content) in reports.into_iter().zip(contents) {
        delivery.content.group = content;
    }
    Ok(())
}

/// Returns the content of a group with its most severe members; `None` if the group no longer
/// exists.
async fn read_content(
    store: &Store,
    id: RecordId,
    names_all: bool,
) -> Result<Option<GroupContent>, EngineError> {
    let (group, open, others) = try_join3(
        store.get::<Group>(id.to_bytes().into()),
        member_keys(store, Membership::Open, id, usize::MAX),
        member_keys(store, Membership::Unacknowledged, id, 1),
    )
    .await?;
    let Some(group) = group else {
        return Ok(None);
    };
    let shown_max = if names_all {
        GROUP_ALL_SHOWN_MAX
    } else {
        GROUP_SHOWN_MAX
    };
    let shown = open.iter().take(shown_max).cloned().collect();
    let shown = store.get_many::<Occurrence>(shown).await?;
    let shown = shown.into_iter().flatten();
    let members = shown.map(|it| (None, notified_occurrence(&it.value)));
    let members = shown_members(members, names_all);
    let count = u32::try_from(open.len()).unwrap_or(u32::MAX);
    Ok(Some(GroupContent {
        id,
        by: group.value.by,
        count,
        open_count: count,
        joined_count: 0,
        closed_count: 0,
        is_first: false,
        is_over: open.is_empty(),
        acknowledged: others.is_empty(),
        members,
    }))
}

/// Returns the keys of a group's open members.
pub async fn open_keys(store: &Store, group: RecordId) -> Result<Vec<Vec<u8>>, EngineError> {
    member_keys(store, Membership::Open, group, usize::MAX).await
}

/// Returns the keys of a group's open, unacknowledged members.
pub async fn unacknowledged_keys(
    store: &Store,
    group: RecordId,
) -> Result<Vec<Vec<u8>>, EngineError> {
    member_keys(store, Membership::Unacknowledged, group, usize::MAX).await
}
