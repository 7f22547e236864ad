//! What several processes that share a store need of it: which of them live, which one leads, and what each
//! knows. A process that has its store to itself leads from the start, and nothing of the rest happens.

use std::{fmt::Debug, future::pending, time::Duration};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::{fault::EngineError, ownership::Owned, position::LogPosition};

/// A process that uses a shared store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSeen {
    /// What it is called.
    pub name: String,
    /// Since when it has been there, in milliseconds since 1970.
    pub since_ms: i64,
    /// Up to which position it has followed the change log.
    pub follows: LogPosition,
    /// Whether it leads.
    pub leads: bool,
    /// How many of the [`crate::ownership::SLOTS`] it owns.
    pub slots: u32,
    /// Whether it is the one that asks.
    pub is_this: bool,
    /// What it reports about itself, see [`Cluster::tell`].
    pub about: String,
}

/// What of that which a store needs one process does: for each destination or event its owner, else the one
/// that leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Delivering, to the destinations that the process owns.
    Delivery,
    /// Evaluating what is held.
    Review,
    /// Closing and deleting events, of those that the process owns.
    Ageing,
    /// Deleting and folding, now and then.
    Sweep,
}

impl Duty {
    /// Those that advance all the time, with or without something to do.
    pub const STEADY: [Self; 3] = [Self::Delivery, Self::Review, Self::Ageing];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Delivery => "delivery",
            Self::Review => "review",
            Self::Ageing => "ageing",
            Self::Sweep => "deletion",
        }
    }
}

/// The processes that share a store, as one of them sees it.
#[async_trait]
pub trait Cluster: Debug + Send + Sync {
    /// Returns once this process leads: of those that share the store one does, and what is to be done
    /// once is done by that. One that has the store to itself leads from the start.
    ///
    /// # Cancel safety
    /// A dropped call leaves nothing behind that the next one does not find.
    async fn lead(&self) {}

    /// Returns once this process does not lead any more.
    ///
    /// # Cancel safety
    /// A dropped call leaves nothing behind.
    async fn deposed(&self) {
        pending::<()>().await;
    }

    /// What of that which is divided among the processes this one owns now.
    fn owned(&self) -> watch::Receiver<Owned> {
        watch::Sender::new(Owned::All).subscribe()
    }

    /// Whether no other process can own now what this one owns by what it knows.
    fn is_sure(&self) -> bool {
        true
    }

    /// Records whether this process is to own something. One that is not any more hands over what it owns.
    fn take_part(&self, _does: bool) {}

    /// Records that nothing of a slot is under way any more, which this process is to leave, since it was
    /// asked to with that number.
    fn vacate(&self, _slot: u8, _number: u64) {}

    /// Records that this process advances with that. One that does not advance with what it has to do of
    /// [`Duty::STEADY`] for [`crate::limits::STORE_LEADER_STALL_MAX`] leaves it to others.
    fn advance(&self, _duty: Duty) {}

    /// Leaves the lead, and what this process owns, to others for a while.
    async fn resign(&self, _why: &str) {}

    /// Returns when this process may not use the store any more, as those that share it have taken it
    /// for dead long ago. Of most engines never.
    ///
    /// # Cancel safety
    /// A dropped call leaves nothing behind.
    async fn forgotten(&self) {
        pending::<()>().await;
    }

    /// Returns when the store has gone back to an earlier state, with what shows it: it has lost what
    /// was answered as written, and what this process keeps in memory may be of that. Of most engines
    /// never.
    ///
    /// # Cancel safety
    /// A dropped call leaves nothing behind.
    async fn gone_back(&self) -> String {
        pending().await
    }

    /// The processes that share the store and live; none where it is not shared.
    async fn nodes(&self) -> Result<Vec<NodeSeen>, EngineError> {
        Ok(Vec::new())
    }

    /// Reports something about this process to those that share the store.
    fn tell(&self, _about: String) {}

    /// Whether the store has been within reach lately; none where it always is.
    fn within_reach(&self) -> Option<watch::Receiver<bool>> {
        None
    }

    /// Waits until every process that shares the store knows of a position in the change log; whether that
    /// came in time.
    async fn followed_by_all(
        &self,
        _position: LogPosition,
        _within: Duration,
    ) -> Result<bool, EngineError> {
        Ok(true)
    }
}

/// A process that has its store to itself.
#[derive(Debug)]
pub(crate) struct Alone;

impl Cluster for Alone {}
