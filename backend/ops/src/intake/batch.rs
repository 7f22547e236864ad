//! A batch of events: reads the affected occurrences, decides, and commits.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use super::job::{Accepted, Job, Outcome};
use crate::{
    beats::BeatClaims,
    cause_lookup::{RecentInhibitions, load_missing},
    decide::{
        Causes, PastDefinitions, Snapshot, Step, StepKind, Transition, hand_over_flapping, notify,
    },
    decision_context::{DecisionContext, new_id},
    domain::{
        Delivery, EventId, Occurrence, OccurrenceId, OwnEvent, Receipt, RecordId, Severity, Status,
        counter::Subject,
    },
    find,
    lifecycle::{self, Arrival, EventEffect, apply_event},
    loop_guard::{RecordedReports, Reports},
    page_cancel::cancel_pages,
    revision,
    store::{Changes, EngineError, Index, Kind, Lane, Record, Stored, record::bytes::Key},
};

/// The occurrences of one event id while a batch is decided.
#[derive(Debug, Clone)]
struct EventLine {
    stored: Option<Stored<Occurrence>>,
    /// The newest stored occurrence as it will be written, if there is one, followed by new ones.
    occurrences: Vec<Occurrence>,
    is_changed: bool,
    /// An earlier occurrence that was reopened, as stored and as it will be written.
    reopened: Option<(Stored<Occurrence>, Occurrence)>,
}

impl EventLine {
    /// Returns whether events are applied to the reopened earlier occurrence, because it is open
    /// and the newest one is not.
    fn is_reopened(&self) -> bool {
        let is_over = |it: &Occurrence| it.status == Status::Closed;
        let reopened = self.reopened.as_ref();
        self.occurrences.last().is_some_and(is_over) && reopened.is_some_and(|(_, it)| !is_over(it))
    }
}

impl EventLine {
    /// Returns the reopened occurrence or the newest one; `None` before the first.
    fn occurrence(&mut self, is_reopened: bool) -> Option<&mut Occurrence> {
        match &mut self.reopened {
            Some((_, reopened)) if is_reopened => Some(reopened),
            _ => self.occurrences.last_mut(),
        }
    }

    /// Applies an event; `key` is used if it opens a new occurrence.
    fn receive(
        &mut self,
        arrival: &Arrival<'_>,
        key: RecordId,
        snapshot: &Snapshot,
    ) -> IngestedEvent {
        let is_reopened = self.is_reopened();
        let received = apply_event(
            self.occurrence(is_reopened),
            arrival,
            snapshot.settings(),
            key,
        );
        let is_opened = matches!(received, EventEffect::Opened(_));
        let transition = match received {
            EventEffect::Opened(opened) => {
                self.open_occurrence(*opened, snapshot, arrival.now_ms);
                Some(Transition::default())
            }
            EventEffect::Repeated(transition) => Some(transition),
            EventEffect::Counted => None,
        };
        if is_reopened && let Some(newest) = self.occurrences.last_mut() {
            newest.prior_count = newest.prior_count.saturating_add(1);
        }
        IngestedEvent {
            transition,
            is_opened,
            is_reopened,
        }
    }

    fn changed_occurrences(&self) -> impl Iterator<Item = (&Occurrence, &Occurrence)> {
        let stored = self.stored.as_ref().filter(|_| self.is_changed);
        let newest = stored.and_then(|it| Some((&it.value, self.occurrences.first()?)));
        let reopened = self.reopened.as_ref();
        newest
            .into_iter()
            .chain(reopened.map(|(stored, next)| (&stored.value, next)))
    }

    fn open_occurrence(&mut self, mut next: Occurrence, snapshot: &Snapshot, now_ms: i64) {
        let is_stored = self.stored.is_some() && self.occurrences.len() == 1;
        if let Some(before) = self.occurrences.last_mut() {
            self.is_changed |= hand_over_flapping(before, &mut next, snapshot, now_ms) && is_stored;
        }
        self.occurrences.push(next);
    }
}

