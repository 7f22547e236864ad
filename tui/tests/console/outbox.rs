//! Deliveries sent again in numbers, and the obligations that are open.

use super::{flows::assert_shows, *};

#[tokio::test]
async fn all_that_the_filter_leaves_is_counted_asked_for_and_sent_again_page_by_page() {
    let service = stocked();
    let dead = v1::delivery::State::Dead;
    service.state().deliveries = (0..5).map(|number| delivery(99 - number, dead)).collect();
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "6").await;
    let screen = press(&mut console, "A").await;
    assert_shows(&screen, "Send all deliveries again?");
    assert_shows(&screen, "5 deliveries will be sent again:");
    assert_shows(&screen, "5  to pager");
    assert_shows(&screen, "only dead deliveries are meant");
    let untouched = || {
        let state = service.state();
        state.deliveries.iter().all(|row| row.retried_as.is_empty())
    };
    let screen = press(&mut console, "<Enter>").await;
    assert!(
        !screen.contains("Send all"),
        "Enter alone means No\n{screen}"
    );
    assert!(untouched());
    // What is typed before the count is there answers nothing.
    press(&mut console, "Ay").await;
    assert!(untouched());
    let screen = press(&mut console, "y").await;
    assert_shows(&screen, "✓ 5 deliveries on the way again");
    assert!(!untouched());
    let screen = press(&mut console, "A").await;
    assert_shows(&screen, "there is no delivery to send again");
}

#[tokio::test]
async fn marked_deliveries_are_counted_before_they_are_sent_again() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "6").await;
    let screen = press(&mut console, "<Space><Space>r").await;
    assert_shows(&screen, "Send the 2 marked deliveries again?");
    let screen = press(&mut console, "y").await;
    assert_shows(&screen, "✓ 2 deliveries on the way again");
    let marked = |row: &&v1::Delivery| !row.retried_as.is_empty();
    assert_eq!(service.state().deliveries.iter().filter(marked).count(), 2);
    let screen = press(&mut console, "g<Space><Space>c").await;
    assert_shows(&screen, "there is no delivery to cancel: 2 ended before");
}

#[tokio::test]
async fn open_obligations_are_listed_and_lead_to_who_is_owed() {
    let service = stocked();
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "O").await;
    assert_shows(&screen, "Not yet resolved");
    assert_shows(&screen, "disk 1 is full");
    assert_shows(&screen, "decided for pager by night");
    press(&mut console, "<Tab><Tab><Enter>").await;
    assert_shows(&console.screen(), "Destinations › audit");
    let screen = press(&mut console, "O").await;
    assert_shows(&screen, "to destination   audit");
}

#[tokio::test]
async fn deliveries_are_filtered_by_when_they_were_decided_and_a_span_becomes_a_moment() {
    let service = stocked();
    let now = jiff::Timestamp::now().as_second();
    let dead = v1::delivery::State::Dead;
    let decided = |number: usize, seconds: i64| v1::Delivery {
        destination_name: format!("before-{seconds}"),
        create_time: Some(prost_types::Timestamp {
            seconds: now - seconds,
            nanos: 0,
        }),
        ..delivery(99 - number, dead)
    };
    service.state().deliveries = vec![decided(0, 60), decided(1, 7_200), decided(2, 90_000)];
    let mut console = console(&service, 120, 24).await;
    let screen = press(&mut console, "6/since=3h until=1h<Enter>").await;
    assert_shows(&screen, "before-7200");
    assert!(
        !screen.contains("before-60") && !screen.contains("before-90000"),
        "{screen}"
    );
    let date = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    assert_shows(&screen, &date.strftime("since=%Y-").to_string());
    // What is done to all of them means the same moments.
    let screen = press(&mut console, "A").await;
    assert_shows(&screen, "Send all deliveries with since=2");
    press(&mut console, "<Esc>").await;
    let screen = press(&mut console, "/<C-u>since=yesterday<Enter>").await;
    assert_shows(&screen, "`yesterday` is no time");
}
