//! Tests of ageing and retention.

use super::*;
use crate::{
    clock::Clock as _,
    domain::{
        Close, CloseReason, Delivery, IncomingEvent, Occurrence, Rule, SharedSettings, Status,
    },
    limits::REVIEW_BATCH,
    samples::{self, DISK_TRIGGER, START_MS, event, rule},
    store::{
        Record as _, Store,
        engine::ownership::{OwnedSlot, OwnedSlots, review_slot_for_key},
    },
};

const HOUR: Duration = Duration::from_secs(3600);
const HOUR_MS: i64 = 3_600_000;

#[tokio::test]
async fn stale_occurrence_is_closed_notified_and_later_deleted() {
    let store = Store::in_memory();
    let with_updates = Rule {
        send_updates: true,
        ..rule("page", &[DISK_TRIGGER], &["hook"])
    };
    samples::save_rule(&store, &with_updates).await;
    let (deciding, clock) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    intake.submit(vec![event("a")], None).await.unwrap();
    let reviewer = Reviewer::new(deciding, intake.clone());

    clock.advance(6 * 24 * HOUR + 23 * HOUR);
    reviewer.run_once().await;
    assert!(samples::all::<Occurrence>(&store).await[0].close.is_none());

    clock.advance(HOUR);
    reviewer.run_once().await;
    let aged = samples::all::<Occurrence>(&store).await.remove(0);
    let close = Close {
        at_ms: START_MS + 7 * 24 * HOUR_MS,
        reason: CloseReason::Aged,
    };
    assert_eq!(aged.close, Some(close));
    let deliveries = samples::all::<Delivery>(&store).await;
    assert_eq!(deliveries.iter().filter(|it| it.content.clear).count(), 1);

    clock.advance(30 * 24 * HOUR);
    reviewer.run_once().await;
    assert!(samples::all::<Occurrence>(&store).await.is_empty());
}

#[tokio::test]
async fn repeats_postpone_ageing() {
    let store = Store::in_memory();
    let (deciding, clock) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    intake.submit(vec![event("a")], None).await.unwrap();
    clock.advance(6 * 24 * HOUR);
    let mut repeat = event("a");
    repeat.timestamp_ms += 6 * 24 * HOUR_MS;
    intake.submit(vec![repeat], None).await.unwrap();
    let reviewer = Reviewer::new(deciding, intake.clone());
    clock.advance(24 * HOUR);
    reviewer.run_once().await;
    let put_off = samples::all::<Occurrence>(&store).await.remove(0);
    assert!(put_off.close.is_none());
    assert_eq!(put_off.review_ms, START_MS + 13 * 24 * HOUR_MS);
    clock.advance(6 * 24 * HOUR);
    reviewer.run_once().await;
    assert!(samples::all::<Occurrence>(&store).await[0].close.is_some());
}

#[tokio::test]
async fn occurrence_expires_at_the_sent_time_unless_repeated() {
    let store = Store::in_memory();
    let with_updates = Rule {
        send_updates: true,
        ..rule("page", &[DISK_TRIGGER], &["hook"])
    };
    samples::save_rule(&store, &with_updates).await;
    let (deciding, clock) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    let reviewer = Reviewer::new(deciding, intake.clone());
    let minute = Duration::from_secs(60);
    let sent = |host: &str, lasts: Option<Duration>| IncomingEvent {
        timestamp_ms: clock.now_ms(),
        expire_ms: lasts.map(|it| clock.now_ms() + to_millis(it)),
        ..event(host)
    };
    let state = async |host: &str| {
        let all = samples::all::<Occurrence>(&store).await;
        let newest = all.into_iter().filter(|it| it.dimensions["host"] == host);
        let newest = newest.max_by_key(|it| it.number).unwrap();
        (newest.number, newest.close.map(|it| it.reason))
    };
    let first = ["gone", "repeated", "unsaid", "closed"].map(|it| sent(it, Some(4 * minute)));
    intake.submit(first.to_vec(), None).await.unwrap();
    reviewer.run_once().await;
    clock.advance(3 * minute);
    let closed = IncomingEvent {
        status: Some(Status::Closed),
        ..sent("closed", Some(minute))
    };
    let again = vec![
        sent("repeated", Some(4 * minute)),
        sent("unsaid", None),
        closed,
    ];
    intake.submit(again, None).await.unwrap();
    clock.advance(Duration::from_millis(59_999));
    reviewer.run_once().await;
    assert_eq!(state("gone").await, (1, None), "a millisecond too early");
    clock.advance(Duration::from_millis(1));
    reviewer.run_once().await;
    assert_eq!(state("gone").await, (1, Some(CloseReason::Expired)));
    assert_eq!(state("repeated").await, (1, None));
    assert_eq!(state("unsaid").await, (1, None));
    assert_eq!(state("closed").await, (1, Some(CloseReason::Sender)));
    let deliveries = samples::all::<Delivery>(&store).await;
    let closings = deliveries.iter().filter(|it| it.content.clear).count();
    assert_eq!(closings, 2, "a receiver of the opening gets the closing");

    // The repeat extended the expiry; an event after it opens the next occurrence.
    clock.advance(3 * minute);
    reviewer.run_once().await;
    assert_eq!(state("repeated").await, (1, Some(CloseReason::Expired)));
    let back = sent("repeated", Some(minute));
    intake.submit(vec![back], None).await.unwrap();
    assert_eq!(state("repeated").await, (2, None));
    // An event without an expiry ages like any other.
    clock.advance(7 * 24 * HOUR);
    reviewer.run_once().await;
    assert_eq!(state("unsaid").await, (1, Some(CloseReason::Aged)));
}