#[derive(Debug, Clone, Copy)]
struct IngestedEvent {
    /// The resulting transition. `None` if the event arrived too late and was only counted.
    transition: Option<Transition>,
    is_opened: bool,
    is_reopened: bool,
}

#[derive(Debug)]
pub(super) struct BatchError {
    pub(super) error: EngineError,
    /// The event ids that another client changed concurrently; empty if unknown or not a conflict.
    pub(super) contested: HashSet<EventId>,
}

impl From<EngineError> for BatchError {
    fn from(error: EngineError) -> Self {
        Self {
            error,
            contested: HashSet::new(),
        }
    }
}

/// Ingests the events of the jobs in one commit, except those of jobs carried out before. Returns
/// the outcome of each job, and the service's own events to report.
pub(super) async fn commit(
    deciding: &DecisionContext,
    jobs: &[&Job],
    recent: &RecentInhibitions,
) -> Result<(Vec<Outcome>, RecordedReports), BatchError> {
    let _steady = deciding.store.lock_clock_shared().await;
    let causes = recent.causes(&deciding.store).await?;
    loop {
        let decided = decide_batch(deciding, jobs, &causes).await?;
        if load_missing(&deciding.store, &causes).await? {
            recent.record_required(&causes);
            return store_batch(deciding, jobs, decided).await;
        }
    }
}

struct DecidedBatch {
    snapshot: Arc<Snapshot>,
    lines: HashMap<EventId, EventLine>,
    receipts: Receipts,
    own_events: Vec<Stored<OwnEvent>>,
    outcomes: Vec<Outcome>,
    deliveries: Vec<Delivery>,
    reports: Reports,
    /// Number of accepted events, by resulting severity of the occurrence.
    accepted: BTreeMap<Severity, i64>,
    beats: BeatClaims,
    now_ms: i64,
}

async fn decide_batch(
    deciding: &DecisionContext,
    jobs: &[&Job],
    causes: &Causes,
) -> Result<DecidedBatch, BatchError> {
    let snapshot = deciding.ruleset.refresh().await?;
    let mut lines = read(deciding, jobs).await?;
    let updated = updated_occurrences(&lines, jobs, deciding.clock.now_ms());
    let past = revision::read_past_definitions(&deciding.store, &snapshot, updated).await?;
    let past = past.with_causes(causes);
    let now_ms = deciding.clock.now_ms();
    if !snapshot.heartbeats().is_empty() {
        let (store, clock) = (&deciding.store, deciding.clock.as_ref());
        deciding.beats.refresh_service_time(store, clock).await?;
    }
    let mut decision = BatchDecision {
        deciding,
        snapshot: &snapshot,
        past: &past,
        now_ms,
        deliveries: Vec::new(),
        accepted: BTreeMap::new(),
        beats: BeatClaims::new(&deciding.beats),
        reports: Reports::default(),
    };
    let mut receipts = Receipts::read(deciding, jobs).await?;
    let own_events = own_events(deciding, jobs).await?;
    let mut left: HashSet<_> = own_events.iter().map(|it| it.value.id).collect();
    let mut outcomes = Vec::with_capacity(jobs.len());
    for job in jobs {
        let is_ingested = job.stored.is_some_and(|id| !left.remove(&id));
        let earlier = receipts.earlier_outcome(job, now_ms);
        let earlier = earlier.or_else(|| is_ingested.then(|| Outcome::Earlier(Vec::new())));
        if let Some(earlier) = earlier {
            outcomes.push(earlier);
            continue;
        }
        outcomes.push(decision.decide_event(job, &mut lines));
    }
    let mut beats = decision.beats;
    let (deliveries, reports, accepted) =
        (decision.deliveries, decision.reports, decision.accepted);
    beats.read_expectations(&deciding.store).await?;
    Ok(DecidedBatch {
        snapshot,
        lines,
        receipts,
        own_events,
        outcomes,
        deliveries,
        reports,
        accepted,
        beats,
        now_ms,
    })
}

