//! The noise report and the suggestions, whose drafts open in a form.

use super::{flows::assert_shows, *};

#[tokio::test(flavor = "multi_thread")]
async fn noise_is_counted_by_what_is_chosen_also_on_a_small_screen() {
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
async fn the_draft_of_a_suggestion_opens_in_the_form_and_is_saved_from_there() {
    let service = Service::stocked().await;
    let errors = (20..34).map(|number| service::event(4 * number + 1, "disk is full"));
    service.send(errors.collect()).await;
    let mut console = console(&service, 100, 30).await;
    let screen = press(&mut console, "<A-g>").await;
    assert_shows(&screen, "Group of rule: night");
    assert_shows(
        &screen,
        "would have sent 2 messages instead of 108 in 7 days",
    );
    press(&mut console, "<Tab><Enter>").await;
    press(&mut console, "<C-s>").await;
    press(&mut console, "y").await;
    let stored = service.stored("Rule").await;
    assert_eq!(
        stored["night"]["group"]["wait"],
        "30s",
        "{}",
        console.screen()
    );
    assert_eq!(stored["night"]["sendUpdates"], true);
}
