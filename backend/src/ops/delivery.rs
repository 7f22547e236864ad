//! Deliveries as operators see and steer them.

use crate::{
    domain::{Delivery, DeliveryState, RecordId},
    store::{Direction, EngineError, Index, Lane, Store, engine::Range},
};

/// Times a change is decided anew because somebody else was faster.
const TRIES_MAX: usize = 16;

/// Cancels some of the deliveries to a destination that have not ended; answers how many. An
/// attempt under way is not cut off: its delivery ends as delivered if it succeeds.
///
/// # Errors
/// Those of the store.
pub async fn cancel_waiting(
    store: &Store,
    destination: RecordId,
    now_ms: i64,
    limit: usize,
) -> Result<usize, EngineError> {
    for _ in 0..TRIES_MAX {
        let range = Range::under(&destination.to_bytes());
        let waiting = store
            .page_by::<Delivery>(Index::DeliveryByDue, range, Direction::Ascending, limit)
            .await?;
        if waiting.is_empty() {
            return Ok(0);
        }
        let mut changes = store.changes();
        for (_, delivery) in &waiting {
            changes.update(delivery, &cancelled(&delivery.value, now_ms));
        }
        match store.apply(Lane::Bulk, changes).await {
            Ok(_) => return Ok(waiting.len()),
            Err(EngineError::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Err(EngineError::Conflict)
}

/// A delivery as it is once it is cancelled.
fn cancelled(delivery: &Delivery, now_ms: i64) -> Delivery {
    Delivery {
        state: DeliveryState::Cancelled,
        end_ms: Some(now_ms),
        ..delivery.clone()
    }
}
