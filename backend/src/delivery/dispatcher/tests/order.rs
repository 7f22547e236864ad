//! Tests of order: the last message that a receiver gets in a thread is the newest one, despite
//! rejections, manual resends and crashes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use super::*;
use crate::{
    clock::Clock,
    delivery::recovery::{record_thread_states, recover},
    domain::{Delivery, Destination, RecordId},
    message::sample,
    ops::delivery::{BulkAction, Deliveries, Selection, sequencing},
    sending::receiver::{ReceivedRequest, Receiver},
    store::Lane,
};

/// The status reported in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Opened,
    Changed,
    Closed,
    OpenAgain,
}

/// Decides messages of one thread, all in the same millisecond.
async fn notify(
    world: &mut World,
    destination: &Destination,
    thread: u32,
    messages: &[Says],
) -> Vec<RecordId> {
    let now_ms = world.clock.now_ms();
    let mut ids = Vec::new();
    let mut changes = world.store.new_changes();
    for says in messages {
        let mut occurrence = sample::sample_occurrence(now_ms);
        occurrence.severity = Severity::Warning;
        occurrence.key = RecordId::from_parts(START_MS.try_into().unwrap(), thread.into());
        occurrence.number = thread;
        if *says == Says::Closed {
            occurrence.status = Status::Closed;
        }
        occurrence.evaluation = (*says != Says::Opened).then_some(crate::domain::Evaluation {
            at_ms: now_ms,
            rules_ms: 0,
            by_event: true,
        });
        let event = occurrence.event;
        let mut content =
            sample::sample_content(occurrence, destination.kind.clone(), String::new());
        content.clear = matches!(says, Says::Changed | Says::Closed);
        let to = (destination.id, destination.name.to_string());
        let delivery = Delivery {
            event: Some(event),
            ..Delivery::new(world.id(), to, content, now_ms)
        };
        changes.insert(&delivery);
        ids.push(delivery.id);
    }
    world.store.apply(Lane::Bulk, changes).await.unwrap();
    ids
}

/// Starts a receiver that rejects the `n`th new message `times(n)` times.
async fn refusing(times: impl Fn(usize) -> usize + Send + Sync + 'static) -> Receiver {
    let known: Mutex<BTreeMap<String, (usize, usize)>> = Mutex::default();
    Receiver::start(move |request: &ReceivedRequest| {
        let mut known = known.lock().unwrap();
        let turn = known.len();
        let id = request.header("webhook-id").to_owned();
        let (turn, tries) = known.entry(id).or_insert((turn, 0));
        *tries += 1;
        Reply::status(if *tries <= times(*turn) { 503 } else { 200 })
    })
    .await
}

/// Returns for each thread whether its last received message was a closing.
fn last_words(receiver: &Receiver) -> BTreeMap<String, bool> {
    let all = receiver.received_requests().into_iter().map(|it| it.json());
    let said = |it: serde_json::Value| {
        let thread = it["thread_id"].as_str().unwrap().to_owned();
        (thread, it["event"]["status"] == 3)
    };
    all.map(said).collect()
}

fn deliveries(world: &World) -> Deliveries {
    let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
    Deliveries::new(world.store.clone(), clock)
}

const THREADS: u32 = 40;

#[tokio::test]
async fn closing_arrives_last_despite_rejections() {
    for kills in [false, true] {
        let mut world = World::new();
        let receiver = refusing(|turn| [0, 2, 0, 0, 1, 3, 0][turn % 7]).await;
        let settings = DeliverySettings::default();
        let hook = world.destination("hook", receiver.url("/"), settings).await;
        let words = [Says::Opened, Says::Changed, Says::Changed, Says::Closed];
        for thread in 1..=THREADS {
            notify(&mut world, &hook, thread, &words).await;
        }
        for requests in [1, 7, 20, 45, 60].into_iter().filter(|_| kills) {
            world.start();
            let came = async {
                while receiver.count() < requests {
                    world.clock.advance(SECOND);
                    tokio::task::yield_now().await;
                }
            };
            let came = tokio::time::timeout(MINUTE, came).await;
            came.expect("the requests arrive");
            world.kill();
            recover(&world.store, world.clock.as_ref()).await.unwrap();
        }
        world.start();
        world.live(240 * MINUTE).await;
        let last = last_words(&receiver);
        assert_eq!(last.len(), THREADS as usize);
        let wrong = last.iter().filter(|(_, is_closed)| !**is_closed);
        assert_eq!(wrong.count(), 0, "{last:?}");
        let mut all = world.all().await.into_iter();
        assert!(all.all(|it| it.state == DeliveryState::Delivered));
    }
}

