//! One batch of events: read what they are about, decide, commit.

use std::collections::HashMap;

use super::job::{Accepted, Job, Outcome};
use crate::{
    decide::{Past, Snapshot, Step, StepKind, Transition, notify},
    domain::{Delivery, EventId, Occurrence, OccurrenceId, Receipt, Status},
    ops::{
        deciding::{Deciding, new_id},
        find,
        loop_guard::Reports,
        occurrence::{Arrival, Received, receive},
        revision,
    },
    store::{Changes, EngineError, Index, Lane, Record, Stored, record::bytes::Key},
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

/// Takes in every event of the jobs in one commit, except those of jobs that were carried out
/// before; answers what became of each job, and what the service has to say of it.
pub(super) async fn commit(
    deciding: &Deciding,
    jobs: &[Job],
) -> Result<(Vec<Outcome>, Reports), EngineError> {
    let snapshot = deciding.ruleset.refreshed().await?;
    let mut lines = read(deciding, jobs).await?;
    let past = revision::past(&deciding.store, &snapshot, updated(&lines, jobs)).await?;
    let now_ms = deciding.clock.now_ms();
    let mut decision = Decision {
        deciding,
        snapshot: &snapshot,
        past: &past,
        now_ms,
        deliveries: Vec::new(),
        reports: Reports::default(),
    };
    let mut receipts = Receipts::read(deciding, jobs).await?;
    let mut outcomes = Vec::with_capacity(jobs.len());
    let mut event_count = 0;
    for job in jobs {
        if let Some(earlier) = receipts.earlier(job, now_ms) {
            outcomes.push(earlier);
            continue;
        }
        event_count += job.events.len();
        let mut number = 0;
        for accepted in &job.events {
            let line = lines.get_mut(&accepted.id);
            let line = line.expect("every identity of the jobs was read");
            number = decision.decide(line, accepted, job);
        }
        outcomes.push(Outcome::Taken(number));
    }
    let (deliveries, reports) = (decision.deliveries, decision.reports);
    let mut changes = changes_of(deciding, &lines, &deliveries);
    for key in &receipts.new {
        changes.insert(&receipts.known[key]);
    }
    if !changes.is_empty() {
        deciding.store.apply(Lane::Bulk, changes).await?;
    }
    deciding.traffic.count(now_ms, event_count);
    Ok((outcomes, reports))
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
    let engine = deciding.store.engine();
    let found = engine
        .last_under(Index::OccurrenceByEvent, &prefixes)
        .await?;
    let keys: Vec<_> = found.iter().flatten().map(|(_, key)| key.clone()).collect();
    let mut records = deciding
        .store
        .get_many::<Occurrence>(keys)
        .await?
        .into_iter();
    let mut lines = HashMap::with_capacity(ids.len());
    for (id, entry) in ids.into_iter().zip(found) {
        let stored = match entry {
            // A record that went after its entry was read is decided anew.
            Some(_) => Some(records.next().flatten().ok_or(EngineError::Conflict)?),
            None => None,
        };
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
        (changes && !stored.notified.is_empty()).then_some(stored)
    })
}

struct Decision<'a> {
    deciding: &'a Deciding,
    snapshot: &'a Snapshot,
    past: &'a Past,
    now_ms: i64,
    deliveries: Vec<Delivery>,
    /// What the service has to say itself, after the commit.
    reports: Reports,
}

impl Decision<'_> {
    /// Answers the number of the occurrence that took the event in.
    fn decide(&mut self, line: &mut Line, accepted: &Accepted, job: &Job) -> u32 {
        let now_ms = self.now_ms;
        let arrival = Arrival {
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
                line.occurrences.push(*opened);
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
        if let Some(transition) = transition {
            let step = Step {
                kind: StepKind::Event,
                transition,
                matches: &self.snapshot.matches(occurrence),
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
