//! Tests of the service's own events about silences, and of silences that end automatically.

use super::*;

#[tokio::test]
async fn silence_expires_after_its_idle_time() {
    let world = World::under(&[page()]).await;
    let mut draft = world.draft("quiet", "host=a", 600);
    draft.expire_when_idle_ms = Some(10 * MINUTE_MS);
    world.create(draft).await;
    world.wait(3_600).await;
    assert_eq!(
        world.view("quiet").await.state,
        SilenceState::Active,
        "nothing was covered yet"
    );
    world.event("a", |_| {}).await;
    world.wait(1).await;
    world.event("a", close).await;
    world.wait(1).await;
    world.wait(300).await;
    world.event("a", |_| {}).await;
    world.wait(1).await;
    world.wait(900).await;
    assert_eq!(world.view("quiet").await.state, SilenceState::Active);
    world.event("a", close).await;
    world.wait(1).await;
    world.wait(599).await;
    assert_eq!(world.view("quiet").await.state, SilenceState::Active);
    world.wait(1).await;
    assert_eq!(world.view("quiet").await.state, SilenceState::Expired);
    assert!(world.sent().await.is_empty());
}

#[tokio::test]
async fn own_events_cannot_be_silenced_and_silences_report_themselves() {
    let all = rule("all", &["everything"], &["hook"]);
    let world = World::under(&[all]).await;
    let draft = world.draft("quiet", "severity>=debug", 60);
    let refused = world
        .node()
        .silences
        .create(draft.clone(), false, false)
        .await;
    assert!(refused.is_ok(), "nothing is open");
    world.review().await;
    let delivery_count = async || samples::all::<Delivery>(&world.store).await.len();
    assert_eq!(delivery_count().await, 1);
    let event = world.own_event("quiet").await.unwrap();
    assert_eq!(
        (event.severity, event.status),
        (Severity::Info, Status::Open)
    );
    world.wait(45 * 60).await;
    let event = world.own_event("quiet").await.unwrap();
    assert_eq!(event.severity, Severity::Warning);
    world.event("a", |_| {}).await;
    world.wait(15 * 60).await;
    let event = world.own_event("quiet").await.unwrap();
    assert_eq!(event.status, Status::Closed);
    assert!(
        event
            .summary
            .contains("covers 1 open events; the notifications of 1"),
        "{}",
        event.summary
    );
}

#[tokio::test]
async fn silence_event_does_not_age_out_early() {
    let world = World::under(&[]).await;
    world.silence("quiet", "host=a", 3 * 24 * 60).await;
    for _ in 0..20 {
        world.wait(3_600).await;
    }
    let event = world.own_event("quiet").await.unwrap();
    assert_eq!((event.status, event.count), (Status::Open, 1));
}
