//! Tests of bulk operations on deliveries: they count, retry and cancel, and never handle a
//! delivery twice.

use std::collections::BTreeMap;

use super::*;
use crate::delivery::{BulkAction, BulkTally, Selection, SkipReason};

fn matching(filter: Filter, limit: usize, token: &str) -> Selection {
    Selection::Matching {
        filter,
        limit,
        token: token.into(),
    }
}

/// Stores sixty deliveries from a minute ago: fifteen are dead, five of these with a deleted
/// destination.
async fn sixty() -> World {
    let world = World::new();
    world.save_destination("mail").await;
    world.save_destination("chat").await;
    world.save_sixty().await;
    world.clock.advance(Duration::from_secs(60));
    world
}

fn counts(of: &[(&str, usize)]) -> BTreeMap<String, usize> {
    of.iter()
        .map(|(name, count)| ((*name).into(), *count))
        .collect()
}

impl World {
    async fn all(&self) -> Vec<Delivery> {
        samples::all(&self.store).await
    }

    async fn retry_all(&self, filter: &Filter, limit: usize) -> BulkTally {
        let mut sum = BulkTally::default();
        let mut token = String::new();
        loop {
            let selection = matching(filter.clone(), limit, &token);
            let tally = self.part.bulk(BulkAction::Retry, selection, false).await;
            let tally = tally.unwrap();
            assert!(tally.count <= limit);
            sum.count += tally.count;
            sum.handled.extend(tally.handled);
            for (why, count) in tally.skipped {
                *sum.skipped.entry(why).or_default() += count;
            }
            token = tally.next_token;
            if token.is_empty() {
                return sum;
            }
        }
    }
}

#[tokio::test]
async fn dry_run_matches_the_subsequent_bulk_retry() {
    for limit in [1, 3, 10, 1_000] {
        let world = sixty().await;
        let before = world.all().await;
        let selection = matching(Filter::default(), limit, "");
        let dry = world.part.bulk(BulkAction::Retry, selection, true).await;
        let dry = dry.unwrap();
        assert_eq!(dry.count, 10);
        assert_eq!(dry.destinations, counts(&[("chat", 5), ("mail", 5)]));
        assert_eq!(
            dry.skipped,
            BTreeMap::from([(SkipReason::DestinationGone, 5)])
        );
        assert_eq!((dry.handled, dry.next_token), (Vec::new(), String::new()));
        assert_eq!(world.all().await, before, "a dry run changes nothing");

        let done = world.retry_all(&Filter::default(), limit).await;
        assert_eq!((done.count, done.handled.len()), (10, 10));
        assert_eq!(world.all().await.len(), 70);
        for (old, new) in done.handled {
            let (old, _) = world.part.get(old).await.unwrap();
            let (new, _) = world.part.get(new).await.unwrap();
            assert_eq!((old.state, old.retried_as), (DEAD, Some(new.id)));
            assert_eq!(new.retry_of, Some(old.id));
            assert_eq!(new.destination, old.destination);
            assert!(matches!(new.state, DeliveryState::Pending { .. }));
        }
    }
}

#[tokio::test]
async fn repeated_or_concurrent_bulk_retry_sends_once() {
    let world = sixty().await;
    // Like a caller that was disconnected, repeat the call without its page token.
    let selection = matching(Filter::default(), 4, "");
    let first = world.part.bulk(BulkAction::Retry, selection, false).await;
    assert_eq!(first.unwrap().count, 4);
    let filter = Filter::default();
    let (one, other) = tokio::join!(world.retry_all(&filter, 2), world.retry_all(&filter, 3));
    assert_eq!(one.count + other.count, 6);
    let last = world.retry_all(&filter, 100).await;
    assert_eq!(last.count, 0);
    let skipped = [
        (SkipReason::RetriedAlready, 10),
        (SkipReason::DestinationGone, 5),
    ];
    assert_eq!(last.skipped, BTreeMap::from(skipped));
    let mut retried: Vec<_> = world
        .all()
        .await
        .iter()
        .filter_map(|it| it.retry_of)
        .collect();
    retried.sort_unstable();
    retried.dedup();
    assert_eq!(retried.len(), 10);
    assert_eq!(world.all().await.len(), 70);
}

