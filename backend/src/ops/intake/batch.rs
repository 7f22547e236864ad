//! One batch of events: read what they are about, decide, commit.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use super::job::{Accepted, Job, Outcome};
use crate::{
    decide::{Causes, Past, Snapshot, Step, StepKind, Transition, hand_over, notify},
    domain::{
        Delivery, EventId, Occurrence, OccurrenceId, Receipt, Severity, Status, counter::Subject,
    },
    ops::{
        asked::settle,
        deciding::{Deciding, new_id},
        find,
        loop_guard::Reports,
        occurrence::{Arrival, Received, receive},
        revision,
    },
    store::{Changes, EngineError, Index, Kind, Lane, Record, Stored, record::bytes::Key},
};

/// The occurrences of one event identity while a batch is decided.
#[derive(Debug)]
struct Line {
    stored: Option<Stored<Occurrence>>,
    /// The stored occurrence as it will be, if there is one, then those that follow it.
    occurrences: Vec<Occurrence>,
    /// Whether the stored one changes.
    is_changed: bool,
    /// An earlier occurrence that was reopened, as it is stored and as it will be.
    reopened: Option<(Stored<Occurrence>, Occurrence)>,
}

impl Line {
    /// Whether events are taken in by the earlier occurrence that was reopened: it is open, and the
    /// newest one is not.
    fn is_reopened(&self) -> bool {
        let is_over = |it: &Occurrence| it.status == Status::Closed;
        let reopened = self.reopened.as_ref();
        self.occurrences.last().is_some_and(is_over) && reopened.is_some_and(|(_, it)| !is_over(it))
    }
}

impl Line {
    /// Adds an occurrence that follows the newest one.
    fn open(&mut self, mut next: Occurrence, snapshot: &Snapshot, now_ms: i64) {
        let is_stored = self.stored.is_some() && self.occurrences.len() == 1;
        if let Some(before) = self.occurrences.last_mut() {
            self.is_changed |= hand_over(before, &mut next, snapshot, now_ms) && is_stored;
        }
        self.occurrences.push(next);
    }
}

/// Why a batch was not committed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) error: EngineError,
    /// After a conflict, the identities about which somebody else committed meanwhile; none where
    /// that is not known.
    pub(super) contested: HashSet<EventId>,
}

impl From<EngineError> for Failed {
    fn from(error: EngineError) -> Self {
        Self {
            error,
            contested: HashSet::new(),
        }
    }
}

/// Takes in every event of the jobs in one commit, except those of jobs that were carried out
/// before; answers what became of each job, and what the service has to say of it.
pub(super) async fn commit(
    deciding: &Deciding,
    jobs: &[Job],
) -> Result<(Vec<Outcome>, Reports), Failed> {
    let causes = Causes::default();
    loop {
        let decided = decide(deciding, jobs, &causes).await?;
        if settle(&deciding.store, &causes).await? {
            return store(deciding, jobs, decided).await;
        }
    }
}

/// What becomes of the jobs, as far as the causes are known.
struct Decided {
    snapshot: Arc<Snapshot>,
    lines: HashMap<EventId, Line>,
    receipts: Receipts,
    outcomes: Vec<Outcome>,
    deliveries: Vec<Delivery>,
    reports: Reports,
    /// How many events were taken in, by what their occurrence has become.
    taken: BTreeMap<Severity, i64>,
    now_ms: i64,
}

