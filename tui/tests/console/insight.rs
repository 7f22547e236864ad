//! The noise report, and forms opened from its rows.

use super::{flows::assert_shows, *};

#[tokio::test(flavor = "multi_thread")]
async fn noise_report_can_be_regrouped_on_a_small_screen() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "<A-r>").await;
    assert_shows(&screen, "Notifications by rule");
    let head = "sent   acked    soon unacted   night skipped";
    assert_shows(&screen, head);
    let row = screen
        .lines()
        .find(|line| line.contains("night  "))
        .unwrap();
    let cells: Vec<_> = row.split_whitespace().collect();
    let at = cells.iter().position(|cell| *cell == "night").unwrap();
    assert_eq!(cells[at + 1..at + 5], ["1", "0", "%", "0"], "{screen}");
    assert_shows(&screen, "1 disk-full");
    let screen = press(&mut console, "BB").await;
    assert_shows(&screen, "Notifications by destination");
    assert_shows(&screen, "audit");
    assert_shows(&screen, "pager");
    press(&mut console, "B").await;
    let screen = press(&mut console, "<Tab><Enter>").await;
    assert_shows(&screen, "› Events");
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_row_opens_its_rule_form() {
    let service = Service::stocked().await;
    let mut console = console(&service, 100, 30).await;
    let screen = press(&mut console, "<A-r>").await;
    assert_shows(&screen, "diff -f FILE --impact 7d");
    // The period ends now, not at the end of the current day.
    assert_shows(&screen, "UTC to now");
    press(&mut console, "<Tab><Enter>").await;
    press(&mut console, "<C-s>").await;
    let screen = press(&mut console, "y").await;
    assert_shows(&screen, "night");
}
