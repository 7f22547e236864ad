//! Tests of counters in stores of each kind that an earlier version wrote to.

use super::ground::Ground;
use crate::store::{
    Lane,
    engine::{Action, Change, Expect, Kind},
};

const DAY_MS: i64 = 24 * 3_600_000;

#[tokio::test]
async fn new_counters_start_the_day_after_an_upgrade() {
    let grounds = [
        Some(Ground::memory()),
        Some(Ground::disk()),
        Ground::database().await,
    ];
    for ground in grounds.into_iter().flatten() {
        let store = ground.open().await;
        // Store the start of counting, but no noise counters.
        let since = Change::new(Kind::Counter, &[0], Expect::Absent, Action::Add(vec![5]));
        let written = store.engine().apply(Lane::Admin, vec![since].into());
        written.await.unwrap();
        for now_ms in [70_000, 3 * DAY_MS] {
            store.begin_counting(now_ms).await.unwrap();
            assert_eq!(store.counters_since_ms().await.unwrap(), Some(5));
            assert_eq!(store.noise_since_ms().await.unwrap(), Some(DAY_MS));
        }
    }
}
