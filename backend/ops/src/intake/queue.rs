//! The queue of requests in order of arrival. A request waits only for earlier requests that share
//! an event id.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::job::{Accepted, Job};
use crate::domain::EventId;

#[derive(Debug, Clone, Default)]
pub(super) struct Queue(Arc<SharedQueue>);

#[derive(Debug, Default)]
struct SharedQueue {
    inner: Mutex<QueueState>,
    ready: Notify,
}

type Ticket = u64;

#[derive(Debug, Default)]
struct QueueState {
    entries: HashMap<Ticket, Entry>,
    newest: HashMap<EventId, Ticket>,
    ready: VecDeque<Ticket>,
    next: Ticket,
    /// Number of requests not claimed by a worker.
    waiting: usize,
    is_closed: bool,
}

#[derive(Debug)]
struct Entry {
    /// The job; `None` once a worker has claimed it.
    job: Option<Job>,
    ids: Box<[EventId]>,
    /// Number of unfinished requests that this request waits for, counted once per shared event id.
    follows: usize,
    followers: Vec<Ticket>,
}

/// A request claimed by a worker. Dropping it releases the requests that wait for it, even if the
/// worker panics.
#[derive(Debug)]
pub(super) struct ClaimedRequest {
    pub(super) job: Job,
    /// `None` for a job that was never queued.
    place: Option<QueuePlace>,
}

#[derive(Debug)]
struct QueuePlace {
    queue: Queue,
    ticket: Option<Ticket>,
}

impl ClaimedRequest {
    pub(super) fn without_queue(job: Job) -> Self {
        Self { job, place: None }
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.queue.finish(&[ticket]);
        }
    }
}

impl Queue {
    fn lock_state(&self) -> MutexGuard<'_, QueueState> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request; drops it and returns false if the queue is closed.
    pub(super) fn push(&self, job: Job) -> bool {
        let mut inner = self.lock_state();
        if inner.is_closed {
            return false;
        }
        let is_ready = inner.push(job);
        drop(inner);
        if is_ready {
            self.0.ready.notify_one();
        }
        true
    }

    /// Claims the oldest requests that wait only for each other: at least one request, and up to
    /// `events_max` events. Returns an empty list if none is ready.
    pub(super) fn claim_requests(&self, events_max: usize) -> Vec<ClaimedRequest> {
        let mut inner = self.lock_state();
        let claimed = inner.claim_jobs(events_max);
        let is_more = !inner.ready.is_empty();
        drop(inner);
        if is_more {
            self.0.ready.notify_one();
        }
        let claimed = claimed.into_iter().map(|(ticket, job)| ClaimedRequest {
            job,
            place: Some(QueuePlace {
                queue: self.clone(),
                ticket: Some(ticket),
            }),
        });
        claimed.collect()
    }

    pub(super) async fn wait_until_ready(&self) {
        self.0.ready.notified().await;
    }

    pub(super) fn release_claims(&self, claimed: Vec<ClaimedRequest>) -> Vec<Job> {
        let mut tickets = Vec::with_capacity(claimed.len());
        let jobs = claimed.into_iter().map(|mut claimed| {
            tickets.extend(claimed.place.as_mut().and_then(|it| it.ticket.take()));
            claimed.job
        });
        let jobs = jobs.collect();
        self.finish(&tickets);
        jobs
    }

    fn finish(&self, tickets: &[Ticket]) {
        let mut inner = self.lock_state();
        let before = inner.ready.len();
        inner.finish(tickets);
        let is_more = inner.ready.len() > before;
        drop(inner);
        if is_more {
            self.0.ready.notify_one();
        }
    }

    pub(super) fn close(&self) {
        self.lock_state().is_closed = true;
        self.0.ready.notify_waiters();
    }

    pub(super) fn abandon(&self) {
        self.close();
        let mut inner = self.lock_state();
        let entries = inner.entries.values_mut();
        let jobs: Vec<_> = entries.filter_map(|it| it.job.take()).collect();
        inner.ready.clear();
        inner.waiting = 0;
        drop(inner);
        drop(jobs);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock_state().is_closed
    }

    pub(super) fn waiting(&self) -> usize {
        self.lock_state().waiting
    }
}

impl QueueState {
    fn push(&mut self, job: Job) -> bool {
        let ticket = self.next;
        self.next += 1;
        let ids: Box<[EventId]> = job.events.iter().flat_map(Accepted::event_ids).collect();
        let mut follows = 0;
        for id in &ids {
            let before = self.newest.insert(*id, ticket);
            let before = before.filter(|it| *it != ticket);
            if let Some(before) = before.and_then(|it| self.entries.get_mut(&it)) {
                before.followers.push(ticket);
                follows += 1;
            }
        }
        let entry = Entry {
            job: Some(job),
            ids,
            follows,
            followers: Vec::new(),
        };
        self.entries.insert(ticket, entry);
        self.waiting += 1;
        if follows == 0 {
            self.ready.push_back(ticket);
        }
        follows == 0
    }

