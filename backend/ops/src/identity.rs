//! Ids of new records.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::domain::RecordId;

/// Returns a new id for a time. The id sorts after all earlier ids that this process created for
/// the same time, so that messages decided in the same millisecond keep their order.
pub fn new_id(now_ms: i64) -> RecordId {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let time_ms = u64::try_from(now_ms).unwrap_or_default();
    let order = u128::from(MADE.fetch_add(1, Ordering::Relaxed)) << 48;
    let random = u128::from(rand::random::<u64>() >> 16);
    RecordId::from_parts(time_ms, order | random)
}
