//! Tests of groups whose rule is edited, and of groups whose members are held.

use super::*;

#[tokio::test]
async fn changed_grouping_leaves_existing_groups_until_closed() {
    let world = World::under(&[gathering()]).await;
    world.open(&["a"]).await;
    world.wait(30).await;
    world
        .edit(Rule {
            group: Some(grouping(&["host"])),
            ..gathering()
        })
        .await;
    world.open(&["b"]).await;
    world.wait(30).await;
    assert_eq!(world.messages().await[1..], [message(&["+b"], 1, false)]);
    world.close("a").await;
    world.wait(0).await;
    assert_eq!(world.messages().await[2..], [message(&["-a"], 0, true)]);
    assert_eq!(world.groups().await.len(), 2);
}

#[tokio::test]
async fn closing_is_sent_after_the_rule_is_deleted() {
    let world = World::under(&[gathering()]).await;
    world.open(&["a"]).await;
    world.wait(30).await;
    let mut changes = world.store.new_changes();
    let stored = world
        .store
        .get::<Rule>("page".into())
        .await
        .unwrap()
        .unwrap();
    let was = crate::domain::RevisedResource::Rule(stored.value.clone());
    let now_ms = world.clock.now_ms();
    crate::revision::store_revision(&world.store, was, now_ms, true, &mut changes)
        .await
        .unwrap();
    changes.delete(&stored);
    world.store.apply(Lane::Admin, changes).await.unwrap();
    world.open(&["b"]).await;
    world.wait(300).await;
    assert_eq!(world.messages().await.len(), 1);
    world.close("a").await;
    world.wait(0).await;
    assert_eq!(world.messages().await[1..], [message(&["-a"], 0, true)]);
}

#[tokio::test]
async fn delayed_events_join_the_group_when_the_delay_ends() {
    let world = World::under(&[Rule {
        delay_ms: 60_000,
        ..gathering()
    }])
    .await;
    world.open(&["a"]).await;
    world.wait(59).await;
    assert!(world.messages().await.is_empty());
    // The delay ends and the group wait begins.
    world.wait(1).await;
    assert!(world.messages().await.is_empty());
    world.open(&["b"]).await;
    world.wait(30).await;
    assert_eq!(world.messages().await, [message(&["+a"], 1, false)]);
    world.wait(300).await;
    assert_eq!(
        world.messages().await[1..],
        [message(&["+b", "a"], 2, false)]
    );
}

#[tokio::test]
async fn without_updates_only_joins_are_sent() {
    let world = World::under(&[Rule {
        send_updates: false,
        ..gathering()
    }])
    .await;
    world.open(&["a"]).await;
    world.wait(30).await;
    world.close("a").await;
    world.wait(300).await;
    assert_eq!(world.messages().await.len(), 1);
    world.open(&["b"]).await;
    world.wait(29).await;
    assert_eq!(
        world.messages().await.len(),
        1,
        "it waits as the first of another"
    );
    world.wait(1).await;
    assert_eq!(world.messages().await[1..], [message(&["+b"], 1, false)]);
    assert_eq!(world.groups().await.len(), 2);
}

#[tokio::test]
async fn added_destination_receives_later_joins_and_the_closing() {
    let world = World::under(&[gathering()]).await;
    world.open(&["a"]).await;
    world.wait(30).await;
    let more = ["hook", "other"].map(name).to_vec();
    world
        .edit(Rule {
            destination_names: more,
            ..gathering()
        })
        .await;
    world.event("a", |it| it.acknowledged = Some(true)).await;
    world.wait(300).await;
    let to = |it: &Delivery| it.destination_name.clone();
    let all: Vec<_> = world.deliveries().await.iter().map(to).collect();
    assert_eq!(
        all,
        ["hook", "hook"],
        "a receiver without a notification gets no update"
    );
    world.open(&["b"]).await;
    world.wait(300).await;
    world.close("a").await;
    world.close("b").await;
    world.wait(0).await;
    let mut last: Vec<_> = world.deliveries().await[4..].iter().map(to).collect();
    last.sort();
    assert_eq!(last, ["hook", "other"]);
}
