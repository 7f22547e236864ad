//! Tests of runs that end, take too long, or never end.

use super::*;

/// Returns a daily heartbeat whose beats are calls, not events, with runs of at most ten minutes.
fn nightly() -> v1::Heartbeat {
    v1::Heartbeat {
        filter: String::new(),
        every: Some(time::duration_from_ms(86_400_000)),
        grace: Some(time::duration_from_ms(10_000)),
        max_run: Some(time::duration_from_ms(600_000)),
        ..every_minute()
    }
}

#[tokio::test]
async fn run_lasts_from_start_signal_to_next_beat() {
    let mut world = World::new().await;
    world.create(nightly()).await;
    world.pass(1).await;
    world.signal(Signal::Start).await;
    let running = world.only().await;
    assert!(running.run_start_time.is_some() && running.last_run.is_none());
    // The end of the run is due next, before the next beat. The start signal was not a beat.
    let left_ms = time::to_millis(&running.due_time.unwrap()) - world.clock.now_ms();
    assert_eq!((left_ms, running.last_beat_time), (600_000, None));
    world.pass(12).await;
    world.signal(Signal::Beat).await;
    let ended = world.only().await;
    assert_eq!(ended.last_run, Some(time::duration_from_ms(12_000)));
    assert_eq!(ended.run_start_time, None);
    // A clock step does not make the run longer.
    world.signal(Signal::Start).await;
    world.clock.step(3_600_000);
    world.pass(30).await;
    world.signal(Signal::Failure).await;
    assert_eq!(
        world.only().await.last_run,
        Some(time::duration_from_ms(30_000))
    );
    world.pass(2).await;
    assert!(world.is_open(&[]).await);
    assert_eq!(world.only().await.gaps, [time::duration_from_ms(30_000)]);
}

#[tokio::test]
async fn overlong_run_raises_an_alarm_until_it_ends() {
    let mut world = World::new().await;
    world.create(nightly()).await;
    world.pass(15).await;
    world.signal(Signal::Start).await;
    world.pass(599).await;
    assert!(!world.is_open(&[]).await);
    world.pass(3).await;
    assert!(world.is_open(&[]).await);
    let alarm = world.alarm("backup", &[]).await.unwrap();
    assert_eq!(
        alarm.summary,
        "backup did not end within 600 s of its start"
    );
    world.signal(Signal::Beat).await;
    world.pass(2).await;
    assert!(!world.is_open(&[]).await);
    // Further start signals do not hide that a run never ended.
    for _ in 0..6 {
        world.signal(Signal::Start).await;
        assert!(!world.is_open(&[]).await);
        world.pass(101).await;
    }
    assert!(world.is_open(&[]).await);
    world.signal(Signal::Beat).await;
    world.pass(2).await;
    assert!(!world.is_open(&[]).await);
    assert_eq!(
        world.only().await.last_run,
        Some(time::duration_from_ms(101_000))
    );
}

#[tokio::test]
async fn run_excludes_downtime_and_survives_a_restart() {
    let mut world = World::new().await;
    world.create(nightly()).await;
    world.pass(15).await;
    world.signal(Signal::Start).await;
    world.pass(500).await;
    let mut world = world.restarted(Duration::from_secs(3_600)).await;
    world.pass(95).await;
    assert!(!world.is_open(&[]).await);
    world.pass(20).await;
    assert!(world.is_open(&[]).await);
}

#[test]
fn start_signal_rejects_an_exit_code() {
    assert_eq!(Signal::from_call(true, None).unwrap(), Signal::Start);
    assert_eq!(Signal::from_call(false, Some(0)).unwrap(), Signal::Beat);
    assert_eq!(Signal::from_call(false, Some(-1)).unwrap(), Signal::Failure);
    for exit in [0, 1] {
        let refused = Signal::from_call(true, Some(exit));
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
}
