//! Receivers that limit their rate, fail for hours, or refuse the form of a message.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use super::world::{MINUTE, SECOND, START_MS, World, set, switch};
use crate::{
    clock::{Clock as _, ManualClock},
    domain::{Delivery, DeliverySettings, DeliveryState, HealthState, Severity},
    limits::DEFERRALS_MAX,
    message::sample,
    sending::receiver::{ReceivedRequest, Receiver, Reply},
    store::Lane,
};

/// At most `count` messages in each window.
#[derive(Clone, Copy)]
struct Window {
    count: usize,
    length_ms: i64,
}

const fn window(count: usize, length_ms: i64) -> Window {
    Window { count, length_ms }
}

/// Format in which a receiver states the delay; `Nothing` if the receiver states none.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stated {
    Nothing,
    Header,
    TelegramBody,
    DiscordBody,
    MatrixBody,
}

/// Received messages, each with its time of arrival.
type Arrived = Arc<Mutex<Vec<(i64, String)>>>;

/// Starts a receiver with a rate limit that follows the clock of the test.
async fn limited(
    clock: &Arc<ManualClock>,
    windows: &'static [Window],
    stated: Stated,
) -> (Receiver, Arrived) {
    let arrived = Arrived::default();
    let (recorded, clock) = (Arc::clone(&arrived), Arc::clone(clock));
    let judge = move |request: &ReceivedRequest| {
        let now_ms = clock.now_ms();
        let mut arrived = recorded.lock().unwrap();
        let unblocked_ms =
            unblocked_ms(windows, &arrived.iter().map(|it| it.0).collect::<Vec<_>>());
        if unblocked_ms <= now_ms {
            arrived.push((now_ms, request.header("webhook-id").to_owned()));
            return Reply::status(200);
        }
        let left_ms = unblocked_ms - now_ms;
        let seconds = (left_ms + 999) / 1_000;
        let exact = f64::from(u32::try_from(left_ms).unwrap()) / 1_000.0;
        let (headers, body) = match stated {
            Stated::Nothing => (Vec::new(), String::new()),
            Stated::Header => (vec![("retry-after", seconds.to_string())], String::new()),
            Stated::TelegramBody => {
                let body = format!(r#"{{"ok":false,"parameters":{{"retry_after":{seconds}}}}}"#);
                (Vec::new(), body)
            }
            Stated::DiscordBody => (Vec::new(), format!(r#"{{"retry_after":{exact}}}"#)),
            Stated::MatrixBody => (Vec::new(), format!(r#"{{"retry_after_ms":{left_ms}}}"#)),
        };
        Reply::Answer(429, headers, body)
    };
    (Receiver::start(judge).await, arrived)
}

/// Returns the time from which the next message is accepted.
fn unblocked_ms(windows: &[Window], arrived: &[i64]) -> i64 {
    let each = windows.iter().map(|window| {
        let nth = arrived.len().checked_sub(window.count);
        nth.map_or(i64::MIN, |nth| arrived[nth] + window.length_ms)
    });
    each.max().unwrap_or(i64::MIN)
}

/// Returns the minimum time that `messages` messages need within the limits.
fn required_ms(windows: &[Window], messages: usize) -> i64 {
    let mut arrived = Vec::new();
    for _ in 0..messages {
        let last_ms = arrived.last().copied().unwrap_or(0);
        arrived.push(unblocked_ms(windows, &arrived).max(last_ms));
    }
    arrived.last().copied().unwrap_or(0)
}

#[tokio::test]
async fn thirty_pages_reach_a_receiver_limited_to_one_per_second() {
    const A_SECOND: &[Window] = &[window(1, 1_000)];
    for stated in [Stated::Header, Stated::Nothing] {
        let mut world = World::new();
        let (receiver, _) = limited(&world.clock, A_SECOND, stated).await;
        let settings = DeliverySettings::default();
        let destination = world.destination("chat", receiver.url("/"), settings).await;
        let mut ids = Vec::new();
        for _ in 0..30 {
            ids.push(world.notify_of(&destination, Severity::Critical).await);
        }
        world.start();
        world.live(40 * SECOND).await;
        for id in ids {
            let delivery = world.delivery(id).await;
            assert_eq!(delivery.state, DeliveryState::Delivered, "{stated:?}");
            assert!(delivery.attempts <= 3, "{stated:?}: {}", delivery.attempts);
            assert_eq!(delivery.deferrals, delivery.attempts - 1, "{stated:?}");
        }
        let health = world.health(&destination).await.unwrap();
        assert_eq!(health.state, HealthState::Healthy);
        world.stop().await;
    }
}

#[tokio::test]
async fn storm_reaches_ten_chats_at_close_to_their_rate_limits() {
    const SLACK: &[Window] = &[window(1, 1_000)];
    const DISCORD: &[Window] = &[window(5, 2_000), window(30, 60_000)];
    const TELEGRAM: &[Window] = &[window(1, 1_000), window(20, 60_000)];
    const TEAMS: &[Window] = &[window(4, 1_000), window(60, 30_000)];
    const GOOGLE: &[Window] = &[window(60, 60_000), window(1, 1_000)];
    const MATRIX: &[Window] = &[window(10, 50_000)];
    let chats = [
        (SLACK, Stated::Header),
        (SLACK, Stated::Nothing),
        (DISCORD, Stated::DiscordBody),
        (DISCORD, Stated::Header),
        (TELEGRAM, Stated::TelegramBody),
        (TELEGRAM, Stated::Header),
        (TEAMS, Stated::Header),
        (GOOGLE, Stated::Nothing),
        (MATRIX, Stated::MatrixBody),
        (MATRIX, Stated::Header),
    ];
    let mut world = World::new();
    let mut all = Vec::new();
    for (number, (windows, stated)) in chats.into_iter().enumerate() {
        let (receiver, arrived) = limited(&world.clock, windows, stated).await;
        let name = format!("chat-{number}");
        let settings = DeliverySettings::default();
        let destination = world.destination(&name, receiver.url("/"), settings).await;
        for _ in 0..30 {
            world.notify_of(&destination, Severity::Critical).await;
        }
        all.push((name, windows, receiver, arrived));
    }
    world.start();
    world.live(3 * MINUTE).await;
    for (name, windows, _receiver, arrived) in all {
        let arrived = arrived.lock().unwrap();
        assert_eq!(arrived.len(), 30, "{name}");
        let took_ms = arrived.last().unwrap().0 - START_MS;
        let required_ms = required_ms(windows, 30);
        assert!(
            took_ms * 10 <= required_ms * 12,
            "{name}: {took_ms} ms of {required_ms} ms"
        );
    }
    let all = world.all().await;
    assert!(all.iter().all(|it| it.state == DeliveryState::Delivered));
    world.stop().await;
}

#[tokio::test]
async fn waiting_messages_arrive_most_severe_first_after_an_outage() {
    for (outage, every) in [
        (MINUTE, SECOND),
        (10 * MINUTE, 5 * SECOND),
        (120 * MINUTE, 30 * SECOND),
    ] {
        let mut world = World::new();
        let (receiver, reply) = switch(Reply::status(503)).await;
        let settings = DeliverySettings {
            // The receiver gets the messages in the order in which they are sent.
            max_in_flight: Some(1),
            ..DeliverySettings::default()
        };
        let destination = world.destination("hook", receiver.url("/"), settings).await;
        world.start();
        let severities = [
            Severity::Critical,
            Severity::Info,
            Severity::Error,
            Severity::Warning,
        ];
        let mut ids = HashMap::new();
        let mut elapsed = Duration::ZERO;
        while elapsed < outage {
            let severity = severities[ids.len() % severities.len()];
            let id = world.notify_of(&destination, severity).await;
            ids.insert(id.to_string(), (id, severity));
            world.live(every).await;
            elapsed += every;
        }
        let before = receiver.count();
        set(&reply, 200);
        world.live(17 * SECOND).await;
        let received = receiver.received_requests().split_off(before);
        let order: Vec<_> = received
            .iter()
            .map(|it| ids[it.header("webhook-id")])
            .collect();
        assert_eq!(order.len(), ids.len(), "{outage:?}");
        // The first message was the probe, which may have any severity.
        let rest = &order[1..];
        assert!(
            rest.is_sorted_by(|one, next| one.1 >= next.1),
            "{outage:?}: {rest:?}"
        );
        for (id, severity) in ids.values() {
            let delivery = world.delivery(*id).await;
            assert_eq!(delivery.state, DeliveryState::Delivered, "{severity:?}");
        }
        world.stop().await;
    }
}

#[tokio::test]
async fn single_critical_message_is_probed_for_hours_without_using_attempts() {
    let mut world = World::new();
    world.sending.config.delivery.jitter = 0.0;
    let (receiver, reply) = switch(Reply::status(503)).await;
    let settings = DeliverySettings::default();
    let destination = world.destination("hook", receiver.url("/"), settings).await;
    world.start();
    let id = world.notify_of(&destination, Severity::Critical).await;
    world.live(120 * MINUTE).await;
    assert!(
        (400..=500).contains(&receiver.count()),
        "{}",
        receiver.count()
    );
    let waiting = world.delivery(id).await;
    assert!(waiting.attempts - waiting.deferrals <= 4, "{waiting:?}");
    assert_eq!(waiting.deferrals, DEFERRALS_MAX);
    let recorded = world.attempts(id).await.len();
    assert_eq!(
        recorded, waiting.attempts as usize,
        "further deferrals are not recorded"
    );
    set(&reply, 200);
    world.live(16 * SECOND).await;
    assert_eq!(world.delivery(id).await.state, DeliveryState::Delivered);
    world.stop().await;
}

#[tokio::test]
async fn message_that_may_have_arrived_is_probed_ten_times_at_most() {
    let mut world = World::new();
    world.sending.config.delivery.jitter = 0.0;
    let receiver = Receiver::start(|_| Reply::Close).await;
    let settings = DeliverySettings::default();
    let destination = world.destination("hook", receiver.url("/"), settings).await;
    world.start();
    let id = world.notify_of(&destination, Severity::Critical).await;
    world.live(120 * MINUTE).await;
    let waiting = world.delivery(id).await;
    assert!(waiting.may_have_arrived);
    assert_eq!(waiting.deferrals, 10);
    assert_eq!(receiver.count(), waiting.attempts as usize);
    assert!(receiver.count() <= 14, "{}", receiver.count());
    world.stop().await;
}

#[tokio::test]
async fn message_rejected_in_full_is_sent_in_reduced_form() {
    let mut world = World::new();
    let receiver = Receiver::start(|request| {
        Reply::status(if request.body.len() > 3_000 { 413 } else { 200 })
    })
    .await;
    // The refused form does not use up the only attempt.
    let settings = DeliverySettings {
        max_attempts: Some(1),
        ..DeliverySettings::default()
    };
    let destination = world.destination("hook", receiver.url("/"), settings).await;
    let id = world.id();
    let kind = destination.kind.clone();
    let mut content =
        sample::sample_content(sample::sample_occurrence(START_MS), kind, String::new());
    content.occurrence.body = "x".repeat(5_000);
    let long = Delivery::new(id, (destination.id, "hook".into()), content, START_MS);
    let mut changes = world.store.new_changes();
    changes.insert(&long);
    world.store.apply(Lane::Bulk, changes).await.unwrap();
    world.start();
    world.settled().await;
    let delivery = world.delivery(id).await;
    assert_eq!(delivery.state, DeliveryState::Delivered);
    assert_eq!(delivery.end_ms, Some(START_MS), "no time passed");
    let attempts = world.attempts(id).await;
    let forms: Vec<_> = attempts.iter().map(|it| it.is_reduced).collect();
    assert_eq!(forms, [false, true]);
    assert!(attempts[1].explanation.contains("reduced form"));
    world.stop().await;
}

#[tokio::test]
async fn dead_severe_message_is_reported_and_marks_destination_failing() {
    for (severity, reported) in [(Severity::Critical, 1), (Severity::Warning, 0)] {
        let mut world = World::new();
        let (receiver, reply) = switch(Reply::status(400)).await;
        let settings = DeliverySettings::default();
        let destination = world.destination("hook", receiver.url("/"), settings).await;
        world.start();
        let id = world.notify_of(&destination, severity).await;
        world.settled().await;
        let delivery = world.delivery(id).await;
        assert_eq!(
            (delivery.state, delivery.attempts),
            (DeliveryState::Dead, 2)
        );
        let health = world.health(&destination).await.unwrap();
        assert_eq!(health.state, HealthState::Failing);
        assert!(health.last_error.contains("400"), "{health:?}");
        let events = world.sending.sink.events();
        let dead = events
            .iter()
            .filter(|it| it.0.name == "dead letters growing");
        assert_eq!(dead.count(), reported, "{severity:?}");
        set(&reply, 200);
        world.notify_of(&destination, severity).await;
        world.settled().await;
        let health = world.health(&destination).await.unwrap();
        assert_eq!(health.state, HealthState::Healthy);
        world.stop().await;
    }
}

#[tokio::test]
async fn rate_limit_of_a_destination_is_spread_over_the_minute() {
    let mut world = World::new();
    let (receiver, _) = switch(Reply::status(200)).await;
    let settings = DeliverySettings {
        max_per_minute: Some(6),
        ..DeliverySettings::default()
    };
    let destination = world.destination("hook", receiver.url("/"), settings).await;
    for _ in 0..4 {
        world.notify_of(&destination, Severity::Info).await;
    }
    world.start();
    world.settled().await;
    let critical = world.notify_of(&destination, Severity::Critical).await;
    for count in [1, 2, 3, 4, 5] {
        assert_eq!(receiver.count(), count);
        world.live(10 * SECOND).await;
    }
    let order: Vec<_> = receiver.received_requests().into_iter().collect();
    let second = order[1].header("webhook-id");
    assert_eq!(second, critical.to_string(), "the most severe goes first");
    world.stop().await;
}
