//! Tests of system calls that fail while a store is created, restored or opened: no incomplete
//! store is used, and the next attempt succeeds.

use super::{Setup, all, back_up, store};
use crate::{
    backup::Keys,
    domain::{Delivery, Occurrence},
    location::Location,
    open::{self, faults::Faults},
    verify,
};

/// `EIO` and `ENOSPC`.
const ERRORS: [i32; 2] = [5, 28];
/// Intervals between calls that fail, chosen so that every kind of call fails at least once.
const STEPS: [usize; 2] = [3, 7];

#[tokio::test]
async fn failed_start_leaves_a_startable_folder() {
    for (error, step) in ERRORS.into_iter().zip(STEPS) {
        for failures in [1, u64::MAX] {
            for calls in (0..).step_by(step) {
                let parent = tempfile::tempdir().unwrap();
                let location = Location::folder(parent.path().join("data"));
                let faults = Faults::fail_after(&location.data_dir, calls, failures, error);
                if let Ok(store) = crate::open(&location).await {
                    drop(store.engine().close().await);
                }
                let was_hit = faults.was_hit();
                drop(faults);
                let context = format!("error {error} from call {calls} on, {failures} times");
                let store = crate::open(&location).await;
                let store = store.unwrap_or_else(|error| panic!("{context}: {error}"));
                let findings = verify(&store, &|_| {}).await;
                assert_eq!(findings.errors, 0, "{context}: {findings:?}");
                if !was_hit {
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn failed_restore_is_reported_and_repeatable() {
    let setup = Setup::new();
    let old = store(&setup).await;
    back_up(&old, &setup, Keys::Of(&setup.keys())).await;
    let occurrences = all::<Occurrence>(&old).await;
    let deliveries = all::<Delivery>(&old).await;
    let data_dir = setup.config().data_dir;
    let (mut failed, mut hit) = (0, 0);
    for error in ERRORS {
        for failures in [1, u64::MAX] {
            for calls in (0..).step_by(9) {
                let faults = Faults::fail_after(&data_dir, calls, failures, error);
                let restored = setup.restore(None).await;
                let was_hit = faults.was_hit();
                drop(faults);
                hit += usize::from(was_hit);
                let context = format!("error {error} from call {calls} on, {failures} times");
                if restored.is_err() {
                    failed += 1;
                    let refused = open::open_read_only(&data_dir, 1024 * 1024).await;
                    assert!(refused.is_err(), "{context}: a store remains");
                    let again = setup.restore(None).await;
                    assert!(again.is_ok(), "{context}: {again:?}");
                }
                let new = crate::open(&setup.config()).await.unwrap();
                assert!(all::<Occurrence>(&new).await == occurrences, "{context}");
                assert!(all::<Delivery>(&new).await == deliveries, "{context}");
                drop(new);
                std::fs::remove_dir_all(&data_dir).unwrap();
                if !was_hit {
                    break;
                }
            }
        }
    }
    assert!(failed > hit / 2, "{failed} of {hit} were detected");
}
