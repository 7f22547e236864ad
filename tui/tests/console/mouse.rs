//! The mouse: clicks select and open, the wheel scrolls, and neither changes data.

use super::*;

fn row_of(screen: &str, wanted: &str) -> u16 {
    let row = screen.lines().position(|line| line.contains(wanted));
    assert!(row.is_some(), "no {wanted} on\n{screen}");
    u16::try_from(row.unwrap()).unwrap()
}

async fn click(console: &mut Headless, column: u16, row: u16) -> String {
    console.click(column, row);
    assert!(console.wait_until_idle().await, "{}", console.screen_text());
    console.screen_text()
}

#[tokio::test(flavor = "multi_thread")]
async fn click_selects_a_row_and_a_second_opens_it() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "4").await;
    let other = if screen.contains("▶ audit") {
        "pager"
    } else {
        "audit"
    };
    let row = row_of(&screen, other);
    let screen = click(&mut console, 10, row).await;
    let line = screen.lines().nth(usize::from(row)).unwrap();
    assert!(line.starts_with('▶') && line.contains(other), "{screen}");
    let screen = click(&mut console, 10, row).await;
    assert!(
        screen.contains(&format!("Destinations › {other}")),
        "{screen}"
    );
    // The breadcrumb leads back to the list, and its first word to the overview.
    let screen = click(&mut console, 16, 0).await;
    assert!(
        !screen.contains("Destinations › ") && screen.contains("› Destinations"),
        "{screen}"
    );
    let screen = click(&mut console, 3, 0).await;
    assert!(screen.contains("› Overview"), "{screen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_links_and_the_map_are_clickable() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "2<Enter>").await;
    let row = row_of(&screen, "[Details]");
    let column = screen
        .lines()
        .nth(usize::from(row))
        .unwrap()
        .find("Explain")
        .unwrap();
    let screen = click(&mut console, u16::try_from(column).unwrap(), row).await;
    assert!(screen.contains("[Explain]"), "{screen}");

    let screen = press(&mut console, "5<Enter>").await;
    let row = row_of(&screen, "pager");
    click(&mut console, 4, row).await;
    let screen = click(&mut console, 4, row).await;
    assert!(screen.contains("Destinations › pager"), "{screen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wheel_scrolls_and_the_mouse_never_confirms() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "2gg").await;
    console.scroll(true);
    let screen = console.screen_text();
    assert!(screen.contains(" 4/40"), "{screen}");
    console.scroll(false);
    assert!(
        console.screen_text().contains(" 1/40"),
        "{}",
        console.screen_text()
    );
    // No click answers an open question.
    let prompt = press(&mut console, "c").await;
    for row in 0..24 {
        console.click(40, row);
    }
    assert_eq!(console.screen_text(), prompt);
    press(&mut console, "<Esc>").await;
    let screen = press(&mut console, "M").await;
    assert!(screen.contains("selects text"), "{screen}");
}
