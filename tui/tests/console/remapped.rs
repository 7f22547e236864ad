//! Tests that no screen mentions a default key if every action is bound to another key.

use bellwether_tui::{KeySetting, Keymap};

use super::*;

/// Returns the actions of the documented table, each bound to a key that is unlikely to occur in a
/// sentence.
fn remapped() -> (Keymap, Vec<(String, String)>) {
    let reference = Keymap::default().reference_text();
    let rows = reference.lines().filter(|line| line.starts_with("| `"));
    let names = rows.filter_map(|row| {
        row.split(" | ")
            .nth(2)?
            .strip_prefix('`')?
            .strip_suffix('`')
    });
    let mut settings = Vec::new();
    let mut keys = Vec::new();
    let letter = |number: usize| char::from(b'a' + u8::try_from(number).unwrap());
    for (number, name) in names.enumerate() {
        let (first, second) = (letter(number / 26), letter(number % 26));
        settings.push(KeySetting {
            place: None,
            action: name.to_owned(),
            keys: vec![format!("alt-{first} alt-{second}")],
            at: "here".to_owned(),
        });
        keys.push((name.to_owned(), format!("<A-{first}><A-{second}>")));
    }
    assert!(keys.len() > 60, "{reference}");
    (Keymap::new(&settings).unwrap(), keys)
}

fn default_key(screen: &str) -> Option<String> {
    let letters = "bcdefghijklmnopqrstuvwxyzBCDEGHIJKLMNOPQRSTUVWXYZ";
    let names = [
        "PageUp",
        "PageDown",
        "Esc",
        "Tab",
        "F1",
        "Backspace",
        "Home",
        "End",
    ];
    let is_key = |word: &str| {
        let word = word.trim_matches(|char| ",.;()“”`".contains(char));
        let mut chars = word.chars();
        let single = matches!((chars.next(), chars.next()), (Some(char), None)
            if letters.contains(char) || "/?:*".contains(char));
        let control = word.starts_with('^') && word.chars().count() == 2;
        single || control || names.contains(&word)
    };
    let mut lines = screen.lines();
    lines.find_map(|line| {
        let mut before = "";
        let found = line.split_whitespace().find(|word| {
            let is_unit = before.ends_with(|char: char| char.is_ascii_digit());
            before = word;
            is_key(word) && !is_unit
        });
        Some(format!("{} in: {line}", found?))
    })
}

async fn visit(console: &mut Headless, keys: &[(String, String)], names: &str) {
    for name in names.split(' ') {
        let (_, keys) = keys.iter().find(|(other, _)| other == name).unwrap();
        let screen = press(console, keys).await;
        assert_eq!(
            default_key(&screen),
            None,
            "after {name} of {names}:\n{screen}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_screen_shows_an_unbound_key() {
    let (keymap, keys) = remapped();
    let tours = [
        "go_overview",
        "go_events pause open_only go_events open next_tab next_tab",
        "go_triggers sort open",
        "go_triggers test_trigger",
        "go_destinations open",
        "go_rules open",
        "go_deliveries open",
        "go_clients",
        "go_reference",
        "go_triggers edit form_next form_next form_leave",
        "go_destinations edit form_next form_leave",
        "go_rules new form_next form_next form_next form_leave",
        "go_clients new form_leave",
    ];
    for filled in [false, true] {
        let service = if filled {
            Service::stocked().await
        } else {
            Service::start().await
        };
        let mut options = service.options();
        options.keys = keymap.clone();
        let mut console = Headless::start(options, 120, 40);
        assert!(console.wait_until_idle().await);
        for tour in tours {
            let walkable = filled || !tour.contains(" open") && !tour.contains("edit");
            visit(
                &mut console,
                &keys,
                if walkable {
                    tour
                } else {
                    tour.split(' ').next().unwrap()
                },
            )
            .await;
        }
    }
    // The check itself works: it finds default keys if they are in use.
    let service = Service::start().await;
    let mut usual = console(&service, 120, 40).await;
    assert!(default_key(&press(&mut usual, "3").await).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnected_console_shows_configured_keys() {
    let (keymap, _) = remapped();
    let service = Service::stocked().await;
    let mut options = service.options();
    options.keys = keymap;
    let mut console = Headless::start(options, 120, 40);
    assert!(console.wait_until_idle().await);
    service.cut(true);
    assert!(console.shows_while_loading("next attempt in").await);
    assert_eq!(
        default_key(&console.screen_text()),
        None,
        "{}",
        console.screen_text()
    );
    for size in [(30, 6), (60, 15)] {
        console.resize(size.0, size.1);
        assert_eq!(
            default_key(&console.screen_text()),
            None,
            "{}",
            console.screen_text()
        );
    }
}
