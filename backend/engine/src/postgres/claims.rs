//! What a node owns: it takes what belongs to no living node, and hands over what another one is to own.
//!
//! Each node computes from the same rows who is to own a slot, so no node has to ask another one. A slot of a
//! living node is handed over by that node, when nothing of it is under way any more. The lead is one more
//! slot, which stays where it is.

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
    ownership::{Claim, LEAD, Owned, OwnedSlot, SLOTS, mix},
};

/// How many slots a node leaves at a time, while it keeps others.
const LEAVING_MAX: usize = 8;
/// How soon is looked again after slots have moved,
const NEXT: Duration = Duration::from_millis(5);
/// while slots are to move,
const SOON: Duration = Duration::from_millis(100);
/// and while a node is overdue.
const OVERDUE: Duration = Duration::from_millis(250);

/// A node's identity.
pub(super) type NodeId = [u8; 16];

/// What a node owns, and what it is to.
#[derive(Debug)]
pub(super) struct Claims {
    id: NodeId,
    /// All times here are as [`Clock::passed`] counts them.
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    owned: watch::Sender<Owned>,
    /// The epoch of the lead, while this node leads.
    lead: watch::Sender<Option<u64>>,
}

#[derive(Debug, Default)]
struct State {
    /// What it writes with.
    writer: Option<NodeId>,
    /// Whether it is to own something.
    takes_part: bool,
    /// Whether it is to lead as soon as no one does.
    stands: bool,
    rest: Option<Rest>,
    /// When it renewed last that it works,
    worked: Option<Duration>,
    /// and when that it lives.
    lived: Option<Duration>,
    /// The slots that it is asked to leave.
    leaving: BTreeMap<u8, Leaving>,
    /// The number of the newest request to leave a slot.
    number: u64,
}

/// A node that could not work leaves that to others for a while.
#[derive(Debug, Clone, Copy)]
struct Rest {
    until: Duration,
    lasts: Duration,
    /// Whether what it owns goes also while something is under way.
    is_forced: bool,
}

impl State {
    fn rests(&self, now: Duration) -> bool {
        self.rest.is_some_and(|rest| now < rest.until)
    }
}

#[derive(Debug, Clone, Copy)]
struct Leaving {
    number: u64,
    is_vacant: bool,
}

/// A node that lives, and whether it is to own something.
#[derive(Debug, Clone, Copy)]
pub(super) struct Living {
    pub(super) id: NodeId,
    pub(super) owns: bool,
    /// Whether it has renewed that it works as often as it should.
    pub(super) is_prompt: bool,
}

/// Who owns a slot by the rows there are, and since when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) slot: i16,
    pub(super) epoch: i64,
    pub(super) node: NodeId,
}

/// What is to be done about the slots.
#[derive(Debug, Default, PartialEq, Eq)]
struct Division {
    /// What this node owns, with the epoch.
    mine: BTreeMap<i16, i64>,
    /// What no living node owns and this one is to, with the epoch.
    orphaned: Vec<(i16, i64)>,
    /// What this node owns and another one is to.
    leaves: BTreeMap<u8, NodeId>,
    /// How many slots other living nodes are to hand over to this one.
    awaited: usize,
}

/// Which of the nodes is to own a slot.
fn owner_of(slot: i16, living: &[Living]) -> Option<NodeId> {
    let owners = living.iter().filter(|it| it.owns);
    let best = owners.max_by_key(|it| {
        let weighed = [&it.id[..], &slot.to_be_bytes()].concat();
        (mix(&weighed), it.id)
    });
    best.map(|it| it.id)
}

