//! The order of messages about an occurrence.

use bellwether_tests::{
    eventually::eventually,
    providers::{Mischief, StandIn},
    receiver::Reply,
    world::World,
};
use serde_json::json;

use super::{pagerduty, stage::Stage};

#[tokio::test]
async fn closing_message_does_not_overtake_a_retried_opening() {
    let pagerduty = StandIn::start(pagerduty::rules()).await;
    let world = World::with_settings(&format!(
        "[delivery]\nschedule = [\"0s\", \"1s\"]\njitter = 0\n[providers]\npagerduty = {:?}\n",
        pagerduty.url("")
    ));
    let kind = json!({"pagerduty": {"routingKey": pagerduty::ROUTING_KEY}});
    pagerduty.misbehave(Mischief::Answers(Reply::status(503)));
    let stage = Stage::new(world, kind, "").await;
    stage.opens().await;
    eventually("the first attempt", async || {
        (pagerduty.requests() == 1).then_some(())
    })
    .await;
    pagerduty.misbehave(None);
    stage.closes().await;
    stage.wait_received(&pagerduty, 2).await;
    let actions: Vec<_> = pagerduty
        .accepted()
        .iter()
        .map(|got| got.json()["event_action"].clone())
        .collect();
    assert_eq!(actions, ["trigger", "resolve"]);
}
