//! Responses: listing, reading, manual escalation, and acknowledgement by link.

mod receivers;

use std::sync::Arc;

use bellwether_proto::v1;

use crate::{
    cause_lookup::decide_with_causes,
    commit::commit,
    decide::{Causes, Snapshot, Step, StepKind, Transition, notify},
    decision_context::{DecisionContext, new_id},
    delivery::Deliveries,
    domain::{
        Contact, EventId, Field, GroupId, Name, Notified, Occurrence, OccurrenceId, RecordId,
        Response, ResponseState, Status,
    },
    edit::{Edits, OccurrenceTarget},
    error::Error,
    group,
    intake::Intake,
    lifecycle::StateChange,
    limits::{DELIVERIES_SCANNED_MAX, ITEMS_PER_REQUEST_MAX},
    loop_guard::{RecordedReports, Reports},
    page::{PageRequest, TokenScope},
    revision,
    set_status::{StatusItem, set_status},
    store::{
        Changes, Direction, Index, Lane, Stored,
        engine::Range,
        record::{bytes::read_id, response_prefix},
    },
    tag_scope::check_rule_owner,
    wire::time::timestamp,
};

const BATCH: usize = 200;

/// Filter for responses. Empty fields are ignored.
#[derive(Debug, Clone, Default)]
pub struct ResponseFilter {
    /// States to include; empty for all that have not ended.
    pub states: Vec<ResponseState>,
    pub rule_names: Vec<String>,
    pub event: Option<EventId>,
}

#[derive(Debug, Clone)]
pub struct Responses {
    deciding: DecisionContext,
    intake: Intake,
    deliveries: Deliveries,
}

impl ResponseFilter {
    fn states(&self) -> Vec<ResponseState> {
        let all = ResponseState::ALL.into_iter();
        let is_requested = |it: &ResponseState| match self.states.as_slice() {
            [] => !it.has_ended(),
            states if *it == ResponseState::Stopped => states.contains(&ResponseState::Ended),
            states => states.contains(it),
        };
        all.filter(is_requested).collect()
    }

    fn scope(&self) -> TokenScope {
        TokenScope::new("responses")
            .with_field("states", self.states().iter().map(|it| [*it as u8]))
            .with_field("ruleNames", &self.rule_names)
            .with_field("eventId", self.event.map(EventId::to_bytes))
    }

    fn matches(&self, occurrence: &Occurrence, notified: &Notified) -> bool {
        let is_named = |name: &String| *name == notified.rule_name.as_str();
        (self.rule_names.is_empty() || self.rule_names.iter().any(is_named))
            && self.event.is_none_or(|it| it == occurrence.event)
    }
}

impl Responses {
    pub fn new(deciding: DecisionContext, intake: Intake, deliveries: Deliveries) -> Self {
        Self {
            deciding,
            intake,
            deliveries,
        }
    }

    /// Lists responses by state, newest first. Also returns the token of the next page, which is
    /// empty at the end.
    pub async fn list(
        &self,
        filter: &ResponseFilter,
        page: &PageRequest,
    ) -> Result<(Vec<v1::Response>, String), Error> {
        let limit = page.limit()?;
        let scope = filter.scope();
        let last = scope.last_key(&page.token)?;
        let (mut found, mut scanned) = (Vec::new(), 0);
        for state in filter.states() {
            let mut range = Range::with_prefix(&response_prefix(state).build());
            if let Some(last) = &last {
                if range.end.as_ref().is_some_and(|end| end <= last) {
                    continue;
                }
                // The order is descending, so the entries before the last key remain.
                if range.start <= *last {
                    range.end = Some(last.clone());
                }
            }
            loop {
                let entries = self.deciding.store.page_by_index::<Occurrence>(
                    Index::OccurrenceByResponse,
                    range.clone(),
                    Direction::Descending,
                    BATCH.min(limit),
                );
                let entries = entries.await?;
                let Some((oldest, _)) = entries.last() else {
                    break;
                };
                range.end = Some(oldest.clone());
                for (key, stored) in entries {
                    scanned += 1;
                    let id = read_id(&key, 1);
                    let passing = occurrence_responses(&stored.value)
                        .find(|(_, it)| Some(it.id) == id)
                        .filter(|(notified, _)| filter.matches(&stored.value, notified));
                    if let Some(of) = passing {
                        found.push(self.response_view(&stored.value, of).await?);
                    }
                    if found.len() >= limit || scanned >= DELIVERIES_SCANNED_MAX {
                        return Ok((found, scope.encode_token(&key)));
                    }
                }
            }
        }
        Ok((found, String::new()))
    }

