//! A limited number of slots, shared fairly by clients. Each client may have a quarter, and a free
//! slot is assigned to the waiting client with the fewest slots.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::{error::Error, limits::OVERLOAD_RETRY_AFTER};

/// One client may use at most all slots divided by this number.
const SHARE: usize = 4;

#[derive(Debug)]
pub struct FairSlots {
    /// Name of the work in messages, in the plural, such as "searches".
    work: &'static str,
    most: usize,
    waiting_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    in_use: usize,
    by: HashMap<Arc<str>, usize>,
    /// Calls that wait because all slots, or all slots of their client, are in use.
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    client: Arc<str>,
    slot: oneshot::Sender<Slot>,
}

#[derive(Debug)]
pub struct Slot {
    slots: Arc<FairSlots>,
    client: Arc<str>,
}

impl FairSlots {
    /// Creates `most` slots for `work`, for which `waiting_max` calls may wait.
    pub fn new(most: usize, waiting_max: usize, work: &'static str) -> Arc<Self> {
        Arc::new(Self {
            work,
            most,
            waiting_max,
            state: Mutex::default(),
        })
    }

    /// Waits for a slot for a client.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Exhausted`] if too many calls wait, in total or of that client.
    pub async fn acquire(self: &Arc<Self>, client: &Arc<str>) -> Result<Slot, Error> {
        let slot = {
            let mut state = self.lock_state();
            state.waiting.retain(|it| !it.slot.is_closed());
            if state.may_have_slot(client, self.most) {
                state.record_use(client);
                return Ok(self.new_slot(client));
            }
            let own = state.waiting.iter().filter(|it| it.client == *client);
            let is_share = own.count() >= self.waiting_max / SHARE;
            if is_share || state.waiting.len() >= self.waiting_max {
                return Err(busy_error(self.work, is_share));
            }
            let (sender, slot) = oneshot::channel();
            state.waiting.push_back(Waiter {
                client: Arc::clone(client),
                slot: sender,
            });
            slot
        };
        let stopping = |_| Error::Unavailable("the service is stopping".into());
        slot.await.map_err(stopping)
    }

    fn new_slot(self: &Arc<Self>, client: &Arc<str>) -> Slot {
        Slot {
            slots: Arc::clone(self),
            client: Arc::clone(client),
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn slots_used_by(&self, client: &Arc<str>) -> usize {
        self.by.get(client).copied().unwrap_or(0)
    }

    fn may_have_slot(&self, client: &Arc<str>, most: usize) -> bool {
        self.in_use < most && self.slots_used_by(client) < (most / SHARE).max(1)
    }

    fn record_use(&mut self, client: &Arc<str>) {
        self.in_use += 1;
        *self.by.entry(Arc::clone(client)).or_default() += 1;
    }

    /// Returns the next call that may have a slot: the first call of the client with the fewest
    /// slots.
    fn next(&mut self, most: usize) -> Option<Waiter> {
        self.waiting.retain(|it| !it.slot.is_closed());
        let may = |at: &usize| self.may_have_slot(&self.waiting[*at].client, most);
        let slots = (0..self.waiting.len()).filter(may);
        let next = slots.min_by_key(|at| self.slots_used_by(&self.waiting[*at].client))?;
        self.waiting.remove(next)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let next = {
            let mut state = self.slots.lock_state();
            state.in_use -= 1;
            if let Some(held) = state.by.get_mut(&self.client) {
                *held -= 1;
                if *held == 0 {
                    state.by.remove(&self.client);
                }
            }
            let next = state.next(self.slots.most);
            if let Some(next) = &next {
                state.record_use(&next.client);
            }
            next
        };
        if let Some(Waiter { client, slot }) = next {
            // If the receiver was dropped, the slot is dropped here and assigned to another call.
            drop(slot.send(self.slots.new_slot(&client)));
        }
    }
}

fn busy_error(work: &str, is_share: bool) -> Error {
    let of = if is_share { " from this client" } else { "" };
    Error::Exhausted {
        message: format!("too many queued {work}{of}; retry in a moment"),
        retry_after: Some(OVERLOAD_RETRY_AFTER),
    }
}
