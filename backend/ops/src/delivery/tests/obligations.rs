//! Tests of outstanding resolutions.

use super::*;
use crate::{
    delivery::ObligationFilter,
    domain::{IncomingEvent, Rule, Status},
    samples::{DISK_TRIGGER, event, rule},
};

/// Returns every page of a list as host, rule and destination, with the number of rows per page.
async fn list(deliveries: &Deliveries, filter: &ObligationFilter, size: i32) -> Vec<[String; 3]> {
    let mut rows = Vec::new();
    let mut token = String::new();
    loop {
        let page = PageRequest { size, token };
        let (items, next) = deliveries.obligations(filter, &page).await.unwrap();
        assert!(items.len() <= usize::try_from(size).unwrap());
        for item in items {
            let hosts = ["a", "b", "c"].into_iter();
            let host = hosts.filter(|host| event(host).id() == item.occurrence.event);
            rows.push([
                host.collect(),
                item.rule_name.to_string(),
                item.destination_name.to_string(),
            ]);
        }
        token = next;
        if token.is_empty() {
            return rows;
        }
    }
}

fn rows(of: &[&str]) -> Vec<[String; 3]> {
    let row = |text: &&str| {
        let words: Vec<_> = text.split(' ').map(str::to_owned).collect();
        words.try_into().unwrap()
    };
    of.iter().map(row).collect()
}

#[tokio::test]
async fn closing_is_owed_to_notified_destinations_until_sent() {
    let store = Store::in_memory();
    for (name, destinations) in [("page", &["hook", "mail"][..]), ("chat", &["mail"])] {
        let with_updates = Rule {
            send_updates: true,
            ..rule(name, &[DISK_TRIGGER], destinations)
        };
        samples::save_rule(&store, &with_updates).await;
    }
    samples::save_rule(&store, &rule("once", &[DISK_TRIGGER], &["hook"])).await;
    let (deciding, _) = samples::deciding(store.clone()).await;
    let deliveries = Deliveries::new(store.clone(), Arc::clone(&deciding.clock));
    let (intake, _guard) = samples::intake(&deciding);
    for host in ["a", "b", "c"] {
        intake.submit(vec![event(host)], None).await.unwrap();
    }
    let all = ObligationFilter::default();
    let listed = list(&deliveries, &all, 1_000).await;
    assert_eq!(
        listed.len(),
        9,
        "three occurrences, three pending notifications: {listed:?}"
    );
    for size in [1, 2, 4] {
        assert_eq!(list(&deliveries, &all, size).await, listed, "by {size}");
    }
    let of_rule = ObligationFilter {
        rule_names: texts(&["chat"]),
        ..ObligationFilter::default()
    };
    let mut named = list(&deliveries, &of_rule, 2).await;
    named.sort();
    assert_eq!(named, rows(&["a chat mail", "b chat mail", "c chat mail"]));
    let of_event = ObligationFilter {
        destination_names: texts(&["hook"]),
        event: Some(event("b").id()),
        ..ObligationFilter::default()
    };
    assert_eq!(
        list(&deliveries, &of_event, 1).await,
        rows(&["b page hook"])
    );

    let chat = |send_updates| Rule {
        send_updates,
        ..rule("chat", &[DISK_TRIGGER], &["mail"])
    };
    samples::save_rule(&store, &chat(false)).await;
    assert!(list(&deliveries, &of_rule, 2).await.is_empty(), "off now");
    samples::save_rule(&store, &chat(true)).await;
    assert_eq!(list(&deliveries, &of_rule, 2).await.len(), 3, "on again");

    let closed = IncomingEvent {
        status: Some(Status::Closed),
        ..event("a")
    };
    intake.submit(vec![closed], None).await.unwrap();
    let hook = store
        .get::<Destination>("hook".into())
        .await
        .unwrap()
        .unwrap();
    let mut changes = store.new_changes();
    changes.delete(&hook);
    store.apply(Lane::Admin, changes).await.unwrap();
    let mut left = list(&deliveries, &all, 1).await;
    left.sort();
    let owed = ["b chat mail", "b page mail", "c chat mail", "c page mail"];
    assert_eq!(
        left,
        rows(&owed),
        "closed and deleted occurrences owe no notification"
    );
}
