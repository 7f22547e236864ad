//! Tests of notifications about all open occurrences.

use super::*;
use crate::{
    domain::IncomingEvent,
    samples::{self, DISK_TRIGGER, event, rule},
    store::Store,
};

#[tokio::test]
async fn open_occurrences_are_counted_then_notified_once() {
    let store = Store::in_memory();
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    let open = 2 * REVIEW_BATCH + 3;
    let mut events: Vec<_> = (0..open).map(|at| event(&at.to_string())).collect();
    for status in [Status::Closed, Status::Suppressed] {
        events.push(IncomingEvent {
            status: Some(status),
            ..event(status.as_str())
        });
    }
    intake.submit(events, None).await.unwrap();
    let opens = OpenNotifier::new(deciding.clone(), intake.clone());
    let sent = async || samples::all::<Delivery>(&store).await.len();

    let page = rule("page", &[DISK_TRIGGER], &["hook"]);
    let disabled = Rule {
        enabled: false,
        ..page.clone()
    };
    samples::save_rule(&store, &disabled).await;
    assert_eq!(
        opens
            .count_affected(StoredDefinition::Rule(disabled))
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        opens
            .count_affected(StoredDefinition::Rule(page.clone()))
            .await
            .unwrap(),
        open
    );
    assert_eq!(sent().await, 0, "counting notifies no one");
    samples::save_rule(&store, &page).await;
    let first = [event("0")].to_vec();
    intake.submit(first, None).await.unwrap();
    let stores = StoredDefinition::Rule(page.clone());
    assert_eq!(opens.notify_all(&stores).await.unwrap(), open - 1);
    assert_eq!(sent().await, open);
    assert_eq!(opens.notify_all(&stores).await.unwrap(), 0, "once");
}

#[tokio::test]
async fn trigger_notifies_through_its_rules() {
    let store = Store::in_memory();
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    samples::save_rule(&store, &rule("page", &["nothing"], &["hook"])).await;
    samples::save_rule(&store, &rule("chat", &["nothing"], &["mail"])).await;
    intake.submit(vec![event("a")], None).await.unwrap();
    samples::save_rule(&store, &rule("other", &[DISK_TRIGGER], &["mail"])).await;
    let opens = OpenNotifier::new(deciding, intake.clone());
    let matching = Trigger {
        query: samples::trigger(DISK_TRIGGER).query,
        revision: 2,
        ..samples::trigger("nothing")
    };
    let counted = opens.notify_or_count(true, true, StoredDefinition::Trigger(matching.clone()));
    assert_eq!(counted.await.unwrap(), Some(2), "not by the other rule");
    let unchanged = StoredDefinition::Trigger(samples::trigger("nothing"));
    let notified = opens.notify_or_count(true, false, unchanged).await.unwrap();
    assert_eq!(notified, Some(0));
}
