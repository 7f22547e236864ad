//! Tests of every preset with a wrong receiver: a sign-in page, a chat that was deleted or moved,
//! an invalid number. No message is lost until the destination is corrected.

use bellwether_tests::{
    eventually::eventually,
    receiver::{Receiver, Reply},
    world::World,
};
use serde_json::json;

use super::{
    rules::{all_rules, reply},
    store,
};

/// Waits until the destination of a preset is failing, and returns its last error.
async fn last_error(world: &World, file: &str) -> String {
    let path = format!("/v1/notification/destinations/{file}");
    eventually(file, async || {
        let health = world.rest().get(&path).await.ok()["destination"]["health"].clone();
        let is_failing = health["state"] == "FAILING";
        is_failing.then(|| health["lastError"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

#[tokio::test]
async fn every_preset_waits_for_a_wrong_destination_to_be_corrected() {
    let page = Reply::answer(
        200,
        vec![("content-type", "text/html".to_owned())],
        "<!DOCTYPE html><title>Sign in</title>".to_owned(),
    );
    let world = World::with_settings("[delivery]\nschedule = [\"0s\", \"1h\"]\n");
    let rest = world.rest();
    let query = json!({"clause": {"equals": {"field": "name", "stringVal": "disk"}}});
    let trigger = json!({"name": "disk", "type": {"event": {"query": query}}});
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    let mut cases = Vec::new();
    for rules in all_rules() {
        let wrong = rules.wrong.iter().map(|it| reply(*it));
        for (number, wrong) in std::iter::once(page.clone()).chain(wrong).enumerate() {
            cases.push((rules, number, wrong));
        }
    }
    // Test the cases of a preset one after the other, since its destination has a fixed name.
    let most = cases.iter().map(|it| it.1).max().unwrap();
    let mut all = Vec::new();
    for number in 0..=most {
        let mut receivers = Vec::new();
        for (rules, _, wrong) in cases.iter().filter(|it| it.1 == number) {
            let receiver = Receiver::start().await;
            receiver.set_default_reply(wrong.clone());
            store(&world, rules, |path| receiver.url(path));
            if number == 0 {
                let rule = json!({"name": rules.file, "enabled": true,
                    "triggerNames": ["disk"], "destinationNames": [rules.file]});
                rest.post("/v1/notification/rules", &rule).await.ok();
            }
            receivers.push((rules, receiver));
        }
        let event = json!({"name": "disk", "dimensions": {"host": number.to_string()},
            "summary": "full", "severity": "SEVERITY_CRITICAL"});
        rest.post("/v1/data-receiver/events", &json!({"events": [event]}))
            .await
            .ok();
        for (rules, receiver) in &receivers {
            let error = last_error(&world, rules.file).await;
            assert!(!error.is_empty(), "{}", rules.file);
            receiver.set_default_reply(reply(rules.accepts));
        }
        for (rules, _) in &receivers {
            let path = format!("/v1/notification/destinations/{}:resume", rules.file);
            rest.post(&path, &json!({})).await.ok();
        }
        all.extend(receivers.into_iter().map(|(_, receiver)| receiver));
        for rules in all_rules() {
            let name = rules.file;
            let list =
                format!("/v1/notification/deliveries?states=DELIVERED&destinationNames={name}");
            eventually(&format!("{name}: message {number}"), async || {
                let list = rest.get(&list).await.ok()["deliveries"].as_array().cloned();
                (list.unwrap_or_default().len() > number).then_some(())
            })
            .await;
        }
    }
    let dead = rest
        .get("/v1/notification/deliveries?states=DEAD&pageSize=10")
        .await
        .ok();
    assert_eq!(
        dead["deliveries"].as_array().map_or(0, Vec::len),
        0,
        "{dead}"
    );
}