    fn claim_jobs(&mut self, events_max: usize) -> Vec<(Ticket, Job)> {
        let mut claimed: Vec<(Ticket, Job)> = Vec::new();
        let mut events = 0;
        // Requests that wait only for requests claimed here, with the number of requests that each
        // waits for.
        let mut joining = VecDeque::new();
        let mut inside: HashMap<Ticket, usize> = HashMap::new();
        loop {
            let from = match (joining.front(), self.ready.front()) {
                (Some(joining), Some(ready)) if joining > ready => &mut self.ready,
                (None, _) => &mut self.ready,
                (Some(_), _) => &mut joining,
            };
            let Some(ticket) = from.front().copied() else {
                break;
            };
            let entry = self.entries.get_mut(&ticket);
            let entry = entry.expect("a request stays until it is finished");
            let count = entry.job.as_ref().map_or(0, |job| job.events.len());
            if !claimed.is_empty() && events + count > events_max {
                break;
            }
            from.pop_front();
            let job = entry.job.take();
            let job = job.expect("a request is claimed once");
            for follower in entry.followers.clone() {
                let known = inside.entry(follower).or_default();
                *known += 1;
                if self
                    .entries
                    .get(&follower)
                    .is_some_and(|it| it.follows == *known)
                {
                    joining.push_back(follower);
                }
            }
            events += count;
            claimed.push((ticket, job));
        }
        self.waiting -= claimed.len();
        claimed
    }

    fn finish(&mut self, tickets: &[Ticket]) {
        let mut followers = Vec::new();
        for ticket in tickets {
            let Some(entry) = self.entries.remove(ticket) else {
                continue;
            };
            for id in &entry.ids {
                if self.newest.get(id) == Some(ticket) {
                    self.newest.remove(id);
                }
            }
            followers.extend(entry.followers);
        }
        for follower in followers {
            let Some(entry) = self.entries.get_mut(&follower) else {
                continue;
            };
            entry.follows -= 1;
            if entry.follows == 0 && entry.job.is_some() {
                self.ready.push_back(follower);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::{intake::accept_events, samples::event, store::engine::DiskShare};

    fn push_request(queue: &Queue, hosts: &[&str]) {
        let job = Job {
            events: accept_events(hosts.iter().map(|host| event(host)).collect()),
            author: None,
            chain: Arc::default(),
            claim: None,
            reply: None,
            queued: Instant::now(),
            trace: None,
            space: DiskShare::AboveFloor,
            stored: None,
            capacity: None,
        };
        assert!(queue.push(job));
    }

    fn claimed_hosts(claimed: &[ClaimedRequest]) -> Vec<String> {
        let of = |claimed: &ClaimedRequest| {
            let events = claimed.job.events.iter();
            let hosts: Vec<_> = events.map(|it| &*it.event.dimensions["host"]).collect();
            hosts.join("+")
        };
        claimed.iter().map(of).collect()
    }

    #[test]
    fn only_overlapping_requests_wait_for_each_other() {
        let queue = Queue::default();
        push_request(&queue, &["a", "b"]);
        let first = queue.claim_requests(10);
        for request in [&["b"][..], &["c"], &["c", "b"], &["d"], &["c"], &["e", "d"]] {
            push_request(&queue, request);
        }
        let second = queue.claim_requests(10);
        assert_eq!(claimed_hosts(&second), ["c", "d", "e+d"]);
        assert!(queue.claim_requests(10).is_empty());
        assert_eq!(queue.waiting(), 3);
        // The next request continues regardless of the outcome of the first one.
        drop(first);
        let third = queue.claim_requests(10);
        assert_eq!(claimed_hosts(&third), ["b"], "`c` is still being decided");
        assert_eq!(queue.release_claims(second).len(), 3);
        assert!(queue.claim_requests(10).is_empty());
        queue.release_claims(third);
        assert_eq!(claimed_hosts(&queue.claim_requests(10)), ["c+b", "c"]);
    }

    #[test]
    fn batch_is_limited_and_the_rest_is_taken_next() {
        let queue = Queue::default();
        for request in [&["a"; 3][..], &["a"], &["b"], &["a", "b", "c"]] {
            push_request(&queue, request);
        }
        let first = queue.claim_requests(2);
        assert_eq!(
            claimed_hosts(&first),
            ["a+a+a"],
            "an oversized one is sent alone"
        );
        let second = queue.claim_requests(2);
        assert_eq!(claimed_hosts(&second), ["b"]);
        queue.release_claims(first);
        assert_eq!(claimed_hosts(&queue.claim_requests(2)), ["a"]);
        assert!(queue.claim_requests(9).is_empty());
        queue.release_claims(second);
        assert_eq!(claimed_hosts(&queue.claim_requests(9)), ["a+b+c"]);
    }

    #[test]
    fn abandoned_queue_is_emptied() {
        let queue = Queue::default();
        push_request(&queue, &["a"]);
        push_request(&queue, &["a"]);
        queue.abandon();
        assert_eq!(queue.waiting(), 0);
        assert!(queue.claim_requests(9).is_empty());
    }
}
