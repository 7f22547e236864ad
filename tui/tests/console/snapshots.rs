//! Snapshots of every screen and dialog: the text at each size, and the style of each cell.
//!
//! The screens show a real service in this process, with a fixed clock. The file of a scene
//! contains its text at each size, followed by a grid of letters for its styles. The test checks
//! that themes differ only in their styles, which are recorded in `themes.snap`. `just snapshots`
//! rewrites the files after an intended change; a reviewer reads the diff.

mod hostile;
mod scenes;
mod styles;
mod world;

use std::{collections::BTreeMap, fmt::Write};

use bellwether_tui::{Depth, Theme};

use self::{
    scenes::{Scene, Setting},
    styles::{Letters, grid},
    world::World,
};
use super::*;
use crate::backend::SIGNING_SECRET;

const SIZES: [(u16, u16); 2] = [(120, 40), (80, 24)];
const SMALL_SIZES: [(u16, u16); 3] = [(60, 15), (20, 5), (1, 1)];
const SMALL: [&str; 11] = [
    "overview",
    "events",
    "event",
    "rules",
    "rule",
    "form_rule",
    "report_test",
    "confirm_delete",
    "palette",
    "help_list",
    "lost_events",
];
const STYLED: [(u16, u16); 2] = [(80, 24), (60, 15)];

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_and_dialog_matches_its_snapshot() {
    let mut letters = Letters::default();
    for setting in Setting::ALL {
        let mut world = setting.world().await;
        for scene in scenes::all(setting) {
            let mut console = open(&mut world, setting, &scene).await;
            let drawn = draw(&mut console, setting, &scene.name, &mut letters).await;
            snapshot(&scene.name, &world.without_chance(&drawn));
            world.cut(false);
        }
    }
    snapshot("themes", &letters.legend());
}

/// Returns a scene at its sizes, with the styles at one of them.
async fn draw(
    console: &mut Headless,
    setting: Setting,
    name: &str,
    letters: &mut Letters,
) -> String {
    let mut drawn = String::new();
    let small = SMALL_SIZES.iter().filter(|_| SMALL.contains(&name));
    for (columns, rows) in SIZES.iter().chain(small) {
        let screen = at_size(console, *columns, *rows).await;
        writeln!(drawn, "── {columns}×{rows} {}\n{screen}", "─".repeat(60)).unwrap();
    }
    for (columns, rows) in STYLED {
        at_size(console, columns, rows).await;
        letters.compare(console);
    }
    let (columns, rows) = STYLED[0];
    at_size(console, columns, rows).await;
    let mut styles = grid(console.buffer());
    if matches!(setting, Setting::Lost | Setting::Refused) {
        // The length of the banner depends on the reason for the lost connection.
        let banner = |row: &str| !row.is_empty() && row.trim_matches('c').is_empty();
        let rows = styles
            .lines()
            .map(|row| if banner(row) { "c" } else { row });
        styles = rows.collect::<Vec<_>>().join("\n");
    }
    writeln!(drawn, "── styles at {columns}×{rows}\n{styles}").unwrap();
    drawn
}

#[tokio::test(flavor = "multi_thread")]
async fn external_text_does_not_break_the_layout_or_hide_text() {
    let service = hostile::service().await;
    for keys in hostile::SCENES {
        let mut options = service.options();
        options.theme = Theme::Mono;
        let mut console = Headless::start(options, 80, 24);
        assert!(console.wait_until_idle().await);
        let screen = press(&mut console, keys).await;
        let is_list = keys == "2";
        assert!(
            !is_list || screen.contains("abc‹202E›cba‹2066›"),
            "{screen}"
        );
        for (columns, rows) in SIZES.into_iter().chain(SMALL_SIZES) {
            at_size(&mut console, columns, rows).await;
            hostile::check(console.buffer());
        }
    }
}

async fn open(world: &mut World, setting: Setting, scene: &Scene) -> Headless {
    let mut options = world.options();
    options.depth = Depth::Full;
    options.read_only = setting == Setting::ReadOnly;
    if setting == Setting::Refused {
        options.key = Some(Key::new("bw_unknown").unwrap());
    }
    if scene.name == "form_reveal" {
        // Shown on request.
        options.forbidden.retain(|it| it != SIGNING_SECRET);
    }
    let mut console = Headless::start(options, 80, 24);
    assert!(console.wait_until_idle().await, "{}", console.screen_text());
    for keys in scene.keys.split('|') {
        press(&mut console, keys).await;
    }
    if setting == Setting::Changed {
        world
            .describe_rule("night", "changed by somebody else")
            .await;
        press(&mut console, "<C-s>y").await;
    }
    if let Some(wanted) = scene.shows {
        assert!(console.shows(wanted).await, "{}", console.screen_text());
    }
    if setting == Setting::Lost {
        world.cut(true);
        assert!(
            console.shows("data shown is").await,
            "{}",
            console.screen_text()
        );
    }
    console
}

async fn at_size(console: &mut Headless, columns: u16, rows: u16) -> String {
    console.resize(columns, rows);
    assert!(console.wait_until_idle().await);
    let screen = console.screen_text();
    assert_eq!(screen.lines().count(), usize::from(rows));
    without_chance(&screen)
}

/// Texts that precede the time of the last update.
const LAST_RECEIVED: [&str; 2] = ["● connected at ", "✗ not connected, last heard "];

/// Replaces text that differs between runs: the reason and time of a lost connection, and the port
/// of the service.
fn without_chance(screen: &str) -> String {
    let mut out = String::new();
    for line in screen.lines() {
        let counts = line.contains("next attempt in") || line.contains("trying now");
        let line = if counts { " ✗ not connected" } else { line };
        let end = |before: &&str| line.find(before).map(|at| at + before.len());
        let received_at = LAST_RECEIVED.iter().find_map(end);
        let line = match received_at.and_then(|at| Some((&line[..at], line.get(at + 8..)?))) {
            Some((before, after)) => format!("{before}HH:MM:SS{after}"),
            None => line.to_owned(),
        };
        // The port is replaced by five characters, so that the text after it keeps its position.
        let port = line.find("127.0.0.1:").map(|at| at + "127.0.0.1:".len());
        if let Some((before, after)) = port.and_then(|at| line.split_at_checked(at)) {
            out += before;
            out += "PPPPP";
            out += after.trim_start_matches(|char: char| char.is_ascii_digit());
        } else {
            out += &line;
        }
        out.push('\n');
    }
    out
}

fn snapshot(name: &str, drawn: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, drawn));
}
