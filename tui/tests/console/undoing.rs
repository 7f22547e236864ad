//! Undoing bulk changes, edits and pauses, and restoring earlier versions.

use serde_json::{Value, json};

use super::{flows::assert_shows, waiting::with_rule, *};
use crate::backend::Real;

async fn rule(real: &Real) -> Value {
    let request = json!({"name": "night"});
    real.call("RuleService", "GetRule", &request).await["rule"].clone()
}

async fn deliveries(real: &Real) -> usize {
    let found = real
        .call("DeliveryService", "ListDeliveries", &json!({}))
        .await;
    found["deliveries"].as_array().map_or(0, Vec::len)
}

async fn acknowledged(real: &Real) -> usize {
    let all = real.occurrences().await;
    let flagged = all.iter().filter(|it| it.acknowledged == Some(true));
    flagged.count()
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_edit_is_undone_after_confirming_the_diff() {
    let real = with_rule(&json!({"message": "as it was"})).await;
    let mut console = real.console().await;
    press(&mut console, "5").await;
    until(&mut console, "night").await;
    press(&mut console, "e").await;
    press(&mut console, "<Tab><Tab><Tab><C-u>a mistake").await;
    press(&mut console, "<C-s>").await;
    press(&mut console, "y").await;
    until(&mut console, "rule night changed · U undoes it").await;
    assert_eq!(rule(&real).await["message"], "a mistake");
    let keys = ["U", "y"];
    press(&mut console, keys[0]).await;
    until(&mut console, "Undo: rule night changed?").await;
    assert_shows(&console.screen_text(), "a mistake");
    assert_shows(&console.screen_text(), "as it was");
    press(&mut console, keys[1]).await;
    until(&mut console, "undone: rule night changed").await;
    assert_eq!(rule(&real).await["message"], "as it was");
    press(&mut console, "U").await;
    until(&mut console, "nothing to undo").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_version_is_restored_from_history() {
    let real = with_rule(&json!({"message": "first"})).await;
    for message in ["second", "third"] {
        let mut next = rule(&real).await;
        next["message"] = message.into();
        real.call("RuleService", "UpdateRule", &json!({"rule": next}))
            .await;
    }
    let mut console = real.console().await;
    press(&mut console, "5").await;
    until(&mut console, "night").await;
    press(&mut console, "H").await;
    until(&mut console, "Who changed rule night").await;
    until(&mut console, "restore this version").await;
    // The current version cannot be restored.
    assert_eq!(
        console
            .screen_text()
            .matches("restore this version")
            .count(),
        2
    );
    for _ in 0..10 {
        let screen = console.screen_text();
        let row = screen.lines().find(|line| line.starts_with('▶'));
        if row.is_some_and(|row| row.contains("restore this version")) {
            break;
        }
        press(&mut console, "<Tab>").await;
    }
    press(&mut console, "<Enter>").await;
    until(&mut console, "Restore this version of rule night?").await;
    assert_shows(&console.screen_text(), "second");
    press(&mut console, "y").await;
    until(&mut console, "rule night changed").await;
    assert_eq!(rule(&real).await["message"], "second");
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledgement_without_updates_is_undone_without_updates() {
    let real = with_rule(&json!({"sendUpdates": true})).await;
    let mut console = real.console().await;
    press(&mut console, "2").await;
    until(&mut console, "db-1").await;
    let before = deliveries(&real).await;
    press(&mut console, "bn").await;
    until(&mut console, "disk").await;
    press(&mut console, "a").await;
    until(&mut console, "Sends about 2 updates to pager.").await;
    assert_shows(&console.screen_text(), "w without updates");
    press(&mut console, "w").await;
    until(&mut console, "2 events acknowledged · U undoes it").await;
    assert_eq!(acknowledged(&real).await, 2);
    press(&mut console, "U").await;
    until(&mut console, "undone: 2 events acknowledged").await;
    assert_eq!(acknowledged(&real).await, 0);
    assert_eq!(deliveries(&real).await, before);
    // Undoing an update requires a confirmation, because it sends updates again.
    press(&mut console, "a").await;
    until(&mut console, "Sends about 2 updates to pager.").await;
    press(&mut console, "y").await;
    until(&mut console, "2 events acknowledged · U undoes it").await;
    press(&mut console, "U").await;
    until(&mut console, "sends about 2 updates").await;
    assert_shows(&console.screen_text(), "Sent messages cannot be recalled.");
    press(&mut console, "y").await;
    until(&mut console, "undone: 2 events acknowledged").await;
    assert_eq!(acknowledged(&real).await, 0);
    assert_eq!(deliveries(&real).await, before + 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_undoing_a_close_requires_confirmation() {
    let real = with_rule(&json!({})).await;
    let mut console = real.console().await;
    press(&mut console, "2").await;
    until(&mut console, "db-1").await;
    press(&mut console, "bn").await;
    until(&mut console, "disk").await;
    press(&mut console, "i").await;
    until(&mut console, "Assign 2 open events").await;
    press(&mut console, "y").await;
    until(&mut console, "2 events assigned").await;
    press(&mut console, "U").await;
    until(&mut console, "undone: 2 events assigned").await;
    let all = real.occurrences().await;
    assert!(all.iter().all(|it| it.assignee.is_empty()), "{all:?}");
    press(&mut console, "c").await;
    until(&mut console, "Close 2 open events").await;
    press(&mut console, "y").await;
    until(&mut console, "2 events closed · U undoes it").await;
    press(&mut console, "U").await;
    until(&mut console, "Reopens 2 events; rules may notify again.").await;
    press(&mut console, "y").await;
    until(&mut console, "undone: 2 events closed").await;
    let all = real.occurrences().await;
    let open = bellwether_proto::cloud::Status::Open;
    assert!(all.iter().all(|it| it.status() == open), "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn undoing_a_pause_confirms_the_number_of_deliveries() {
    let real = with_rule(&json!({})).await;
    let mut console = real.console().await;
    press(&mut console, "4").await;
    until(&mut console, "pager").await;
    press(&mut console, "p").await;
    press(&mut console, "y").await;
    until(&mut console, "pager paused · U undoes it").await;
    real.send_named("disk", Severity::Error, ["db-7".to_owned()].into_iter())
        .await;
    press(&mut console, "1").await;
    press(&mut console, "4").await;
    press(&mut console, "U").await;
    until(&mut console, "Undo: pager paused?").await;
    // The number is not compared: the message about the earlier event may also wait for a retry.
    until(&mut console, "for it now.").await;
    press(&mut console, "y").await;
    until(&mut console, "undone: pager paused").await;
    let request = json!({"name": "pager"});
    let found = real
        .call("DestinationService", "GetDestination", &request)
        .await;
    assert_ne!(found["destination"]["health"]["state"], "PAUSED");
}
