//! Tests of calendar windows in which beats are expected.

use super::*;
use crate::{calendar::Calendars, testing::walks::walk_length};

const HOUR: u64 = 3_600;
const MINUTE: u64 = 60;

impl World {
    /// Creates a world at 08:00 with a heartbeat expected daily between 09:00 and 10:00.
    async fn of_windows() -> Self {
        Self::with_calendar(&["09:00"], "PT1H").await
    }

    async fn with_calendar(starts: &[&str], duration: &str) -> Self {
        let world = Self::new().await;
        let window = |start: &&str| v1::CalendarWindow {
            dtstart: format!("2027-01-04T{start}:00"),
            rrule: "FREQ=DAILY".into(),
            duration: duration.into(),
            ..v1::CalendarWindow::default()
        };
        let calendar = v1::Calendar {
            name: "mornings".into(),
            time_zone: "UTC".into(),
            windows: starts.iter().map(window).collect(),
            ..v1::Calendar::default()
        };
        let all = Calendars::new(world.deciding.store.clone(), world.clock());
        all.create(&calendar, false).await.unwrap();
        world.create(of_mornings()).await;
        world
    }

    /// Advances the clock, with checks just frequent enough that no outage is assumed.
    async fn coast(&mut self, seconds: u64) {
        const STEP: Duration = Duration::from_millis(4_800);
        let mut left = Duration::from_secs(seconds);
        while !left.is_zero() {
            let step = left.min(STEP);
            self.clock.advance(step);
            self.flush.run_once().await.unwrap();
            self.watch.run_once().await.unwrap();
            left -= step;
        }
    }
}

fn of_mornings() -> v1::Heartbeat {
    v1::Heartbeat {
        every: None,
        calendar_name: "mornings".into(),
        ..every_minute()
    }
}

#[tokio::test]
async fn beat_is_due_after_each_cron_time() {
    let mut world = World::new().await;
    // The clock starts at 08:00 UTC, which is 09:00 in Berlin.
    world
        .create(v1::Heartbeat {
            every: None,
            cron: "30 9,11 * * *".into(),
            time_zone: "Europe/Berlin".into(),
            grace: Some(time::duration_from_ms(600_000)),
            ..every_minute()
        })
        .await;
    world.pass(1).await;
    // A beat before the window does not count, but one within the grace does.
    world.send("done", "a").await;
    world.coast(35 * MINUTE).await;
    world.send("done", "a").await;
    world.coast(20 * MINUTE).await;
    assert!(!world.is_open(&[]).await);
    // No beat by 10:30.
    world.coast(HOUR + 45 * MINUTE).await;
    assert!(!world.is_open(&[]).await);
    world.coast(3 * MINUTE).await;
    assert!(world.is_open(&[]).await);
    world.send("done", "a").await;
    world.coast(10).await;
    assert!(!world.is_open(&[]).await);
}

