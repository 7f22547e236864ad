//! The whole console in one process, with an in-memory screen and a service on a real socket.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod attention;
mod backend;
mod bench;
mod finding;
mod flows;
mod heartbeats;
mod history;
mod incident;
mod insight;
mod many;
mod mappings;
mod monkey;
mod mouse;
mod on_call;
mod outbox;
mod outside;
mod proxy;
mod reference;
mod remapped;
mod screens;
mod service;
mod silences;
mod snapshots;
mod tasks;
mod trials;
mod truth;
mod undoing;
mod waiting;

use bellwether_proto::{cloud::Severity, v1};
use bellwether_tui::{Headless, Key, Options};

use crate::service::Service;

/// Starts a console of this size and waits until it is connected and idle.
async fn console(service: &Service, columns: u16, rows: u16) -> Headless {
    let mut console = Headless::start(service.options(), columns, rows);
    assert!(console.wait_until_idle().await, "{}", console.screen_text());
    console
}

/// Presses keys, waits until the console is idle, and returns the screen.
async fn press(console: &mut Headless, keys: &str) -> String {
    console.press(keys).unwrap();
    assert!(console.wait_until_idle().await, "{}", console.screen_text());
    console.screen_text()
}

async fn until(console: &mut Headless, wanted: &str) {
    assert!(
        console.shows(wanted).await,
        "no «{wanted}» in\n{}",
        console.screen_text()
    );
}
