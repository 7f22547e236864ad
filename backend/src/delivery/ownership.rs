//! The destinations that this process delivers to: all, or those in its slots if the store is
//! shared.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::watch;

use crate::{
    delivery::queue::Owner,
    domain::RecordId,
    store::{
        Duty, Store,
        engine::ownership::{OwnedSlots, slot_for_key},
        record::destination_slot,
    },
};

/// The ownership that the dispatcher acts on. It only changes between two rounds of the dispatcher.
#[derive(Debug)]
pub(crate) struct Ownership {
    published: watch::Receiver<OwnedSlots>,
    adopted: watch::Sender<OwnedSlots>,
    /// Time since which this process owns slots that another process may have owned before.
    since_ms: BTreeMap<u8, i64>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnershipChange {
    gained: BTreeSet<u8>,
    lost: BTreeSet<u8>,
}

impl OwnershipChange {
    pub(crate) fn has_gained(&self, destination: RecordId) -> bool {
        self.gained.contains(&destination_slot(destination))
    }

    pub(crate) fn has_lost(&self, destination: RecordId) -> bool {
        self.lost.contains(&destination_slot(destination))
    }

    pub(crate) fn is_gain(&self) -> bool {
        !self.gained.is_empty()
    }

    pub(crate) fn extend(&mut self, later: Self) {
        self.gained.retain(|slot| !later.lost.contains(slot));
        self.gained.extend(later.gained);
        self.lost.extend(later.lost);
    }
}

impl Ownership {
    pub(crate) fn from_store(store: &Store, now_ms: i64) -> Self {
        let published = store.engine().cluster().watch_ownership();
        let is_all = *published.borrow() == OwnedSlots::All;
        let adopted = if is_all {
            OwnedSlots::All
        } else {
            OwnedSlots::empty()
        };
        let is_after_another = is_all && store.engine().is_shared();
        let all = (0..=u8::MAX).filter(|_| is_after_another);
        Self {
            published,
            adopted: watch::Sender::new(adopted),
            since_ms: all.map(|slot| (slot, now_ms)).collect(),
        }
    }

