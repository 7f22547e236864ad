//! A console and a command that run longer than the token they started with.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
    sync::mpsc,
    time::{Duration, Instant},
};

use bellwether_tests::{
    eventually::eventually,
    proxy::{Proxy, Weather},
    terminal::Terminal as Screen,
    world::World,
};
use serde_json::json;

use super::{Provider, Terminal, settings};
use crate::samples;

/// Validity of a token in seconds, and the clock tolerance for which the service still accepts the
/// token.
const LIFE: u32 = 8;
const LEEWAY: u64 = 60;
/// Generous timeout for an operation that takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

fn console(terminal: &Terminal) -> Screen {
    Screen::start(terminal.home.path(), &["--connect", &terminal.address])
}

async fn happen(world: &World, word: &str) {
    let event = samples::event(word, word, "SEVERITY_ERROR", &format!("it is {word}"));
    let events = samples::events(&[event]);
    let sent = world.rest().post("/v1/data-receiver/events", &events).await;
    assert_eq!(sent.ok()["succeeded"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn console_and_command_continue_with_the_renewed_token() {
    let Some(provider) = Provider::start(LIFE) else {
        return;
    };
    let world = World::with_settings(&settings(&provider.issuer));
    let terminal = Terminal::new(&world);
    let (went_well, reported) = terminal.login(&provider, "/approve?account=ada").await;
    assert!(went_well, "{reported}");
    let first = terminal.stored_sign_in()["token"].clone();
    let start = Instant::now();
    let mut watch = terminal.command(&["watch"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let (sender, lines) = mpsc::channel();
    let output = watch.stdout.take().unwrap();
    std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        lines.for_each(|line| drop(sender.send(line)));
    });
    let mut console = console(&terminal);
    console.shows(&["● connected", "oidc:ada@example.org (admin)"]);
    console.press("2");
    let receives = |word: &str, patience: Duration| {
        let end = Instant::now() + patience;
        let mut reported = String::new();
        while !reported.contains(word) {
            let left = end.saturating_duration_since(Instant::now());
            reported += &lines.recv_timeout(left).ok()?;
        }
        Some(reported)
    };
    // The command reports events once it follows the stream.
    let begun = async || {
        happen(&world, "begun").await;
        receives("it is begun", Duration::from_millis(500))
    };
    eventually("the command to follow", begun).await;
    happen(&world, "early").await;
    console.shows(&["it is early"]);
    receives("it is early", PATIENCE).expect("it follows");

    // Waits until the first token is no longer accepted.
    let end = Duration::from_secs(u64::from(LIFE) + LEEWAY + 5);
    while start.elapsed() < end {
        let screen = console.screen();
        assert!(screen.contains("● connected"), "{screen}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let ended = world.rest().with_key(first.as_str());
    assert_eq!(ended.get("/v1/notification/rules").await.status, 401);
    happen(&world, "late").await;
    console.shows(&["● connected", "it is late"]);
    let reported = receives("it is late", PATIENCE).expect("it continues");
    assert!(!reported.contains("it is early"), "{reported}");
    assert!(watch.try_wait().unwrap().is_none(), "it has ended");
    watch.kill().unwrap();
    watch.wait().unwrap();
    console.press("q");
    assert!(console.ended().success());
    // The service would also have logged a rejected token, which it must not.
    let log = world.service().log();
    let token = terminal.stored_sign_in()["token"].clone();
    assert!(!log.contains(token.as_str().unwrap()), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn console_reports_an_expired_sign_in_and_recovers() {
    let Some(provider) = Provider::start(600) else {
        return;
    };
    let world = World::with_settings(&settings(&provider.issuer));
    let proxy = Proxy::start(world.service().address("grpc"));
    let mut terminal = Terminal::new(&world);
    terminal.address = format!("http://{}", proxy.address());
    let (went_well, reported) = terminal.login(&provider, "/approve?account=otto").await;
    assert!(went_well, "{reported}");
    let mut console = console(&terminal);
    console.shows(&["● connected", "oidc:otto@example.org (operator)"]);
    let mut lines = terminal.command(&["--plain"]);
    lines.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut lines = lines.spawn().unwrap();
    let mut said = BufReader::new(lines.stdout.take().unwrap()).lines();
    let mut says = |text: &str| {
        let line = said.by_ref().map_while(Result::ok);
        let line = line.into_iter().find(|line| line.contains(text));
        line.unwrap_or_else(|| panic!("it does not say `{text}`"))
    };
    says("Connected as oidc:otto@example.org");

    // Let the token expire without a refresh token, and break the connection.
    let mut past = terminal.stored_sign_in();
    past["ends"] = json!("2026-01-01T00:00:00Z");
    past.as_object_mut().unwrap().remove("refresh_token");
    terminal.keep(&past);
    proxy.set(Weather::Refuses);
    console.shows(&["✗ not connected"]);
    proxy.set(Weather::Fair);
    let address = &terminal.address;
    let sentence = format!(
        "not signed in: your sign-in has expired; run `bellwether login --connect {address}`"
    );
    console.shows(&["✗ not connected", &sentence]);

    let (went_well, reported) = terminal.login(&provider, "/approve?account=ada").await;
    assert!(went_well, "{reported}");
    console.shows(&["● connected", "oidc:ada@example.org (admin)"]);
    console.press("2");
    happen(&world, "after").await;
    console.shows(&["it is after"]);
    console.press("q");
    assert!(console.ended().success());
    says(&sentence);
    says("Connected as oidc:ada@example.org");
    // Plain mode exits at the end of its input.
    drop(lines.stdin.take());
    assert!(lines.wait().unwrap().success());
}