#[tokio::test]
async fn many_due_occurrences_are_reviewed_in_one_pass() {
    let store = Store::in_memory();
    let (deciding, clock) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    let events = (0..=3 * REVIEW_BATCH).map(|at| event(&at.to_string()));
    intake.submit(events.collect(), None).await.unwrap();
    clock.advance(7 * 24 * HOUR);
    Reviewer::new(deciding, intake.clone()).run_once().await;
    let all = samples::all::<Occurrence>(&store).await;
    assert_eq!(all.len(), 3 * REVIEW_BATCH + 1);
    assert!(all.iter().all(|it| it.close.is_some()));
}

#[tokio::test]
async fn loop_guard_stop_during_ageing_is_reported() {
    let store = Store::in_memory();
    let with_updates = Rule {
        send_updates: true,
        ..rule("loop", &[DISK_TRIGGER], &["event"])
    };
    samples::save_rule(&store, &with_updates).await;
    let (deciding, clock) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    intake.submit(vec![event("a")], None).await.unwrap();
    // This event has already passed through the rule.
    let chain = vec![samples::id("loop")];
    intake.submit_internal(event("a"), chain).await.unwrap();
    let before = samples::all::<Delivery>(&store).await.len();
    clock.advance(7 * 24 * HOUR);
    Reviewer::new(deciding, intake.clone()).run_once().await;
    let said = samples::said(&store, "loop-guard").await;
    assert_eq!(said.dimensions["rule"], "loop");
    assert_eq!(samples::all::<Delivery>(&store).await.len(), before);
}

#[tokio::test]
async fn occurrence_due_while_reviewer_waits_closes_within_a_second() {
    let store = Store::in_memory();
    let values = SharedSettings {
        error_age_max: Duration::from_secs(2),
        ..SharedSettings::default()
    };
    samples::save_settings(&store, values).await;
    let (deciding, clock) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    let ageing = AgeReviewer::new(&deciding, intake.clone());
    let shutdown = CancellationToken::new();
    let work = ageing.run(shutdown.clone());
    let outside = async {
        for round in 0..3_i64 {
            let mut event = event(&round.to_string());
            event.timestamp_ms = clock.now_ms();
            let due_ms = event.timestamp_ms + 2_000;
            intake.submit(vec![event], None).await.unwrap();
            let is_open = async || {
                let all = samples::all::<Occurrence>(&store).await;
                all.iter().any(|it| it.close.is_none())
            };
            // Advance in small steps, so that woken tasks run.
            while is_open().await {
                assert!(clock.now_ms() <= due_ms + 1_000, "round {round}");
                clock.advance(Duration::from_millis(100));
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            }
            assert!(clock.now_ms() >= due_ms, "round {round}");
        }
        shutdown.cancel();
    };
    tokio::join!(work, outside);
}

#[tokio::test]
async fn node_closes_due_occurrences_of_owned_and_gained_slots() {
    let store = Store::in_memory();
    let (deciding, clock) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    let count = 3 * REVIEW_BATCH;
    let events = (0..count).map(|at| event(&at.to_string()));
    intake.submit(events.collect(), None).await.unwrap();
    clock.advance(7 * 24 * HOUR);
    let mut slots = Box::new([None; 256]);
    let of_epoch = |epoch| {
        Some(OwnedSlot {
            epoch,
            leaving: None,
        })
    };
    slots[0x30] = of_epoch(1);
    let owned = watch::Sender::new(OwnedSlots::Slots(slots.clone()));
    let ageing = AgeReviewer::for_owner(&deciding, intake.clone(), owned.subscribe());
    let closed = async || {
        let all = samples::all::<Occurrence>(&store).await;
        let closed = all.iter().filter(|it| it.close.is_some());
        let slots = closed.map(|it| review_slot_for_key(&it.key()));
        slots.collect::<Vec<_>>()
    };
    assert!(ageing.run_once().await);
    let first = closed().await;
    assert!(!first.is_empty() && first.iter().all(|it| *it == 0x30));
    assert!(first.len() < count / 4, "{}", first.len());

    let shutdown = CancellationToken::new();
    let work = ageing.run(shutdown.clone());
    let outside = async {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        // No event is due in this slot, so gaining the slot changes nothing.
        slots[0x31] = of_epoch(1);
        owned.send_replace(OwnedSlots::Slots(slots.clone()));
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(closed().await.len(), first.len());
        for slot in (0..256).step_by(16) {
            slots[slot] = of_epoch(2);
        }
        owned.send_replace(OwnedSlots::Slots(slots));
        while closed().await.len() < count {
            tokio::task::yield_now().await;
        }
        shutdown.cancel();
    };
    tokio::join!(work, outside);
}
