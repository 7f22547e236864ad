//! What this process knows of beats: the time of service, and which beats need not be stored.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    clock::{Clock, millis},
    decide::{LoadedHeartbeat, Snapshot},
    domain::{Expectation, Heartbeat, Occurrence, RecordId, heartbeat::SERVICE, hold::SharedValue},
    error::Error,
    limits::{ALL_EXPECTATIONS_MAX, BEATS_APART, EXPECTATIONS_MAX, SERVICE_TIME_INTERVAL},
    store::{
        Changes, EngineError, Index, Store, Stored,
        engine::Range,
        record::{RUNNING, bytes::Key},
    },
};

/// Sets of values whose beats are remembered, before those are forgotten that can be read again.
const NOTED_MAX: usize = 100_000;

/// The beats of this process.
///
/// A heartbeat's beats are stored at most once in a tenth of the time between two of them, so that an
/// event that is a beat seldom costs a write. A beat that was not stored is remembered, and stored when
/// that time is over; a crash loses it, and with it at most that tenth, or half of the grace.
#[derive(Debug, Default)]
pub struct Beats(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    time: Option<ServiceTime>,
    noted: HashMap<(RecordId, RecordId), Noted>,
    /// How many sets of values are expected, by heartbeat and under [`SERVICE`] in all, as far as it was
    /// counted.
    counts: HashMap<RecordId, usize>,
    /// Whether something changed that an event may have to be opened or closed for.
    is_changed: bool,
}

impl Known {
    /// Counts a further set of values.
    fn add(&mut self, heartbeat: RecordId) {
        for of in [heartbeat, SERVICE] {
            if let Some(count) = self.counts.get_mut(&of) {
                *count += 1;
            }
        }
    }
}

/// The milliseconds in which the service accepted events.
#[derive(Debug, Clone, Copy)]
struct ServiceTime {
    base_ms: i64,
    /// When that was, on the monotonic clock.
    at: Duration,
    /// When it was read from the store last.
    read: Duration,
    stands: bool,
}

impl ServiceTime {
    fn now_ms(self, passed: Duration) -> i64 {
        let since = passed.saturating_sub(self.at);
        let since = if self.stands { Duration::ZERO } else { since };
        self.base_ms.saturating_add(millis(since))
    }
}

/// What is known of the beats of a set of values.
#[derive(Debug)]
struct Noted {
    /// When one was stored last, in time of service.
    stored_ms: i64,
    /// A later one that was not.
    later: Option<Moment>,
    /// Whether one is about to be stored.
    is_claimed: bool,
    values: Vec<SharedValue>,
    apart_ms: i64,
}

/// A moment, for people and in time of service.
#[derive(Debug, Clone, Copy)]
struct Moment {
    at_ms: i64,
    service_ms: i64,
}

/// A beat that is to be stored.
#[derive(Debug, Clone)]
struct Beat {
    heartbeat: RecordId,
    key: RecordId,
    values: Vec<SharedValue>,
    moment: Moment,
    /// When it was claimed, in time of service.
    claim_ms: i64,
    apart_ms: i64,
}

/// Beats that this process is about to store. Dropped before they are, they can be claimed again.
#[derive(Debug)]
pub struct Claims {
    beats: Arc<Beats>,
    claimed: Vec<Beat>,
    next: Vec<(Option<Stored<Expectation>>, Expectation)>,
}

impl Beats {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time of service; 0 before it was read.
    pub fn service_ms(&self, clock: &dyn Clock) -> i64 {
        let time = self.known().time;
        time.map_or(0, |time| time.now_ms(clock.passed()))
    }

