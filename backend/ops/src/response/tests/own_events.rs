//! Tests that the service's own events are stored together with the changes that cause them.

use super::*;
use crate::{
    domain::{IncomingEvent, OwnEvent, Severity},
    review::Reviewer,
};

/// Returns the occurrence that reports that no one responded.
async fn report(world: &World) -> Option<Occurrence> {
    let all = samples::all::<Occurrence>(&world.store).await;
    all.into_iter().find(|it| it.name == "no one responded")
}

/// Runs a pass of a process that is killed before it ingests the service's own events.
pub(super) async fn killed_pass(world: &World) {
    let deciding = samples::deciding_at(world.store.clone(), &world.clock).await;
    let (intake, _workers) = Intake::new(deciding.clone());
    assert!(Reviewer::new(deciding, intake).run_once().await);
}

#[tokio::test]
async fn no_response_report_and_its_closing_survive_a_kill() {
    let world = world(&[&[contact("ana")]], |_| {}).await;
    world.event("db-1", |_| {}).await;
    world.clock.advance(Duration::from_secs(5 * MINUTE));
    killed_pass(&world).await;
    assert!(world.response().await.unanswered);
    assert_eq!(report(&world).await, None);
    assert_eq!(samples::all::<OwnEvent>(&world.store).await.len(), 1);
    world.restart(1).await;
    // A pass ingests stored events that have not been ingested yet; here, none are left.
    world.review().await;
    world.review().await;
    let said = samples::said(&world.store, "escalation").await;
    assert_eq!((said.count, said.status), (1, Status::Open));
    assert!(samples::all::<OwnEvent>(&world.store).await.is_empty());
    // Likewise, no intake receives the event that the acknowledgement causes.
    let deciding = samples::deciding_at(world.store.clone(), &world.clock).await;
    let (intake, _workers) = Intake::new(deciding.clone());
    let item = StatusItem {
        target: OccurrenceTarget::Newest(samples::event("db-1").id()),
        change: StateChange {
            acknowledged: Some(true),
            ..StateChange::default()
        },
    };
    let by = name("dora");
    let done = set_status((&deciding, &intake), &[item], &by).await;
    done.unwrap().remove(0).unwrap();
    drop(intake);
    world.restart(1).await;
    world.review().await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let said = report(&world).await.unwrap();
    assert_eq!((said.count, said.status), (2, Status::Closed));
    assert!(samples::all::<OwnEvent>(&world.store).await.is_empty());
}

#[tokio::test]
async fn stored_own_event_is_ingested_once_despite_repeated_resumes() {
    let store = Store::in_memory();
    let (deciding, _) = samples::deciding(store.clone()).await;
    let now_ms = deciding.clock.now_ms();
    let mut changes = store.new_changes();
    for host in ["a", "b"] {
        changes.insert(&OwnEvent {
            id: new_id(now_ms),
            event: IncomingEvent {
                severity: Some(Severity::Warning),
                summary: "of its own".into(),
                ..IncomingEvent::new_own_event("trouble", "trouble", [("host", host)], now_ms)
            },
            chain: Vec::new(),
        });
    }
    store.apply(Lane::Bulk, changes).await.unwrap();
    let (intake, _guard) = samples::intake(&deciding);
    for _ in 0..3 {
        intake.resume(&store).await.unwrap();
    }
    while !samples::all::<OwnEvent>(&store).await.is_empty() {
        tokio::task::yield_now().await;
    }
    intake
        .submit(vec![samples::event("last")], None)
        .await
        .unwrap();
    let all = samples::all::<Occurrence>(&store).await;
    let mut own = all.iter().filter(|it| it.name == "trouble");
    assert_eq!(own.clone().count(), 2);
    assert!(own.all(|it| it.count == 1));
}
