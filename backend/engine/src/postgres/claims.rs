//! Slot ownership: a node takes over slots without a live owner, and hands over slots that another
//! node is to own.
//!
//! Each node computes the intended owners from the same rows, so nodes need not communicate. A live
//! node hands over a slot once no work is in flight for it. Leadership is an additional slot, which
//! stays with its owner.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;
use tokio_postgres::Error;

use super::{query::Query, session::Session};
use crate::{
    clock::Clock,
    limits::{
        STORE_NODE_RENEWED_EVERY, STORE_NODE_TIME_MAX, STORE_REST_TIME_MAX, STORE_REST_TIME_MIN,
    },
    ownership::{Claim, LEAD, OwnedSlot, OwnedSlots, SLOTS, hash_bytes},
};

/// Maximum number of slots that a node hands over at a time while it keeps other slots.
const LEAVING_MAX: usize = 8;
/// Delay until the next check after slots have moved.
const NEXT: Duration = Duration::from_millis(5);
/// Delay until the next check while slots are to be moved.
const SOON: Duration = Duration::from_millis(100);
/// Delay until the next check while a node has not renewed its row in time.
const OVERDUE: Duration = Duration::from_millis(250);

pub(super) type NodeId = [u8; 16];

/// The slots that a node owns, and the slots that it is to own.
#[derive(Debug)]
pub(super) struct Claims {
    id: NodeId,
    /// All times here are from [`Clock::elapsed`].
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    owned: watch::Sender<OwnedSlots>,
    /// The epoch of the leadership while this node leads.
    lead: watch::Sender<Option<u64>>,
}

#[derive(Debug, Default)]
struct State {
    writer: Option<NodeId>,
    wants_ownership: bool,
    /// Whether the node is to lead as soon as there is no leader.
    is_candidate: bool,
    rest: Option<BackoffPeriod>,
    /// Time at which the node last renewed its claim to be working.
    working_at: Option<Duration>,
    /// Time at which the node last renewed its claim to be alive.
    alive_at: Option<Duration>,
    leaving: BTreeMap<u8, SlotRelease>,
    number: u64,
}

/// A period in which a stalled node leaves its work to other nodes.
#[derive(Debug, Clone, Copy)]
struct BackoffPeriod {
    until: Duration,
    lasts: Duration,
    /// Whether slots are released even while deliveries are in flight.
    is_forced: bool,
}

impl State {
    fn is_backing_off(&self, now: Duration) -> bool {
        self.rest.is_some_and(|rest| now < rest.until)
    }
}