#[tokio::test]
async fn reopening_waits_for_the_preceding_closing() {
    let mut world = World::new();
    // The closing is rejected twice.
    let receiver = refusing(|turn| if turn == 1 { 2 } else { 0 }).await;
    let settings = DeliverySettings::default();
    let hook = world.destination("hook", receiver.url("/"), settings).await;
    let words = [Says::Opened, Says::Closed, Says::OpenAgain];
    notify(&mut world, &hook, 1, &words).await;
    world.start();
    world.live(240 * MINUTE).await;
    assert_eq!(receiver.count(), 5);
    assert!(last_words(&receiver).values().all(|is_closed| !is_closed));
}

#[tokio::test]
async fn repeat_does_not_wait_for_a_rejected_opening() {
    let mut world = World::new();
    let receiver = refusing(|turn| if turn == 0 { 2 } else { 0 }).await;
    let settings = DeliverySettings::default();
    let hook = world.destination("hook", receiver.url("/"), settings).await;
    let words = [Says::Opened, Says::OpenAgain];
    let ids = notify(&mut world, &hook, 1, &words).await;
    world.start();
    world.settled().await;
    assert_eq!(world.delivery(ids[1]).await.state, DeliveryState::Delivered);
}

#[tokio::test]
async fn manually_resent_opening_is_followed_by_its_closing() {
    for in_bulk in [false, true] {
        let mut world = World::new();
        world.sending.config.delivery.schedule = vec![Duration::ZERO, 5 * SECOND];
        // The first messages of both threads die.
        let receiver = refusing(|turn| if turn < 2 { 2 } else { 0 }).await;
        let settings = DeliverySettings {
            max_attempts: Some(2),
            ..DeliverySettings::default()
        };
        let hook = world.destination("hook", receiver.url("/"), settings).await;
        let words = [Says::Opened, Says::Closed];
        let one = notify(&mut world, &hook, 1, &words).await;
        let other = notify(&mut world, &hook, 2, &words).await;
        world.start();
        world.live(10 * MINUTE).await;
        let dead: BTreeSet<_> = [one[0], other[0]].into();
        for id in &dead {
            assert_eq!(world.delivery(*id).await.state, DeliveryState::Dead);
        }
        let before = receiver.count();
        if in_bulk {
            let selection = Selection::Ids(vec![one[0], one[1], other[0]]);
            let all = deliveries(&world);
            let tally = all.bulk(BulkAction::Retry, selection, false).await.unwrap();
            assert_eq!(tally.count, 4, "{tally:?}");
        } else {
            for id in &dead {
                deliveries(&world).retry(*id).await.unwrap();
            }
        }
        world.live(10 * MINUTE).await;
        assert_eq!(receiver.count(), before + 4, "in bulk: {in_bulk}");
        assert!(last_words(&receiver).values().all(|is_closed| *is_closed));
    }
}

