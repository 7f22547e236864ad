//! Tests of the lanes of the service's own changes, in a folder and in a database.

use std::sync::Arc;

use crate::{
    engine::{Duty, Engine, Lane, memory::MemoryEngine, ownership::OwnedSlots},
    record::Store,
    seal::Sealer,
};

#[test]
fn service_work_uses_its_own_lanes() {
    for engine in [MemoryEngine::new(), MemoryEngine::new_shared()] {
        let engine: Arc<dyn Engine> = Arc::new(engine);
        let store = Store::new(engine, Arc::new(Sealer::with_random_key()));
        for requested in [Lane::Admin, Lane::Bulk] {
            let owning = |owned| {
                let owned = tokio::sync::watch::Sender::new(owned).subscribe();
                store
                    .clone()
                    .for_owner(Duty::Delivery, owned)
                    .effective_lane(requested)
            };
            assert_eq!(store.effective_lane(requested), requested);
            assert_eq!(
                store.for_leader(Duty::Review).effective_lane(requested),
                Lane::Leader
            );
            assert_eq!(owning(OwnedSlots::All), Lane::Owner);
            assert_eq!(owning(OwnedSlots::empty()), Lane::Owner);
        }
    }
}

#[test]
#[should_panic(expected = "two changes to one Trigger in a commit")]
#[cfg(debug_assertions)]
fn second_change_of_a_record_in_one_commit_is_refused() {
    let store = Store::in_memory();
    let mut changes = store.new_changes();
    changes.insert(&crate::samples::trigger("disk"));
    changes.insert(&crate::samples::trigger("disk"));
}
