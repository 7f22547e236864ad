//! Marks the deliveries in a dead digest as dead.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    clock::Clock,
    delivery::ownership::{Ownership, OwnershipChange},
    domain::{BudgetWindow, Delivery, DeliveryState, RecordId},
    error::Error,
    ops::commit::commit,
    store::{Direction, EngineError, Index, Lane, Store, engine::Range},
};

/// Deliveries updated in one commit.
const PAGE: usize = 256;

/// The dead digests whose deliveries are not all updated yet. Which digests these are is stored
/// with the budgets; only the position within each digest is kept here.
#[derive(Debug)]
pub(crate) struct DigestCascade {
    store: Store,
    clock: Arc<dyn Clock>,
    left: BTreeMap<(RecordId, RecordId), Range>,
    /// Whether pending digests from before the start are included.
    includes_pending: bool,
}

impl DigestCascade {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            left: BTreeMap::new(),
            includes_pending: false,
        }
    }

    pub(crate) fn add(&mut self, dead: impl IntoIterator<Item = (RecordId, RecordId)>) {
        let dead = dead.into_iter();
        self.left
            .extend(dead.map(|it| (it, Range::with_prefix(&it.1.to_bytes()))));
    }

    /// Drops digests of destinations that other nodes own now, and resumes those of gained
    /// destinations.
    pub(crate) fn apply_moves(&mut self, moved: &OwnershipChange) {
        self.left
            .retain(|(destination, _), _| !moved.has_lost(*destination));
        self.includes_pending &= !moved.is_gain();
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) async fn update_batch(&mut self, ownership: &Ownership) -> Result<(), Error> {
        if !self.includes_pending {
            self.resume(ownership).await?;
            self.includes_pending = true;
        }
        let Some(mut next) = self.left.first_entry() else {
            return Ok(());
        };
        let (destination, digest) = *next.key();
        match update_deliveries(&self.store, &*self.clock, (destination, digest), next.get())
            .await?
        {
            Some(rest) => *next.get_mut() = rest,
            None => drop(next.remove()),
        }
        Ok(())
    }

    /// Reads pending digests from before the start.
    async fn resume(&mut self, ownership: &Ownership) -> Result<(), Error> {
        let store = self.store.clone();
        let mut pages = store.pages::<BudgetWindow>(Range::with_prefix(&[]));
        loop {
            match pages.next().await {
                Ok(None) => return Ok(()),
                Ok(Some(page)) => {
                    let windows = page.into_iter().map(|it| it.value);
                    let windows = windows.filter(|it| ownership.owns_destination(it.destination));
                    let dead = windows.flat_map(|it| {
                        let dead = it.dead.into_iter();
                        dead.map(move |digest| (it.destination, digest))
                    });
                    self.add(dead.collect::<Vec<_>>());
                }
                Err(EngineError::Corrupt(why)) => {
                    tracing::error!(why, "failed to read some budgets");
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Updates some deliveries of a digest. Returns the remaining range.
async fn update_deliveries(
    store: &Store,
    clock: &dyn Clock,
    (destination, digest): (RecordId, RecordId),
    range: &Range,
) -> Result<Option<Range>, Error> {
    let decide = async || {
        let mut changes = store.new_changes();
        let engine = store.engine();
        let index = Index::DeliveryByDigest;
        let found = engine.entries(index, range.clone(), Direction::Ascending, PAGE);
        let found = found.await?;
        let rest = (found.len() == PAGE).then(|| {
            let mut rest = range.clone();
            rest.exclude_through(&found[PAGE - 1].0);
            rest
        });
        let keys = found.into_iter().map(|(_, key)| key).collect();
        let (found, _) = store.get_readable::<Delivery>(keys).await?;
        let why = dead_digest_error(store, digest).await?;
        for delivery in found.iter().flatten() {
            if delivery.value.state == DeliveryState::Folded {
                let dead = Delivery {
                    state: DeliveryState::Dead,
                    end_ms: Some(clock.now_ms()),
                    last_error: why.clone(),
                    ..delivery.value.clone()
                };
                changes.update(delivery, &dead);
            }
        }
        // An unreadable delivery must not block the other deliveries.
        let key = destination.to_bytes().into();
        let (window, _) = store.get_readable::<BudgetWindow>(vec![key]).await?;
        if let (Some(window), None) = (window.into_iter().flatten().next(), &rest) {
            let mut next = window.value.clone();
            next.dead.retain(|it| *it != digest);
            changes.update(&window, &next);
        }
        Ok((changes, rest))
    };
    let (rest, _) = commit(store, Lane::Bulk, decide).await?;
    Ok(rest)
}

async fn dead_digest_error(store: &Store, digest: RecordId) -> Result<String, Error> {
    let key = digest.to_bytes().into();
    let (found, _) = store.get_readable::<Delivery>(vec![key]).await?;
    let digest = found.into_iter().flatten().next();
    let why = digest.map(|it| it.value.last_error).unwrap_or_default();
    Ok(format!("its digest became a dead letter: {why}"))
}