async fn decide(deciding: &Deciding, jobs: &[Job], causes: &Causes) -> Result<Decided, Failed> {
    let snapshot = deciding.ruleset.refreshed().await?;
    let mut lines = read(deciding, jobs).await?;
    let past = revision::past(&deciding.store, &snapshot, updated(&lines, jobs)).await?;
    let past = past.asking(causes);
    let now_ms = deciding.clock.now_ms();
    let mut decision = Decision {
        deciding,
        snapshot: &snapshot,
        past: &past,
        now_ms,
        deliveries: Vec::new(),
        taken: BTreeMap::new(),
        reports: Reports::default(),
        opened: 0,
    };
    let mut receipts = Receipts::read(deciding, jobs).await?;
    let mut outcomes = Vec::with_capacity(jobs.len());
    for job in jobs {
        if let Some(earlier) = receipts.earlier(job, now_ms) {
            outcomes.push(earlier);
            continue;
        }
        let mut number = 0;
        let opened_before = decision.opened;
        for accepted in &job.events {
            let line = lines.get_mut(&accepted.id);
            let line = line.expect("every identity of the jobs was read");
            number = decision.decide(line, accepted, job);
        }
        let opened = decision.opened - opened_before;
        outcomes.push(Outcome::Taken { number, opened });
    }
    let (deliveries, reports, taken) = (decision.deliveries, decision.reports, decision.taken);
    Ok(Decided {
        snapshot,
        lines,
        receipts,
        outcomes,
        deliveries,
        reports,
        taken,
        now_ms,
    })
}

/// Stores what was decided.
async fn store(
    deciding: &Deciding,
    jobs: &[Job],
    decided: Decided,
) -> Result<(Vec<Outcome>, Reports), Failed> {
    let Decided {
        snapshot,
        lines,
        receipts,
        outcomes,
        deliveries,
        reports,
        taken,
        now_ms,
    } = decided;
    let mut changes = changes_of(deciding, &lines, &deliveries);
    for (severity, count) in taken {
        changes.count(Subject::Events, now_ms, severity, count);
    }
    for key in &receipts.new {
        changes.insert(&receipts.known[key]);
    }
    if !changes.is_empty() {
        changes.rest_on(snapshot.position());
        if let Err(error) = deciding.store.apply(Lane::Bulk, changes).await {
            let contested = contested(&error, &lines, &deliveries, jobs);
            return Err(Failed { error, contested });
        }
    }
    Ok((outcomes, reports))
}

