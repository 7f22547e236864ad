//! Waiting pages are cancelled by an acknowledgement or by closing the event.

use super::*;
use crate::domain::{Attempt, Outcome, Transcript};

/// Returns the states of the deliveries to `ana` and `chat`, oldest first, with a `-` prefix for
/// `clear`.
async fn states(world: &World) -> Vec<String> {
    let mut all = samples::all::<Delivery>(&world.store).await;
    all.sort_by_key(|it| it.id.to_bytes());
    let shown = |it: Delivery| {
        let sign = if it.content.clear { "-" } else { "" };
        let state = match it.state {
            DeliveryState::Cancelled => "cancelled",
            DeliveryState::Delivered => "delivered",
            _ => "waits",
        };
        format!("{sign}{} {state}", it.destination_name)
    };
    all.into_iter().map(shown).collect()
}

/// Records an attempt with this outcome for the deliveries to `ana`, which end or wait for a retry.
async fn attempt(world: &World, outcome: Outcome) {
    let all = samples::all::<Delivery>(&world.store).await;
    let now_ms = world.clock.now_ms();
    let mut changes = world.store.new_changes();
    for it in all.iter().filter(|it| it.destination_name == "ana") {
        let stored = world.store.get::<Delivery>(it.id.to_bytes().into()).await;
        let stored = stored.unwrap().unwrap();
        let is_delivered = outcome == Outcome::Delivered;
        let tried = Delivery {
            state: if is_delivered {
                DeliveryState::Delivered
            } else {
                DeliveryState::Retry {
                    due_ms: now_ms + 60_000,
                }
            },
            end_ms: is_delivered.then_some(now_ms),
            attempts: 1,
            may_have_arrived: outcome == Outcome::Unknown,
            ..stored.value.clone()
        };
        changes.update(&stored, &tried);
        changes.insert(&Attempt {
            delivery: it.id,
            number: 1,
            start_ms: now_ms,
            duration: Some(Duration::from_millis(1)),
            outcome: Some(outcome),
            is_reduced: false,
            explanation: String::new(),
            transcript: Transcript::default(),
        });
    }
    world.store.apply(Lane::Admin, changes).await.unwrap();
}

#[tokio::test]
async fn waiting_pages_are_cancelled_with_their_updates() {
    // The outcome of the attempt to send the page, and the states after an acknowledgement and a
    // closing. A page with an unknown outcome may have arrived, so its receiver gets the closing.
    let table = [
        (Outcome::Rejected, ["ana cancelled", "-ana cancelled"]),
        (Outcome::Unreachable, ["ana cancelled", "-ana cancelled"]),
        (Outcome::Unknown, ["ana cancelled", "-ana waits"]),
        (Outcome::Delivered, ["ana delivered", "-ana waits"]),
    ];
    for (outcome, expected) in table {
        let world = world(&[&[contact("ana")]], |_| {}).await;
        world.event("db-1", |_| {}).await;
        attempt(&world, outcome).await;
        world.end().await;
        let mut found = states(&world).await;
        found.retain(|it| it.contains("ana"));
        assert_eq!(found, expected, "{outcome:?}");
    }
}

#[tokio::test]
async fn acknowledged_page_is_not_retried() {
    let world = world(&[&[contact("ana")], &[contact("ben")]], |_| {}).await;
    world.event("db-1", |_| {}).await;
    attempt(&world, Outcome::Rejected).await;
    world.acknowledge(None).await;
    let found = states(&world).await;
    assert!(found.contains(&"ana cancelled".to_owned()), "{found:?}");
    let reports = found.iter().filter(|it| *it == "-ana waits").count();
    assert_eq!(reports, 0, "{found:?}");
    let all = samples::all::<Delivery>(&world.store).await;
    let page = all.iter().find(|it| it.destination_name == "ana").unwrap();
    assert!(page.last_error.starts_with("no longer needed"));
    // A delivery whose attempt was in flight is not retried either.
    let leased = Delivery {
        state: DeliveryState::Retry { due_ms: 0 },
        ..page.clone()
    };
    let is_obsolete_page = crate::page_cancel::is_obsolete_page(&world.store, &leased).await;
    assert!(is_obsolete_page.unwrap());
    world.minutes(10).await;
    assert!(!world.notified().await.contains(&"ben".to_owned()));
}

#[tokio::test]
async fn unattempted_page_is_cancelled_after_a_wait() {
    for (seconds, expected) in [(1, "ana waits"), (30, "ana cancelled")] {
        let world = world(&[&[contact("ana")]], |_| {}).await;
        world.event("db-1", |_| {}).await;
        world.wait(seconds).await;
        world.acknowledge(None).await;
        let found = states(&world).await;
        assert!(
            found.contains(&expected.to_owned()),
            "{seconds} s: {found:?}"
        );
        let of_rule = found.iter().filter(|it| *it == "chat waits").count();
        assert_eq!(of_rule, 1, "messages of the rule itself are not pages");
    }
}

#[tokio::test]
async fn page_is_cancelled_behind_any_number_of_messages() {
    let world = world(&[&[contact("ana")]], |_| {}).await;
    world.event("db-1", |_| {}).await;
    attempt(&world, Outcome::Rejected).await;
    let all = samples::all::<Delivery>(&world.store).await;
    let other = all.iter().find(|it| it.destination_name == "chat").unwrap();
    let mut changes = world.store.new_changes();
    for _ in 0..1_100 {
        changes.insert(&Delivery {
            id: new_id(world.clock.now_ms()),
            ..other.clone()
        });
    }
    world.store.apply(Lane::Bulk, changes).await.unwrap();
    world.acknowledge(None).await;
    let found = states(&world).await;
    assert!(found.contains(&"ana cancelled".to_owned()));
    assert!(!found.contains(&"-ana waits".to_owned()));
}
