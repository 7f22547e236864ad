//! ServiceNow: a token, then records that open, change and close an alert.

use bellwether_tests::{
    providers::{StandIn, servicenow::ServiceNow},
    world::World,
};
use serde_json::{Value, json};

use super::stage::{SUMMARY, Stage};

pub(super) const SECRET: &str = "canary-client-secret";
const REFRESH: &str = "canary-refresh-token";

#[tokio::test]
async fn servicenow_gets_every_change_and_expired_tokens_are_renewed() {
    // Every second record is rejected because the token has expired.
    let servicenow = StandIn::start(ServiceNow::new(SECRET, None, 1)).await;
    let kind = json!({"servicenow": {
        "instanceUrl": servicenow.url("/"),
        "clientId": "bellwether",
        "clientSecret": SECRET,
    }});
    let stage = Stage::new(World::start(), kind, "").await;

    stage.opens().await;
    let opening = stage.wait_received(&servicenow, 1).await.json();
    stage.is_acknowledged().await;
    let acknowledged = stage.wait_received(&servicenow, 2).await.json();
    stage.gets_worse().await;
    let worse = stage.wait_received(&servicenow, 3).await.json();
    stage.closes().await;
    let closing = stage.wait_received(&servicenow, 4).await.json();

    assert_eq!(opening["message_key"], stage.event().await["id"]);
    assert_eq!(opening["source"], "Bellwether");
    assert_eq!(
        (&opening["node"], &opening["type"]),
        (&json!("db-1"), &json!("disk"))
    );
    assert_eq!(
        (&opening["severity"], &opening["resolution_state"]),
        (&json!("2"), &json!("New"))
    );
    let description = opening["description"].as_str().expect("a text");
    assert!(description.contains(SUMMARY), "{description}");
    let info = |record: &Value| -> Value {
        let text = record["additional_info"].as_str().expect("a text");
        serde_json::from_str(text).expect("JSON")
    };
    assert_eq!(info(&opening)["dimensions.host"], "db-1");
    assert_eq!(info(&opening)["fields.usedPercent"], "97.5");
    assert_eq!(info(&opening)["fields.mount"], "{\"point\":\"/var\"}");
    assert_eq!(info(&opening)["acknowledged"], "false");
    assert_eq!(info(&acknowledged)["acknowledged"], "true");
    assert_eq!(worse["severity"], "1");
    assert_eq!(
        (&closing["severity"], &closing["resolution_state"]),
        (&json!("0"), &json!("Closing"))
    );
    for delivery in stage.delivered(4).await {
        let attempts = delivery["attempts"].as_array().expect("attempts");
        assert_eq!(
            attempts.len(),
            1,
            "a new token does not count as an attempt: {delivery}"
        );
    }
    // Four records, four tokens, and three rejections for expired ones.
    assert_eq!(servicenow.requests(), 11);
}

#[tokio::test]
async fn servicenow_uses_its_refresh_token() {
    let servicenow = StandIn::start(ServiceNow::new(SECRET, Some(REFRESH), 10)).await;
    let kind = json!({"servicenow": {
        "instanceUrl": servicenow.url(""),
        "clientId": "bellwether",
        "clientSecret": SECRET,
        "tokenUrl": servicenow.url("/oauth_token.do"),
        "refreshToken": REFRESH,
    }});
    let stage = Stage::new(World::start(), kind, "{{event.summary}}").await;

    stage.opens().await;
    let opening = stage.wait_received(&servicenow, 1).await.json();
    stage.closes().await;
    stage.wait_received(&servicenow, 2).await;

    assert_eq!(opening["description"], SUMMARY);
    stage.delivered(2).await;
    assert_eq!(servicenow.requests(), 3, "the token is reused");
}
