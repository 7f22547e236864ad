//! Waiting and grouped messages: their lists, and the actions on them.

use bellwether_tui::api::Api;
use serde_json::{Value, json};

use super::{flows::assert_shows, *};
use crate::backend::Real;

/// Starts a service on which this rule notifies an unreachable receiver about every disk event.
pub(crate) async fn with_rule(rule: &Value) -> Real {
    let real = Real::start().await;
    let mut api = Api::connect(real.options(real.address)).await.unwrap();
    let url = "https://pager.invalid/";
    let mut rule = rule.clone();
    rule["name"] = "night".into();
    rule["enabled"] = true.into();
    rule["triggerNames"] = json!(["disks"]);
    rule["destinationNames"] = json!(["pager"]);
    let destination = json!({
        "name": "pager",
        "type": {"webhook": {"url": url}},
        "delivery": {"maxAttempts": 1},
    });
    let trigger = json!({"name": "disks", "type": {"event": {"filter": "name=disk"}}});
    for (service, method, request) in [
        (
            "DestinationService",
            "CreateDestination",
            json!({"destination": destination}),
        ),
        (
            "TriggerService",
            "CreateTrigger",
            json!({"trigger": trigger}),
        ),
        ("RuleService", "CreateRule", json!({"rule": rule})),
    ] {
        api.call(service, method, &request).await.unwrap();
    }
    let hosts = ["db-1", "db-2"].map(str::to_owned);
    // Send warnings: if messages about errors died, the service's own event about that would be
    // listed first.
    real.send(Severity::Warning, hosts.into_iter()).await;
    real
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_notification_shows_its_reason_and_can_be_sent_now() {
    let real = with_rule(&json!({"delay": "3600s"})).await;
    let mut console = Headless::start(real.options(real.address), 120, 30);
    until(&mut console, "connected").await;
    console.press("<A-6>").unwrap();
    until(&mut console, "delay of night").await;
    let screen = press(&mut console, "/db-1<Enter>").await;
    assert_shows(&screen, "the disk of db-1 is full");
    assert!(!screen.contains("db-2"), "{screen}");
    press(&mut console, "<Enter>").await;
    until(&mut console, "delay of rule night until").await;
    assert_shows(&console.screen_text(), "the first message");
    press(&mut console, "r").await;
    until(&mut console, "Send the held notifications of rule night?").await;
    press(&mut console, "y").await;
    until(&mut console, "night notifies now").await;
    // The screen still has the filter that was set before it was left.
    console.press("<A-6>").unwrap();
    until(&mut console, "no match `db-1`").await;
    console.press("<Esc>").unwrap();
    until(&mut console, "the disk of db-2 is full").await;
    assert!(
        !console.screen_text().contains("db-1"),
        "{}",
        console.screen_text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn group_shows_members_and_is_acknowledged_and_closed_as_one() {
    let group = json!({"by": ["name"], "wait": "0s", "interval": "3600s"});
    let real = with_rule(&json!({"group": group})).await;
    let mut console = Headless::start(real.options(real.address), 120, 30);
    until(&mut console, "connected").await;
    // The first message creates the group.
    console.press("<A-7>").unwrap();
    until(&mut console, "name=disk").await;
    press(&mut console, "<Enter>").await;
    until(&mut console, "the disk of db-1 is full").await;
    let screen = console.screen_text();
    assert_shows(&screen, "group-");
    assert_shows(&screen, "pager");
    press(&mut console, "a").await;
    until(&mut console, "open events in this group of rule night?").await;
    press(&mut console, "y").await;
    until(
        &mut console,
        "acknowledged the 2 open events in a group of rule night",
    )
    .await;
    until(&mut console, "acked").await;
    press(&mut console, "c").await;
    press(&mut console, "y").await;
    until(
        &mut console,
        "closed the 2 open events in a group of rule night",
    )
    .await;
    until(&mut console, "over").await;
    console.press("2").unwrap();
    until(&mut console, "No open events.").await;
}
