//! Tests of the rules in force.

use super::*;
use crate::{
    samples::{self, DISK_TRIGGER},
    store::Lane,
};

#[tokio::test]
async fn edit_is_in_effect_after_refresh() {
    let store = Store::in_memory();
    let ruleset = Ruleset::load(store.clone()).await.unwrap();
    let occurrence = samples::occurrence();
    assert!(
        ruleset
            .current_snapshot()
            .matching_triggers(&occurrence)
            .is_empty()
    );

    samples::save_rule(&store, &samples::rule("page", &[DISK_TRIGGER], &["hook"])).await;
    let snapshot = ruleset.refresh().await.unwrap();
    let found = snapshot.matching_triggers(&occurrence);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].rule.name.as_str(), "page");
    assert_eq!(found[0].trigger.name.as_str(), DISK_TRIGGER);

    let stored = store.get::<Rule>("page".into()).await.unwrap().unwrap();
    let mut changes = store.new_changes();
    changes.delete(&stored);
    store.apply(Lane::Admin, changes).await.unwrap();
    let snapshot = ruleset.refresh().await.unwrap();
    assert!(snapshot.matching_triggers(&occurrence).is_empty());
    assert!(snapshot.rule(stored.value.id).is_none());
}

#[tokio::test]
async fn rule_matches_once_and_only_if_enabled() {
    let store = Store::in_memory();
    let mut off = samples::rule("off", &[DISK_TRIGGER], &["hook"]);
    off.enabled = false;
    let both = samples::rule("on", &["nothing", DISK_TRIGGER, "everything"], &["hook"]);
    samples::save_rule(&store, &off).await;
    samples::save_rule(&store, &both).await;
    let ruleset = Ruleset::load(store).await.unwrap();
    let snapshot = ruleset.current_snapshot();
    let found = snapshot.matching_triggers(&samples::occurrence());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].rule.name.as_str(), "on");
    assert_eq!(found[0].trigger.name.as_str(), DISK_TRIGGER);
    assert_eq!(snapshot.rules().len(), 2);
}
