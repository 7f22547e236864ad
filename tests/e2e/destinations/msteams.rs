//! Microsoft Teams: cards, to a workflow and to an incoming webhook.

use bellwether_tests::{
    providers::{StandIn, msteams::MsTeams},
    world::World,
};
use serde_json::{Value, json};

use super::stage::{SUMMARY, Stage};

pub(super) const PATH: &str = "/workflows/canary-workflow/triggers/manual?sig=canary-signature";

pub(super) fn rules(is_workflow: bool) -> MsTeams {
    MsTeams {
        path: PATH.into(),
        is_workflow,
    }
}

fn facts(card: &Value) -> Vec<Value> {
    let facts = card["body"][1]["facts"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    facts
        .into_iter()
        .map(|fact| fact["value"].clone())
        .collect()
}

#[tokio::test]
async fn teams_shows_a_card_for_every_change() {
    for is_workflow in [true, false] {
        let teams = StandIn::start(rules(is_workflow)).await;
        let world = World::with_settings("link_base = \"https://bell.example\"\n");
        let kind = json!({"msteams": {"url": teams.url(PATH)}});
        let stage = Stage::new(world, kind, "").await;

        stage.opens().await;
        let opening = stage.told(&teams, 1).await.json()["attachments"][0]["content"].clone();
        stage.is_acknowledged().await;
        let acknowledged = stage.told(&teams, 2).await.json()["attachments"][0]["content"].clone();
        stage.closes().await;
        let closing = stage.told(&teams, 3).await.json()["attachments"][0]["content"].clone();

        // No tag of the event's text is one for Teams.
        let summary = SUMMARY.replace('<', "<\u{2060}");
        assert_eq!(opening["body"][0]["text"], summary);
        assert_eq!(opening["body"][0]["color"], "Attention");
        assert_eq!(facts(&opening), ["error", "open", "no"]);
        assert_eq!(opening["actions"][0]["type"], "Action.OpenUrl");
        assert_eq!(facts(&acknowledged), ["error", "open", "yes"]);
        assert_eq!(closing["body"][0]["text"], format!("{summary} (closed)"));
        assert_eq!(closing["body"][0]["color"], "Good");
        assert_eq!(facts(&closing), ["critical", "closed", "yes"]);
        stage.delivered(3).await;
    }
}
