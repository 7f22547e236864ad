//! In-memory state of beats: the service time, and the beats that need not be stored.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    clock::{Clock, to_millis},
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

/// Maximum number of value sets cached. Above the limit, those that can be read again are evicted.
const NOTED_MAX: usize = 100_000;

/// The beats of this process.
///
/// Beats of a heartbeat are stored at most once in a tenth of its interval, so that an event that
/// counts as a beat rarely costs a write. Other beats are cached and written when that time is
/// over. A crash loses at most that tenth of the interval, or half of the grace period.
#[derive(Debug, Default)]
pub struct Beats(Mutex<BeatCache>);

#[derive(Debug, Default)]
struct BeatCache {
    time: Option<ServiceTime>,
    noted: HashMap<(RecordId, RecordId), ReportedBeat>,
    /// Number of expected value sets by heartbeat, and in total under [`SERVICE`]. Filled on
    /// demand.
    counts: HashMap<RecordId, usize>,
    /// Whether beats have changed, so that an event may have to be opened or closed.
    is_changed: bool,
}

impl BeatCache {
    fn add(&mut self, heartbeat: RecordId) {
        for of in [heartbeat, SERVICE] {
            if let Some(count) = self.counts.get_mut(&of) {
                *count += 1;
            }
        }
    }
}

/// The total time during which the service accepted events, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct ServiceTime {
    base_ms: i64,
    at: Duration,
    read: Duration,
    stands: bool,
}

impl ServiceTime {
    fn now_ms(self, passed: Duration) -> i64 {
        let since = passed.saturating_sub(self.at);
        let since = if self.stands { Duration::ZERO } else { since };
        self.base_ms.saturating_add(to_millis(since))
    }
}

#[derive(Debug)]
struct ReportedBeat {
    /// Service time of the last stored beat.
    stored_ms: i64,
    /// A later beat that is not stored yet.
    later: Option<BeatTime>,
    is_claimed: bool,
    values: Vec<SharedValue>,
    apart_ms: i64,
}

#[derive(Debug, Clone, Copy)]
struct BeatTime {
    at_ms: i64,
    service_ms: i64,
}

#[derive(Debug, Clone)]
struct Beat {
    heartbeat: RecordId,
    key: RecordId,
    values: Vec<SharedValue>,
    moment: BeatTime,
    claim_ms: i64,
    apart_ms: i64,
}

/// Beats that this process is about to store. Dropping them before they are stored releases the
/// claims.
#[derive(Debug)]
pub struct BeatClaims {
    beats: Arc<Beats>,
    claimed: Vec<Beat>,
    next: Vec<(Option<Stored<Expectation>>, Expectation)>,
}

impl Beats {
    fn lock_cache(&self) -> MutexGuard<'_, BeatCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the service time, or 0 if it has not been read yet.
    pub fn service_ms(&self, clock: &dyn Clock) -> i64 {
        let time = self.lock_cache().time;
        time.map_or(0, |time| time.now_ms(clock.elapsed()))
    }

    /// Reads the service time unless it was read recently.
    pub async fn refresh_service_time(
        &self,
        store: &Store,
        clock: &dyn Clock,
    ) -> Result<(), EngineError> {
        let passed = clock.elapsed();
        let is_fresh = |it: ServiceTime| passed.saturating_sub(it.read) < SERVICE_TIME_INTERVAL;
        if self.lock_cache().time.is_some_and(is_fresh) {
            return Ok(());
        }
        let key = Key::new().id(SERVICE).id(SERVICE).build();
        let stored = store.get::<Expectation>(key).await?;
        let stored_ms = stored.as_ref().map_or(0, |it| it.value.beat_service_ms);
        let at_ms = stored.and_then(|it| it.value.last_ms);
        // All nodes use the database's clock. While there is a leader, its service time applies.
        let since_ms = at_ms.map_or(0, |it| clock.now_ms().saturating_sub(it));
        let ahead_ms = since_ms.clamp(0, to_millis(SERVICE_TIME_INTERVAL));
        self.lock_cache().time = Some(ServiceTime {
            base_ms: stored_ms.saturating_add(ahead_ms),
            at: passed,
            read: passed,
            stands: false,
        });
        Ok(())
    }

