//! Testing a trigger on stored events: the report and its links.

use super::{flows::assert_shows, *};

#[tokio::test(flavor = "multi_thread")]
async fn trigger_test_reports_and_links_past_matches() {
    let service = Service::stocked().await;
    let mut console = console(&service, 100, 30).await;
    let screen = press(&mut console, "3t").await;
    assert_shows(
        &screen,
        "would have matched 40 occurrences in the last 24 h (now: 40)",
    );
    assert_shows(&screen, "40 were checked");
    // A longer period starts another test on the same page.
    let screen = press(&mut console, "+").await;
    assert_shows(&screen, "in the last 7 days");
    let screen = press(&mut console, "<Tab><Enter>").await;
    assert_shows(&screen, "Details");
}
