//! Tests of the position and the estimated attempt of waiting deliveries.

use bellwether_proto::v1::WaitCode;

use super::*;
use crate::{
    delivery::WaitReason,
    domain::counter::{Subject, Tally},
};

impl World {
    /// Returns the reason why a delivery waits, and asserts that the list of all deliveries gives
    /// the same reason.
    async fn wait_reason(&self, id: RecordId) -> WaitReason {
        let (delivery, _) = self.part.get(id).await.unwrap();
        let alone = self.part.wait_reason(&delivery).await.unwrap();
        let (filter, page) = (Filter::default(), PageRequest::default());
        let (list, _) = self.part.list(&filter, &page).await.unwrap();
        let mut reasons = self.part.wait_reasons();
        for listed in list {
            let reason = reasons.wait_reason(&listed).await.unwrap();
            assert!(listed.id != id || reason == alone, "{reason:?} {alone:?}");
        }
        alone
    }
}

#[tokio::test]
async fn next_attempt_is_estimated_from_position_and_measured_rate() {
    let world = World::new();
    let now_ms = world.clock.now_ms();
    let mut ids = Vec::new();
    for number in 0..4 {
        let state = DeliveryState::Pending { due_ms: now_ms };
        ids.push(world.save(number, "mail", "disk", state).await);
        world.save(number + 100, "chat", "disk", state).await;
    }
    for (ahead, id) in ids.iter().enumerate() {
        let waiting = world.wait_reason(*id).await;
        let next_ms = Some(now_ms).filter(|_| ahead == 0);
        assert_eq!((waiting.ahead, waiting.next_ms), (Some(ahead), next_ms));
        assert_eq!(waiting.code, WaitCode::Unspecified);
    }

    // Six in two minutes.
    let mut changes = world.store.new_changes();
    let subject = Subject::Destination(samples::id("mail"));
    changes.count(subject, now_ms - 120_000, Tally::Delivered, 6);
    world.store.apply(Lane::Bulk, changes).await.unwrap();
    let since_minute_ms = now_ms - (now_ms - 120_000).div_euclid(60_000) * 60_000;
    for (ahead, id) in (0..).zip(&ids) {
        let waiting = world.wait_reason(*id).await;
        assert_eq!(waiting.next_ms, Some(now_ms + ahead * since_minute_ms / 6));
    }
}

#[tokio::test]
async fn delivery_due_later_has_no_position() {
    let world = World::new();
    let due_ms = world.clock.now_ms() + 60_000;
    let state = DeliveryState::Retry { due_ms };
    let id = world.save(0, "mail", "disk", state).await;
    let waiting = world.wait_reason(id).await;
    assert_eq!((waiting.ahead, waiting.next_ms), (None, Some(due_ms)));
}