    /// Wraps a store so that changes outside of the owned slots are rejected.
    pub(crate) fn store(&self, store: Store) -> Store {
        store.for_owner(Duty::Delivery, self.adopted.subscribe())
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<OwnedSlots> {
        self.adopted.subscribe()
    }

    /// Waits until the ownership has changed. Never returns if it does not change.
    pub(crate) async fn wait_until_changed(&mut self) {
        if self.published.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        // The change counts as seen once it is adopted.
        self.published.mark_changed();
    }

    /// Adopts the current ownership. Returns `None` if it is unchanged.
    pub(crate) fn apply_current(&mut self, now_ms: i64) -> Option<OwnershipChange> {
        if !self.published.has_changed().unwrap_or(false) {
            return None;
        }
        let owned = self.published.borrow_and_update().clone();
        let mut moved = OwnershipChange::default();
        for slot in 0..=u8::MAX {
            let epoch = |owned: &OwnedSlots| owned.find(slot).map(|it| it.epoch);
            let (before, after) = (epoch(&self.adopted.borrow()), epoch(&owned));
            if before == after {
                continue;
            }
            if before.is_some() {
                moved.lost.insert(slot);
                self.since_ms.remove(&slot);
            }
            if after.is_some() {
                moved.gained.insert(slot);
                self.since_ms.insert(slot, now_ms);
            }
        }
        self.adopted.send_replace(owned);
        Some(moved)
    }

    pub(crate) fn owns_destination(&self, destination: RecordId) -> bool {
        self.adopted
            .borrow()
            .find(destination_slot(destination))
            .is_some()
    }

    /// Whether this process reports about a deleted destination, whose id is unknown.
    pub(crate) fn owns_name(&self, name: &[u8]) -> bool {
        self.adopted.borrow().find(slot_for_key(name)).is_some()
    }

    pub(crate) fn owner(&self, destination: RecordId) -> Owner {
        let owned = self.adopted.borrow().find(destination_slot(destination));
        let is_leaving = owned.is_some_and(|owned| owned.leaving.is_some());
        if is_leaving {
            Owner::Another
        } else {
            Owner::This
        }
    }

    /// Returns the time from which this process delivers to a destination. `None` if no other
    /// process can have delivered to it before.
    pub(crate) fn owned_since_ms(&self, destination: RecordId) -> Option<i64> {
        self.since_ms.get(&destination_slot(destination)).copied()
    }

    /// Reports the slots to hand over that have no work in flight.
    pub(crate) fn release_all(&self, store: &Store, in_flight: impl IntoIterator<Item = RecordId>) {
        let leaving = self.adopted.borrow().slots_to_leave();
        if leaving.is_empty() {
            return;
        }
        let busy: BTreeSet<u8> = in_flight.into_iter().map(destination_slot).collect();
        for (slot, number) in leaving {
            if !busy.contains(&slot) {
                store.engine().cluster().vacate(slot, number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        domain::Health,
        samples,
        store::{EngineError, Lane, engine::ownership::OwnedSlot},
    };

    fn owned_slots(slots: &[(RecordId, u64, Option<u64>)]) -> OwnedSlots {
        let mut all = Box::new([None; 256]);
        for (destination, epoch, leaving) in slots {
            all[usize::from(destination_slot(*destination))] = Some(OwnedSlot {
                epoch: *epoch,
                leaving: *leaving,
            });
        }
        OwnedSlots::Slots(all)
    }

    fn sample_ownership(published: watch::Receiver<OwnedSlots>) -> Ownership {
        Ownership {
            published,
            adopted: watch::Sender::new(OwnedSlots::empty()),
            since_ms: BTreeMap::new(),
        }
    }

    #[test]
    fn ownership_gains_and_losses_are_reported_once() {
        let (a, b) = (samples::id("a"), samples::id("b"));
        assert_ne!(destination_slot(a), destination_slot(b));
        let published = watch::Sender::new(OwnedSlots::empty());
        let mut ownership = sample_ownership(published.subscribe());
        assert_eq!(ownership.apply_current(1), None);
        published.send_replace(owned_slots(&[(a, 1, None)]));
        assert!(
            !ownership.owns_destination(a),
            "ownership does not change during a round"
        );
        let moved = ownership.apply_current(2).unwrap();
        assert!(moved.has_gained(a) && !moved.has_lost(a) && !moved.has_gained(b));
        assert_eq!(
            (ownership.owned_since_ms(a), ownership.owned_since_ms(b)),
            (Some(2), None)
        );

        // A slot that is to be handed over is not lost yet.
        published.send_replace(owned_slots(&[(a, 1, Some(7))]));
        let moved = ownership.apply_current(3).unwrap();
        assert!(!moved.is_gain() && !moved.has_lost(a));
        assert_eq!(ownership.owner(a), Owner::Another);
        assert!(ownership.owns_destination(a));

        // One slot is lost and regained between two rounds, another one is gained.
        published.send_replace(owned_slots(&[(a, 3, None), (b, 1, None)]));
        let mut moved = ownership.apply_current(4).unwrap();
        assert!(moved.has_lost(a) && moved.has_gained(a) && moved.has_gained(b));
        assert_eq!(
            (ownership.owner(a), ownership.owned_since_ms(a)),
            (Owner::This, Some(4))
        );
        published.send_replace(owned_slots(&[(a, 3, None)]));
        moved.extend(ownership.apply_current(5).unwrap());
        assert!(moved.has_gained(a) && !moved.has_gained(b) && moved.has_lost(b));
    }

    #[tokio::test]
    async fn writes_to_destinations_of_another_process_are_refused() {
        let (a, b) = (samples::id("a"), samples::id("b"));
        let published = watch::Sender::new(owned_slots(&[(a, 1, None)]));
        let mut ownership = sample_ownership(published.subscribe());
        published.send_replace(owned_slots(&[(a, 1, None)]));
        ownership.apply_current(1);
        let store = ownership.store(Store::in_memory());
        let change = async |destination| {
            let mut changes = store.new_changes();
            changes.insert(&Health::new_unattempted(destination, 1));
            store.apply(Lane::Bulk, changes).await
        };
        change(a).await.unwrap();
        let refused = change(b).await;
        assert!(
            matches!(refused, Err(EngineError::Unavailable(_))),
            "{refused:?}"
        );
    }
}
