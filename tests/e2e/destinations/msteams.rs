//! Microsoft Teams: cards, for a workflow and for an incoming webhook.

use bellwether_tests::{
    eventually::eventually,
    providers::{Mischief, StandIn, msteams::MsTeams},
    receiver::Reply,
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
async fn teams_gets_a_card_for_every_change() {
    for is_workflow in [true, false] {
        let teams = StandIn::start(rules(is_workflow)).await;
        let world = World::with_settings("link_base = \"https://bell.example\"\n");
        let kind = json!({"msteams": {"url": teams.url(PATH)}});
        let stage = Stage::new(world, kind, "").await;

        stage.opens().await;
        let opening =
            stage.wait_received(&teams, 1).await.json()["attachments"][0]["content"].clone();
        stage.is_acknowledged().await;
        let acknowledged =
            stage.wait_received(&teams, 2).await.json()["attachments"][0]["content"].clone();
        stage.closes().await;
        let closing =
            stage.wait_received(&teams, 3).await.json()["attachments"][0]["content"].clone();

        // Tags in the event's text are escaped for Teams.
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

#[tokio::test]
async fn disabled_teams_workflow_fails_the_destination_not_the_message() {
    let says = |code: &str, message: &str| json!({"error": {"code": code, "message": message}});
    let disabled = "Could not execute workflow 'canary' trigger 'manual' with state 'Disabled': \
                    trigger is not enabled.";
    for (status, body, is_retried) in [
        (400, says("WorkflowTriggerIsNotEnabled", disabled), true),
        (
            400,
            says("WorkflowSuspended", "the workflow is suspended"),
            true,
        ),
        (404, says("WorkflowNotFound", "the workflow is gone"), true),
        (
            409,
            says("WorkflowIsDeleting", "the workflow is being deleted"),
            true,
        ),
        (
            400,
            says(
                "TriggerInputSchemaMismatch",
                "the input does not match the schema",
            ),
            false,
        ),
    ] {
        let teams = StandIn::start(rules(true)).await;
        let world = World::with_settings("[delivery]\nschedule = [\"0s\", \"1h\"]\n");
        let kind = json!({"msteams": {"url": teams.url(PATH)}});
        let stage = Stage::new(world, kind, "").await;
        let answer = Reply::answer(status, Vec::new(), body.to_string());
        teams.misbehave(Mischief::Answers(answer));
        stage.opens().await;
        let path = "/v1/notification/deliveries";
        // Content that is rejected is retried once, in the reduced form.
        let expected = if is_retried { "RETRY" } else { "DEAD" };
        let ended = eventually(&format!("{expected} after {body}"), async || {
            let one = stage.rest.get(path).await.ok()["deliveries"][0].clone();
            (one["state"] == expected).then_some(one)
        })
        .await;
        if !is_retried {
            continue;
        }
        let path = "/v1/notification/destinations/place";
        let place = stage.rest.get(path).await.ok();
        let health = &place["destination"]["health"];
        assert_eq!(health["state"], "FAILING", "{body}: {health}");
        // The message is delivered once the workflow is enabled.
        teams.misbehave(None);
        let id = ended["id"].as_str().expect("an id");
        let retry = format!("/v1/notification/deliveries/{id}:retry");
        stage.rest.post(&retry, &json!({})).await.ok();
        stage.wait_received(&teams, 1).await;
    }
}
