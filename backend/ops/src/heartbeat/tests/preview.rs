//! Tests of heartbeat previews.

use super::*;

#[tokio::test]
async fn preview_lists_expectations_gaps_and_past_alarms() {
    let mut world = World::new().await;
    let previews = HeartbeatPreviews::new(world.heartbeats(), world.deciding.clone());
    for (after, host) in [(0, "a"), (60, "b"), (60, "a"), (600, "a"), (60, "a")] {
        world.clock.advance(Duration::from_secs(after));
        world.send("done", host).await;
    }
    let draft = v1::Heartbeat {
        name: String::new(),
        by: vec!["host".into()],
        ..every_minute()
    };
    let found = previews.preview(draft.clone()).await.unwrap();
    let rows: Vec<_> = found
        .expectations
        .iter()
        .map(|it| {
            (
                it.values[0].1.as_deref().unwrap(),
                it.beat_count,
                it.alarm_count,
            )
        })
        .collect();
    // The repeats of an occurrence are assumed to be evenly spaced: three intervals in 780 s.
    assert_eq!(rows, [("a", 4, 3), ("b", 1, 1)]);
    assert_eq!(found.expectations[0].longest_ms, 260_000);
    assert_eq!(found.expectations[1].longest_ms, 720_000);
    assert_eq!(
        (
            found.expectation_count,
            found.alarm_count,
            found.occurrence_count
        ),
        (2, 4, 2)
    );
    assert!(!found.stopped_early);
    // Events older than seven days are not read.
    world.clock.advance(Duration::from_secs(8 * 86_400));
    let found = previews.preview(draft.clone()).await.unwrap();
    assert_eq!((found.expectation_count, found.occurrence_count), (0, 0));
    // The preview stores no changes. A draft that matches no events gets a warning.
    assert!(world.heartbeats().get("preview").await.is_err());
    let calls = v1::Heartbeat {
        filter: String::new(),
        by: Vec::new(),
        ..draft
    };
    let found = previews.preview(calls).await.unwrap();
    assert_eq!((found.expectation_count, found.alarm_count), (1, 1));
    assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
    world.pass(1).await;
}