#[derive(Debug, Clone, Copy)]
struct SlotRelease {
    number: u64,
    is_vacant: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct LiveNode {
    pub(super) id: NodeId,
    pub(super) owns: bool,
    /// Whether the node renews its claim to be working before the deadline.
    pub(super) is_prompt: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct HeldSlot {
    pub(super) slot: i16,
    pub(super) epoch: i64,
    pub(super) node: NodeId,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct SlotAssignment {
    /// Slots that this node owns, with their epochs.
    mine: BTreeMap<i16, i64>,
    /// Slots without a live owner that this node is to own, with their epochs.
    orphaned: Vec<(i16, i64)>,
    /// Slots that this node owns and that another node is to own.
    leaves: BTreeMap<u8, NodeId>,
    /// Number of slots that other live nodes are to hand over to this one.
    awaited: usize,
}

fn choose_owner(slot: i16, living: &[LiveNode]) -> Option<NodeId> {
    let owners = living.iter().filter(|it| it.owns);
    let best = owners.max_by_key(|it| {
        let weighed = [&it.id[..], &slot.to_be_bytes()].concat();
        (hash_bytes(&weighed), it.id)
    });
    best.map(|it| it.id)
}

impl SlotAssignment {
    fn compute(me: NodeId, is_candidate: bool, living: &[LiveNode], held: &[HeldSlot]) -> Self {
        let mut division = Self::default();
        for held in held {
            let is_owned = living.iter().any(|it| it.id == held.node);
            if held.slot == LEAD {
                if held.node == me {
                    division.mine.insert(LEAD, held.epoch);
                } else if is_candidate && !is_owned {
                    division.orphaned.push((LEAD, held.epoch));
                }
                continue;
            }
            let owner = choose_owner(held.slot, living);
            if held.node == me {
                division.mine.insert(held.slot, held.epoch);
                if let (Some(other), Ok(slot)) = (owner, u8::try_from(held.slot))
                    && other != me
                {
                    division.leaves.insert(slot, other);
                }
            } else if owner == Some(me) {
                if is_owned {
                    division.awaited += 1;
                } else {
                    division.orphaned.push((held.slot, held.epoch));
                }
            }
        }
        division
    }
}

impl Claims {
    pub(super) fn new(id: NodeId, clock: Arc<dyn Clock>) -> Self {
        Self {
            id,
            clock,
            state: Mutex::default(),
            owned: watch::Sender::new(OwnedSlots::empty()),
            lead: watch::Sender::new(None),
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        // Every statement leaves the state consistent, so poisoning is harmless.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_writer(&self, writer: NodeId) {
        self.lock_state().writer = Some(writer);
    }

    /// Records that the node makes progress, visible to other nodes at `at` or later.
    pub(super) fn record_progress(&self, at: Duration) {
        self.lock_state().working_at = Some(at);
    }

    /// Records that the node is alive, visible to other nodes at `at` or later.
    pub(super) fn record_alive(&self, at: Duration) {
        self.lock_state().alive_at = Some(at);
    }

    /// Whether no other node considers this node dead.
    pub(super) fn is_ownership_certain(&self) -> bool {
        let (state, now) = (self.lock_state(), self.clock.elapsed());
        let is_recent = |at: Option<Duration>| at.is_some_and(|at| now < at + STORE_NODE_TIME_MAX);
        is_recent(state.working_at) && is_recent(state.alive_at)
    }

    /// Returns the node's writer, as stored in its row; `None` while the node is not to own slots.
    pub(super) fn active_writer(&self) -> Option<NodeId> {
        let (state, now) = (self.lock_state(), self.clock.elapsed());
        state
            .writer
            .filter(|_| state.wants_ownership && !state.is_backing_off(now))
    }

    pub(super) fn watch_ownership(&self) -> watch::Receiver<OwnedSlots> {
        self.owned.subscribe()
    }

    pub(super) fn watch_leadership(&self) -> watch::Receiver<Option<u64>> {
        self.lead.subscribe()
    }

    pub(super) fn is_owner(&self) -> bool {
        self.owned.borrow().count() > 0
    }

    pub(super) fn is_leader(&self) -> bool {
        self.lead.borrow().is_some()
    }

    pub(super) fn set_owns_slots(&self, does: bool) {
        self.lock_state().wants_ownership = does;
    }

    pub(super) fn become_candidate(&self) {
        self.lock_state().is_candidate = true;
    }

    /// Records that no work is in flight for a slot whose handover was requested with `number`.
    /// Returns false if this was already recorded, or if another request replaced this one.
    pub(super) fn vacate(&self, slot: u8, number: u64) -> bool {
        let mut state = self.lock_state();
        let leaving = state.leaving.get_mut(&slot);
        leaving
            .filter(|it| it.number == number)
            .is_some_and(|it| !std::mem::replace(&mut it.is_vacant, true))
    }

    /// Makes the node leave all work to other nodes for a while, longer each time. Returns false if
    /// the node already does so.
    pub(super) fn pause_ownership(&self, is_forced: bool) -> bool {
        let mut state = self.lock_state();
        let now = self.clock.elapsed();
        let (before, is_new) = (state.rest, !state.is_backing_off(now));
        let lasts = match before {
            Some(rest) if !is_new => rest.lasts,
            Some(rest) if now < rest.until + STORE_REST_TIME_MAX => rest.lasts * 2,
            _ => STORE_REST_TIME_MIN,
        };
        let lasts = lasts.min(STORE_REST_TIME_MAX);
        state.rest = Some(BackoffPeriod {
            until: now + lasts,
            lasts,
            is_forced,
        });
        drop(state);
        self.lead.send_replace(None);
        is_new
    }

    /// Forgets all owned slots, because the node may no longer use the store.
    pub(super) fn forget_slots(&self) {
        self.lead.send_replace(None);
        self.owned.send_replace(OwnedSlots::empty());
    }

    /// Reads the ownership of all slots and makes the necessary changes. Returns the delay until
    /// the next call. Unless `is_steady`, nodes may still be reconnecting one by one: none counts
    /// as dead for not renewing its row, and none hands over slots.
    pub(super) async fn refresh(
        &self,
        session: &Session,
        is_steady: bool,
    ) -> Result<Duration, Error> {
        let (living, held) = read_nodes_and_slots(session).await?;
        if self.resume_ownership_if_needed(&living) {
            return Ok(SOON);
        }
        let (is_candidate, rests, writer) = {
            let state = self.lock_state();
            (
                state.is_candidate,
                state.is_backing_off(self.clock.elapsed()),
                state.writer,
            )
        };
        let mut division = SlotAssignment::compute(self.id, is_candidate && !rests, &living, &held);
        if !is_steady {
            division.leaves.clear();
        }
        if rests && division.mine.remove(&LEAD).is_some() {
            let statement = session.prepare(Query::Release).await?;
            let me = &self.id[..];
            session.client.execute(&statement, &[&me]).await?;
        }
        let Some(writer) = writer else {
            return Ok(STORE_NODE_RENEWED_EVERY);
        };
        let leaves = self.request_leave(&division);
        let mut has_left = false;
        if !leaves.is_empty() {
            for slot in self.hand_over(session, &leaves).await? {
                has_left |= division.mine.remove(&slot).is_some();
            }
        }
        if !division.orphaned.is_empty() {
            let orphaned = std::mem::take(&mut division.orphaned);
            let claimed = self
                .take_over(session, writer, &orphaned, is_steady)
                .await?;
            division.mine.extend(claimed);
        }
        self.publish(&division);
        let is_overdue = living.iter().any(|it| !it.is_prompt);
        let moves = division.awaited > 0 || !self.lock_state().leaving.is_empty();
        Ok(match (moves, is_overdue) {
            _ if has_left => NEXT,
            (true, _) => SOON,
            (_, true) => OVERDUE,
            _ => STORE_NODE_RENEWED_EVERY,
        })
    }

    /// Ends the pause if no other node can own slots. Returns whether it did.
    fn resume_ownership_if_needed(&self, living: &[LiveNode]) -> bool {
        let (mut state, now) = (self.lock_state(), self.clock.elapsed());
        if !state.wants_ownership || !state.is_backing_off(now) || living.iter().any(|it| it.owns) {
            return false;
        }
        if let Some(rest) = &mut state.rest {
            rest.until = now;
        }
        true
    }

    /// Requests the handover of slots, and returns the slots that can be handed over now.
    fn request_leave(&self, division: &SlotAssignment) -> Vec<(u8, NodeId)> {
        let (mut state, now) = (self.lock_state(), self.clock.elapsed());
        let State {
            leaving,
            number,
            rest,
            ..
        } = &mut *state;
        leaving.retain(|slot, _| division.leaves.contains_key(slot));
        let leaves_all = division.leaves.len() + 1 >= division.mine.len();
        let is_forced = rest.is_some_and(|it| it.is_forced && now < it.until);
        let most = if leaves_all { SLOTS } else { LEAVING_MAX };
        for slot in division.leaves.keys() {
            if leaving.len() >= most {
                break;
            }
            leaving.entry(*slot).or_insert_with(|| {
                *number += 1;
                SlotRelease {
                    number: *number,
                    is_vacant: false,
                }
            });
        }
        let free_schema = leaving.iter().filter(|(_, it)| it.is_vacant || is_forced);
        free_schema
            .filter_map(|(slot, _)| Some((*slot, *division.leaves.get(slot)?)))
            .collect()
    }

    async fn hand_over(
        &self,
        session: &Session,
        slots: &[(u8, NodeId)],
    ) -> Result<Vec<i16>, Error> {
        let statement = session.prepare(Query::HandOver).await?;
        let numbers: Vec<i16> = slots.iter().map(|(slot, _)| i16::from(*slot)).collect();
        let nodes: Vec<&[u8]> = slots.iter().map(|(_, node)| &node[..]).collect();
        let me = &self.id[..];
        let rows = session
            .client
            .query(&statement, &[&numbers, &nodes, &me])
            .await?;
        rows.iter().map(|row| row.try_get(0)).collect()
    }

    async fn take_over(
        &self,
        session: &Session,
        writer: NodeId,
        orphaned: &[(i16, i64)],
        is_steady: bool,
    ) -> Result<Vec<(i16, i64)>, Error> {
        let statement = session.prepare(Query::ClaimSlots).await?;
        let (slots, epochs): (Vec<i16>, Vec<i64>) = orphaned.iter().copied().unzip();
        let seconds = STORE_NODE_TIME_MAX.as_secs_f64();
        let (me, writer) = (&self.id[..], &writer[..]);
        let rows = session
            .client
            .query(
                &statement,
                &[&slots, &epochs, &me, &writer, &seconds, &is_steady],
            )
            .await?;
        let claimed = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        claimed.collect()
    }

    fn publish(&self, division: &SlotAssignment) {
        let mut state = self.lock_state();
        let mut slots = Box::new([None; SLOTS]);
        for (at, owned) in slots.iter_mut().enumerate() {
            let (Ok(slot), Ok(number)) = (u8::try_from(at), i16::try_from(at)) else {
                continue;
            };
            let Some(epoch) = division.mine.get(&number) else {
                state.leaving.remove(&slot);
                continue;
            };
            *owned = Some(OwnedSlot {
                epoch: epoch.unsigned_abs(),
                leaving: state.leaving.get(&slot).map(|it| it.number),
            });
        }
        let rests = state.is_backing_off(self.clock.elapsed());
        drop(state);
        let owned = OwnedSlots::Slots(slots);
        self.owned.send_if_modified(|before| {
            let (was, is) = (before.count(), owned.count());
            if was != is {
                tracing::debug!(slots = is, "the number of slots owned by this node changed");
            }
            std::mem::replace(before, owned.clone()) != owned
        });
        let lead = division.mine.get(&LEAD).map(|epoch| epoch.unsigned_abs());
        let lead = lead.filter(|_| !rests);
        self.lead.send_if_modified(|before| {
            match (*before, lead) {
                (None, Some(_)) => tracing::info!("this node leads"),
                (Some(_), None) => tracing::warn!("another node leads"),
                _ => {}
            }
            std::mem::replace(before, lead) != lead
        });
    }
}

pub(super) fn leadership_claim(epoch: u64) -> Claim {
    Claim {
        slot: LEAD.unsigned_abs(),
        epoch,
    }
}

async fn read_nodes_and_slots(session: &Session) -> Result<(Vec<LiveNode>, Vec<HeldSlot>), Error> {
    let seconds = STORE_NODE_TIME_MAX.as_secs_f64();
    let statement = session.prepare(Query::Owners).await?;
    let rows = session.client.query(&statement, &[&seconds]).await?;
    let living = rows.iter().map(|row| {
        Ok(LiveNode {
            id: decode_node_id(row.try_get(0)?),
            owns: row.try_get(1)?,
            is_prompt: row.try_get(2)?,
        })
    });
    let living = living.collect::<Result<_, Error>>()?;
    let statement = session.prepare(Query::Claims).await?;
    let rows = session.client.query(&statement, &[]).await?;
    let held = rows.iter().map(|row| {
        Ok(HeldSlot {
            slot: row.try_get(0)?,
            epoch: row.try_get(1)?,
            node: decode_node_id(row.try_get(2)?),
        })
    });
    Ok((living, held.collect::<Result<_, Error>>()?))
}

/// Decodes an id in a row; an empty one belongs to no node.
fn decode_node_id(bytes: &[u8]) -> NodeId {
    bytes.try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests;
