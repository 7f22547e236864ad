//! Secrets of destinations, client keys and the database's password appear neither in the database
//! nor in logs or metrics.

use bellwether_tests::{eventually::eventually, postgres::PASSWORD, receiver::Receiver};
use serde_json::json;

use super::Database;
use crate::samples;

const HEADER: &str = "Bearer canary-header-51b7";
const SIGNING: &str = "whsec_Y2FuYXJ5LWluLXRoZS1kYXRhYmFzZS0wMTIzNDU2Nw==";

fn hex(text: &str) -> String {
    let bytes = text.bytes().map(|byte| format!("{byte:02x}"));
    bytes.collect::<Vec<_>>().concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_not_in_the_database_log_or_metrics() {
    let Some(database) = Database::start() else {
        return;
    };
    let world = database.world();
    let rest = world.rest();
    let receiver = Receiver::start().await;
    let mut hook = samples::webhook("hook", &receiver.url("/hook"));
    hook["type"]["webhook"]["headers"] = json!({"authorization": HEADER});
    hook["type"]["webhook"]["signingSecret"] = json!(SIGNING);
    let kind = |kind: &str| format!("/v1/notification/{kind}");
    rest.post(&kind("destinations"), &hook).await.ok();
    let trigger = samples::trigger("disk", "disk");
    rest.post(&kind("triggers"), &trigger).await.ok();
    let rule = samples::rule("disks", "disk", "hook", "seen");
    rest.post(&kind("rules"), &rule).await.ok();
    let event = samples::event("full", "canary-host", "SEVERITY_ERROR", "disk is full");
    let path = "/v1/data-receiver/events";
    rest.post(path, &samples::events(&[event])).await.ok();
    eventually("its message", async || (receiver.count() > 0).then_some(())).await;
    assert_eq!(receiver.received()[0].header("authorization"), HEADER);

    let dump = database.server.client("pg_dump").output().unwrap();
    assert!(dump.status.success());
    let dump = String::from_utf8(dump.stdout).unwrap();
    assert!(
        dump.contains(&hex("canary-host")),
        "values are written in this form"
    );
    let (log, metrics) = (world.service().log(), rest.get("/metrics").await.text());
    let client = world.client("canary", "viewer");
    for secret in [HEADER, SIGNING, PASSWORD, &world.admin_key(), &client] {
        for (place, text) in [("database", &dump), ("log", &log), ("metrics", &metrics)] {
            let stands = text.contains(secret) || text.contains(&hex(secret));
            assert!(!stands, "{secret} is in the {place}");
        }
    }
}
