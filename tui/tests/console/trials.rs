//! Trying a trigger on stored events: what it tells, and how it ends.

use super::*;

fn assert_shows(screen: &str, wanted: &str) {
    assert!(screen.contains(wanted), "no «{wanted}» in\n{screen}");
}

#[tokio::test]
async fn the_try_of_a_trigger_tells_what_it_would_have_matched_and_leads_there() {
    let service = stocked();
    let mut console = console(&service, 100, 30).await;
    let screen = press(&mut console, "3t").await;
    assert_shows(
        &screen,
        "would have matched 37 occurrences in the last 24 h (now: 4)",
    );
    assert_shows(&screen, "100 were looked at");
    let screen = press(&mut console, "<Tab><Enter>").await;
    assert_shows(&screen, "Details");
}

#[tokio::test]
async fn a_long_try_tells_how_far_it_is_and_ends_with_its_page() {
    let service = stocked();
    let mut console = console(&service, 100, 30).await;
    press(&mut console, "3t").await;
    console.press("+").unwrap();
    assert!(
        console.shows_meanwhile("12 of 60 so far").await,
        "{}",
        console.screen()
    );
    let first = service.state().tries[0].clone();
    assert!(!first.is_closed());
    // A longer one ends the one before.
    console.press("+").unwrap();
    first.closed().await;
    assert!(
        console.shows_meanwhile("12 of 60 so far").await,
        "{}",
        console.screen()
    );
    let second = service.state().tries[1].clone();
    console.press("<Esc>").unwrap();
    second.closed().await;
    assert!(console.shows("disk-full").await);
}