/// Reads the stored events of the service itself that the jobs ingest. Missing ones were ingested
/// before.
async fn own_events(
    deciding: &DecisionContext,
    jobs: &[&Job],
) -> Result<Vec<Stored<OwnEvent>>, EngineError> {
    let ids: BTreeSet<_> = jobs.iter().filter_map(|job| job.stored).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let keys = ids.into_iter().map(|id| id.to_bytes().into()).collect();
    let (found, _) = deciding.store.get_readable(keys).await?;
    Ok(found.into_iter().flatten().collect())
}

async fn store_batch(
    deciding: &DecisionContext,
    jobs: &[&Job],
    decided: DecidedBatch,
) -> Result<(Vec<Outcome>, RecordedReports), BatchError> {
    let DecidedBatch {
        snapshot,
        lines,
        receipts,
        own_events,
        outcomes,
        deliveries,
        reports,
        accepted,
        beats,
        now_ms,
    } = decided;
    let mut deliveries = deliveries;
    let mut pages = deciding.store.new_changes();
    let changed = lines.values().flat_map(EventLine::changed_occurrences);
    let (changed, new) = (changed.collect(), deliveries.iter_mut().collect());
    cancel_pages(&deciding.store, changed, new, now_ms, &mut pages).await?;
    let mut changes = collect_changes(&lines, &deliveries, pages);
    beats.add_to_changes(&mut changes);
    for (severity, count) in accepted {
        changes.count(Subject::Events, now_ms, severity, count);
    }
    for key in &receipts.new {
        changes.insert(&receipts.known[key]);
    }
    for ingested in &own_events {
        changes.delete(ingested);
    }
    let reports = reports.record(&mut changes);
    if !changes.is_empty() {
        changes.depend_on(&snapshot);
        changes.set_disk_share(jobs.iter().map(|it| it.space).min().unwrap_or_default());
        if let Err(error) = deciding.store.apply(Lane::Bulk, changes).await {
            let contested = conflicting_events(&error, &lines, &deliveries, jobs);
            return Err(BatchError { error, contested });
        }
    }
    beats.mark_stored();
    Ok((outcomes, reports))
}

fn conflicting_events(
    error: &EngineError,
    lines: &HashMap<EventId, EventLine>,
    deliveries: &[Delivery],
    jobs: &[&Job],
) -> HashSet<EventId> {
    let EngineError::Conflict(records) = error else {
        return HashSet::new();
    };
    let mut contested = HashSet::new();
    for (kind, key) in records {
        let before = contested.len();
        match kind {
            Kind::Occurrence => {
                let of_line = |line: &EventLine| {
                    let reopened = line.reopened.as_ref().map(|(_, next)| next);
                    let mut all = line.occurrences.iter().chain(reopened);
                    all.any(|it| it.key() == *key)
                };
                let found = lines.iter().filter(|(_, line)| of_line(line));
                contested.extend(found.map(|(id, _)| *id));
            }
            Kind::Delivery => {
                let found = deliveries.iter().filter(|it| it.key() == *key);
                contested.extend(found.map(|it| it.content.occurrence.event));
            }
            Kind::Receipt => {
                let is_claimed = |job: &&&Job| {
                    let claim = job.claim.as_ref();
                    claim.is_some_and(|claim| claim.receipt(0).key() == *key)
                };
                let events = jobs.iter().filter(is_claimed).flat_map(|job| &job.events);
                contested.extend(events.flat_map(Accepted::event_ids));
            }
            _ => {}
        }
        if contested.len() == before {
            return HashSet::new();
        }
    }
    contested
}

#[derive(Debug, Default)]
struct Receipts {
    /// Receipts by store key, including those of this batch.
    known: HashMap<Vec<u8>, Receipt>,
    new: Vec<Vec<u8>>,
}

