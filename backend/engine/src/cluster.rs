//! Coordination of the processes that share a store: liveness, leadership and ownership. A process
//! with its own store leads from the start.

use std::{fmt::Debug, future::pending, time::Duration};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{error::EngineError, ownership::OwnedSlots, position::LogPosition};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterNode {
    pub name: String,
    /// Time at which the node joined, in milliseconds since 1970.
    pub since_ms: i64,
    /// The position up to which the node has followed the change log.
    pub follows: LogPosition,
    pub leads: bool,
    pub slots: u32,
    pub is_this: bool,
    /// The report of the node about itself; see [`Cluster::publish_report`].
    pub about: String,
}

/// A duty that exactly one process performs: the owner of the destination or event, or else the
/// leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    Delivery,
    Review,
    /// Closing and deleting the events that the process owns.
    Ageing,
    Sweep,
}

impl Duty {
    /// Duties that advance continuously, even when idle.
    pub const STEADY: [Self; 3] = [Self::Delivery, Self::Review, Self::Ageing];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivery => "delivery",
            Self::Review => "review",
            Self::Ageing => "ageing",
            Self::Sweep => "deletion",
        }
    }
}

/// The processes that share a store, from the perspective of this process.
#[async_trait]
pub trait Cluster: Debug + Send + Sync {
    /// Waits until this process is the leader. A process with its own store leads from the
    /// start.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    async fn wait_for_leadership(&self) {}

    /// Waits until this process is no longer the leader.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    async fn wait_until_deposed(&self) {
        pending::<()>().await;
    }

    fn watch_ownership(&self) -> watch::Receiver<OwnedSlots> {
        watch::Sender::new(OwnedSlots::All).subscribe()
    }

    /// Whether no other process can currently own the slots that this process believes it owns.
    fn is_ownership_certain(&self) -> bool {
        true
    }

    /// Sets whether this process is to own slots. If not, it hands over the slots that it owns.
    fn set_owns_slots(&self, _does: bool) {}

    /// Reports that no work is in flight for a slot that must be handed over; `number` identifies
    /// the handover.
    fn vacate(&self, _slot: u8, _number: u64) {}

    /// Records progress with a duty. A process that makes no progress with one of [`Duty::STEADY`]
    /// for [`crate::limits::STORE_LEADER_STALL_MAX`] gives up its leadership and slots.
    fn record_progress(&self, _duty: Duty) {}

    async fn resign(&self, _why: &str) {}

    /// Waits until this process may no longer use the store because the other nodes declared it
    /// dead long ago. Never returns for most engines.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    async fn wait_until_forgotten(&self) {
        pending::<()>().await;
    }

    /// Waits until the store has reverted to an earlier state, and returns the evidence. Confirmed
    /// writes are then lost, but this process may still have them cached. Never returns for most
    /// engines.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    async fn wait_until_reverted(&self) -> String {
        pending().await
    }

    /// Returns the live processes that share the store; empty if the store is not shared.
    async fn nodes(&self) -> Result<Vec<ClusterNode>, EngineError> {
        Ok(Vec::new())
    }

    fn publish_report(&self, _about: String) {}

    /// Watches whether the store is reachable; `None` if it always is.
    fn watch_reachability(&self) -> Option<watch::Receiver<bool>> {
        None
    }

    /// Waits until every process that shares the store has followed the change log up to a
    /// position. Returns false if the deadline passes first.
    async fn wait_until_followed(
        &self,
        _position: LogPosition,
        _within: Duration,
    ) -> Result<bool, EngineError> {
        Ok(true)
    }
}

#[derive(Debug)]
pub(crate) struct SingleProcess;

impl Cluster for SingleProcess {}
