//! Resizing a screen in use, and frames without a terminal.

use super::*;

const TOUR: [&str; 29] = [
    "1", "2", "<Enter>", "<Tab>", "<Tab>", "3", "<Enter>", "4", "<Enter>", "5", "<Enter>", "6",
    "<Enter>", "7", "3n", "<Esc>", "4e", "<Esc>", "5e", "<Esc>", "?", "<Esc>", ":", "<Esc>", "4d",
    "<Esc>", "2a", "<Esc>", "4t",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_survives_resizing() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    for keys in TOUR {
        press(&mut console, keys).await;
        for (columns, rows) in [(1, 1), (39, 7), (40, 8), (200, 60), (80, 24)] {
            console.resize(columns, rows);
            console.screen_text();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshot_draws_one_frame_without_a_terminal() {
    let service = Service::stocked().await;
    let frame = bellwether_tui::snapshot(service.options(), "Rules", 80, 24)
        .await
        .unwrap()
        .frame;
    assert!(frame.contains("› Rules"), "{frame}");
    assert!(frame.contains("night"), "{frame}");
    let wrong = bellwether_tui::snapshot(service.options(), "rulez", 80, 24).await;
    assert!(wrong.unwrap_err().to_string().contains("rules"));
}

#[tokio::test(flavor = "multi_thread")]
async fn recording_shows_a_frame_after_each_step() {
    let service = Service::stocked().await;
    let steps = bellwether_tui::Step::read("5 <Enter> 4").unwrap();
    let drawn = bellwether_tui::record_steps(service.options(), "overview", &steps, 80, 24).await;
    let drawn = drawn.unwrap();
    assert!(drawn.frame.contains("› Destinations"), "{}", drawn.frame);
    for shown in ["› Rules › night", "› Destinations"] {
        assert!(drawn.picture.contains(shown), "{shown}");
    }
    assert!(drawn.picture.contains("@keyframes f3-4"));
    assert!(bellwether_tui::Step::read("j <Entre>").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn wide_lists_show_details_of_the_selected_row_beside_it() {
    let service = Service::stocked().await;
    let mut console = console(&service, 140, 40).await;
    press(&mut console, "2").await;
    for shown in ["Timeline", "Notifications", "──▶ ✓ rule night", "✓ audit"] {
        until(&mut console, shown).await;
    }
    press(&mut console, "5").await;
    for shown in ["Last decisions", "dead ", "size  "] {
        until(&mut console, shown).await;
    }
    press(&mut console, "6").await;
    for shown in ["Attempt 1", "verdict  "] {
        until(&mut console, shown).await;
    }
    press(&mut console, "4").await;
    for shown in ["Message, with a sample event", "POST http://"] {
        until(&mut console, shown).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn details_of_another_row_are_never_shown() {
    let service = Service::stocked().await;
    let mut console = console(&service, 140, 40).await;
    press(&mut console, "2").await;
    until(&mut console, "──▶ ✓ rule night").await;
    console.press("j").unwrap();
    assert!(
        !console.screen_text().contains("rule night"),
        "{}",
        console.screen_text()
    );
    until(&mut console, "──▶ ✗ rule night").await;
}