#[tokio::test]
async fn cron_expressions_exclude_other_intervals() {
    let world = World::new().await;
    let all = world.heartbeats();
    let cron = |cron: &str, zone: &str| v1::Heartbeat {
        every: None,
        cron: cron.into(),
        time_zone: zone.into(),
        ..every_minute()
    };
    for (draft, expected) in [
        (cron("0 3 * *", ""), "cron has 4 fields"),
        (
            cron("0 3 * * *", "Mars/Olympus"),
            "timeZone is not a time zone",
        ),
        (cron("", "UTC"), "timeZone is allowed only with `cron`"),
        (
            v1::Heartbeat {
                calendar_name: "x".into(),
                ..cron("0 3 * * *", "")
            },
            "cron is not allowed with",
        ),
        (
            v1::Heartbeat {
                cron: "0 3 * * *".into(),
                ..every_minute()
            },
            "every is not allowed with",
        ),
    ] {
        let refused = all.create(&draft, true).await.unwrap_err();
        let Error::Invalid(violations) = refused else {
            panic!("{refused:?}");
        };
        let violations = violations.iter();
        let texts: Vec<_> = violations
            .map(|it| format!("{} {}", it.field, it.description))
            .collect();
        let text = texts.join("; ");
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let stored = all.create(&cron("0 3 * * *", ""), true).await.unwrap();
    assert_eq!(stored.resource.grace_ms, 3_600_000);
}

#[tokio::test]
async fn beat_is_due_within_each_window() {
    let mut world = World::of_windows().await;
    world.pass(1).await;
    // No beat is late before the end of the first window.
    assert_eq!(
        time::to_millis(&world.only().await.due_time.unwrap()) - world.clock.now_ms(),
        2 * 3_600_000 + 9_000
    );
    world.coast(HOUR + 30 * MINUTE).await;
    world.send("done", "a").await;
    world.coast(HOUR).await;
    assert!(!world.is_open(&[]).await);
    // The next day the beat is too early.
    world.coast(22 * HOUR).await;
    world.send("done", "a").await;
    world.coast(HOUR + 29 * MINUTE).await;
    assert!(!world.is_open(&[]).await);
    world.coast(2 * MINUTE).await;
    assert!(world.is_open(&[]).await);
    world.send("done", "a").await;
    world.coast(8).await;
    assert!(!world.is_open(&[]).await);
    // The day after that, it is late by less than the grace.
    world.coast(24 * HOUR - 124).await;
    world.pass(40).await;
    assert!(!world.is_open(&[]).await);
    let due_ms = time::to_millis(&world.only().await.due_time.unwrap());
    let left = (due_ms - world.clock.now_ms()) / 1_000;
    assert!((1..HOUR.cast_signed()).contains(&left), "{left}");
    world.pass(left.cast_unsigned() - 1).await;
    assert!(!world.is_open(&[]).await);
    world.send("done", "a").await;
    world.pass(60).await;
    assert!(!world.is_open(&[]).await);
}

#[tokio::test]
async fn outages_extend_windows() {
    let mut world = World::of_windows().await;
    world.coast(HOUR + 30 * MINUTE).await;
    // After an outage from 09:30 to 10:30, the missed half hour of the window still follows.
    let mut world = world.restarted(Duration::from_secs(HOUR)).await;
    world.coast(29 * MINUTE).await;
    assert!(!world.is_open(&[]).await);
    world.coast(2 * MINUTE).await;
    assert!(world.is_open(&[]).await);
    world.send("done", "a").await;
    world.coast(8).await;
    // After an outage longer than the window, a whole window follows. The beat is late at its end.
    world.coast(20 * HOUR).await;
    let mut world = world.restarted(Duration::from_secs(6 * HOUR)).await;
    world.coast(59 * MINUTE).await;
    assert!(!world.is_open(&[]).await);
    world.coast(2 * MINUTE).await;
    assert!(world.is_open(&[]).await);
}

/// Returns times of clock steps in minutes: in the window before the beat, before the window, and
/// in the window after the beat.
fn minutes() -> impl Iterator<Item = u64> {
    let steps = walk_length("BELLWETHER_CLOCK_STEPS");
    [65, 20, 75].into_iter().take(steps.try_into().unwrap())
}

/// Sends a beat at 09:10, then every four hours, and steps the clock `minutes` minutes after 08:00.
/// Checks that no alarm is raised for 20 hours, and that one is raised within `hours` when the beats
/// stop.
async fn stepped(step_ms: i64, minutes: u64, hours: u64) {
    let starts = ["01:00", "05:00", "09:00", "13:00", "17:00", "21:00"];
    let mut world = World::with_calendar(&starts, "PT30M").await;
    let first = 70;
    world.coast(minutes.min(first) * MINUTE).await;
    if minutes < first {
        world.clock.step(step_ms);
        world.coast((first - minutes) * MINUTE).await;
    }
    for beat in 0..5 {
        world.send("done", "a").await;
        let mut left = 4 * HOUR;
        if beat == 0 && minutes > first {
            world.coast((minutes - first) * MINUTE).await;
            left -= (minutes - first) * MINUTE;
            world.clock.step(step_ms);
        }
        world.coast(left).await;
        let alarm = world.alarm("backup", &[]).await;
        assert!(
            alarm.is_none(),
            "{step_ms} ms after {minutes} min: beat {beat}"
        );
    }
    for _ in 0..hours {
        world.coast(HOUR).await;
        if world.is_open(&[]).await {
            return;
        }
    }
    panic!("{step_ms} ms after {minutes} min: no alarm");
}

#[tokio::test]
async fn five_second_clock_steps_neither_raise_nor_hide_alarms() {
    for step_ms in [5_000, -5_000] {
        for minutes in minutes() {
            stepped(step_ms, minutes, 6).await;
        }
    }
}

#[tokio::test]
async fn ninety_minute_clock_steps_neither_raise_nor_hide_alarms() {
    for step_ms in [5_400_000, -5_400_000] {
        for minutes in minutes() {
            stepped(step_ms, minutes, 10).await;
        }
    }
}

#[tokio::test]
async fn one_day_clock_steps_neither_raise_nor_hide_alarms() {
    for step_ms in [86_400_000, -86_400_000] {
        stepped(step_ms, 65, 49).await;
    }
}

#[tokio::test]
async fn invalid_schedules_are_refused_and_used_calendars_cannot_be_deleted() {
    let world = World::of_windows().await;
    let all = world.heartbeats();
    let both = v1::Heartbeat {
        every: Some(time::duration_from_ms(60_000)),
        ..of_mornings()
    };
    let neither = v1::Heartbeat {
        calendar_name: String::new(),
        ..of_mornings()
    };
    let unknown = v1::Heartbeat {
        calendar_name: "evenings".into(),
        max_run: Some(time::duration_from_ms(500)),
        ..of_mornings()
    };
    for (draft, fields) in [
        (both, &["every"][..]),
        (neither, &["every"]),
        (unknown, &["calendarName", "maxRun"]),
    ] {
        let Err(Error::Invalid(violations)) = all.update(&draft, false).await else {
            panic!("accepted");
        };
        let found: Vec<_> = violations.iter().map(|it| &*it.field).collect();
        assert_eq!(found, fields, "{violations:?}");
    }
    let calendars = Calendars::new(world.deciding.store.clone(), world.clock());
    let Err(Error::Refused { message, .. }) = calendars.delete("mornings", "", false).await else {
        panic!("deleted");
    };
    assert_eq!(
        message,
        "calendar `mornings` is used by heartbeat `backup`; remove it there first"
    );
    all.delete("backup", "", false).await.unwrap();
    calendars.delete("mornings", "", false).await.unwrap();
}
