//! Keys as sent by terminals: fragmented sequences, other layouts, kitty's protocol, and a closed
//! terminal.

use std::time::{Duration, Instant};

use bellwether_tests::{
    eventually::eventually_blocking,
    terminal::{self, Terminal},
    world::World,
};

use crate::samples;

fn arguments(world: &World) -> Vec<String> {
    let address = format!("http://{}", world.service().address("grpc"));
    let key = world.data_dir().join("admin.key").display().to_string();
    vec!["--connect".into(), address, "--key-file".into(), key]
}

fn console(world: &World, environment: &[(&str, &str)]) -> Terminal {
    let arguments = arguments(world);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Terminal::with_environment(world.folder(), &arguments, environment)
}

/// Sends characters one by one, like a slow connection.
fn in_pieces(console: &mut Terminal, keys: &str) {
    for piece in keys.chars() {
        console.press(&piece.to_string());
        std::thread::sleep(Duration::from_millis(20));
    }
}

async fn two_events(world: &World) {
    let events = ["db-1", "db-2"].map(|host| {
        let summary = format!("the disk of {host} is full");
        samples::event("full", host, "SEVERITY_ERROR", &summary)
    });
    let body = samples::events(&events);
    let rest = world.rest();
    rest.post("/v1/data-receiver/events", &body).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn split_sequence_is_one_key_and_paste_is_text() {
    let world = World::start();
    two_events(&world).await;
    // The delay is long enough for fragments that a busy machine delivers late.
    let mut console = console(&world, &[("BELLWETHER_ESCAPE_DELAY", "1s")]);
    console.shows(&["● connected"]);
    console.press("2");
    console.shows(&["1/2", "db-1", "db-2"]);
    in_pieces(&mut console, "\x1b[B");
    console.shows(&["2/2"]);
    in_pieces(&mut console, "\x1bOA");
    console.shows(&["1/2"]);
    // As keys, `q` would quit and `a` would acknowledge.
    in_pieces(&mut console, "\x1b[200~qa\x1b[201~");
    let screen = console.shows(&["/qa"]);
    assert!(!screen.contains("acknowledged"), "{screen}");
    // The first Esc leaves the filter, the second the page.
    console.press("\x1b");
    console.shows(&["1/2"]);
    console.press("\x1b");
    console.shows(&["› Overview"]);
    console.press("q");
    assert!(console.ended().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_sequence_right_after_a_key_does_not_block_the_console() {
    let world = World::start();
    two_events(&world).await;
    let mut console = console(&world, &[]);
    console.shows(&["● connected"]);
    console.press("2");
    console.shows(&["1/2"]);
    for micros in (0..2_000).step_by(10) {
        let (key, shown) = if micros % 20 == 0 {
            ("j", "2/2")
        } else {
            ("k", "1/2")
        };
        console.press(key);
        // Shorter than a sleep, to arrive while the key is handled.
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(micros) {
            std::hint::spin_loop();
        }
        console.press("\x1b[999~");
        console.shows(&[shown]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_cursor_is_on_the_selected_row_and_in_the_text_field() {
    let world = World::start();
    two_events(&world).await;
    let mut console = console(&world, &[]);
    console.shows(&["● connected"]);
    console.press("2");
    for (key, shown) in [("", "1/2"), ("j", "2/2"), ("k", "1/2")] {
        console.press(key);
        console.shows(&[shown]);
        cursor_reaches(&console, "▶", 0);
    }
    console.press("/db");
    cursor_reaches(&console, " /db", 4);
}

/// Waits until the cursor is visible at this column of the line that begins with a text.
fn cursor_reaches(console: &Terminal, start: &str, column: u16) {
    eventually_blocking("the cursor to arrive", || {
        let screen = console.screen();
        let row = screen.lines().position(|line| line.starts_with(start))?;
        let at = (u16::try_from(row).unwrap(), column);
        (console.cursor() == Some(at)).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn alt_gr_sent_as_escape_and_a_character_types_the_character() {
    let world = World::start();
    two_events(&world).await;
    let mut console = console(&world, &[]);
    console.shows(&["● connected"]);
    console.press("2");
    console.shows(&["1/2"]);
    console.press("/");
    console.press("\x1b@\x1b{\x1b€");
    console.shows(&["/@{€"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cyrillic_and_greek_keys_act_by_position() {
    let world = World::start();
    two_events(&world).await;
    let mut console = console(&world, &[]);
    console.shows(&["● connected"]);
    console.press("2");
    console.shows(&["1/2"]);
    // j and k.
    console.press("о");
    console.shows(&["2/2"]);
    console.press("κ");
    console.shows(&["1/2"]);
    // a, then U.
    console.press("ф");
    console.shows(&["acknowledged full on"]);
    console.press("Г");
    console.shows(&["undone: acknowledged full on"]);
    // Answer a confirmation: the keys of c, then n.
    console.press("с");
    console.shows(&["Close this occurrence?"]);
    console.press("т");
    console.press("/диск");
    console.shows(&["/диск"]);
    console.press("\x1b");
    console.shows(&["1/2"]);
    console.press("й");
    assert!(console.ended().success());
}

#[test]
fn kitty_protocol_is_enabled_if_supported_and_disabled_on_exit() {
    let world = World::start();
    let mut console = console(&world, &[("TERM", "xterm-kitty")]);
    console.shows(&["● connected"]);
    assert!(console.output().contains("\x1b[>1u"));
    // Press 4, then Esc as encoded by such a terminal.
    console.press("4");
    console.shows(&["No destinations yet"]);
    console.press("\x1b[27u");
    console.shows(&["› Overview"]);
    console.press("q");
    assert!(console.ended().success());
    assert!(console.output().contains("\x1b[<1u"));
    assert_eq!(console.remaining_modes(), Vec::<String>::new());

    let mut plain = self::console(&world, &[]);
    plain.shows(&["● connected"]);
    plain.press("q");
    assert!(plain.ended().success());
    assert!(!plain.output().contains("\x1b[>1u"));
}

#[test]
fn closed_terminal_ends_the_console_without_a_panic() {
    let world = World::start();
    let arguments = arguments(&world);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let code = terminal::run_until_closed("● connected", world.folder(), &arguments);
    assert!(code <= 1, "{code}");
}

#[tokio::test(flavor = "multi_thread")]
async fn non_utf8_terminal_gets_ascii_and_vt100_gets_no_colours() {
    let world = World::start();
    two_events(&world).await;
    for (term, locale) in [("vt100", "C.UTF-8"), ("xterm-256color", "POSIX")] {
        let mut console = console(&world, &[("TERM", term), ("LC_ALL", locale)]);
        console.shows(&["* connected"]);
        console.press("2");
        let screen = console.shows(&["* error", "db-1", "db-2"]);
        assert!(screen.is_ascii(), "{screen}");
        console.press("1");
        let screen = console.shows(&["> Overview"]);
        assert!(screen.is_ascii(), "{screen}");
        let colours = ["\x1b[38;", "\x1b[48;", "\x1b[31m"];
        let has_any = colours.iter().any(|it| console.output().contains(it));
        assert_eq!(has_any, term != "vt100", "{term}");
        console.press("q");
        assert!(console.ended().success());
    }
}
