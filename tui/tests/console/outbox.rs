//! Bulk retries of deliveries, and the outstanding resolutions.

use std::{sync::Arc, time::Duration};

use bellwether_proto::cloud;
use serde_json::{Value, json};

use super::{flows::assert_shows, *};
use crate::{
    backend::{Clock as _, ManualClock},
    service::event,
};

async fn retried(service: &Service) -> usize {
    let all = service.deliveries().await;
    let is_retried = |row: &&Value| row["retriedAs"].as_str().is_some_and(|it| !it.is_empty());
    all.iter().filter(is_retried).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn filtered_deliveries_are_counted_confirmed_and_resent() {
    let service = Service::stocked().await;
    service.events(40..44).await;
    service.settle(10).await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "6").await;
    let screen = press(&mut console, "A").await;
    assert_shows(&screen, "Resend all deliveries?");
    assert_shows(&screen, "5 deliveries will be resent:");
    assert_shows(&screen, "5  to pager");
    assert_shows(&screen, "only dead deliveries are included");
    let untouched = async || retried(&service).await == 0;
    let screen = press(&mut console, "<Enter>").await;
    assert!(
        !screen.contains("Send all"),
        "Enter alone means No\n{screen}"
    );
    assert!(untouched().await);
    // Keys typed before the count is shown do not answer the question.
    press(&mut console, "Ay").await;
    assert!(untouched().await);
    let screen = press(&mut console, "y").await;
    assert_shows(&screen, "✓ 5 deliveries being resent");
    assert!(!untouched().await);
    let screen = press(&mut console, "A").await;
    assert_shows(&screen, "no delivery to resend");
}

#[tokio::test(flavor = "multi_thread")]
async fn marked_deliveries_are_counted_before_resending() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "6").await;
    let screen = press(&mut console, "<Space><Space>r").await;
    assert_shows(&screen, "Resend the 2 marked deliveries?");
    let screen = press(&mut console, "y").await;
    assert_shows(&screen, "✓ 2 deliveries being resent");
    assert_eq!(retried(&service).await, 2);
    let screen = press(&mut console, "gg<Space><Space>c").await;
    assert_shows(&screen, "no delivery to cancel: 2 ended before");
}

#[tokio::test(flavor = "multi_thread")]
async fn open_obligations_are_listed_and_link_to_their_destination() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "O").await;
    assert_shows(&screen, "Not yet resolved");
    assert_shows(&screen, "disk 39 is full");
    assert_shows(&screen, "decided for pager (rule night)");
    press(&mut console, "<Tab><Tab><Enter>").await;
    assert_shows(&console.screen_text(), "Destinations › audit");
    let screen = press(&mut console, "O").await;
    assert_shows(&screen, "to destination   audit");
}

fn pass(clock: &ManualClock, until_ms: i64) {
    let left_ms = u64::try_from(until_ms - clock.now_ms()).unwrap();
    clock.advance(Duration::from_millis(left_ms));
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_filtered_by_decision_time() {
    let now_ms = jiff::Timestamp::now().as_millisecond();
    let clock = Arc::new(ManualClock::starting_at(now_ms - 90_000_000));
    let service = Service::start_at(Arc::clone(&clock) as Arc<_>).await;
    for (count, age_ms) in [(1, 90_000_000), (2, 7_200_000), (3, 60_000)] {
        pass(&clock, now_ms - age_ms);
        let name = format!("before-{}", age_ms / 1_000);
        let kind = json!({"event": {"filter": format!("name={name}")}});
        service
            .create("Trigger", &json!({"name": name, "type": kind}))
            .await;
        service.destination(&name).await;
        let rule = json!({
            "name": name,
            "enabled": true,
            "triggerNames": [name],
            "destinationNames": [name],
        });
        service.create("Rule", &rule).await;
        let named = cloud::Event {
            name,
            ..event(1, "the disk is full")
        };
        service.send(vec![named]).await;
        service.settle(count).await;
    }
    pass(&clock, now_ms);
    let mut console = console(&service, 120, 24).await;
    let screen = press(&mut console, "6/since=3h until=1h<Enter>").await;
    assert_shows(&screen, "before-7200");
    assert!(
        !screen.contains("before-60") && !screen.contains("before-90000"),
        "{screen}"
    );
    let date = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    assert_shows(&screen, &date.strftime("since=%Y-").to_string());
    // A relative time is resolved once for the whole bulk change.
    let screen = press(&mut console, "A").await;
    assert_shows(&screen, "Resend all deliveries with since=2");
    press(&mut console, "<Esc>").await;
    let screen = press(&mut console, "/<C-u>since=yesterday<Enter>").await;
    assert_shows(&screen, "`yesterday` is not a time");
}
