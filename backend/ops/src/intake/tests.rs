//! Tests of the intake.

use std::collections::BTreeMap;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    domain::{Delivery, Occurrence, Severity, Status},
    samples::{self, DISK_TRIGGER, event, rule},
    statistics::StatisticsReader,
    store::{Lane, Record as _, Sealer, engine::memory::MemoryEngine},
    testing::faulty_engine::FaultyEngine,
};

#[tokio::test]
async fn accepted_event_is_stored_with_its_deliveries() {
    let store = Store::in_memory();
    samples::save_rule(&store, &rule("page", &[DISK_TRIGGER], &["hook", "mail"])).await;
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    let author = samples::name("sender");
    let submitted = intake.submit(vec![event("a")], Some(author.clone())).await;
    assert!(submitted.unwrap().failed.is_empty());

    let occurrences = samples::all::<Occurrence>(&store).await;
    assert_eq!(occurrences.len(), 1);
    assert_eq!(occurrences[0].event, event("a").id());
    assert_eq!(occurrences[0].history[0].author, Some(author));
    let deliveries = samples::all::<Delivery>(&store).await;
    assert_eq!(deliveries.len(), 2);
    assert!(
        deliveries
            .iter()
            .all(|it| it.event == Some(occurrences[0].event))
    );
    let counting = StatisticsReader::new(store.clone(), Arc::clone(&deciding.clock));
    assert_eq!(counting.events_per_minute().await.unwrap()[59], 1);
    assert_eq!(
        store.engine().log_head().await.unwrap().to_number(),
        2,
        "one commit each"
    );
}

#[tokio::test]
async fn events_with_one_identity_apply_in_list_order() {
    let store = Store::in_memory();
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    let mut close = event("a");
    close.status = Some(Status::Closed);
    let list = vec![
        event("a"),
        event("b"),
        close.clone(),
        event("a"),
        close,
        event("a"),
    ];
    intake.submit(list, None).await.unwrap();
    let mut occurrences = samples::all::<Occurrence>(&store).await;
    occurrences.retain(|it| it.event == event("a").id());
    occurrences.sort_by_key(|it| it.number);
    let shown: Vec<_> = occurrences
        .iter()
        .map(|it| (it.number, it.status, it.count, it.prior_count))
        .collect();
    assert_eq!(
        shown,
        [
            (1, Status::Closed, 2, 0),
            (2, Status::Closed, 2, 2),
            (3, Status::Open, 1, 4)
        ]
    );
}

#[tokio::test]
async fn concurrent_sends_and_edits_lose_no_event() {
    let store = Store::in_memory();
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    intake.submit(vec![event("a")], None).await.unwrap();
    let edit = async {
        for _ in 0..50 {
            let key = samples::all::<Occurrence>(&store).await[0].key();
            let old = store.get::<Occurrence>(key).await.unwrap().unwrap();
            let mut new = old.value.clone();
            new.prior_count += 1;
            let mut changes = store.new_changes();
            changes.update(&old, &new);
            drop(store.apply(Lane::Admin, changes).await);
            tokio::task::yield_now().await;
        }
    };
    let send =
        futures_util::future::join_all((0..200).map(|_| intake.submit(vec![event("a")], None)));
    let ((), answers) = tokio::join!(edit, send);
    assert!(answers.into_iter().all(|it| it.unwrap().failed.is_empty()));
    assert_eq!(samples::all::<Occurrence>(&store).await[0].count, 201);
}

/// Creates a store whose calls are slow, so that the writes of two services conflict.
fn slow_store() -> Store {
    let engine = Arc::new(FaultyEngine::with_delays(MemoryEngine::new(), 7));
    Store::new(engine, Arc::new(Sealer::with_random_key()))
}

#[tokio::test]
async fn two_services_on_one_store_count_every_event() {
    let store = slow_store();
    let (one, _) = samples::deciding(store.clone()).await;
    let (other, _) = samples::deciding(store.clone()).await;
    let services = [samples::intake(&one), samples::intake(&other)];
    let send = |number: usize| {
        let (intake, _) = &services[number % 2];
        let pair = format!("{}", number / 2);
        intake.submit(vec![event("hot"), event(&pair)], None)
    };
    let answers = futures_util::future::join_all((0..200).map(send)).await;
    assert!(answers.into_iter().all(|it| it.unwrap().failed.is_empty()));
    let occurrences = samples::all::<Occurrence>(&store).await;
    assert_eq!(occurrences.len(), 101);
    for occurrence in occurrences {
        let is_hot = occurrence.event == event("hot").id();
        assert_eq!(occurrence.count, if is_hot { 200 } else { 2 });
    }
}

#[tokio::test]
async fn edit_applies_to_the_next_event_on_a_slow_store() {
    let store = slow_store();
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    for round in 0..40 {
        let mut edited = rule("page", &[DISK_TRIGGER], &["hook"]);
        edited.enabled = round % 2 == 0;
        let sent = event(&format!("before {round}"));
        let (before, ()) = tokio::join!(
            intake.submit(vec![sent], None),
            samples::save_rule(&store, &edited),
        );
        before.unwrap();
        let earlier = samples::all::<Delivery>(&store).await.len();
        intake
            .submit(vec![event(&format!("{round}"))], None)
            .await
            .unwrap();
        let now = samples::all::<Delivery>(&store).await.len();
        assert_eq!(now - earlier, usize::from(edited.enabled), "round {round}");
    }
}

