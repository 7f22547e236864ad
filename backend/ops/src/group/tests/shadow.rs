//! Tests of groups with a shadow rule.

use super::*;
use crate::domain::DeliveryState;

fn shadow(is_shadow: bool) -> Rule {
    Rule {
        shadow: is_shadow,
        ..gathering()
    }
}

impl World {
    async fn shadowed(&self) -> Vec<bool> {
        let all = self.deliveries().await.into_iter();
        all.map(|it| it.state == DeliveryState::Shadowed).collect()
    }
}

#[tokio::test]
async fn shadow_messages_are_recorded_across_a_restart() {
    let world = World::under(&[shadow(true)]).await;
    world.open(&["a", "b"]).await;
    world.wait(30).await;
    world.restart(0).await;
    world.close("a").await;
    world.close("b").await;
    world.wait(0).await;
    let messages = [
        message(&["+a", "+b"], 2, false),
        message(&["-a", "-b"], 0, true),
    ];
    assert_eq!(world.messages().await, messages);
    assert_eq!(world.shadowed().await, [true, true]);
    assert!(world.groups().await.iter().all(|it| it.shadow));
}

#[tokio::test]
async fn leaving_shadow_mode_regroups_open_events() {
    let world = World::under(&[shadow(true)]).await;
    world.open(&["a"]).await;
    world.wait(30).await;
    world.edit(shadow(false)).await;
    world.wait(300).await;
    assert_eq!(world.messages().await.len(), 1, "nothing that lies behind");
    world.open(&["a", "b"]).await;
    world.wait(30).await;
    assert_eq!(
        world.messages().await[1..],
        [message(&["+a", "+b"], 2, false)]
    );
    world.close("a").await;
    world.close("b").await;
    world.wait(300).await;
    assert_eq!(
        world.messages().await[2..],
        [message(&["-a", "-b"], 0, true)]
    );
    assert_eq!(world.shadowed().await, [true, false, false]);
    let is_shadow: Vec<_> = world.groups().await.iter().map(|it| it.shadow).collect();
    assert_eq!(is_shadow, [true, false], "two groups");
}

#[tokio::test]
async fn pending_message_is_recorded_after_switch_to_shadow() {
    let world = World::under(&[shadow(false)]).await;
    world.open(&["a"]).await;
    world.wait(20).await;
    world.edit(shadow(true)).await;
    world.wait(10).await;
    world.wait(30).await;
    assert_eq!(world.messages().await, [message(&["+a"], 1, false)]);
    assert_eq!(world.shadowed().await, [true]);
}

#[tokio::test]
async fn notified_group_is_closed_after_switch_to_shadow() {
    let world = World::under(&[shadow(false)]).await;
    world.open(&["a"]).await;
    world.wait(30).await;
    world.edit(shadow(true)).await;
    world.open(&["b"]).await;
    world.wait(30).await;
    world.close("a").await;
    world.wait(0).await;
    let last = message(&["-a"], 0, true);
    let messages = world.messages().await;
    assert_eq!(messages.last(), Some(&last));
    assert_eq!(world.shadowed().await, [false, true, false]);
}