#[tokio::test]
async fn filters_narrow_the_selection() {
    let world = sixty().await;
    let delivered = vec![DeliveryState::Delivered.number()];
    let cases = [
        (
            Filter {
                destination_names: texts(&["mail"]),
                ..Filter::default()
            },
            5,
        ),
        (
            Filter {
                rule_names: texts(&["cpu"]),
                ..Filter::default()
            },
            0,
        ),
        (
            Filter {
                start_ms: Some(samples::START_MS + 10),
                end_ms: Some(samples::START_MS + 30),
                ..Filter::default()
            },
            4,
        ),
        (
            Filter {
                states: delivered,
                rule_names: texts(&["cpu"]),
                ..Filter::default()
            },
            20,
        ),
    ];
    for (filter, count) in cases {
        let selection = matching(filter.clone(), 1, "");
        let dry = world.part.bulk(BulkAction::Retry, selection, true).await;
        assert_eq!(dry.unwrap().count, count, "{filter:?}");
    }
}

#[tokio::test]
async fn selection_by_ids_reports_every_skip_reason() {
    let world = World::new();
    world.save_destination("mail").await;
    let due_ms = samples::START_MS + 3_600_000;
    let states = [
        DEAD,
        DeliveryState::Delivered,
        DeliveryState::Retry { due_ms },
        DeliveryState::Leased { until_ms: due_ms },
    ];
    let mut ids = Vec::new();
    for (number, state) in (0..).zip(states) {
        ids.push(world.save(number, "mail", "disk", state).await);
    }
    let [dead, delivered, waiting, leased] = ids[..] else {
        panic!("{ids:?}");
    };
    let ids = vec![dead, delivered, dead, waiting, leased, samples::id("none")];
    let selection = || Selection::Ids(ids.clone());
    let retried = world.part.bulk(BulkAction::Retry, selection(), false).await;
    let retried = retried.unwrap();
    assert_eq!(retried.count, 3);
    let skipped = [(SkipReason::NotFound, 1), (SkipReason::UnderWay, 1)];
    assert_eq!(retried.skipped, BTreeMap::from(skipped));
    let (hastened, _) = world.part.get(waiting).await.unwrap();
    assert_eq!(hastened.state.due_ms(), Some(samples::START_MS));

    let cancelled = world
        .part
        .bulk(BulkAction::Cancel, selection(), false)
        .await;
    let cancelled = cancelled.unwrap();
    assert_eq!(cancelled.destinations, counts(&[("mail", 2)]));
    let skipped = [(SkipReason::NotFound, 1), (SkipReason::Ended, 2)];
    assert_eq!(cancelled.skipped, BTreeMap::from(skipped));
    for id in [waiting, leased] {
        let (delivery, _) = world.part.get(id).await.unwrap();
        assert_eq!(delivery.state, DeliveryState::Cancelled);
    }
}

#[tokio::test]
async fn bulk_cancel_pages_through_waiting_deliveries_only() {
    let world = World::new();
    for number in 0..250 {
        let state = match number % 2 {
            0 => DeliveryState::Pending { due_ms: 1 },
            _ => DEAD,
        };
        world.save(number, "mail", "disk", state).await;
    }
    world.clock.advance(Duration::from_secs(1));
    let mut token = String::new();
    let mut counts = Vec::new();
    loop {
        let selection = matching(Filter::default(), 60, &token);
        let tally = world.part.bulk(BulkAction::Cancel, selection, false).await;
        let tally = tally.unwrap();
        counts.push(tally.count);
        token = tally.next_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(counts, [60, 60, 5]);
    for delivery in world.all().await {
        let number = delivery.create_ms - samples::START_MS;
        let state = if number % 2 == 0 {
            DeliveryState::Cancelled
        } else {
            DEAD
        };
        assert_eq!(delivery.state, state, "{number}");
    }
}

#[tokio::test]
async fn bulk_token_is_bound_to_action_filter_and_dry_run() {
    let world = sixty().await;
    let selection = matching(Filter::default(), 1, "");
    let first = world.part.bulk(BulkAction::Retry, selection, false).await;
    let token = first.unwrap().next_token;
    let other = Filter {
        states: vec![DeliveryState::Delivered.number()],
        ..Filter::default()
    };
    let cases = [
        (BulkAction::Cancel, Filter::default(), false),
        (BulkAction::Retry, other, false),
        (BulkAction::Retry, Filter::default(), true),
    ];
    for (action, filter, dry_run) in cases {
        let selection = matching(filter, 1, &token);
        let refused = world.part.bulk(action, selection, dry_run).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
}
