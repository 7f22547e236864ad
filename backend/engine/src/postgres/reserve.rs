//! A check that this node has all the connections reserved for it.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::sleep};

use super::{address::Address, readers::Readers};

const CHECK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Reserve {
    address: Arc<Address>,
    /// Whether the database responds on all connections reserved for this node.
    is_ready: watch::Sender<bool>,
}

impl Reserve {
    pub(super) fn new(address: Arc<Address>) -> Self {
        let is_ready = watch::Sender::new(true);
        Self { address, is_ready }
    }

    pub(super) fn watch_ready(&self) -> watch::Receiver<bool> {
        self.is_ready.subscribe()
    }

    /// Reports whether all connections are open: the one for backups, and those whose state is in
    /// `missing`.
    pub(super) async fn run(
        self: Arc<Self>,
        readers: Arc<Readers>,
        missing: [watch::Receiver<bool>; 4],
    ) {
        let mut reach = self.address.reach.subscribe();
        let mut is_reserved = true;
        loop {
            let is_missing = missing.iter().any(|it| *it.borrow());
            let is_whole = is_reserved && !is_missing;
            let is_ready = *reach.borrow_and_update() && is_whole;
            self.is_ready.send_if_modified(|before| {
                let is_other = *before != is_ready;
                if is_other && !is_whole {
                    tracing::warn!("reserved connections of this node are missing");
                }
                *before = is_ready;
                is_other
            });
            tokio::select! {
                () = sleep(CHECK_EVERY) => {}
                // The sender outlives this call.
                _ = reach.changed() => continue,
            }
            // No further connections are opened while the database does not respond.
            if *reach.borrow() {
                is_reserved = readers.is_reserved().await;
            }
        }
    }
}
