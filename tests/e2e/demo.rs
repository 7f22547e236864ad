//! `bellwether demo`: its story runs, and no files remain.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
};

use bellwether_tests::{
    eventually::eventually,
    process::{command, signal},
    rest::Rest,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn demo_runs_its_story_and_leaves_no_files() {
    let home = tempfile::tempdir().unwrap();
    let mut demo = command(home.path(), ["demo", "--serve"]);
    demo.env("TMPDIR", home.path()).stdout(Stdio::piped());
    let mut demo = demo.spawn().unwrap();
    let printed = BufReader::new(demo.stdout.take().unwrap());
    let lines: Vec<_> = printed.lines().take(3).map(Result::unwrap).collect();
    let after = |start: &str| {
        let found = lines.iter().find_map(|line| line.strip_prefix(start));
        found.unwrap_or_else(|| panic!("{lines:?}")).to_owned()
    };
    let key_file = after("key file ");
    let key = std::fs::read_to_string(&key_file).unwrap();
    let rest = after("REST ");
    let rest = Rest::new(rest.trim_start_matches("http://"), Some(key.trim()));
    eventually("a page, a delivery and a failing destination", async || {
        let responses = rest.get("/v1/notification/responses").await.ok();
        let overview = rest.get("/v1/overview").await.ok();
        let destinations = overview["destinations"].as_array()?;
        let is_failing = |it: &&serde_json::Value| it["health"]["state"] == "FAILING";
        let is_shown = !responses["responses"].as_array()?.is_empty()
            && destinations.iter().any(|it| it["deliveredCount"] != 0)
            && destinations.iter().any(|it| is_failing(&it));
        is_shown.then_some(())
    })
    .await;
    signal("-TERM", demo.id());
    assert!(demo.wait().unwrap().success());
    assert!(!Path::new(&key_file).exists());
    let left = std::fs::read_dir(home.path()).unwrap();
    let left: Vec<_> = left.map(|it| it.unwrap().file_name()).collect();
    let of_demo = |it: &&std::ffi::OsString| it.to_string_lossy().starts_with("bellwether-demo");
    assert!(!left.iter().any(|it| of_demo(&it)), "{left:?}");
}
