//! Flapping events across restarts, silences and groups.

use super::*;
use crate::domain::{FlappingLimits, Grouping};

fn calm() -> Rule {
    Rule {
        flapping: Some(FlappingLimits {
            open_count: 3,
            window_ms: 60 * MINUTE_MS,
            settle_ms: 15 * MINUTE_MS,
        }),
        ..with_updates()
    }
}

impl World {
    async fn swing(&self, times: usize) {
        for _ in 0..times {
            self.event("a", |_| {}).await;
            self.wait(60).await;
            self.event("a", close).await;
            self.wait(60).await;
        }
    }
}

fn flapping_start() -> Vec<(String, bool)> {
    let two = [about("a", false), about("a", true)];
    let mut all = [two.clone(), two].concat();
    all.push(about("a", false));
    all
}

#[tokio::test]
async fn settling_during_downtime_sends_one_closing_at_start() {
    let world = World::under(&[calm()]).await;
    world.swing(5).await;
    assert_eq!(world.sent().await, flapping_start());
    let held = world.explained("a").await;
    let reason = held.main.reason_text();
    let begins = "Notified. An update is held: flapping (opened 3 times within 1 h; ";
    assert!(reason.starts_with(begins), "{reason}");
    world.restart(60).await;
    world.review().await;
    assert_eq!(world.sent().await, flapping_start(), "it has not settled");
    world.restart(3 * 3_600).await;
    world.review().await;
    world.review().await;
    assert_eq!(world.sent().await[5..], [about("a", true)]);
    let all = samples::all::<Occurrence>(&world.store).await;
    assert!(all.iter().all(|it| it.pending.is_empty()));
}

#[tokio::test]
async fn flapping_event_settles_when_due() {
    let world = World::under(&[calm()]).await;
    world.swing(3).await;
    world.event("a", |_| {}).await;
    world.wait(15 * 60 - 1).await;
    assert_eq!(world.sent().await, flapping_start());
    world.wait(1).await;
    assert_eq!(world.sent().await[5..], [about("a", true)]);
    assert_eq!(world.occurrence("a").await.status, Status::Open);
    world.event("a", close).await;
    assert_eq!(world.sent().await[6..], [about("a", true)]);
}

#[tokio::test]
async fn silence_holds_the_settled_update_but_not_the_closing() {
    for closes in [true, false] {
        let world = World::under(&[calm()]).await;
        world.swing(2).await;
        world.event("a", |_| {}).await;
        world.silence("db patch", "host=a", 60).await;
        if closes {
            world.event("a", close).await;
        }
        world.wait(20 * 60).await;
        let notified = world.sent().await.len() - 5;
        assert_eq!(
            notified,
            usize::from(closes),
            "number of closings: {closes}"
        );
        world.wait(60 * 60).await;
        assert_eq!(world.sent().await[5..], [about("a", true)]);
    }
}

#[tokio::test]
async fn flapping_group_member_counts_as_open_until_settled() {
    let world = World::under(&[Rule {
        group: Some(Grouping {
            by: vec!["name".into()],
            wait_ms: 0,
            interval_ms: 10_000,
        }),
        ..calm()
    }])
    .await;
    // Each occurrence has a separate group until the event is flapping.
    world.swing(5).await;
    assert_eq!(world.sent().await, flapping_start());
    let groups = samples::all::<crate::domain::Group>(&world.store).await;
    assert_eq!(groups.len(), 3);
    assert!(groups[2].end_ms.is_none(), "it is not over");
    let flaps = |it: &Delivery| it.content.occurrence.is_notified_flapping();
    let mut all = samples::all::<Delivery>(&world.store).await;
    all.sort_by_key(|it| it.create_ms);
    assert!(all.last().is_some_and(flaps));
    world.wait(14 * 60).await;
    world.wait(0).await;
    assert_eq!(world.sent().await[5..], [about("a", true)]);
    let groups = samples::all::<crate::domain::Group>(&world.store).await;
    assert!(groups.iter().all(|it| it.end_ms.is_some()));
    assert_eq!(groups.len(), 3);
}
