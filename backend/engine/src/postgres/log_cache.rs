//! A cache of the change log: its newest steps, and the last change of each kind.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use crate::{
    error::EngineError,
    kind::Kind,
    limits::STORE_STEPS_BYTES_MAX,
    log::{Delta, LogStep},
    position::LogPosition,
};

/// One more than the largest kind number.
const KINDS: usize = Kind::ALL.len() + 1;
/// Estimated overhead in bytes of a cached step or record name, excluding its key.
const NAME_BYTES: usize = 48;

/// The writer of a step and its batch number: unique within one history of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) writer: Vec<u8>,
    pub(super) batch: i64,
}

/// The newest steps, cached without gaps.
#[derive(Debug)]
pub(super) struct LogCache {
    steps: Mutex<Steps>,
    head: watch::Sender<LogPosition>,
    changed: [AtomicU64; KINDS],
    /// Evidence that the database has lost commits.
    lost: watch::Sender<Option<String>>,
    /// Wakes the follower when another writer has added a step.
    pub(super) wanted: Notify,
}

#[derive(Debug)]
struct Steps {
    known: LogPosition,
    /// The origin of the newest step; `None` if the origin was not read.
    origin: Option<Origin>,
    retained: VecDeque<LogStep>,
    bytes: usize,
    /// Steps after a gap.
    waiting: BTreeMap<u64, WaitingStep>,
}

/// A step whose predecessors are not known yet.
#[derive(Debug)]
struct WaitingStep {
    step: LogStep,
    /// The changed kinds, as a bit set of their numbers.
    kinds: u32,
    origin: Origin,
}

impl LogCache {
    /// Creates a cache that covers all steps up to a position, without their content.
    pub(super) fn covering_up_to(position: LogPosition) -> Self {
        let steps = Steps {
            known: position,
            origin: None,
            retained: VecDeque::new(),
            bytes: 0,
            waiting: BTreeMap::new(),
        };
        Self {
            steps: Mutex::new(steps),
            head: watch::Sender::new(position),
            changed: std::array::from_fn(|_| AtomicU64::new(position.to_number())),
            lost: watch::Sender::new(None),
            wanted: Notify::new(),
        }
    }

    fn lock_steps(&self) -> MutexGuard<'_, Steps> {
        // Every statement leaves complete steps, so poisoning is harmless.
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a step written here, with the changed kinds as a bit set.
    pub(super) fn add_own_step(&self, step: LogStep, kinds: u32, origin: Origin) {
        self.add_step(WaitingStep {
            step,
            kinds,
            origin,
        });
    }

    /// Adds a step read from the log. The step may have changed any of the kinds that are not
    /// logged.
    pub(super) fn read(&self, step: LogStep, origin: Origin) {
        let logged = step.changed.iter().map(|(kind, _)| *kind);
        let others = Delta::UNLOGGED.into_iter().chain([Kind::Attempt]);
        let kinds = logged
            .chain(others)
            .fold(0, |kinds, kind| kinds | kind_bit(kind));
        self.add_own_step(step, kinds, origin);
    }

    fn add_step(&self, waiting: WaitingStep) {
        let mut steps = self.lock_steps();
        if waiting.step.position > steps.known {
            steps
                .waiting
                .insert(waiting.step.position.to_number(), waiting);
            self.apply_waiting(&mut steps);
        }
    }

    fn apply_waiting(&self, steps: &mut Steps) {
        let before = steps.known;
        while let Some(next) = steps.waiting.remove(&steps.known.next().to_number()) {
            let step = next.step;
            self.record_changed_kinds(next.kinds, step.position);
            (steps.known, steps.origin) = (step.position, Some(next.origin));
            steps.bytes += step_bytes(&step);
            steps.retained.push_back(step);
        }
        while steps.bytes > STORE_STEPS_BYTES_MAX {
            let Some(oldest) = steps.retained.pop_front() else {
                break;
            };
            steps.bytes -= step_bytes(&oldest);
        }
        if steps.known > before {
            self.head.send_replace(steps.known);
        }
    }

    fn record_changed_kinds(&self, kinds: u32, position: LogPosition) {
        for (number, changed) in self.changed.iter().enumerate() {
            if kinds & (1 << number) != 0 {
                changed.fetch_max(position.to_number(), Ordering::AcqRel);
            }
        }
    }