    pub async fn get(&self, id: &str) -> Result<v1::Response, Error> {
        let (stored, id) = self.find(id).await?;
        let mut found = occurrence_responses(&stored.value).filter(|(_, it)| it.id == id);
        let found = found.next().ok_or_else(|| not_found(&id.to_string()))?;
        self.response_view(&stored.value, found).await
    }

    async fn find(&self, text: &str) -> Result<(Stored<Occurrence>, RecordId), Error> {
        let id = RecordId::parse(text).ok_or_else(|| not_found(text))?;
        let store = &self.deciding.store;
        for state in ResponseState::ALL {
            let key = response_prefix(state).id(id);
            let found = store.page_by_index::<Occurrence>(
                Index::OccurrenceByResponse,
                Range::with_prefix(&key.build()),
                Direction::Ascending,
                1,
            );
            if let Some((_, stored)) = found.await?.pop() {
                return Ok((stored, id));
            }
        }
        Err(not_found(text))
    }

    async fn response_view(
        &self,
        occurrence: &Occurrence,
        of: (&Notified, &Response),
    ) -> Result<v1::Response, Error> {
        let snapshot = self.deciding.ruleset.current_snapshot();
        let view = response_view(occurrence, of, &snapshot);
        let current = receivers::current_receivers(&self.deliveries, of.1).await?;
        let now_ms = self.deciding.clock.now_ms();
        let next = receivers::next_step(snapshot.responders(), (of.1, occurrence.severity), now_ms);
        Ok(v1::Response {
            current,
            next: next.receivers,
            unanswered_next: next.is_unanswered,
            ..view
        })
    }

    /// Runs the next step of a response now. `seen` are the round and the step that the caller
    /// knows as the last ones.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if there is no such response, [`Error::FailedPrecondition`] if
    /// no step follows or the response is held, and [`Error::Aborted`] if another step has run
    /// since.
    pub async fn escalate(
        &self,
        id: &str,
        seen: Option<(i32, i32)>,
    ) -> Result<v1::Response, Error> {
        let store = &self.deciding.store;
        let decide = async || {
            let causes = Causes::default();
            decide_with_causes(store, &causes, || {
                self.decide_escalation((id, seen), &causes)
            })
            .await
        };
        let (reports, _) = commit(store, Lane::Admin, decide).await?;
        self.intake.report_all(reports);
        self.get(id).await
    }

    async fn decide_escalation(
        &self,
        (text, seen): (&str, Option<(i32, i32)>),
        causes: &Causes,
    ) -> Result<(Changes, RecordedReports), Error> {
        let DecisionContext {
            store,
            ruleset,
            clock,
            ..
        } = &self.deciding;
        let snapshot = ruleset.refresh().await?;
        let (stored, id) = self.find(text).await?;
        let mut changes = store.new_changes();
        let notified = occurrence_responses(&stored.value).find(|(_, it)| it.id == id);
        let (notified, _) = notified.ok_or_else(|| not_found(text))?;
        let rule = (notified.rule, &notified.rule_name);
        check_rule_owner((store, &mut changes), rule).await?;
        let past =
            revision::read_past_definitions(store, &snapshot, std::iter::once(&stored.value))
                .await?;
        let past = past.with_causes(causes);
        let (mut next, now_ms) = (stored.value.clone(), clock.now_ms());
        let active = next
            .notified
            .iter_mut()
            .filter_map(|it| it.response.as_mut());
        let mut active = active.filter(|it| it.id == id);
        let response = active.next().ok_or_else(|| not_found(text))?;
        let refused = |why: &str| Err(Error::FailedPrecondition(why.to_owned()));
        let now = (number(response.round), number(response.step));
        if seen.is_some_and(|it| it != now) {
            let (round, step) = now;
            let why = format!("step {step} of round {round} has already run; reload the response");
            return Err(Error::Aborted(why));
        }
        match response.state {
            ResponseState::Active if response.next_ms.is_some() => {}
            ResponseState::Active => return refused("all rounds have ended; no step remains"),
            ResponseState::Held => return refused("the response is held"),
            ResponseState::Acknowledged => return refused("it is acknowledged"),
            ResponseState::Ended | ResponseState::Stopped => return refused("it has ended"),
        }
        response.next_ms = Some(now_ms);
        let step = Step {
            kind: StepKind::Check,
            transition: Transition::default(),
            matches: &snapshot.matching_triggers(&next),
            now_ms,
            past: &past,
        };
        let mut notices = notify(&mut next, &step, &snapshot, &mut || new_id(now_ms));
        group::respond::add_group_content((store, &*snapshot), vec![&mut notices]).await?;
        let mut reports = Reports::default();
        reports.add_reports(&notices, &next, now_ms);
        changes.depend_on(&snapshot);
        for delivery in &notices.deliveries {
            changes.insert(delivery);
        }
        changes.update(&stored, &next);
        let reports = reports.record(&mut changes);
        Ok((changes, reports))
    }

