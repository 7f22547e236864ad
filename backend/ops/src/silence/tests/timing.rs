//! Calendars of rules and silences, and rules whose delay is learned from events that usually close
//! soon.

use super::*;
use crate::domain::{
    RecordId,
    calendar::{Window, WindowText},
};

const HOUR: u64 = 3_600;

async fn save_calendar(store: &Store, called: &str, dtstart: &str, end: &str, rrule: &str) {
    let window = Window::parse(&WindowText {
        dtstart: dtstart.into(),
        end_time_of_day: end.into(),
        rrule: rrule.into(),
        ..WindowText::default()
    });
    let calendar = Calendar {
        id: RecordId::from_parts(1, 1),
        name: name(called),
        description: String::new(),
        tags: Vec::new(),
        time_zone: "UTC".into(),
        windows: vec![window.unwrap()],
        except: Vec::new(),
        revision: 1,
        create_ms: START_MS,
        update_ms: START_MS,
    };
    let mut changes = store.new_changes();
    match store.get::<Calendar>(called.into()).await.unwrap() {
        Some(stored) => changes.update(&stored, &calendar),
        None => changes.insert(&calendar),
    }
    store.apply(Lane::Admin, changes).await.unwrap();
}

fn in_office() -> Rule {
    Rule {
        active_calendar: Some(name("office")),
        ..with_updates()
    }
}

/// The clock starts on Friday, 15 January 2027, at 08:00.
async fn office(rules: &[Rule]) -> World {
    let store = Store::in_memory();
    save_calendar(
        &store,
        "office",
        "2027-01-04T08:00:00",
        "18:00",
        "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
    )
    .await;
    for rule in rules {
        samples::save_rule(&store, rule).await;
    }
    World::on(store).await
}

#[tokio::test]
async fn opening_outside_active_times_is_sent_at_next_window() {
    let world = office(&[in_office()]).await;
    world.event("at work", |_| {}).await;
    assert_eq!(world.sent().await, [about("at work", false)]);
    // Saturday noon.
    world.wait(28 * HOUR).await;
    world.event("stays", |_| {}).await;
    world.event("goes", |_| {}).await;
    world.event("at work", close).await;
    assert_eq!(
        world.sent().await[1..],
        [about("at work", true)],
        "a closing is never held"
    );
    let held = world.explained("stays").await;
    assert_eq!(
        held.main.reason_text(),
        "Held: active times (outside the windows of `office`), until 2027-01-18 08:00:00 UTC. Then \
         notifies hook, if still open and matching."
    );
    world.wait(20 * HOUR).await;
    world.event("goes", close).await;
    // It is now one second before Monday, 08:00, after a restart.
    world.restart(24 * HOUR - 1).await;
    world.review().await;
    assert_eq!(world.sent().await.len(), 2);
    world.wait(1).await;
    assert_eq!(world.sent().await[2..], [about("stays", false)]);
}

#[tokio::test]
async fn repeat_outside_active_times_waits_for_next_window() {
    let repeating = Rule {
        repeat: true,
        repeat_interval_seconds: 60,
        ..in_office()
    };
    let world = office(&[repeating]).await;
    for host in ["stays", "worsens", "goes", "is quiet"] {
        world.event(host, |_| {}).await;
    }
    assert_eq!(world.sent().await.len(), 4);
    // Saturday noon.
    world.wait(28 * HOUR).await;
    for host in ["stays", "worsens", "goes"] {
        world.event(host, |_| {}).await;
        world.event(host, |_| {}).await;
    }
    assert_eq!(world.sent().await.len(), 4, "repeats are held");
    world.event("goes", close).await;
    let critical = |it: &mut IncomingEvent| it.severity = Some(Severity::Critical);
    world.event("worsens", critical).await;
    let updates = [about("goes", true), about("worsens", true)];
    assert_eq!(world.sent().await[4..], updates, "nothing else waits");
    // It is now one second before Monday, 08:00.
    world.wait(44 * HOUR - 1).await;
    assert_eq!(world.sent().await.len(), 6);
    world.wait(1).await;
    assert_eq!(world.sent().await[6..], [about("stays", false)], "once");
}

#[tokio::test]
async fn calendar_edit_reevaluates_pending_notifications() {
    let world = office(&[in_office()]).await;
    world.wait(28 * HOUR).await;
    world.event("a", |_| {}).await;
    assert!(world.sent().await.is_empty());
    save_calendar(
        &world.store,
        "office",
        "2027-01-04T08:00:00",
        "18:00",
        "FREQ=DAILY",
    )
    .await;
    world.review().await;
    assert_eq!(world.sent().await, [about("a", false)]);
}