    /// Waits until a position is known. If earlier steps do not arrive before the timeout, they are
    /// read from the store later, and any kind may have changed in them.
    pub(super) async fn wait_until_known(&self, position: LogPosition, within: Duration) {
        if self.newest_position() >= position {
            return;
        }
        self.wanted.notify_one();
        let mut head = self.head.subscribe();
        let reached = head.wait_for(|head| *head >= position);
        if timeout(within, reached).await.is_ok() {
            return;
        }
        self.mark_known_through(position);
    }

    /// Marks all steps up to a position as known without caching them; readers read them from the
    /// store. Any kind may have changed in them.
    pub(super) fn mark_known_through(&self, position: LogPosition) {
        let mut steps = self.lock_steps();
        if steps.known < position {
            self.record_changed_kinds(u32::MAX, position);
            (steps.known, steps.bytes) = (position, 0);
            steps.retained.clear();
            steps.origin = steps
                .waiting
                .remove(&position.to_number())
                .map(|it| it.origin);
            steps
                .waiting
                .retain(|waiting, _| *waiting > position.to_number());
            self.head.send_replace(position);
            self.apply_waiting(&mut steps);
        }
    }

    pub(super) fn newest_step(&self) -> (LogPosition, Option<Origin>) {
        let steps = self.lock_steps();
        (steps.known, steps.origin.clone())
    }

    /// Records the origin of a step, unless newer steps are known.
    pub(super) fn record_origin(&self, position: LogPosition, origin: Origin) {
        let mut steps = self.lock_steps();
        if steps.known == position {
            steps.origin = Some(origin);
        }
    }

    /// Records that the database has lost commits, so that no data cached in memory can be trusted.
    pub(super) fn mark_lost(&self, why: String) {
        self.lost.send_if_modified(|lost| {
            let is_first = lost.is_none();
            lost.get_or_insert(why);
            is_first
        });
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.borrow().is_some()
    }

    pub(super) async fn wait_until_lost(&self) -> String {
        let mut lost = self.lost.subscribe();
        let Ok(why) = lost.wait_for(Option::is_some).await else {
            return std::future::pending().await;
        };
        why.clone().unwrap_or_default()
    }

    pub(super) fn newest_position(&self) -> LogPosition {
        *self.head.borrow()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<LogPosition> {
        self.head.subscribe()
    }

    pub(super) fn last_changed(&self, kinds: &[Kind]) -> LogPosition {
        let position = |kind: &Kind| self.changed[*kind as usize].load(Ordering::Acquire);
        LogPosition::from_number(kinds.iter().map(position).max().unwrap_or_default())
    }

    /// Returns the steps after a position, if all of them are cached.
    pub(super) fn steps_after(&self, position: LogPosition, limit: usize) -> Option<Vec<LogStep>> {
        let steps = self.lock_steps();
        let after = steps.known.steps_since(position);
        if position > steps.known || after > steps.retained.len() as u64 {
            return None;
        }
        let skipped = steps.retained.len() - usize::try_from(after).ok()?;
        Some(
            steps
                .retained
                .iter()
                .skip(skipped)
                .take(limit)
                .cloned()
                .collect(),
        )
    }
}

fn step_bytes(step: &LogStep) -> usize {
    let names = step.changed.iter();
    NAME_BYTES + names.map(|(_, key)| key.len() + NAME_BYTES).sum::<usize>()
}

pub(super) fn kind_bit(kind: Kind) -> u32 {
    1 << (kind as u32)
}

pub(super) fn encode_name(bytes: &mut Vec<u8>, kind: Kind, key: &[u8]) {
    let key_bytes = u32::try_from(key.len()).expect("a record's key is far below 4 GiB");
    bytes.push(kind as u8);
    bytes.extend_from_slice(&key_bytes.to_be_bytes());
    bytes.extend_from_slice(key);
}

pub(super) fn decode_step(position: LogPosition, changed: &[u8]) -> Result<LogStep, EngineError> {
    let names = decode_names(changed).ok_or_else(|| {
        EngineError::Corrupt(format!("step {position} of the change log is unreadable"))
    })?;
    Ok(LogStep {
        position,
        changed: names,
    })
}

fn decode_names(mut bytes: &[u8]) -> Option<Vec<(Kind, Vec<u8>)>> {
    let mut names = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        let (key_bytes, rest) = rest.split_first_chunk()?;
        let key_bytes = usize::try_from(u32::from_be_bytes(*key_bytes)).ok()?;
        let (key, rest) = rest.split_at_checked(key_bytes)?;
        // A later version may log kinds that this one does not know.
        if let Some(kind) = Kind::from_number(*kind) {
            names.push((kind, key.to_vec()));
        }
        bytes = rest;
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LogCache, Origin, decode_step, encode_name, kind_bit};
    use crate::{kind::Kind, log::LogStep, position::LogPosition};