    /// Sets the service time on the leader. The time advances from there unless `stands` is set.
    pub(crate) fn set_leader_time(&self, base_ms: i64, at: Duration, stands: bool) {
        self.lock_cache().time = Some(ServiceTime {
            base_ms,
            at,
            read: at,
            stands,
        });
    }

    /// Records that a call reported a beat, so that an event may have to be opened or closed.
    /// `added` is the heartbeat, if it expects a new value set because of the beat.
    pub(crate) fn mark_changed_by_call(&self, added: Option<RecordId>) {
        let mut known = self.lock_cache();
        known.is_changed = true;
        if let Some(heartbeat) = added {
            known.add(heartbeat);
        }
    }

    pub(crate) fn take_changed_flag(&self) -> bool {
        std::mem::take(&mut self.lock_cache().is_changed)
    }

    pub(crate) fn forget_expectation(&self, heartbeat: RecordId, key: RecordId) {
        let mut known = self.lock_cache();
        known.noted.remove(&(heartbeat, key));
        known.counts.clear();
    }

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
                "heartbeat `{}` already expects {EXPECTATIONS_MAX} sets of values, or all heartbeats \
                 {ALL_EXPECTATIONS_MAX}; forget some, or distinguish beats by fewer fields",
                heartbeat.name
            ),
            retry_after: None,
        })
    }

    async fn has_room(&self, store: &Store, heartbeat: RecordId) -> Result<bool, EngineError> {
        let own = Range::with_prefix(&Key::new().id(heartbeat).build());
        let own = self.count(store, heartbeat, own, EXPECTATIONS_MAX).await?;
        // Excludes the service's own records, and the second index entries that running jobs have.
        let all = Range {
            start: Range::with_prefix(&Key::new().id(SERVICE).build())
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
        if let Some(count) = self.lock_cache().counts.get(&heartbeat) {
            return Ok(*count);
        }
        let engine = store.engine();
        let count = engine.count(Index::ExpectationByBeat, range, most).await?;
        self.lock_cache().counts.insert(heartbeat, count);
        Ok(count)
    }

    /// Claims the beats of an event that must be stored, and caches the others.
    fn claim(
        &self,
        snapshot: &Snapshot,
        occurrence: &Occurrence,
        moment: BeatTime,
        claimed: &mut Vec<Beat>,
    ) {
        for loaded in snapshot.heartbeats().iter() {
            if !loaded.uses_events() || loaded.can_ignore_beat(moment.service_ms) {
                continue;
            }
            if let Some(values) = loaded.beat_values(occurrence) {
                let key = loaded
                    .single_expectation_key()
                    .unwrap_or_else(|| loaded.key(&values));
                claimed.extend(self.claim_beat(loaded, key, values, moment));
            }
        }
    }

    fn claim_beat(
        &self,
        loaded: &LoadedHeartbeat,
        key: RecordId,
        values: Vec<SharedValue>,
        moment: BeatTime,
    ) -> Option<Beat> {
        let (heartbeat, apart_ms) = (
            loaded.heartbeat.id,
            loaded.heartbeat.min_store_interval_ms(),
        );
        let rest_ms = moment.service_ms + to_millis(BEATS_APART);
        let mut known = self.lock_cache();
        match known.noted.get_mut(&(heartbeat, key)) {
            Some(noted) if noted.is_claimed || moment.service_ms - noted.stored_ms < apart_ms => {
                noted.later = Some(moment);
                loaded.ignore_beats_until(rest_ms.min(noted.stored_ms + apart_ms));
                None
            }
            noted => {
                loaded.ignore_beats_until(rest_ms);
                if let Some(noted) = noted {
                    noted.is_claimed = true;
                } else {
                    if known.noted.len() >= NOTED_MAX {
                        known
                            .noted
                            .retain(|_, it| it.is_claimed || it.later.is_some());
                    }
                    let new = ReportedBeat {
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

    pub(crate) fn claim_cached(self: &Arc<Self>, clock: &dyn Clock) -> BeatClaims {
        let service_ms = self.service_ms(clock);
        let mut known = self.lock_cache();
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
        BeatClaims {
            beats: Arc::clone(self),
            claimed,
            next: Vec::new(),
        }
    }

    pub(crate) fn retain(&self, heartbeats: &HashSet<RecordId>) {
        let mut known = self.lock_cache();
        known.noted.retain(|(it, _), _| heartbeats.contains(it));
        known.counts.clear();
    }
}

impl BeatClaims {
    pub fn new(beats: &Arc<Beats>) -> Self {
        Self {
            beats: Arc::clone(beats),
            claimed: Vec::new(),
            next: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.claimed.is_empty()
    }

    pub fn add_beats(
        &mut self,
        snapshot: &Snapshot,
        occurrence: &Occurrence,
        now_ms: i64,
        clock: &dyn Clock,
    ) {
        if snapshot.heartbeats().is_empty() || occurrence.is_drill() {
            return;
        }
        let moment = BeatTime {
            at_ms: now_ms,
            service_ms: self.beats.service_ms(clock),
        };
        let beats = Arc::clone(&self.beats);
        beats.claim(snapshot, occurrence, moment, &mut self.claimed);
    }

    /// Reads the expectations of these value sets and computes their state after the beats.
    pub async fn read_expectations(&mut self, store: &Store) -> Result<(), EngineError> {
        if self.claimed.is_empty() {
            return Ok(());
        }
        let key = |it: &Beat| Key::new().id(it.heartbeat).id(it.key).build();
        let keys = self.claimed.iter().map(key).collect();
        let found = store.get_many::<Expectation>(keys).await?;
        for (beat, found) in self.claimed.iter().zip(found) {
            let BeatTime { at_ms, service_ms } = beat.moment;
            let before = match &found {
                Some(found) => found.value.clone(),
                None if self.beats.has_room(store, beat.heartbeat).await? => {
                    new_expectation(beat.heartbeat, beat.key, beat.values.clone(), service_ms)
                }
                None => {
                    tracing::warn!(
                        heartbeat = %beat.heartbeat,
                        "limit of value sets reached; ignored a beat with new values"
                    );
                    continue;
                }
            };
            let mut next = before.with_beat(at_ms, service_ms, false);
            if service_ms < beat.claim_ms {
                // An event may have been opened since the beat was cached.
                next.beat_service_ms = before.beat_service_ms.max(service_ms);
            }
            self.next.push((found, next));
        }
        Ok(())
    }

    pub fn add_to_changes(&self, changes: &mut Changes) {
        for (stored, next) in &self.next {
            match stored {
                Some(stored) => changes.update(stored, next),
                None => changes.insert(next),
            }
        }
    }

    pub fn mark_stored(mut self) {
        let mut known = self.beats.lock_cache();
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
        // Beats that were ignored because of the limit must not stay in the cache.
        for beat in ignored {
            known.noted.remove(&(beat.heartbeat, beat.key));
        }
        for beat in stored {
            if let Some(noted) = known.noted.get_mut(&(beat.heartbeat, beat.key)) {
                noted.stored_ms = beat.claim_ms;
                noted.apart_ms = beat.apart_ms;
                noted.is_claimed = false;
                let is_later = |it: &BeatTime| it.service_ms > beat.moment.service_ms;
                noted.later = noted.later.filter(is_later);
            }
        }
    }
}

impl Drop for BeatClaims {
    fn drop(&mut self) {
        if self.claimed.is_empty() {
            return;
        }
        let mut known = self.beats.lock_cache();
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

pub(crate) fn new_expectation(
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