impl Receipts {
    async fn read(deciding: &DecisionContext, jobs: &[&Job]) -> Result<Self, EngineError> {
        let claims = jobs.iter().filter_map(|job| job.claim.as_ref());
        let mut keys: Vec<_> = claims.map(|claim| claim.receipt(0).key()).collect();
        if keys.is_empty() {
            return Ok(Self::default());
        }
        keys.sort_unstable();
        keys.dedup();
        let found = deciding.store.get_many::<Receipt>(keys).await?;
        let stored = found.into_iter().flatten().map(|stored| stored.value);
        Ok(Self {
            known: stored.map(|receipt| (receipt.key(), receipt)).collect(),
            new: Vec::new(),
        })
    }

    /// Returns the earlier outcome of a job. If the job is new, adds a receipt and returns `None`.
    fn earlier_outcome(&mut self, job: &Job, now_ms: i64) -> Option<Outcome> {
        let claim = job.claim.as_ref()?;
        let receipt = claim.receipt(now_ms);
        let key = receipt.key();
        match self.known.get(&key) {
            None => {
                self.known.insert(key.clone(), receipt);
                self.new.push(key);
                None
            }
            Some(receipt) if receipt.fingerprint == claim.fingerprint => {
                Some(Outcome::Earlier(receipt.refused.clone()))
            }
            Some(_) => Some(Outcome::KeyUsed),
        }
    }
}

async fn read(
    deciding: &DecisionContext,
    jobs: &[&Job],
) -> Result<HashMap<EventId, EventLine>, EngineError> {
    let events = || jobs.iter().flat_map(|job| &job.events);
    let ids = events().map(|accepted| accepted.id).collect();
    let mut lines = HashMap::new();
    read_newest(deciding, ids, &mut lines).await?;
    // An alert can be open under its earlier id only if it is not open under its own id.
    let folded = events().filter(|it| open_occurrence(&lines, it.id).is_none());
    let folded: Vec<_> = folded.filter_map(|it| it.event.report.folded).collect();
    if !folded.is_empty() {
        read_newest(deciding, folded, &mut lines).await?;
    }
    read_reopened(deciding, &mut lines).await?;
    Ok(lines)
}

async fn read_newest(
    deciding: &DecisionContext,
    mut ids: Vec<EventId>,
    lines: &mut HashMap<EventId, EventLine>,
) -> Result<(), EngineError> {
    ids.retain(|id| !lines.contains_key(id));
    ids.sort_unstable();
    ids.dedup();
    let prefixes: Vec<_> = ids.iter().map(|id| Key::new().event(*id).build()).collect();
    let store = &deciding.store;
    let found = store.last_with_prefix::<Occurrence>(Index::OccurrenceByEvent, &prefixes);
    lines.reserve(ids.len());
    for (id, stored) in ids.into_iter().zip(found.await?) {
        let occurrences = stored.iter().map(|stored| stored.value.clone()).collect();
        let line = EventLine {
            stored,
            occurrences,
            is_changed: false,
            reopened: None,
        };
        lines.insert(id, line);
    }
    Ok(())
}

fn open_occurrence(lines: &HashMap<EventId, EventLine>, id: EventId) -> Option<&Occurrence> {
    let newest = lines.get(&id)?.occurrences.last();
    newest.filter(|it| it.status != Status::Closed)
}

/// Returns the id of an event: its own, unless the alert is only open under its earlier id.
fn event_id(lines: &HashMap<EventId, EventLine>, accepted: &Accepted) -> EventId {
    let folded = accepted.event.report.folded;
    let folded = folded.filter(|_| open_occurrence(lines, accepted.id).is_none());
    let continued = folded.filter(|id| {
        open_occurrence(lines, *id)
            .is_some_and(|it| lifecycle::continues_occurrence(it, &accepted.event))
    });
    continued.unwrap_or(accepted.id)
}

/// Returns the event ids of a request. If an earlier id is used, only one of its events is decided
/// at a time, because the next one depends on the result.
fn event_ids(lines: &HashMap<EventId, EventLine>, job: &Job) -> Vec<EventId> {
    let mut folded = HashSet::new();
    let of = |accepted: &Accepted| match event_id(lines, accepted) {
        id if id == accepted.id || folded.insert(id) => id,
        _ => accepted.id,
    };
    job.events.iter().map(of).collect()
}