    fn origin_of_batch(batch: i64) -> Origin {
        let writer = vec![1; 16];
        Origin { writer, batch }
    }

    const fn position(number: u64) -> LogPosition {
        LogPosition::from_number(number)
    }

    fn log_step(number: u64, kind: Kind) -> LogStep {
        LogStep {
            position: position(number),
            changed: vec![(kind, vec![1, 2])],
        }
    }

    #[test]
    fn log_step_round_trips() {
        let mut bytes = Vec::new();
        encode_name(&mut bytes, Kind::Rule, b"a");
        encode_name(&mut bytes, Kind::Mapping, b"");
        let read = decode_step(position(7), &bytes).unwrap();
        let names = vec![(Kind::Rule, b"a".to_vec()), (Kind::Mapping, Vec::new())];
        assert_eq!((read.position, read.changed), (position(7), names));
        decode_step(position(7), &bytes[..3]).unwrap_err();
    }

    #[test]
    fn steps_after_a_gap_are_hidden_until_it_closes() {
        let known = LogCache::covering_up_to(position(5));
        known.add_own_step(
            log_step(7, Kind::Rule),
            kind_bit(Kind::Rule),
            origin_of_batch(7),
        );
        assert_eq!(
            (known.newest_position(), known.last_changed(&[Kind::Rule])),
            (position(5), position(5))
        );
        assert_eq!(known.steps_after(position(7), 9), None);
        known.read(log_step(6, Kind::Client), origin_of_batch(6));
        assert_eq!(
            (known.newest_position(), known.last_changed(&[Kind::Rule])),
            (position(7), position(7))
        );
        assert_eq!(known.last_changed(&[Kind::Client]), position(6));
        assert_eq!(
            known.last_changed(&[Kind::Health]),
            position(6),
            "unreported"
        );
        assert_eq!(known.steps_after(position(5), 9).unwrap().len(), 2);
        assert_eq!(
            known.steps_after(position(6), 9).unwrap(),
            [log_step(7, Kind::Rule)]
        );
        assert_eq!(
            known.steps_after(position(5), 1).unwrap(),
            [log_step(6, Kind::Client)]
        );
        assert_eq!(known.steps_after(position(4), 9), None);
        known.read(log_step(6, Kind::Client), origin_of_batch(6));
        assert_eq!(known.steps_after(position(7), 9), Some(Vec::new()));
    }

    #[tokio::test]
    async fn persistent_gap_falls_back_to_the_store() {
        let known = LogCache::covering_up_to(position(5));
        known.add_own_step(
            log_step(9, Kind::Rule),
            kind_bit(Kind::Rule),
            origin_of_batch(9),
        );
        known.add_own_step(
            log_step(8, Kind::Rule),
            kind_bit(Kind::Rule),
            origin_of_batch(8),
        );
        known.wait_until_known(position(8), Duration::ZERO).await;
        assert_eq!(known.newest_position(), position(9));
        assert_eq!(
            known.last_changed(&[Kind::Client]),
            position(8),
            "may have changed"
        );
        assert_eq!(known.steps_after(position(7), 9), None);
        assert_eq!(
            known.steps_after(position(8), 9).unwrap(),
            [log_step(9, Kind::Rule)]
        );
        assert_eq!(known.newest_step(), (position(9), Some(origin_of_batch(9))));
        known.add_own_step(
            log_step(12, Kind::Rule),
            kind_bit(Kind::Rule),
            origin_of_batch(12),
        );
        known.mark_known_through(position(12));
        assert_eq!(
            known.newest_step(),
            (position(12), Some(origin_of_batch(12)))
        );
        known.mark_known_through(position(14));
        assert_eq!(known.newest_step(), (position(14), None), "not read");
        known.record_origin(position(14), origin_of_batch(14));
        known.record_origin(position(13), origin_of_batch(13));
        assert_eq!(
            known.newest_step(),
            (position(14), Some(origin_of_batch(14)))
        );
    }
}