#[tokio::test]
async fn manually_resent_message_precedes_a_pending_closing() {
    let mut world = World::new();
    world.sending.config.delivery.schedule =
        vec![Duration::ZERO, 5 * SECOND, 60 * MINUTE, 60 * MINUTE];
    let is_well = Arc::new(Mutex::new(false));
    let well = Arc::clone(&is_well);
    let receiver = Receiver::start(move |request: &ReceivedRequest| {
        let is_closing = request.json()["event"]["status"] == 3;
        let is_well = *well.lock().unwrap();
        Reply::status(match (is_well, is_closing) {
            (true, _) => 200,
            (false, true) => 503,
            (false, false) => 400,
        })
    })
    .await;
    let settings = DeliverySettings::default();
    let hook = world.destination("hook", receiver.url("/"), settings).await;
    let ids = notify(&mut world, &hook, 1, &[Says::Opened, Says::Closed]).await;
    world.start();
    world.live(MINUTE).await;
    assert_eq!(world.delivery(ids[0]).await.state, DeliveryState::Dead);
    let closing = world.delivery(ids[1]).await.state;
    assert!(
        matches!(closing, DeliveryState::Retry { .. }),
        "{closing:?}"
    );
    *is_well.lock().unwrap() = true;
    deliveries(&world).retry(ids[0]).await.unwrap();
    deliveries(&world).retry(ids[1]).await.unwrap();
    world.live(240 * MINUTE).await;
    let said: Vec<_> = receiver
        .received_requests()
        .iter()
        .rev()
        .take(2)
        .map(|it| it.json()["event"]["status"].clone())
        .collect();
    assert_eq!(said, [3, 1], "newest first");
}

#[tokio::test]
async fn closing_finds_its_opening_behind_any_number_of_messages() {
    for others in [0, 63, 64, 65, 1_023, 1_024, 1_025, 2_200] {
        for (is_same_thread, says) in [(false, Says::Opened), (true, Says::OpenAgain)] {
            let mut world = World::new();
            let settings = DeliverySettings::default();
            let hook = world
                .destination("hook", "http://127.0.0.1:1/".into(), settings)
                .await;
            let other = world
                .destination("other", "http://127.0.0.1:1/".into(), settings)
                .await;
            let opening = notify(&mut world, &hook, 1, &[Says::Opened]).await[0];
            let (to, thread) = if is_same_thread {
                (&hook, 1)
            } else {
                (&other, 2)
            };
            let later = notify(&mut world, to, thread, &vec![says; others]).await;
            let closing = notify(&mut world, &hook, 1, &[Says::Closed]).await[0];
            let closing = world.delivery(closing).await;
            let now_ms = world.clock.now_ms();
            let before = sequencing::find_predecessors(&world.store, &closing)
                .await
                .unwrap();
            let what = format!("{others}, {is_same_thread}");
            let last = later.last().filter(|_| is_same_thread).unwrap_or(&opening);
            let earlier = before.earlier.map(|it| it.value.id);
            assert_eq!(earlier, Some(*last), "{what}");
            let ended = if is_same_thread { later } else { Vec::new() };
            for id in [&[opening][..], &ended].concat() {
                let stored = world.store.get::<Delivery>(id.to_bytes().into()).await;
                let stored = stored.unwrap().unwrap();
                let mut changes = world.store.new_changes();
                let delivered = Delivery {
                    state: DeliveryState::Delivered,
                    end_ms: Some(now_ms),
                    ..stored.value.clone()
                };
                changes.update(&stored, &delivered);
                world.store.apply(Lane::Bulk, changes).await.unwrap();
            }
            let before = sequencing::find_predecessors(&world.store, &closing)
                .await
                .unwrap();
            assert!(before.earlier.is_none(), "{what}");
            assert_eq!(before.opening, Some(opening), "{what}");
        }
    }
}

#[tokio::test]
async fn deliveries_of_an_earlier_version_keep_their_order() {
    let mut world = World::new();
    let receiver = refusing(|turn| if turn == 0 { 2 } else { 0 }).await;
    let settings = DeliverySettings::default();
    let hook = world.destination("hook", receiver.url("/"), settings).await;
    let ids = notify(&mut world, &hook, 1, &[Says::Opened]).await;
    let stored = world.store.get::<Delivery>(ids[0].to_bytes().into()).await;
    let stored = stored.unwrap().unwrap();
    let mut changes = world.store.new_changes();
    let old = Delivery {
        in_thread: false,
        ..stored.value.clone()
    };
    changes.update(&stored, &old);
    world.store.apply(Lane::Bulk, changes).await.unwrap();
    record_thread_states(&world.store).await.unwrap();
    notify(&mut world, &hook, 1, &[Says::Closed]).await;
    world.start();
    world.live(240 * MINUTE).await;
    assert_eq!(receiver.count(), 4);
    assert!(last_words(&receiver).values().all(|is_closed| *is_closed));
}