    /// Acknowledges an occurrence as a contact, together with the others of its group; without
    /// `confirm`, changes nothing. Returns the occurrence, and the number of others in its group
    /// that were not acknowledged before. The history names the contact in the form of
    /// [`Name::for_contact`].
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if there is no such occurrence, and
    /// [`Error::FailedPrecondition`] if the response has ended.
    pub async fn acknowledge(
        &self,
        (id, response, contact): (&str, &str, &str),
        confirm: bool,
    ) -> Result<(Occurrence, usize), Error> {
        let missing = || Error::NotFound(format!("occurrence `{id}` not found"));
        let target = OccurrenceId::parse(id).ok_or_else(missing)?;
        let contact = Name::parse(contact).map_err(|message| Error::invalid("contact", message))?;
        let author = Name::for_contact(&contact);
        let read = async |target| {
            let mut edits = Edits::read(&self.deciding.store, &[target]).await?;
            edits.get(0).cloned().ok_or_else(missing)
        };
        let mut before = read(OccurrenceTarget::Exactly(target)).await?;
        if !occurrence_responses(&before).any(|(_, it)| it.id.to_string() == response) {
            // By now, another member of the group may carry the response.
            match self.find(response).await {
                Ok((carrier, _)) => before = carrier.value,
                Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let target = OccurrenceTarget::Exactly(before.id());
        let known = occurrence_responses(&before).find(|(_, it)| it.id.to_string() == response);
        let is_over = known.is_none_or(|(_, it)| it.state.has_ended());
        if is_over || before.status == Status::Closed {
            let why = "the response has ended: the event is closed or no longer escalated";
            return Err(Error::FailedPrecondition(why.into()));
        }
        let group = known.and_then(|(notified, _)| notified.group);
        if !confirm || before.acknowledged {
            let open = match group {
                Some(group) => {
                    group::respond::unacknowledged_keys(&self.deciding.store, group).await?
                }
                None => Vec::new(),
            };
            let own = before.key.to_bytes();
            let others = open.iter().filter(|it| it.as_slice() != own).count();
            return Ok((before, others));
        }
        let change = StateChange {
            acknowledged: Some(true),
            ..StateChange::default()
        };
        let mut items = vec![StatusItem { target, change }];
        if let Some(group) = group {
            items.extend(self.other_members(group, &before, &items[0].change).await?);
        }
        let others = items.len() - 1;
        for (at, items) in items.chunks(ITEMS_PER_REQUEST_MAX).enumerate() {
            let mut done = set_status((&self.deciding, &self.intake), items, &author).await?;
            // By now, other members may have been deleted or closed.
            if at == 0 {
                done.swap_remove(0)?;
            }
        }
        Ok((read(target).await?, others))
    }

    async fn other_members(
        &self,
        group: RecordId,
        carrier: &Occurrence,
        change: &StateChange,
    ) -> Result<Vec<StatusItem>, Error> {
        let store = &self.deciding.store;
        let mut items = Vec::new();
        let keys = group::respond::unacknowledged_keys(store, group).await?;
        for keys in keys.chunks(BATCH) {
            let found = store.get_many::<Occurrence>(keys.to_vec()).await?;
            let found = found.into_iter().flatten().map(|it| it.value);
            let others = found.filter(|it| it.key != carrier.key);
            items.extend(others.map(|it| StatusItem {
                target: OccurrenceTarget::Exactly(it.id()),
                change: change.clone(),
            }));
        }
        Ok(items)
    }
}

fn not_found(id: &str) -> Error {
    let id: String = id.chars().take(40).collect();
    Error::NotFound(format!("response `{id}` not found"))
}

fn number(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn occurrence_responses(occurrence: &Occurrence) -> impl Iterator<Item = (&Notified, &Response)> {
    let notified = occurrence.notified.iter();
    notified.filter_map(|it| Some((it, it.response.as_deref()?)))
}

/// Returns the author of the last acknowledgement; `None` if the occurrence is not acknowledged.
pub fn acknowledging_user(occurrence: &Occurrence) -> Option<&Name> {
    let mut history = occurrence.history.iter().rev();
    let last = history.find(|it| it.field == Field::Acknowledged)?;
    last.author.as_ref().filter(|_| occurrence.acknowledged)
}

pub fn responses_to_wire(occurrence: &Occurrence, snapshot: &Snapshot) -> Vec<v1::Response> {
    let all = occurrence_responses(occurrence);
    all.map(|it| response_view(occurrence, it, snapshot))
        .collect()
}

/// Converts a response for the wire. A contact who acknowledged as a client or user is named like
/// one who used a link.
fn response_view(
    occurrence: &Occurrence,
    of: (&Notified, &Response),
    snapshot: &Snapshot,
) -> v1::Response {
    let by = acknowledging_user(occurrence);
    let contact = by.and_then(|by| {
        let is_of = |it: &&Arc<Contact>| {
            it.client.as_ref() == Some(by) || Name::for_user(&it.subject).as_ref() == Some(by)
        };
        snapshot.responders().contacts.values().find(is_of)
    });
    let contact = contact.map(|it| Name::for_contact(&it.name));
    response_to_wire(occurrence, of, contact.as_ref().or(by))
}

fn response_to_wire(
    occurrence: &Occurrence,
    (notified, response): (&Notified, &Response),
    by: Option<&Name>,
) -> v1::Response {
    use v1::response::State;
    let text = |name: Option<&Name>| name.map(ToString::to_string).unwrap_or_default();
    let is_acknowledged = response.state == ResponseState::Acknowledged;
    let until_ms = occurrence.acknowledged_until_ms.filter(|_| is_acknowledged);
    v1::Response {
        id: response.id.to_string(),
        state: match response.state {
            ResponseState::Active => State::Active,
            ResponseState::Held => State::Held,
            ResponseState::Acknowledged => State::Acknowledged,
            ResponseState::Ended | ResponseState::Stopped => State::Ended,
        }
        .into(),
        rule_name: notified.rule_name.to_string(),
        policy_name: response.policy.to_string(),
        event_id: occurrence.event.to_string(),
        occurrence_id: occurrence.id().to_string(),
        event_name: occurrence.name.clone(),
        summary: occurrence.summary.clone(),
        severity: occurrence.severity as i32,
        round: number(response.round),
        round_count: number(response.plan.rounds),
        rounds_left: number(response.rounds_left),
        step: number(response.step),
        step_count: i32::try_from(response.plan.steps.len()).unwrap_or(i32::MAX),
        next_step_time: response.next_ms.map(timestamp),
        notified: response
            .paged
            .iter()
            .map(receivers::notified_receiver)
            .collect(),
        unanswered: response.is_unanswered,
        acknowledged_until_time: until_ms.map(timestamp),
        acknowledged_by: text(by.filter(|_| is_acknowledged)),
        begin_time: Some(timestamp(response.begin_ms)),
        end_time: response.end_ms.map(timestamp),
        group_id: notified
            .group
            .map_or_else(String::new, |it| GroupId(it).to_string()),
        dimensions: occurrence.dimensions.clone(),
        // The other receivers are added by `response_view`.
        ..v1::Response::default()
    }
}

#[cfg(test)]
mod tests;
