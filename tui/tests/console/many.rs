//! Bulk changes to all events that match a filter.

use super::{flows::assert_shows, *};

use bellwether_proto::cloud::Status;

use crate::backend::Real;

async fn with_events() -> (Real, Headless) {
    let real = Real::start().await;
    let hosts = |word: &'static str| (0..130).map(move |number| format!("{word}-{number}"));
    real.send(Severity::Error, hosts("db")).await;
    real.send(Severity::Info, hosts("web")).await;
    let mut console = Headless::start(real.options(real.address), 80, 30);
    assert!(console.shows("error").await, "{}", console.screen_text());
    (real, console)
}

#[tokio::test(flavor = "multi_thread")]
async fn matching_events_are_counted_confirmed_and_changed_in_batches() {
    let (real, mut console) = with_events().await;
    press(&mut console, "2").await;
    press(&mut console, "/severity>=error<Enter>").await;
    let screen = press(&mut console, "<A-a>").await;
    assert_shows(&screen, "Acknowledge 130 open events with severity>=error?");
    assert_shows(&screen, "130 events will be acknowledged:");
    assert_shows(&screen, "130  error");
    assert_shows(&screen, "the disk of db-");
    assert_shows(&screen, "and 125 more");
    press(&mut console, "<Enter>").await;
    let acknowledged = |all: Vec<v1::Occurrence>| {
        let meant = all.into_iter().filter(|it| it.acknowledged == Some(true));
        meant.map(|it| it.summary).collect::<Vec<_>>()
    };
    assert_eq!(acknowledged(real.occurrences().await).len(), 0);

    press(&mut console, "<A-a>").await;
    let screen = press(&mut console, "y").await;
    assert_shows(&screen, "✓ 130 events acknowledged");
    let done = acknowledged(real.occurrences().await);
    assert_eq!(done.len(), 130);
    assert!(
        done.iter().all(|summary| summary.contains("of db-")),
        "{done:?}"
    );

    let screen = press(&mut console, "<A-a>").await;
    assert_shows(&screen, "no event to acknowledge: 130 already acknowledged");
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_change_can_be_stopped_after_a_batch() {
    let (real, mut console) = with_events().await;
    press(&mut console, "2").await;
    press(&mut console, "<A-c>").await;
    let screen = press(&mut console, "y<Esc>").await;
    assert_shows(&screen, "stopped: 100 events closed, of 260 counted");
    let closed = |it: &v1::Occurrence| it.status() == Status::Closed;
    let count = real
        .occurrences()
        .await
        .iter()
        .filter(|it| closed(it))
        .count();
    assert_eq!(count, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn note_is_added_to_all_matching_or_marked_events() {
    let (real, mut console) = with_events().await;
    press(&mut console, "2").await;
    press(&mut console, "/host=db-1 severity=error<Enter>").await;
    press(&mut console, "<A-n>the array is being rebuilt<Enter>").await;
    let screen = console.screen_text();
    assert_shows(&screen, "Add a note to 1 open event with host=db-1");
    assert_shows(&screen, "Note for 1 event: the array is being rebuilt");
    let screen = press(&mut console, "y").await;
    assert_shows(&screen, "note added to ");
    press(&mut console, "/<C-u>host=web-7*<Enter>").await;
    let screen = press(&mut console, "<Space><Space>walso here<Enter>").await;
    assert_shows(&screen, "✓ note added to 2 events · U undoes it");
    press(&mut console, "gg<Enter><Tab>").await;
    assert_shows(&console.screen_text(), "also here");
    let screen = press(&mut console, "U").await;
    assert_shows(&screen, "✓ undone: note added to 2");
    assert!(!screen.contains("also here"), "{screen}");
    drop(real);
}