/// The outcome of the message before a closing.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Delivered,
    Dead,
    CancelledByAnother,
    DestinationDeleted,
}

#[tokio::test]
async fn closing_is_sent_as_soon_as_the_preceding_message_ends() {
    for end in [
        End::Delivered,
        End::Dead,
        End::CancelledByAnother,
        End::DestinationDeleted,
    ] {
        let mut world = World::new();
        world.sending.config.delivery.schedule = vec![Duration::ZERO, 60 * MINUTE];
        let receiver = refusing(move |turn| match (turn, end) {
            (0, End::Delivered) => 1,
            (0, _) => 9,
            _ => 0,
        })
        .await;
        let settings = DeliverySettings {
            max_attempts: Some(2),
            ..DeliverySettings::default()
        };
        let hook = world.destination("hook", receiver.url("/"), settings).await;
        let words = [Says::Opened, Says::Changed, Says::Closed];
        let ids = notify(&mut world, &hook, 1, &words).await;
        world.start();
        world.settled().await;
        // Let the dispatcher finish its search for a severe message.
        world.live(15 * SECOND).await;
        let wakes_ms = world.settled().await;
        let first = world.delivery(ids[0]).await;
        assert_eq!(first.due_ms(), Some(wakes_ms), "{end:?}");
        let behind = async |at: usize| world.delivery(ids[at]).await.behind;
        assert_eq!(behind(1).await, Some(ids[0]));
        assert_eq!(behind(2).await, Some(ids[1]));
        // No delivery is written or due until the preceding message ends.
        let head = world.store.engine().log_head().await.unwrap();
        world.live(25 * MINUTE).await;
        assert_eq!(world.store.engine().log_head().await.unwrap(), head);
        assert_eq!(world.settled().await, wakes_ms);
        match end {
            End::Delivered | End::Dead => world.live(35 * MINUTE).await,
            End::CancelledByAnother => {
                deliveries(&world).cancel(ids[0]).await.unwrap();
                world.settled().await;
            }
            End::DestinationDeleted => {
                world.delete("hook").await;
                world.settled().await;
            }
        }
        let end_ms = world.delivery(ids[0]).await.end_ms;
        let expected_ms = match end {
            End::Delivered | End::Dead => wakes_ms,
            End::CancelledByAnother | End::DestinationDeleted => world.clock.now_ms(),
        };
        assert_eq!(end_ms, Some(expected_ms), "{end:?}");
        let expected = match end {
            End::DestinationDeleted => DeliveryState::Cancelled,
            _ => DeliveryState::Delivered,
        };
        for id in &ids[1..] {
            let later = world.delivery(*id).await;
            assert_eq!((later.state, later.end_ms), (expected, end_ms), "{end:?}");
            assert_eq!(later.behind, None, "{end:?}");
        }
    }
}

#[tokio::test]
async fn repeats_are_released_when_their_closing_ends() {
    const REPEATS: usize = 300;
    let mut world = World::new();
    let receiver = refusing(|turn| usize::from(turn == 0)).await;
    let settings = DeliverySettings::default();
    let hook = world.destination("hook", receiver.url("/"), settings).await;
    let closing = notify(&mut world, &hook, 1, &[Says::Closed]).await[0];
    let repeats = notify(&mut world, &hook, 1, &[Says::OpenAgain; REPEATS]).await;
    world.start();
    world.settled().await;
    for id in &repeats {
        assert_eq!(world.delivery(*id).await.behind, Some(closing));
    }
    world.live(MINUTE).await;
    let mut all = world.all().await.into_iter();
    assert!(all.all(|it| it.state == DeliveryState::Delivered));
}