impl Division {
    fn of(me: NodeId, stands: bool, living: &[Living], held: &[Held]) -> Self {
        let mut division = Self::default();
        for held in held {
            let is_owned = living.iter().any(|it| it.id == held.node);
            if held.slot == LEAD {
                if held.node == me {
                    division.mine.insert(LEAD, held.epoch);
                } else if stands && !is_owned {
                    division.orphaned.push((LEAD, held.epoch));
                }
                continue;
            }
            let owner = owner_of(held.slot, living);
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
            owned: watch::Sender::new(Owned::none()),
            lead: watch::Sender::new(None),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // It is whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what the node writes with.
    pub(super) fn write_with(&self, writer: NodeId) {
        self.state().writer = Some(writer);
    }

    /// Records that it works, as others have seen at that time or later.
    pub(super) fn worked(&self, at: Duration) {
        self.state().worked = Some(at);
    }

    /// Records that it lives, as others have seen at that time or later.
    pub(super) fn lived(&self, at: Duration) {
        self.state().lived = Some(at);
    }

    /// Whether no other node takes it for dead.
    pub(super) fn is_sure(&self) -> bool {
        let (state, now) = (self.state(), self.clock.passed());
        let is_recent = |at: Option<Duration>| at.is_some_and(|at| now < at + STORE_NODE_TIME_MAX);
        is_recent(state.worked) && is_recent(state.lived)
    }

    /// What it writes with, while it is to own something: what its row says.
    pub(super) fn owns_with(&self) -> Option<NodeId> {
        let (state, now) = (self.state(), self.clock.passed());
        state
            .writer
            .filter(|_| state.takes_part && !state.rests(now))
    }

    pub(super) fn owned(&self) -> watch::Receiver<Owned> {
        self.owned.subscribe()
    }

    pub(super) fn lead(&self) -> watch::Receiver<Option<u64>> {
        self.lead.subscribe()
    }

    /// Whether it owns something.
    pub(super) fn is_owner(&self) -> bool {
        self.owned.borrow().count() > 0
    }

    pub(super) fn is_leader(&self) -> bool {
        self.lead.borrow().is_some()
    }

    pub(super) fn take_part(&self, does: bool) {
        self.state().takes_part = does;
    }

    pub(super) fn stand(&self) {
        self.state().stands = true;
    }

    /// Records that nothing of a slot is under way since it was asked for; whether that is new.
    pub(super) fn vacate(&self, slot: u8, number: u64) -> bool {
        let mut state = self.state();
        let leaving = state.leaving.get_mut(&slot);
        leaving
            .filter(|it| it.number == number)
            .is_some_and(|it| !std::mem::replace(&mut it.is_vacant, true))
    }

    /// Has the node leave everything to others for a while, each time for longer. Whether it did not
    /// already.
    pub(super) fn rest(&self, is_forced: bool) -> bool {
        let mut state = self.state();
        let now = self.clock.passed();
        let (before, is_new) = (state.rest, !state.rests(now));
        let lasts = match before {
            Some(rest) if !is_new => rest.lasts,
            Some(rest) if now < rest.until + STORE_REST_TIME_MAX => rest.lasts * 2,
            _ => STORE_REST_TIME_MIN,
        };
        let lasts = lasts.min(STORE_REST_TIME_MAX);
        state.rest = Some(Rest {
            until: now + lasts,
            lasts,
            is_forced,
        });
        drop(state);
        self.lead.send_replace(None);
        is_new
    }

    /// Forgets what it owned, as it may use the store no more.
    pub(super) fn forget(&self) {
        self.lead.send_replace(None);
        self.owned.send_replace(Owned::none());
    }

    /// Looks at who owns what, and does what is to be done about it. Without `is_steady` no node is taken for
    /// dead because it has not renewed its row, and none hands anything over: others come back one by one.
    /// Answers how soon to look again.
    pub(super) async fn look(&self, session: &Session, is_steady: bool) -> Result<Duration, Error> {
        let (living, held) = read(session).await?;
        if self.wakes(&living) {
            return Ok(SOON);
        }
        let (stands, rests, writer) = {
            let state = self.state();
            (state.stands, state.rests(self.clock.passed()), state.writer)
        };
        let mut division = Division::of(self.id, stands && !rests, &living, &held);
        if !is_steady {
            division.leaves.clear();
        }
        if rests && division.mine.remove(&LEAD).is_some() {
            let statement = session.statement(Query::Release).await?;
            let me = &self.id[..];
            session.client.execute(&statement, &[&me]).await?;
        }
        let Some(writer) = writer else {
            return Ok(STORE_NODE_RENEWED_EVERY);
        };
        let leaves = self.leave(&division);
        let mut has_left = false;
        if !leaves.is_empty() {
            for slot in self.hand_over(session, &leaves).await? {
                has_left |= division.mine.remove(&slot).is_some();
            }
        }
        if !division.orphaned.is_empty() {
            let orphaned = std::mem::take(&mut division.orphaned);
            let taken = self.take(session, writer, &orphaned, is_steady).await?;
            division.mine.extend(taken);
        }
        self.publish(&division);
        let is_overdue = living.iter().any(|it| !it.is_prompt);
        let moves = division.awaited > 0 || !self.state().leaving.is_empty();
        Ok(match (moves, is_overdue) {
            _ if has_left => NEXT,
            (true, _) => SOON,
            (_, true) => OVERDUE,
            _ => STORE_NODE_RENEWED_EVERY,
        })
    }

    /// Ends a rest when no node is there that could work instead; whether it did.
    fn wakes(&self, living: &[Living]) -> bool {
        let (mut state, now) = (self.state(), self.clock.passed());
        if !state.takes_part || !state.rests(now) || living.iter().any(|it| it.owns) {
            return false;
        }
        if let Some(rest) = &mut state.rest {
            rest.until = now;
        }
        true
    }

    /// Asks for what is to be left, and answers what can be handed over.
    fn leave(&self, division: &Division) -> Vec<(u8, NodeId)> {
        let (mut state, now) = (self.state(), self.clock.passed());
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
                Leaving {
                    number: *number,
                    is_vacant: false,
                }
            });
        }
        let vacant = leaving.iter().filter(|(_, it)| it.is_vacant || is_forced);
        vacant
            .filter_map(|(slot, _)| Some((*slot, *division.leaves.get(slot)?)))
            .collect()
    }

    async fn hand_over(
        &self,
        session: &Session,
        slots: &[(u8, NodeId)],
    ) -> Result<Vec<i16>, Error> {
        let statement = session.statement(Query::HandOver).await?;
        let numbers: Vec<i16> = slots.iter().map(|(slot, _)| i16::from(*slot)).collect();
        let nodes: Vec<&[u8]> = slots.iter().map(|(_, node)| &node[..]).collect();
        let me = &self.id[..];
        let rows = session
            .client
            .query(&statement, &[&numbers, &nodes, &me])
            .await?;
        rows.iter().map(|row| row.try_get(0)).collect()
    }

    async fn take(
        &self,
        session: &Session,
        writer: NodeId,
        orphaned: &[(i16, i64)],
        is_steady: bool,
    ) -> Result<Vec<(i16, i64)>, Error> {
        let statement = session.statement(Query::Take).await?;
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
        let taken = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        taken.collect()
    }

    /// Shows what the node owns now.
    fn publish(&self, division: &Division) {
        let mut state = self.state();
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
        let rests = state.rests(self.clock.passed());
        drop(state);
        let owned = Owned::Slots(slots);
        self.owned.send_if_modified(|before| {
            let (was, is) = (before.count(), owned.count());
            if was != is {
                tracing::debug!(slots = is, "this node owns another number of slots");
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

/// The claim of the lead.
pub(super) fn lead_claim(epoch: u64) -> Claim {
    Claim {
        slot: LEAD.unsigned_abs(),
        epoch,
    }
}

async fn read(session: &Session) -> Result<(Vec<Living>, Vec<Held>), Error> {
    let seconds = STORE_NODE_TIME_MAX.as_secs_f64();
    let statement = session.statement(Query::Owners).await?;
    let rows = session.client.query(&statement, &[&seconds]).await?;
    let living = rows.iter().map(|row| {
        Ok(Living {
            id: id(row.try_get(0)?),
            owns: row.try_get(1)?,
            is_prompt: row.try_get(2)?,
        })
    });
    let living = living.collect::<Result<_, Error>>()?;
    let statement = session.statement(Query::Claims).await?;
    let rows = session.client.query(&statement, &[]).await?;
    let held = rows.iter().map(|row| {
        Ok(Held {
            slot: row.try_get(0)?,
            epoch: row.try_get(1)?,
            node: id(row.try_get(2)?),
        })
    });
    Ok((living, held.collect::<Result<_, Error>>()?))
}

/// An identity in a row; where it is empty, that of no node.
fn id(bytes: &[u8]) -> NodeId {
    bytes.try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests;