#[tokio::test]
async fn edit_applies_to_the_next_event() {
    let store = Store::in_memory();
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, _guard) = samples::intake(&deciding);
    for round in 0..20 {
        let mut edited = rule("page", &[DISK_TRIGGER], &["hook"]);
        edited.enabled = round % 2 == 0;
        samples::save_rule(&store, &edited).await;
        intake
            .submit(vec![event(&format!("{round}"))], None)
            .await
            .unwrap();
        let deliveries = samples::all::<Delivery>(&store).await.len();
        assert_eq!(deliveries, round / 2 + 1, "round {round}");
    }
}

#[tokio::test]
async fn full_queue_refuses_the_whole_request() {
    let store = Store::in_memory();
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, _workers) = Intake::new(deciding);
    let mut heavy = event("a");
    heavy.body = "x".repeat(64 * 1024);
    let mut waiting: Vec<_> = (0..2)
        .map(|_| Box::pin(intake.submit(vec![heavy.clone(); 500], None)))
        .collect();
    for submission in &mut waiting {
        assert!(futures_util::poll!(submission).is_pending());
    }
    let refused = intake.submit(vec![heavy; 10], None).await.unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Exhausted {
                retry_after: Some(_),
                ..
            }
        ),
        "{refused:?}"
    );
    let small = intake.submit(vec![event("b")], None);
    assert!(
        futures_util::poll!(Box::pin(small)).is_pending(),
        "a rejection uses no capacity"
    );
}

#[tokio::test]
async fn shutdown_drains_the_queue_and_refuses_new_requests() {
    let store = Store::in_memory();
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, workers) = Intake::new(deciding);
    let mut queued = Box::pin(intake.submit(vec![event("a")], None));
    assert!(futures_util::poll!(&mut queued).is_pending());
    let shutdown = CancellationToken::new();
    shutdown.cancel();
    let (answered, ()) = tokio::join!(queued, workers.run(shutdown));
    assert!(answered.unwrap().failed.is_empty());
    let refused = intake.submit(vec![event("b")], None).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
    assert_eq!(samples::all::<Occurrence>(&store).await.len(), 1);
}

#[tokio::test]
async fn loop_guard_stop_is_reported_once() {
    let store = Store::in_memory();
    let mut looping = rule("loop", &["everything"], &["event"]);
    looping.repeat = true;
    looping.repeat_interval_seconds = 0;
    samples::save_rule(&store, &looping).await;
    let (deciding, _) = samples::deciding(store.clone()).await;
    let (intake, guard) = samples::intake(&deciding);
    let chain = vec![samples::id("loop")];
    intake.submit_internal(event("a"), chain).await.unwrap();
    // The report is queued before the call above returns, and shutdown drains the queues.
    let report = samples::said(&store, "loop-guard").await;
    drop(guard);
    let dimensions =
        [("rule", "loop"), ("source", "bellwether")].map(|(a, b)| (a.into(), b.into()));
    assert_eq!(report.dimensions, BTreeMap::from(dimensions));
    assert_eq!(report.severity, Severity::Warning);
    assert_eq!(report.count, 1);
    assert!(samples::all::<Delivery>(&store).await.is_empty());
}

/// Returns an alert with this severity. With `is_folded`, its id is that of earlier versions.
fn alert(severity: Severity, began_ms: i64, is_folded: bool) -> IncomingEvent {
    let mut alert = event("a");
    alert.severity = Some(severity);
    alert.report.began_ms = Some(began_ms);
    if !is_folded {
        alert.report.folded = Some(alert.id());
        let word = severity.as_str().to_owned();
        alert.dimensions.insert("severity".to_owned(), word);
    }
    alert
}

#[tokio::test]
async fn earlier_event_is_closed_by_the_alert_that_opened_it() {
    use Severity::{Critical, Warning};
    let over = |mut alert: IncomingEvent| {
        alert.status = Some(Status::Closed);
        alert
    };
    let new = |severity, began_ms| alert(severity, began_ms, false);
    let opened = alert(Warning, 1, true);
    let own = new(Warning, 1).id();
    // Alerts sent after the opening, then whether the event of the earlier version and the alert's
    // own event are open; `None` if the event does not exist.
    let table = [
        (vec![new(Warning, 1)], Some(true), None),
        (vec![over(new(Warning, 1))], Some(false), None),
        (
            vec![new(Warning, 1), over(new(Warning, 1))],
            Some(false),
            None,
        ),
        (
            vec![over(new(Warning, 1)), new(Warning, 2)],
            Some(false),
            Some(true),
        ),
        (vec![over(new(Warning, 7))], Some(true), Some(false)),
        (vec![new(Warning, 7)], Some(true), Some(true)),
        (vec![new(Critical, 1)], Some(true), None),
    ];
    for (at, (events, folded, separate)) in table.into_iter().enumerate() {
        let store = Store::in_memory();
        let (deciding, _) = samples::deciding(store.clone()).await;
        let (intake, _guard) = samples::intake(&deciding);
        intake.submit(vec![opened.clone()], None).await.unwrap();
        for event in events {
            intake.submit(vec![event], None).await.unwrap();
        }
        let mut all = samples::all::<Occurrence>(&store).await;
        all.sort_by_key(|it| it.number);
        let is_open = |id| {
            let newest = all.iter().rfind(|it| it.event == id);
            newest.map(|it| it.status != Status::Closed)
        };
        assert_eq!(is_open(opened.id()), folded, "row {at}");
        assert_eq!(is_open(own), separate, "row {at}");
    }
}
