//! The command palette, help, key settings and sorting.

use bellwether_tui::{Depth, KeySetting, Keymap};
use ratatui::style::Color;

use super::*;

async fn console_with_keys(service: &Service, keys: &[(&str, &str)]) -> Headless {
    let setting = |(action, key): &(&str, &str)| KeySetting {
        place: None,
        action: (*action).to_owned(),
        keys: vec![(*key).to_owned()],
        at: "here".to_owned(),
    };
    let settings: Vec<_> = keys.iter().map(setting).collect();
    let mut options = service.options();
    options.keys = Keymap::new(&settings).unwrap();
    let mut console = Headless::start(options, 80, 24);
    assert!(console.wait_until_idle().await);
    console
}

fn line<'a>(screen: &'a str, part: &str) -> &'a str {
    let found = screen.lines().find(|line| line.contains(part));
    assert!(found.is_some(), "no «{part}» in\n{screen}");
    found.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn theme_can_be_changed_at_runtime() {
    let service = Service::stocked().await;
    let mut options = service.options();
    options.depth = Depth::Full;
    let mut console = Headless::start(options, 80, 24);
    assert!(console.wait_until_idle().await);
    assert_eq!(console.buffer()[(0, 5)].bg, Color::Reset);
    let screen = press(&mut console, ":theme dar<Enter>").await;
    line(
        &screen,
        "theme dark; set `theme` in bellwether.toml to keep it",
    );
    assert!(matches!(console.buffer()[(0, 5)].bg, Color::Rgb(..)));
    press(&mut console, ":theme mono<Enter>").await;
    assert_eq!(console.buffer()[(0, 5)].bg, Color::Reset);
}

#[tokio::test(flavor = "multi_thread")]
async fn palette_acts_on_any_object_by_name() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "1").await;
    let screen = press(&mut console, ":test pag").await;
    assert!(
        line(&screen, "test destination pager").contains(" t "),
        "{screen}"
    );
    console.press("<Enter>").unwrap();
    until(&mut console, "REJECTED in ").await;
    assert!(
        console.screen_text().contains("/pager"),
        "{}",
        console.screen_text()
    );
    let screen = press(&mut console, ":delete night<Enter>").await;
    line(&screen, "Delete rule night?");
}

#[tokio::test(flavor = "multi_thread")]
async fn palette_completes_with_tab_and_prompts_for_arguments() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    press(&mut console, "4").await;
    let screen = press(&mut console, ":previ").await;
    line(&screen, "preview … ");
    let screen = press(&mut console, "<Tab>").await;
    line(&screen, ": preview ");
    let screen = press(&mut console, "<Tab>").await;
    line(&screen, ": preview rule night");
    let screen = press(&mut console, "<C-u>filter paus<Enter>").await;
    line(&screen, "no match `paus`");
}

#[tokio::test(flavor = "multi_thread")]
async fn forbidden_actions_are_listed_with_the_reason() {
    let service = Service::stocked().await;
    let mut console = Headless::start(service.viewer().await, 100, 24);
    assert!(console.wait_until_idle().await);
    press(&mut console, "4").await;
    let screen = press(&mut console, ":delete pager").await;
    let reason = "requires the role `editor`; this key is `viewer`";
    assert!(
        line(&screen, "delete destination pager").contains(reason),
        "{screen}"
    );
    let screen = press(&mut console, "<Enter>").await;
    line(&screen, reason);
    assert!(service.stored("Destination").await.contains_key("pager"));
}

#[tokio::test(flavor = "multi_thread")]
async fn help_is_searchable_and_runs_the_selected_action() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    let screen = press(&mut console, "4?enable").await;
    line(&screen, "nothing found");
    let screen = press(&mut console, "<C-u>/").await;
    line(&screen, "Filter the list");
    let screen = press(&mut console, "<C-u>edit form<Enter>").await;
    line(&screen, "Edit destination pager");
}

#[tokio::test(flavor = "multi_thread")]
async fn configured_keys_work_and_are_shown() {
    let service = Service::stocked().await;
    let keys = [
        ("go_rules", "ctrl-g r"),
        ("toggle", "%"),
        ("form_save", "f2"),
    ];
    let mut console = console_with_keys(&service, &keys).await;
    let screen = press(&mut console, "<C-g>").await;
    line(&screen, "^G …");
    line(&screen, "r rules");
    let screen = press(&mut console, "r").await;
    assert!(line(&screen, "% on/off").contains("Enter open"), "{screen}");
    let screen = press(&mut console, "o").await;
    assert!(!screen.contains("disabled"), "{screen}");
    let screen = press(&mut console, "%").await;
    line(&screen, "✓ rule night disabled · U undoes it");
    let screen = press(&mut console, "e").await;
    line(&screen, "F2 save");
}

#[tokio::test(flavor = "multi_thread")]
async fn list_sorts_by_column_and_marks_the_heading() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    let order = |screen: &str| screen.find("audit") < screen.find("pager");
    let screen = press(&mut console, "4").await;
    assert!(
        line(&screen, "Name").contains("Health↑") && !order(&screen),
        "{screen}"
    );
    let screen = press(&mut console, "S").await;
    assert!(
        line(&screen, "Name").contains("Health↓") && order(&screen),
        "{screen}"
    );
    assert!(line(&screen, "▶").contains("pager"), "{screen}");
    let screen = press(&mut console, ":sort name<Enter>").await;
    assert!(
        line(&screen, "Health").contains("Name↑") && order(&screen),
        "{screen}"
    );
    let screen = press(&mut console, "2:sort count<Enter>").await;
    line(&screen, "the service cannot sort by this");
    let screen = press(&mut console, "S").await;
    line(&screen, "Severity↓");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_keep_their_state_going_back_and_forward() {
    let service = Service::stocked().await;
    let mut console = console(&service, 80, 24).await;
    let left = press(&mut console, "4S/a<Enter>j").await;
    assert!(
        line(&left, "▶").contains("pager") && left.contains("Health↓"),
        "{left}"
    );
    press(&mut console, "<Enter>5").await;
    // Skip the first line, which shows the time.
    let body = |screen: &str| screen.split_once('\n').unwrap().1.to_owned();
    let screen = press(&mut console, "[[").await;
    assert_eq!(body(&screen), body(&left));
    let screen = press(&mut console, "]]").await;
    line(&screen, "› Rules");
    let screen = press(&mut console, "<Esc><Esc>").await;
    assert_eq!(body(&screen), body(&left));
    // Esc closes the filter before `[` can navigate.
    let screen = press(&mut console, "<Esc>").await;
    assert!(
        screen.contains("› Destinations") && !screen.contains("·  /a"),
        "{screen}"
    );
}