    /// Reads the time of service, unless that was done a moment ago.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn follow(&self, store: &Store, clock: &dyn Clock) -> Result<(), EngineError> {
        let passed = clock.passed();
        let is_fresh = |it: ServiceTime| passed.saturating_sub(it.read) < SERVICE_TIME_INTERVAL;
        if self.known().time.is_some_and(is_fresh) {
            return Ok(());
        }
        let key = Key::new().id(SERVICE).id(SERVICE).build();
        let stored = store.get::<Expectation>(key).await?;
        let stored_ms = stored.as_ref().map_or(0, |it| it.value.beat_service_ms);
        let at_ms = stored.and_then(|it| it.value.last_ms);
        // All nodes have the database's clock: the time of service of the leader, as long as there is one.
        let since_ms = at_ms.map_or(0, |it| clock.now_ms().saturating_sub(it));
        let ahead_ms = since_ms.clamp(0, millis(SERVICE_TIME_INTERVAL));
        self.known().time = Some(ServiceTime {
            base_ms: stored_ms.saturating_add(ahead_ms),
            at: passed,
            read: passed,
            stands: false,
        });
        Ok(())
    }

    /// Sets the time of service, which continues from there or stands still; for the node that leads.
    pub(crate) fn lead(&self, base_ms: i64, at: Duration, stands: bool) {
        self.known().time = Some(ServiceTime {
            base_ms,
            at,
            read: at,
            stands,
        });
    }

    /// Notes that a beat was called in, so that an event may have to be opened or closed; `added` is the
    /// heartbeat that expects a further set of values by it.
    pub(crate) fn note_call(&self, added: Option<RecordId>) {
        let mut known = self.known();
        known.is_changed = true;
        if let Some(heartbeat) = added {
            known.add(heartbeat);
        }
    }

    /// Whether that was noted since this was asked last.
    pub(crate) fn take_change(&self) -> bool {
        std::mem::take(&mut self.known().is_changed)
    }

    /// Forgets what is known of a set of values.
    pub(crate) fn forget(&self, heartbeat: RecordId, key: RecordId) {
        let mut known = self.known();
        known.noted.remove(&(heartbeat, key));
        known.counts.clear();
    }

    /// Refuses a further set of values of a heartbeat that expects too many.
    pub(crate) async fn check_room(
        &self,
        store: &Store,
        heartbeat: &Heartbeat,
    ) -> Result<(), Error> {
        if self.has_room(store, heartbeat.id).await? {
            return Ok(());
        }
        Err(Error::Exhausted {
            message: format!(
                "heartbeat `{}` expects {EXPECTATIONS_MAX} sets of values already, or all heartbeats \
                 {ALL_EXPECTATIONS_MAX}; forget some, or distinguish beats by fewer fields",
                heartbeat.name
            ),
            retry_after: None,
        })
    }

    async fn has_room(&self, store: &Store, heartbeat: RecordId) -> Result<bool, EngineError> {
        let own = Range::under(&Key::new().id(heartbeat).build());
        let own = self.count(store, heartbeat, own, EXPECTATIONS_MAX).await?;
        // Neither what belongs to the service nor the second entries of what runs.
        let all = Range {
            start: Range::under(&Key::new().id(SERVICE).build())
                .end
                .unwrap_or_default(),
            end: Some(Key::new().id(RUNNING).build()),
        };
        let all = self
            .count(store, SERVICE, all, ALL_EXPECTATIONS_MAX)
            .await?;
        Ok(own < EXPECTATIONS_MAX && all < ALL_EXPECTATIONS_MAX)
    }

    async fn count(
        &self,
        store: &Store,
        heartbeat: RecordId,
        range: Range,
        most: usize,
    ) -> Result<usize, EngineError> {
        if let Some(count) = self.known().counts.get(&heartbeat) {
            return Ok(*count);
        }
        let engine = store.engine();
        let count = engine.count(Index::ExpectationByBeat, range, most).await?;
        self.known().counts.insert(heartbeat, count);
        Ok(count)
    }

    /// Claims the beats that an event is and that are to be stored; the others are remembered.
    fn claim(
        &self,
        snapshot: &Snapshot,
        occurrence: &Occurrence,
        moment: Moment,
        claimed: &mut Vec<Beat>,
    ) {
        for loaded in snapshot.heartbeats().iter() {
            if !loaded.is_of_events() || loaded.is_quiet(moment.service_ms) {
                continue;
            }
            if let Some(values) = loaded.beat(occurrence) {
                let key = loaded.whole().unwrap_or_else(|| loaded.key(&values));
                claimed.extend(self.claim_one(loaded, key, values, moment));
            }
        }
    }

    fn claim_one(
        &self,
        loaded: &LoadedHeartbeat,
        key: RecordId,
        values: Vec<SharedValue>,
        moment: Moment,
    ) -> Option<Beat> {
        let (heartbeat, apart_ms) = (loaded.heartbeat.id, loaded.heartbeat.stored_apart_ms());
        let rest_ms = moment.service_ms + millis(BEATS_APART);
        let mut known = self.known();
        match known.noted.get_mut(&(heartbeat, key)) {
            Some(noted) if noted.is_claimed || moment.service_ms - noted.stored_ms < apart_ms => {
                noted.later = Some(moment);
                loaded.rest_until(rest_ms.min(noted.stored_ms + apart_ms));
                None
            }
            noted => {
                loaded.rest_until(rest_ms);
                if let Some(noted) = noted {
                    noted.is_claimed = true;
                } else {
                    if known.noted.len() >= NOTED_MAX {
                        known
                            .noted
                            .retain(|_, it| it.is_claimed || it.later.is_some());
                    }
                    let new = Noted {
                        stored_ms: i64::MIN / 2,
                        later: None,
                        is_claimed: true,
                        values: values.clone(),
                        apart_ms,
                    };
                    known.noted.insert((heartbeat, key), new);
                }
                Some(Beat {
                    heartbeat,
                    key,
                    values,
                    moment,
                    claim_ms: moment.service_ms,
                    apart_ms,
                })
            }
        }
    }

    /// Claims what was remembered and is to be stored now.
    pub(crate) fn claim_remembered(self: &Arc<Self>, clock: &dyn Clock) -> Claims {
        let service_ms = self.service_ms(clock);
        let mut known = self.known();
        let mut claimed = Vec::new();
        for ((heartbeat, key), noted) in &mut known.noted {
            let is_due = !noted.is_claimed && service_ms - noted.stored_ms >= noted.apart_ms;
            let Some(moment) = noted.later.filter(|_| is_due) else {
                continue;
            };
            noted.is_claimed = true;
            claimed.push(Beat {
                heartbeat: *heartbeat,
                key: *key,
                values: noted.values.clone(),
                moment,
                claim_ms: service_ms,
                apart_ms: noted.apart_ms,
            });
        }
        Claims {
            beats: Arc::clone(self),
            claimed,
            next: Vec::new(),
        }
    }

    /// Forgets what is known of heartbeats that are not among these.
    pub(crate) fn keep(&self, heartbeats: &HashSet<RecordId>) {
        let mut known = self.known();
        known.noted.retain(|(it, _), _| heartbeats.contains(it));
        known.counts.clear();
    }
}

