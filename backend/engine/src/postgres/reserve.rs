//! The connection that is kept for what this node writes with while it leads, and whether the node has all
//! the connections that are reserved for it.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Mutex, watch},
    time::sleep,
};

use super::{
    address::Address,
    readers::Readers,
    session::{Role, Session},
};
use crate::fault::EngineError;

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The connection of a node that may come to lead.
#[derive(Debug)]
pub(super) struct Reserve {
    address: Arc<Address>,
    kept: Mutex<Option<Session>>,
    /// Whether the database answers, over all the connections that are reserved.
    is_ready: watch::Sender<bool>,
}

impl Reserve {
    /// Opens it.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] where the database gives no further connection.
    pub(super) async fn open(address: Arc<Address>) -> Result<Self, EngineError> {
        let session = Session::open(&address, Role::Writer).await?;
        Ok(Self {
            address,
            kept: Mutex::new(Some(session)),
            is_ready: watch::Sender::new(true),
        })
    }

    /// The connection, for the writer of who comes to lead; none where it broke.
    pub(super) async fn take(&self) -> Option<Session> {
        let taken = self.kept.lock().await.take();
        taken.filter(|it| !it.client.is_closed())
    }

    /// Whether this node can work.
    pub(super) fn is_ready(&self) -> watch::Receiver<bool> {
        self.is_ready.subscribe()
    }

    /// Keeps it while the node does not lead, and reports whether all reserved connections are open: it,
    /// that of backups, and those whose users report when they are missing.
    pub(super) async fn keep(
        self: Arc<Self>,
        leads: watch::Receiver<Option<[u8; 16]>>,
        readers: Arc<Readers>,
        missing: [watch::Receiver<bool>; 3],
    ) {
        let mut reach = self.address.reach.subscribe();
        let mut is_kept = true;
        loop {
            let is_missing = missing.iter().any(|it| *it.borrow());
            let is_whole = is_kept && !is_missing;
            let is_ready = *reach.borrow_and_update() && is_whole;
            self.is_ready.send_if_modified(|before| {
                let is_other = *before != is_ready;
                if is_other && !is_whole {
                    tracing::warn!("connections that are reserved for this node are missing");
                }
                *before = is_ready;
                is_other
            });
            tokio::select! {
                () = sleep(LOOK_EVERY) => {}
                // The address, and what it says, lives as long as this.
                _ = reach.changed() => continue,
            }
            // A database that does not answer is not asked for a further one.
            if *reach.borrow() {
                // Who leads has it in use; that its writer is without one ends the lead.
                let is_in_use = leads.borrow().is_some();
                is_kept = readers.is_reserved().await && (is_in_use || self.is_kept().await);
            }
        }
    }

    async fn is_kept(&self) -> bool {
        let mut kept = self.kept.lock().await;
        if kept.as_ref().is_some_and(|it| !it.client.is_closed()) {
            return true;
        }
        *kept = Session::open(&self.address, Role::Writer).await.ok();
        kept.is_some()
    }
}
