//! Tests of the maximum number of lookup rounds of a decision.

use std::cell::Cell;

use super::*;
use crate::samples;

#[tokio::test]
async fn decision_fails_after_the_maximum_lookup_rounds() {
    let store = Store::in_memory();
    for (asks, is_decided) in [
        (0, true),
        (1, true),
        (SETTLE_ROUNDS_MAX, true),
        (SETTLE_ROUNDS_MAX + 1, false),
        (usize::MAX, false),
    ] {
        let (causes, made) = (Causes::default(), Cell::new(0));
        let decided = decide_with_causes(&store, &causes, async || {
            made.set(made.get() + 1);
            if made.get() <= asks {
                // A different id each time, as in a decision that generates ids.
                causes.request_in_advance([samples::id(&made.get().to_string())].into());
            }
            Ok(())
        });
        assert_eq!(decided.await.is_ok(), is_decided, "{asks}");
        let most = asks.saturating_add(1).min(SETTLE_ROUNDS_MAX + 1);
        assert_eq!(made.get(), most, "{asks}");
    }
}