/// The identities of the events that a conflict is about; none where that cannot be told.
fn contested(
    error: &EngineError,
    lines: &HashMap<EventId, Line>,
    deliveries: &[Delivery],
    jobs: &[Job],
) -> HashSet<EventId> {
    let EngineError::Conflict(records) = error else {
        return HashSet::new();
    };
    let mut contested = HashSet::new();
    for (kind, key) in records {
        let before = contested.len();
        match kind {
            Kind::Occurrence => {
                let of_line = |line: &Line| {
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
                let is_claimed = |job: &&Job| {
                    let claim = job.claim.as_ref();
                    claim.is_some_and(|claim| claim.receipt(0).key() == *key)
                };
                let events = jobs.iter().filter(is_claimed).flat_map(|job| &job.events);
                contested.extend(events.map(|accepted| accepted.id));
            }
            _ => {}
        }
        if contested.len() == before {
            return HashSet::new();
        }
    }
    contested
}

/// The receipts that decide whether jobs were carried out before.
#[derive(Debug, Default)]
struct Receipts {
    /// By their keys in the store; those of this batch as well.
    known: HashMap<Vec<u8>, Receipt>,
    /// The keys of those of this batch.
    new: Vec<Vec<u8>>,
}

impl Receipts {
    async fn read(deciding: &Deciding, jobs: &[Job]) -> Result<Self, EngineError> {
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

    /// What became of the job before; none when it is to be carried out now, which is remembered.
    fn earlier(&mut self, job: &Job, now_ms: i64) -> Option<Outcome> {
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

/// Reads the newest occurrence of every event.
async fn read(deciding: &Deciding, jobs: &[Job]) -> Result<HashMap<EventId, Line>, EngineError> {
    let events = jobs.iter().flat_map(|job| &job.events);
    let mut ids: Vec<_> = events.map(|accepted| accepted.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let prefixes: Vec<_> = ids.iter().map(|id| Key::new().event(*id).build()).collect();
    let store = &deciding.store;
    let found = store.last_under::<Occurrence>(Index::OccurrenceByEvent, &prefixes);
    let mut lines = HashMap::with_capacity(ids.len());
    for (id, stored) in ids.into_iter().zip(found.await?) {
        let occurrences = stored.iter().map(|stored| stored.value.clone()).collect();
        let line = Line {
            stored,
            occurrences,
            is_changed: false,
            reopened: None,
        };
        lines.insert(id, line);
    }
    read_reopened(deciding, &mut lines).await?;
    Ok(lines)
}

/// Reads the earlier occurrences that operators reopened.
async fn read_reopened(
    deciding: &Deciding,
    lines: &mut HashMap<EventId, Line>,
) -> Result<(), EngineError> {
    for line in lines.values_mut() {
        let newest = line.occurrences.last();
        let Some(newest) = newest.filter(|it| it.status == Status::Closed) else {
            continue;
        };
        if let Some(number) = newest.reopened {
            let found = find::stored(
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

/// The stored occurrences that rules notified about and that the events may change in a way that
/// those who were told are to hear of.
fn updated<'a>(
    lines: &'a HashMap<EventId, Line>,
    jobs: &'a [Job],
) -> impl Iterator<Item = &'a Occurrence> {
    let events = jobs.iter().flat_map(|job| &job.events);
    events.filter_map(|accepted| {
        let line = lines.get(&accepted.id)?;
        let stored = match &line.reopened {
            Some((stored, _)) if line.is_reopened() => &stored.value,
            _ => &line.stored.as_ref()?.value,
        };
        let event = &accepted.event;
        let changes = event.status.is_some_and(|it| it != stored.status)
            || event.severity.is_some_and(|it| it != stored.severity)
            || event
                .acknowledged
                .is_some_and(|it| it != stored.acknowledged);
        let is_notified = changes && !stored.notified.is_empty();
        (is_notified || !stored.pending.is_empty()).then_some(stored)
    })
}

struct Decision<'a> {
    deciding: &'a Deciding,
    snapshot: &'a Snapshot,
    past: &'a Past,
    now_ms: i64,
    deliveries: Vec<Delivery>,
    /// How many events were taken in, by what their occurrence has become.
    taken: BTreeMap<Severity, i64>,
    /// What the service has to say itself, after the commit.
    reports: Reports,
    /// Events so far that opened an occurrence.
    opened: usize,
}

impl Decision<'_> {
    /// Answers the number of the occurrence that took the event in.
    fn decide(&mut self, line: &mut Line, accepted: &Accepted, job: &Job) -> u32 {
        let now_ms = self.now_ms;
        let arrival = Arrival {
            trace: job.trace,
            event: &accepted.event,
            author: job.author.as_ref(),
            chain: &job.chain,
            now_ms,
        };
        let is_reopened = line.is_reopened();
        let key = new_id(now_ms);
        let current = match &mut line.reopened {
            Some((_, reopened)) if is_reopened => Some(reopened),
            _ => line.occurrences.last_mut(),
        };
        let received = receive(current, &arrival, &self.deciding.lifetime, key);
        let transition = match received {
            Received::Opened(opened) => {
                self.opened += 1;
                line.open(*opened, self.snapshot, now_ms);
                Some(Transition::default())
            }
            Received::Repeated(transition) => Some(transition),
            Received::Counted => None,
        };
        let newest = line.occurrences.last_mut();
        let newest = newest.expect("an event is taken in by an occurrence");
        let occurrence = match &mut line.reopened {
            Some((_, reopened)) if is_reopened => {
                newest.prior_count = newest.prior_count.saturating_add(1);
                reopened
            }
            _ => newest,
        };
        let number = occurrence.number;
        *self.taken.entry(occurrence.severity).or_default() += 1;
        if let Some(transition) = transition {
            let matches = self.snapshot.matches(occurrence);
            self.deciding.store.metrics().evaluated(matches.len());
            let step = Step {
                kind: StepKind::Event,
                transition,
                matches: &matches,
                now_ms,
                past: self.past,
            };
            let notices = notify(occurrence, &step, self.snapshot, &mut || new_id(now_ms));
            self.reports.note(&notices, occurrence, now_ms);
            self.deliveries.extend(notices.deliveries);
        }
        line.is_changed |= line
            .stored
            .as_ref()
            .is_some_and(|it| it.value.number == number)
            || is_reopened;
        number
    }
}

fn changes_of(
    deciding: &Deciding,
    lines: &HashMap<EventId, Line>,
    deliveries: &[Delivery],
) -> Changes {
    let mut changes = deciding.store.changes();
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
