//! The writer's queue, with bounded lanes. Admin sets are served first, then intake. In each
//! commit, the service's own sets are limited to a small amount or to the size of the other sets,
//! so that they neither delay the others nor fall behind.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::set::EncodedSet;
use crate::{
    change::{ApplyResult, Lane},
    error::EngineError,
    limits::{
        STORE_BATCH_BYTES_MAX, STORE_BATCH_OWN_BYTES, STORE_BATCH_SETS_MAX, STORE_QUEUE_BYTES_MAX,
        STORE_QUEUE_SETS_MAX,
    },
};

#[derive(Debug)]
pub(super) struct QueuedSet {
    pub(super) lane: Lane,
    pub(super) set: EncodedSet,
    pub(super) answer: oneshot::Sender<Result<ApplyResult, EngineError>>,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    lanes: Mutex<Lanes>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lanes {
    admin: VecDeque<QueuedSet>,
    bulk: VecDeque<QueuedSet>,
    /// Sets of the leader and of slot owners.
    own: VecDeque<QueuedSet>,
    bytes: usize,
    closed: bool,
}

impl Queue {
    fn lock_lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a set to its lane.
    ///
    /// # Errors
    ///
    /// Returns [`EngineError::Unavailable`] if the lane is full or the queue is closed.
    pub(super) fn push(&self, set: QueuedSet) -> Result<(), EngineError> {
        let bytes = set.set.bytes;
        let mut lanes = self.lock_lanes();
        if lanes.closed {
            return Err(EngineError::Unavailable("the store is closing".into()));
        }
        let is_over = lanes.bytes > 0 && lanes.bytes + bytes > STORE_QUEUE_BYTES_MAX;
        let lane = match set.lane {
            Lane::Admin => &mut lanes.admin,
            Lane::Bulk => &mut lanes.bulk,
            Lane::Leader | Lane::Owner => &mut lanes.own,
        };
        if lane.len() >= STORE_QUEUE_SETS_MAX || (is_over && set.lane != Lane::Admin) {
            return Err(EngineError::Unavailable(
                "too many writes are queued".into(),
            ));
        }
        lane.push_back(set);
        lanes.bytes += bytes;
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for a batch of sets, in the order of the lanes. Returns `None` if the queue is closed
    /// and empty.
    pub(super) fn wait_for_batch(&self) -> Option<Vec<QueuedSet>> {
        let mut lanes = self.lock_lanes();
        loop {
            let mut batch = Vec::new();
            let mut batch_bytes = 0;
            while batch.len() < STORE_BATCH_SETS_MAX && batch_bytes < STORE_BATCH_BYTES_MAX {
                let next = lanes.admin.pop_front();
                let Some(set) = next.or_else(|| lanes.bulk.pop_front()) else {
                    break;
                };
                batch_bytes += set.set.bytes;
                batch.push(set);
            }
            let others_bytes = batch_bytes;
            let own_bytes_max = others_bytes.max(STORE_BATCH_OWN_BYTES);
            while batch_bytes - others_bytes < own_bytes_max
                && let Some(set) = lanes.own.pop_front()
            {
                batch_bytes += set.set.bytes;
                batch.push(set);
            }
            lanes.bytes -= batch_bytes;
            if !batch.is_empty() {
                return Some(batch);
            }
            if lanes.closed {
                return None;
            }
            lanes = self
                .changed
                .wait(lanes)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Closes the queue and drops waiting sets, whose callers are notified.
    pub(super) fn abandon(&self) {
        let mut lanes = self.lock_lanes();
        lanes.closed = true;
        lanes.admin.clear();
        lanes.bulk.clear();
        lanes.own.clear();
    }

    /// Closes the queue; waiting sets are still processed.
    pub(super) fn close(&self) {
        self.lock_lanes().closed = true;
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        change::{Action, Change, Expect},
        kind::Kind,
    };

    const SET_BYTES: usize = 16 * 1024;

    fn push_sets(queue: &Queue, lane: Lane, sets: u32) {
        for number in 0..sets {
            let value = Action::Put(vec![0; SET_BYTES]);
            let key = number.to_be_bytes();
            let change = Change::new(Kind::Occurrence, &key, Expect::Absent, value);
            let set = EncodedSet::new(lane, &vec![change].into());
            let (answer, _unread) = oneshot::channel();
            queue.push(QueuedSet { lane, set, answer }).unwrap();
        }
    }

    fn take_batch(queue: &Queue) -> (usize, usize) {
        let batch = queue.wait_for_batch().unwrap();
        let others = batch.iter().take_while(|it| it.lane == Lane::Bulk).count();
        assert!(batch[others..].iter().all(|it| it.lane != Lane::Bulk));
        (others, batch.len() - others)
    }

    #[test]
    fn service_changes_per_commit_are_limited() {
        // Queued sets of intake and of the service, and the number of the latter in the next two
        // commits.
        let table = [
            (0, 3, [(0, 3), (0, 0)]),
            (0, 6, [(0, 4), (0, 2)]),
            (1, 6, [(1, 4), (0, 2)]),
            (20, 50, [(20, 20), (0, 4)]),
            (20, 5, [(20, 5), (0, 0)]),
        ];
        for own_lane in [Lane::Leader, Lane::Owner] {
            for (others, own, expected) in table {
                let queue = Queue::default();
                push_sets(&queue, own_lane, own);
                push_sets(&queue, Lane::Bulk, others);
                for expected in expected.into_iter().filter(|it| *it != (0, 0)) {
                    assert_eq!(take_batch(&queue), expected, "{others} and {own}");
                }
            }
        }
    }
}