impl Claims {
    /// None yet.
    pub fn none(beats: &Arc<Beats>) -> Self {
        Self {
            beats: Arc::clone(beats),
            claimed: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.claimed.is_empty()
    }

    /// Notes the beats that an accepted event is.
    pub fn note(
        &mut self,
        snapshot: &Snapshot,
        occurrence: &Occurrence,
        now_ms: i64,
        clock: &dyn Clock,
    ) {
        if snapshot.heartbeats().is_empty() {
            return;
        }
        let moment = Moment {
            at_ms: now_ms,
            service_ms: self.beats.service_ms(clock),
        };
        let beats = Arc::clone(&self.beats);
        beats.claim(snapshot, occurrence, moment, &mut self.claimed);
    }

    /// Reads what is expected of these values, and decides how it is after the beats.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn read(&mut self, store: &Store) -> Result<(), EngineError> {
        if self.claimed.is_empty() {
            return Ok(());
        }
        let key = |it: &Beat| Key::new().id(it.heartbeat).id(it.key).build();
        let keys = self.claimed.iter().map(key).collect();
        let found = store.get_many::<Expectation>(keys).await?;
        for (beat, found) in self.claimed.iter().zip(found) {
            let Moment { at_ms, service_ms } = beat.moment;
            let before = match &found {
                Some(found) => found.value.clone(),
                None if self.beats.has_room(store, beat.heartbeat).await? => {
                    awaited(beat.heartbeat, beat.key, beat.values.clone(), service_ms)
                }
                None => {
                    tracing::warn!(
                        heartbeat = %beat.heartbeat,
                        "a heartbeat expects as many sets of values as it can; a beat of others is ignored"
                    );
                    continue;
                }
            };
            let mut next = before.beaten(at_ms, service_ms, false);
            if service_ms < beat.claim_ms {
                // It was remembered: the event may have been opened since.
                next.beat_service_ms = before.beat_service_ms.max(service_ms);
            }
            self.next.push((found, next));
        }
        Ok(())
    }

    /// Adds what was decided to the changes of the commit.
    pub fn add_to(&self, changes: &mut Changes) {
        for (stored, next) in &self.next {
            match stored {
                Some(stored) => changes.update(stored, next),
                None => changes.insert(next),
            }
        }
    }

    /// Notes that they are on disk.
    pub fn stored(mut self) {
        let mut known = self.beats.known();
        for (stored, next) in &self.next {
            let was_open = next.open.is_some();
            known.is_changed |= was_open;
            if stored.is_none() {
                known.add(next.heartbeat);
            }
        }
        let is_stored = |it: &Beat| self.next.iter().any(|(_, next)| next.key == it.key);
        let (stored, ignored): (Vec<_>, Vec<_>) = std::mem::take(&mut self.claimed)
            .into_iter()
            .partition(is_stored);
        // Of what there was no room for nothing is remembered.
        for beat in ignored {
            known.noted.remove(&(beat.heartbeat, beat.key));
        }
        for beat in stored {
            if let Some(noted) = known.noted.get_mut(&(beat.heartbeat, beat.key)) {
                noted.stored_ms = beat.claim_ms;
                noted.apart_ms = beat.apart_ms;
                noted.is_claimed = false;
                let is_later = |it: &Moment| it.service_ms > beat.moment.service_ms;
                noted.later = noted.later.filter(is_later);
            }
        }
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        if self.claimed.is_empty() {
            return;
        }
        let mut known = self.beats.known();
        for beat in &self.claimed {
            if let Some(noted) = known.noted.get_mut(&(beat.heartbeat, beat.key)) {
                noted.is_claimed = false;
                let later = noted
                    .later
                    .filter(|it| it.service_ms > beat.moment.service_ms);
                noted.later = Some(later.unwrap_or(beat.moment));
            }
        }
    }
}

/// What is expected of values from that time on.
pub(crate) fn awaited(
    heartbeat: RecordId,
    key: RecordId,
    values: Vec<SharedValue>,
    service_ms: i64,
) -> Expectation {
    Expectation {
        heartbeat,
        key,
        values,
        last_ms: None,
        beat_service_ms: service_ms,
        has_failed: false,
        open: None,
        run: None,
        run_ms: None,
        gaps_ms: Vec::new(),
        window: None,
        outages: Vec::new(),
    }
}
