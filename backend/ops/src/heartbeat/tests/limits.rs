//! Tests of the limits on expectations.

use super::*;

#[tokio::test]
async fn expectations_beyond_the_limit_are_refused() {
    let mut world = World::new().await;
    let draft = v1::Heartbeat {
        by: vec!["host".into()],
        ..every_minute()
    };
    world.create(draft).await;
    world.pass(1).await;
    let all = world.expectations();
    let host = |number: usize| [("host".to_owned(), format!("h{number}"))].into();
    for number in 0..EXPECTATIONS_MAX {
        all.record_beat("backup", &host(number), Signal::Beat)
            .await
            .unwrap();
    }
    let further = host(EXPECTATIONS_MAX);
    let refused = all.record_beat("backup", &further, Signal::Start).await;
    let Err(Error::Exhausted { message, .. }) = refused else {
        panic!("accepted");
    };
    assert!(
        message.starts_with("heartbeat `backup` already expects 10000 sets of values"),
        "{message}"
    );
    // An event above the limit is ingested but not counted as a beat.
    world.send("done", "other").await;
    world.pass(1).await;
    let shown = world.heartbeats().get("backup").await.unwrap();
    assert_eq!(shown.expected_count, Some(10_000));
    // Existing expectations still accept beats, including runs.
    all.record_beat("backup", &host(7), Signal::Start)
        .await
        .unwrap();
    all.record_beat("backup", &host(8), Signal::Beat)
        .await
        .unwrap();
    let page = PageRequest {
        size: 1_000,
        ..PageRequest::default()
    };
    let (shown, _) = world.expectations().list("backup", &page).await.unwrap();
    all.delete("backup", &shown[0].key).await.unwrap();
    all.record_beat("backup", &host(EXPECTATIONS_MAX), Signal::Beat)
        .await
        .unwrap();
    let shown = world.heartbeats().get("backup").await.unwrap();
    assert_eq!(shown.expected_count, Some(10_000));
    // All beats are late. Each check handles a few hundred of them, and none is skipped forever.
    world.pass(75).await;
    for _ in 0..60 {
        world.pass(1).await;
    }
    let shown = world.heartbeats().get("backup").await.unwrap();
    assert_eq!(shown.late_count, Some(10_000));
}
