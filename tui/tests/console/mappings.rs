//! Intake mappings, from an empty list through the form to the events created from a document.

use serde_json::json;

use super::{flows::assert_shows, *};
use crate::backend::Real;

#[tokio::test(flavor = "multi_thread")]
async fn mapping_is_tested_on_a_pasted_document() {
    let real = Real::start().await;
    let mut console = Headless::start(real.options(real.address), 120, 40);
    until(&mut console, "connected").await;
    press(&mut console, "<A-8>").await;
    until(&mut console, "No mappings yet.").await;
    press(&mut console, "n").await;
    press(&mut console, "shop<Tab>order late<Tab>order: {{item.id}}").await;
    // Fill in the summary and the level, skipping body and type.
    press(&mut console, "<Tab>{{item.title}}<Tab><Tab><Tab>item.level").await;
    press(&mut console, "<Tab>p1: critical<Tab><Right><Right><Right>").await;
    let screen = console.screen_text();
    assert_shows(&screen, "order: {{item.id}}");
    assert_shows(&screen, "‹ warning ›");
    // The closing condition is a filter.
    press(&mut console, "<Tab>item.state=done").await;
    press(&mut console, "<C-t>").await;
    until(&mut console, "Test of the unsaved shop").await;
    press(&mut console, "<Esc>").await;
    // Without `each`, `item` is undefined.
    press(&mut console, "<C-t>").await;
    console.paste(r#"{"orders": [{"id": 7}]}"#);
    press(&mut console, "<Enter>").await;
    until(&mut console, "dimensions: is required").await;
    press(&mut console, "<Esc>").await;
    until(&mut console, "New mapping").await;
    // Skip the closing and acknowledgement conditions.
    press(&mut console, "<Tab><Tab>orders<C-t>").await;
    until(&mut console, "Test of the unsaved shop").await;
    let document = r#"x-shop: a; {"orders": [{"id": 7, "title": "late", "level": "p1"},
        {"id": 8, "title": "found", "state": "done"}]}"#;
    console.paste(document);
    press(&mut console, "<Enter>").await;
    until(&mut console, "2 events; no events were created").await;
    let screen = console.screen_text();
    assert_shows(&screen, "order late");
    assert_shows(&screen, "critical");
    assert_shows(&screen, "closed");
    press(&mut console, "<Esc><C-s>").await;
    until(&mut console, "Create").await;
    press(&mut console, "y").await;
    until(&mut console, "item.state").await;
    press(&mut console, "<Enter>").await;
    until(&mut console, "POST /v1/intake/webhooks/shop").await;
    press(&mut console, "t").await;
    until(&mut console, "Test of shop").await;
    console.paste(document);
    press(&mut console, "<Enter>").await;
    until(&mut console, "2 events; no events were created").await;
    // Another document replaces the previous one.
    press(&mut console, "w<C-u>").await;
    console.paste(r#"{"orders": []}"#);
    press(&mut console, "<Enter>").await;
    until(&mut console, "0 events; no events were created").await;
    press(&mut console, "2").await;
    assert_eq!(console.row_ids(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn mapping_shows_its_dropped_documents() {
    let real = Real::start().await;
    let mapping = json!({
        "name": "shop",
        "parse": ["Message"],
        "drop": {"exists": {"field": "test"}},
        "event": {"name": "late", "dimensions": {"order": "{{id}}"}},
    });
    let create = json!({"mapping": mapping});
    real.call("IntakeMappingService", "CreateIntakeMapping", &create)
        .await;
    // {"test": 1, "password": "canary"}
    let body = "eyJ0ZXN0IjogMSwgInBhc3N3b3JkIjogImNhbmFyeSJ9";
    let webhook = json!({"mapping": "shop", "body": body});
    real.call("IntakeMappingService", "ReceiveWebhook", &webhook)
        .await;
    let mut console = Headless::start(real.options(real.address), 120, 40);
    until(&mut console, "connected").await;
    press(&mut console, "<A-8>").await;
    until(&mut console, "shop").await;
    press(&mut console, "<Enter>").await;
    until(&mut console, "Rejected and dropped").await;
    let screen = console.screen_text();
    assert_shows(&screen, "30 bytes");
    assert_shows(&screen, "matches the condition");
    assert_shows(&screen, "********");
    assert!(!screen.contains("canary"), "{screen}");
}
