//! Nodes with wrong clocks use the database's time. Debian's `faketime`, a library between a
//! program and the system, changes their clocks; without it, the tests are skipped with a message.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bellwether_tests::{
    eventually::eventually,
    receiver::{Receiver, Reply},
    world::World,
};

use super::{leader, owners};
use crate::{journey, postgres::Database, samples};

const WAITS: Duration = Duration::from_secs(4);
const OFF_MAX: Duration = Duration::from_secs(1);
const BUSY: Duration = Duration::from_millis(500);

fn faketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.filter_map(Result::ok);
    let mut found = folders.map(|it| it.path().join("faketime/libfaketime.so.1"));
    let found = found.find(|it| it.exists());
    if found.is_none() {
        // Write to standard error directly, so that a skipped test is visible.
        let notice = "skipped: no faketime here; `.ci/run` installs it\n";
        drop(std::io::stderr().write_all(notice.as_bytes()));
    }
    found
}

/// Starts a node whose clock is offset by the contents of a file, which may change later.
fn node(
    database: &Database,
    first: Option<&World>,
    name: &str,
    library: &Path,
    file: &Path,
) -> World {
    let lines = database.settings_of(name).replace(
        "schedule = [\"0s\"]",
        &format!("jitter = 0\nschedule = [\"0s\", \"{}s\"]", WAITS.as_secs()),
    );
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let variables = vec![
        ("LD_PRELOAD", text(library)),
        ("FAKETIME_TIMESTAMP_FILE", text(file)),
        ("FAKETIME_NO_CACHE", "1".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
    ];
    Database::node(first, &lines, variables)
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_is_on_time_despite_clock_skew() {
    let (Some(library), Some(database)) = (faketime(), Database::start()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let clock = |name: &str, off: &str| {
        let file = folder.path().join(name);
        fs::write(&file, format!("{off}\n")).unwrap();
        file
    };
    let behind = clock("behind", "-3600");
    let ahead = clock("ahead", "+3600");
    let stepped = clock("stepped", "+0");
    let first = node(&database, None, "behind", &library, &behind);
    let second = node(&database, Some(&first), "ahead", &library, &ahead);
    let third = node(&database, Some(&first), "stepped", &library, &stepped);
    for (world, off) in [(&first, -3_600), (&second, 3_600), (&third, 0)] {
        let log = world.service().log();
        let said: jiff::Timestamp = log.split_whitespace().next().unwrap().parse().unwrap();
        let behind = jiff::Timestamp::now().as_second() - said.as_second() + off;
        assert!((0..600).contains(&behind), "its clock was set: {log}");
    }
    let arrivals = Arc::new(Mutex::new(Vec::<(String, Instant)>::new()));
    let noted = Arc::clone(&arrivals);
    let receiver = Receiver::with_rule(move |request| {
        let id = request.delivery_id().to_owned();
        let mut noted = noted.lock().unwrap();
        let is_first = noted.iter().all(|(other, _)| *other != id);
        noted.push((id, Instant::now()));
        Reply::status(if is_first { 503 } else { 200 })
    })
    .await;
    journey::set_up(&third.rest(), &receiver).await;
    let mut worlds = vec![("behind", first), ("ahead", second), ("stepped", third)];
    let mut reported = 0;
    while let Some((_, first)) = worlds.first() {
        // Wait until ownership is settled: a new owner tries a message of this severity early.
        owners::all_own(&worlds.iter().map(|(_, it)| it).collect::<Vec<_>>()).await;
        let leads = leader(first).await;
        let at = worlds.iter().position(|(name, _)| *name == leads).unwrap();
        let name = worlds[at].0;
        // Send two events per node. Only the clock of `stepped` is set during the wait.
        for step in ["+1800", "-1800"] {
            let rest = worlds[at].1.rest();
            let host = format!("{name}{step}");
            let event = samples::event("full", &host, "SEVERITY_ERROR", "disk is full");
            let body = samples::events(&[event]);
            rest.post("/v1/data-receiver/events", &body).await.ok();
            let before = reported;
            receiver_has(&arrivals, before + 1).await;
            if name == "stepped" {
                fs::write(&stepped, format!("{step}\n")).unwrap();
            }
            receiver_has(&arrivals, before + 2).await;
            reported = before + 2;
            let arrivals = arrivals.lock().unwrap();
            let (once, again) = (&arrivals[before], &arrivals[before + 1]);
            assert_eq!(once.0, again.0);
            let waited = again.1 - once.1;
            eprintln!("{name} {step}: waited {waited:?} for {WAITS:?}");
            let off = waited.abs_diff(WAITS);
            assert!(
                off <= OFF_MAX + BUSY,
                "{name}: {waited:?} instead of {WAITS:?}"
            );
        }
        let (_, mut ended) = worlds.remove(at);
        assert!(ended.terminate().success());
    }
}

async fn receiver_has(arrivals: &Mutex<Vec<(String, Instant)>>, count: usize) {
    eventually("a message to arrive", async || {
        (arrivals.lock().unwrap().len() >= count).then_some(())
    })
    .await;
}