async fn read_reopened(
    deciding: &DecisionContext,
    lines: &mut HashMap<EventId, EventLine>,
) -> Result<(), EngineError> {
    for line in lines.values_mut() {
        let newest = line.occurrences.last();
        let Some(newest) = newest.filter(|it| it.status == Status::Closed) else {
            continue;
        };
        if let Some(number) = newest.reopened {
            let found = find::find_stored(
                &deciding.store,
                OccurrenceId {
                    event: newest.event,
                    number,
                },
            )
            .await?;
            line.reopened = found.map(|stored| {
                let next = stored.value.clone();
                (stored, next)
            });
        }
    }
    Ok(())
}

/// Returns the stored occurrences that have pending messages, and those that have notified and
/// whose receivers may have to be notified of changes by the events.
fn updated_occurrences<'a>(
    lines: &'a HashMap<EventId, EventLine>,
    jobs: &'a [&'a Job],
    now_ms: i64,
) -> impl Iterator<Item = &'a Occurrence> {
    let events = jobs.iter().flat_map(|job| &job.events);
    events.filter_map(move |accepted| {
        let line = lines.get(&event_id(lines, accepted))?;
        let stored = match &line.reopened {
            Some((stored, _)) if line.is_reopened() => &stored.value,
            _ => &line.stored.as_ref()?.value,
        };
        let event = &accepted.event;
        let status = lifecycle::requested_status(stored, event, now_ms);
        let changes = status.is_some_and(|it| it != stored.status)
            || event.severity.is_some_and(|it| it != stored.severity)
            || event
                .acknowledged
                .is_some_and(|it| it != stored.acknowledged);
        let is_notified = changes && !stored.notified.is_empty();
        (is_notified || !stored.pending.is_empty()).then_some(stored)
    })
}

struct BatchDecision<'a> {
    deciding: &'a DecisionContext,
    snapshot: &'a Snapshot,
    past: &'a PastDefinitions,
    now_ms: i64,
    deliveries: Vec<Delivery>,
    /// Number of accepted events, by resulting severity of the occurrence.
    accepted: BTreeMap<Severity, i64>,
    beats: BeatClaims,
    /// Events of the service itself to report after the commit.
    reports: Reports,
}

impl<'a> BatchDecision<'a> {
    /// Decides a request as a whole. If an event is a cause once all events of the request are
    /// applied, it holds its effects among them, regardless of their order.
    fn decide_event(&mut self, job: &Job, lines: &mut HashMap<EventId, EventLine>) -> Outcome {
        let keys = job.events.iter().map(|_| new_id(self.now_ms));
        let keys: Vec<_> = keys.collect();
        let ids = event_ids(lines, job);
        let has_others = job.events.len() > 1;
        self.past.causes().begin_request();
        let mut foreseen = if has_others && self.snapshot.inhibitions().has_any() {
            self.predict_causes(job, (&ids, &keys), lines)
        } else {
            Vec::new()
        };
        let (mut number, mut opened) = (0, 0);
        for (at, (accepted, key)) in job.events.iter().zip(keys).enumerate() {
            let line = line_mut(lines, ids[at]);
            let known = foreseen.get_mut(at).and_then(Option::take);
            let reception = known.unwrap_or_else(|| {
                let arrival = self.arrival(accepted, job);
                line.receive(&arrival, key, self.snapshot)
            });
            opened += usize::from(reception.is_opened);
            number = self.notify(line, reception);
        }
        Outcome::Accepted {
            number,
            opened,
            failed: Vec::new(),
        }
    }