#[tokio::test]
async fn calendar_silence_holds_and_reports_each_window() {
    let store = Store::in_memory();
    save_calendar(
        &store,
        "nights",
        "2027-01-15T22:00:00",
        "06:00",
        "FREQ=DAILY",
    )
    .await;
    samples::save_rule(&store, &with_updates()).await;
    let world = World::on(store).await;
    let draft = SilenceDraft {
        calendar: "nights".into(),
        end_ms: None,
        ..world.draft("nightly", "host=a", 1)
    };
    let made = world.create(draft).await;
    assert_eq!(made.state, SilenceState::Scheduled);
    assert_eq!(made.begins_ms, Some(START_MS + 14 * 60 * MINUTE_MS));
    assert_eq!(made.ends_ms, Some(START_MS + 22 * 60 * MINUTE_MS));
    world.review().await;
    assert!(world.own_event("nightly").await.is_none());
    world.event("a", |_| {}).await;
    assert_eq!(
        world.sent().await,
        [about("a", false)],
        "it holds nothing during the day"
    );
    world.event("a", close).await;

    for night in 1..=2 {
        // At 23:00, the window begins. It also covers events that were opened before.
        let sent = world.sent().await.len();
        world.wait(if night == 1 { 15 } else { 16 } * HOUR).await;
        assert_eq!(world.view("nightly").await.state, SilenceState::Active);
        let own = world.own_event("nightly").await.unwrap();
        assert_eq!((own.number, own.status), (night, Status::Open));
        world.event("a", |_| {}).await;
        assert_eq!(world.sent().await.len(), sent);
        assert_eq!(world.view("nightly").await.pending, 1);
        world.wait(7 * HOUR - 1).await;
        assert_eq!(world.sent().await.len(), sent);
        world.wait(1).await;
        assert_eq!(world.sent().await[sent..], [about("a", false)]);
        let own = world.own_event("nightly").await.unwrap();
        assert_eq!((own.number, own.status), (night, Status::Closed));
        assert_eq!(world.view("nightly").await.state, SilenceState::Scheduled);
        world.wait(HOUR).await;
        world.event("a", close).await;
    }
    let refused = world
        .node()
        .silences
        .extend("nightly", Extension::By(1), &name("Ana"))
        .await;
    assert!(matches!(refused, Err(Error::FailedPrecondition(_))));
    world
        .node()
        .silences
        .expire("nightly", &name("Ana"))
        .await
        .unwrap();
    world.wait(16 * HOUR).await;
    world.event("b", |_| {}).await;
    world.event("a", |_| {}).await;
    assert_eq!(world.view("nightly").await.state, SilenceState::Expired);
    assert!(world.sent().await.contains(&about("a", false)));
}

#[tokio::test]
async fn notification_is_delayed_for_events_that_usually_close_soon() {
    let waiting = Rule {
        auto_pause_ms: 3 * MINUTE_MS,
        ..with_updates()
    };
    let world = World::under(&[waiting]).await;
    let lives = async |seconds: u64| {
        world.event("a", |_| {}).await;
        world.wait(seconds).await;
        world.event("a", close).await;
        world.wait(600).await;
    };
    for _ in 0..5 {
        lives(120).await;
    }
    let sent = world.sent().await.len();
    assert_eq!(sent, 10, "five earlier ones are required");
    lives(120).await;
    assert_eq!(world.sent().await.len(), sent, "it closed automatically");
    world.event("a", |_| {}).await;
    world.wait(179).await;
    assert_eq!(world.sent().await.len(), sent);
    let held = world.explained("a").await.held_by;
    assert_eq!(
        held[0].detail,
        "6 of the last 6 occurrences closed automatically within 3 min"
    );
    world.wait(1).await;
    assert_eq!(world.sent().await[sent..], [about("a", false)]);
    world.wait(600).await;
    world.event("a", close).await;
    world.wait(600).await;
    // One long occurrence in seven does not end the delay; one in three does.
    lives(120).await;
    assert_eq!(world.sent().await.len(), sent + 2);
    lives(600).await;
    let sent = world.sent().await.len();
    lives(120).await;
    assert_eq!(
        world.sent().await.len(),
        sent + 2,
        "seven of nine are not enough"
    );
}
