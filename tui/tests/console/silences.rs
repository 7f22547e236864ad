//! Silences: created from an event, from marked events and from groups, and their list.

use bellwether_tui::api::Api;
use serde_json::{Value, json};

use super::{flows::assert_shows, waiting::with_rule, *};
use crate::backend::Real;

/// Starts a service with two hosts, each with events of three names, and a console on their
/// list.
async fn few() -> (Real, Headless) {
    let real = Real::start().await;
    for name in ["disk", "cpu", "fan"] {
        let hosts = ["db-1", "db-2"].map(str::to_owned);
        real.send_named(name, Severity::Error, hosts.into_iter())
            .await;
    }
    let console = real.console().await;
    (real, console)
}

/// Starts a service with 24 events of one host and one event of another.
async fn storm() -> (Real, Headless) {
    let real = Real::start().await;
    real.send(Severity::Error, std::iter::once("calm".to_owned()))
        .await;
    for number in 0..24 {
        let host = std::iter::once("db-13".to_owned());
        real.send_named(&format!("disk-{number}"), Severity::Error, host)
            .await;
    }
    let console = real.console().await;
    (real, console)
}

async fn stored_silences(real: &Real) -> Vec<(String, i64)> {
    let mut api = Api::connect(real.options(real.address)).await.unwrap();
    let found = api
        .call("SilenceService", "ListSilences", &json!({}))
        .await
        .unwrap();
    let silences = found["silences"].as_array().cloned().unwrap_or_default();
    let at = |silence: &Value, name: &str| -> jiff::Timestamp {
        silence[name].as_str().unwrap().parse().unwrap()
    };
    let read = |silence: &Value| {
        let length = at(silence, "endsTime").as_second() - at(silence, "startedTime").as_second();
        (
            silence["filter"].as_str().unwrap().to_owned(),
            (length + 30) / 60,
        )
    };
    silences.iter().map(read).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn host_is_silenced_in_four_keys_and_undone_in_one() {
    let (real, mut console) = few().await;
    press(&mut console, "2").await;
    press(&mut console, "/name=fan host=db-1<Enter>").await;
    press(&mut console, "1").await;
    let keys = ["2", "z", "h", "2"];
    for key in keys {
        press(&mut console, key).await;
    }
    assert!(keys.len() <= 4);
    until(&mut console, "silenced all of db-").await;
    let silences = stored_silences(&real).await;
    let [(filter, minutes)] = &silences[..] else {
        panic!("{silences:?}");
    };
    assert!(filter.starts_with("dimensions.host=db-"), "{filter}");
    assert_eq!(*minutes, 120);
    press(&mut console, "U").await;
    until(&mut console, "undone: silenced all of db-").await;
    assert_eq!(stored_silences(&real).await, vec![]);
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_choices_show_the_covered_events() {
    let (real, mut console) = few().await;
    press(&mut console, "2").await;
    press(&mut console, "/host=db-1 severity>=error<Enter>").await;
    for key in ["j", "k"] {
        press(&mut console, key).await;
    }
    let screen = press(&mut console, "z").await;
    for shown in [
        "this event",
        "on db-1",
        "all of db-1",
        "all matches",
        "until 08:00",
        "other",
        "3 open, 0 messages in 7 days",
        "covers 1 open event now, would have held 0 messages in 7 days",
    ] {
        assert_shows(&screen, shown);
    }
    // Leaving the form creates no silence.
    press(&mut console, "n").await;
    assert_eq!(stored_silences(&real).await, vec![]);
    press(&mut console, "z").await;
    press(&mut console, "f").await;
    until(&mut console, "covers 3 open events now").await;
    press(&mut console, "8").await;
    until(&mut console, "silenced events matching host=db-1").await;
    let silences = stored_silences(&real).await;
    assert_eq!(silences.len(), 1);
    assert!(silences[0].0.contains("severity>="), "{silences:?}");
    assert_eq!(silences[0].1, 480);
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_silence_end_is_shown_as_parsed() {
    let (real, mut console) = few().await;
    press(&mut console, "2").await;
    press(&mut console, "z").await;
    press(&mut console, "b").await;
    press(&mut console, "o").await;
    let screen = press(&mut console, "soon<Enter>").await;
    assert_shows(&screen, "`soon` is not a time; expected 2h, +30m, 08:00");
    let screen = press(&mut console, "<C-u>+90m").await;
    assert_shows(&screen, "UTC, in 1h30m");
    press(&mut console, "<Enter>").await;
    until(&mut console, "on db-").await;
    until(&mut console, "✓ silenced").await;
    let silences = stored_silences(&real).await;
    assert_eq!(silences[0].1, 90, "{silences:?}");
    assert!(silences[0].0.contains("name="), "{silences:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn broad_silence_needs_a_second_confirmation_with_counts() {
    let (real, mut console) = storm().await;
    press(&mut console, "2").await;
    press(&mut console, "z").await;
    press(&mut console, "h").await;
    press(&mut console, "2").await;
    until(&mut console, "Silence all of db-13 until").await;
    until(&mut console, "covers 24 open events now").await;
    assert_shows(&console.screen_text(), "more than half");
    // The default answer is No.
    press(&mut console, "<Enter>").await;
    assert_eq!(stored_silences(&real).await, vec![]);
    for key in ["z", "h", "2", "y"] {
        press(&mut console, key).await;
    }
    until(&mut console, "✓ silenced all of db-13 until").await;
    let silences = stored_silences(&real).await;
    assert_eq!(silences, [("dimensions.host=db-13".to_owned(), 120)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_and_marked_events_can_be_silenced() {
    let (real, mut console) = storm().await;
    press(&mut console, "2").await;
    press(&mut console, "bh").await;
    until(&mut console, "db-13").await;
    for key in ["z", "8"] {
        press(&mut console, key).await;
    }
    until(&mut console, "Silence all of db-13 until").await;
    press(&mut console, "y").await;
    until(&mut console, "✓ silenced all of db-13").await;
    assert_eq!(stored_silences(&real).await[0].1, 480);
    press(&mut console, "2").await;
    press(&mut console, "<Space>").await;
    press(&mut console, "<Space>").await;
    let screen = press(&mut console, "z").await;
    assert_shows(&screen, "these 2 events");
    until(&mut console, "covers 2 open events now").await;
    press(&mut console, "1").await;
    until(&mut console, "✓ silenced these 2 events").await;
    assert_eq!(stored_silences(&real).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn group_acknowledgement_confirms_count_and_group() {
    let real = with_rule(&json!({"sendUpdates": true})).await;
    let mut console = real.console().await;
    press(&mut console, "2").await;
    until(&mut console, "db-1").await;
    press(&mut console, "bn").await;
    until(&mut console, "disk").await;
    press(&mut console, "a").await;
    until(&mut console, "Acknowledge 2 open events named disk?").await;
    until(&mut console, "Sends about 2 updates to pager.").await;
    press(&mut console, "<Enter>").await;
    let acknowledged = |all: &[v1::Occurrence]| {
        all.iter()
            .filter(|it| it.acknowledged == Some(true))
            .count()
    };
    assert_eq!(acknowledged(&real.occurrences().await), 0);
    press(&mut console, "a").await;
    until(&mut console, "Sends about 2 updates").await;
    press(&mut console, "y").await;
    until(&mut console, "✓ 2 events acknowledged").await;
    assert_eq!(acknowledged(&real.occurrences().await), 2);
    press(&mut console, "c").await;
    until(&mut console, "Sends about 2 closings to pager.").await;
    press(&mut console, "n").await;
    press(&mut console, "i").await;
    until(&mut console, "Assign 2 open events named disk?").await;
    press(&mut console, "y").await;
    until(&mut console, "✓ 2 events assigned").await;
    press(&mut console, "s").await;
    until(&mut console, "Suppress 2 open events named disk?").await;
    press(&mut console, "y").await;
    until(&mut console, "✓ 2 events suppressed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn form_accepts_natural_times_and_shows_them_parsed() {
    let real = Real::start().await;
    let mut console = real.console().await;
    press(&mut console, "0").await;
    press(&mut console, "n").await;
    press(
        &mut console,
        "quiet<Tab>move<Tab>host=db-1<Tab><Tab><Tab>8 o'clock",
    )
    .await;
    let screen = press(&mut console, "<C-s>").await;
    assert_shows(
        &screen,
        "`8 o'clock` is not a time; expected 2h, +30m, 08:00",
    );
    let screen = press(&mut console, "<C-u>2h").await;
    assert_shows(&screen, "UTC, in 2h");
    press(&mut console, "<C-s>").await;
    until(&mut console, "Create silence quiet?").await;
    press(&mut console, "y").await;
    until(&mut console, "silence quiet created").await;
    assert_eq!(stored_silences(&real).await[0].1, 120);
}

#[tokio::test(flavor = "multi_thread")]
async fn tab_counts_are_refreshed_on_every_screen() {
    let real = Real::start().await;
    let mut console = real.console().await;
    press(&mut console, "4").await;
    let since = std::time::Instant::now();
    let hosts = ["db-1", "db-2", "db-3"].map(str::to_owned);
    real.send(Severity::Error, hosts.into_iter()).await;
    until(&mut console, "2 Events 3").await;
    assert!(since.elapsed().as_secs() < 9, "{:?}", since.elapsed());
    assert_shows(&console.screen_text(), "No destinations yet");
}