    /// Determines which events of a request are causes once all have been applied. Also returns the
    /// receptions of events whose id occurs once; the others are applied one by one later.
    fn predict_causes(
        &self,
        job: &Job,
        (ids, keys): (&[EventId], &[RecordId]),
        lines: &mut HashMap<EventId, EventLine>,
    ) -> Vec<Option<IngestedEvent>> {
        let mut counts: HashMap<EventId, usize> = HashMap::with_capacity(job.events.len());
        for id in ids {
            *counts.entry(*id).or_default() += 1;
        }
        let (inhibitions, causes) = (self.snapshot.inhibitions(), self.past.causes());
        let mut copies: HashMap<EventId, EventLine> = HashMap::new();
        let mut foreseen = Vec::with_capacity(job.events.len());
        for (accepted, (id, key)) in job.events.iter().zip(ids.iter().zip(keys)) {
            let line = line_mut(lines, *id);
            let is_alone = counts.get(id) == Some(&1);
            let line = if is_alone {
                line
            } else {
                copies.entry(*id).or_insert_with(|| line.clone())
            };
            let arrival = self.arrival(accepted, job);
            let reception = line.receive(&arrival, *key, self.snapshot);
            if reception.transition.is_some()
                && let Some(occurrence) = line.occurrence(reception.is_reopened)
            {
                let marks = inhibitions.cause_marks(occurrence, false, self.now_ms);
                if !marks.is_empty() || !occurrence.causes.is_empty() {
                    let mut after = occurrence.clone();
                    after.causes = marks;
                    if !is_alone {
                        occurrence.causes.clone_from(&after.causes);
                    }
                    causes.record_predicted(after);
                }
            }
            foreseen.push(is_alone.then_some(reception));
        }
        foreseen
    }

    fn arrival<'b>(&self, accepted: &'b Accepted, job: &'b Job) -> Arrival<'b>
    where
        'a: 'b,
    {
        Arrival {
            enrichments: self.snapshot.enrichments(),
            trace: job.trace,
            event: &accepted.event,
            author: job.author.as_ref(),
            chain: &job.chain,
            now_ms: self.now_ms,
        }
    }

    /// Decides the notifications for an accepted event; returns the number of its occurrence.
    fn notify(&mut self, line: &mut EventLine, reception: IngestedEvent) -> u32 {
        let now_ms = self.now_ms;
        let occurrence = line.occurrence(reception.is_reopened);
        let occurrence = occurrence.expect("an event belongs to an occurrence");
        let number = occurrence.number;
        if !occurrence.is_drill() {
            *self.accepted.entry(occurrence.severity).or_default() += 1;
        }
        let clock = self.deciding.clock.as_ref();
        self.beats
            .add_beats(self.snapshot, occurrence, now_ms, clock);
        if let Some(transition) = reception.transition {
            let matches = self.snapshot.matching_triggers(occurrence);
            self.deciding
                .store
                .metrics()
                .record_evaluation(matches.len());
            let step = Step {
                kind: StepKind::Event,
                transition,
                matches: &matches,
                now_ms,
                past: self.past,
            };
            let notices = notify(occurrence, &step, self.snapshot, &mut || new_id(now_ms));
            self.reports.add_reports(&notices, occurrence, now_ms);
            self.deliveries.extend(notices.deliveries);
        }
        let is_stored = |it: &Stored<Occurrence>| it.value.number == number;
        line.is_changed |= line.stored.as_ref().is_some_and(is_stored) || reception.is_reopened;
        number
    }
}

fn line_mut(lines: &mut HashMap<EventId, EventLine>, id: EventId) -> &mut EventLine {
    let line = lines.get_mut(&id);
    line.expect("every identity of the requests was read")
}

fn collect_changes(
    lines: &HashMap<EventId, EventLine>,
    deliveries: &[Delivery],
    mut changes: Changes,
) -> Changes {
    for line in lines.values() {
        let mut occurrences = line.occurrences.iter();
        if let Some(stored) = &line.stored {
            let next = occurrences.next().filter(|_| line.is_changed);
            if let Some(next) = next {
                changes.update(stored, next);
            }
        }
        for occurrence in occurrences {
            changes.insert(occurrence);
        }
        if let Some((stored, next)) = line
            .reopened
            .as_ref()
            .filter(|(it, next)| it.value != *next)
        {
            changes.update(stored, next);
        }
    }
    for delivery in deliveries {
        changes.insert(delivery);
    }
    changes
}
