//! The most common tasks take the keys listed in `docs/console/tasks.md`.

use bellwether_tui::api::Api;
use serde_json::json;

use super::{waiting::with_rule, *};
use crate::backend::Real;

/// Tasks, with the keys pressed and the text shown afterwards.
const TASKS: [(&str, &str, &str); 14] = [
    ("see the open critical events", "!", "severity=critical"),
    ("acknowledge an event", "2a", "acknowledged"),
    ("undo it", "U", "undone"),
    ("why a rule did or did not notify", "2x", "night"),
    ("find the events of a host", "2/host=db-1<Enter>", "1/1"),
    (
        "silence an event for two hours",
        "2zy",
        "silenced disk on db-",
    ),
    (
        "silence a host for two hours",
        "2zh2",
        "silenced all of db-",
    ),
    ("write a note", "2wseen<Enter>", "note"),
    ("test a destination", "4t", "verdict"),
    ("resend a dead letter", "6ry", "resent"),
    (
        "resend the dead letters of a destination",
        "4rAy",
        "being resent",
    ),
    ("turn a rule off", "5o", "disabled"),
    ("edit a rule as text", "5E", "night"),
    ("which trigger feeds which destination", "5", "disks"),
];

#[tokio::test(flavor = "multi_thread")]
async fn common_tasks_take_the_documented_keys() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/console/tasks.md");
    let document = std::fs::read_to_string(path).unwrap();
    let own = document.split("\n## ").next().unwrap();
    let rows = own.lines().filter(|line| line.starts_with("| "));
    let rows = rows.skip(1).map(|line| line.split(" | ").collect());
    let rows: Vec<Vec<&str>> = rows.collect();
    assert_eq!(rows.len(), TASKS.len());
    let mut missed = Vec::new();
    for (row, (task, keys, shows)) in rows.iter().zip(TASKS) {
        assert_eq!(row[0].trim_start_matches("| "), task);
        // In the table, keys are in backticks, and typed words are not.
        let listed: String = row[1].split(' ').map(key).collect();
        assert_eq!(listed, keys, "{task}");
        let count = row[1].matches('`').count() / 2;
        assert_eq!(row[2].trim_end_matches(" |"), count.to_string(), "{task}");
        let real = with_rule(&json!({})).await;
        both_dead(&real).await;
        let mut console = Headless::start(real.options(real.address), 120, 30);
        assert!(
            console.shows("connected at").await,
            "{}",
            console.screen_text()
        );
        if task == "undo it" {
            press(&mut console, "2").await;
            press(&mut console, "a").await;
        }
        // Wait for the screen before each key, as a person would.
        for key in stepped(keys) {
            press(&mut console, &key).await;
        }
        if !console.shows(shows).await {
            missed.push(format!("{task}: {}", console.screen_text()));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

async fn both_dead(real: &Real) {
    let mut api = Api::connect(real.options(real.address)).await.unwrap();
    let request = json!({"states": ["DEAD"]});
    let mut dead = 0;
    for _ in 0..600 {
        let found = api
            .call("DeliveryService", "ListDeliveries", &request)
            .await;
        let found = found.unwrap();
        dead = found["deliveries"].as_array().map_or(0, Vec::len);
        if dead == 2 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(
        dead, 2,
        "messages to an unreachable address are dead letters"
    );
}

fn stepped(keys: &str) -> Vec<String> {
    let mut steps = Vec::new();
    let mut rest = keys;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '<' => rest.find('>').map_or(rest.len(), |at| at + 1),
            first => first.len_utf8(),
        };
        steps.push(rest[..end].to_owned());
        rest = &rest[end..];
    }
    steps
}

fn key(message: &str) -> String {
    match message
        .strip_prefix('`')
        .and_then(|it| it.strip_suffix('`'))
    {
        Some(key) if key.chars().count() > 1 => format!("<{key}>"),
        Some(key) => key.to_owned(),
        None => message.to_owned(),
    }
}
