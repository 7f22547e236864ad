//! Views over REST: creation, errors by field and role, edits, persistence, and configuration
//! documents.

use bellwether_tests::world::World;
use serde_json::json;

const VIEWS: &str = "/v1/views";

#[tokio::test]
async fn view_is_shared_edited_and_survives_a_kill() {
    let mut world = World::start();
    let rest = world.rest();
    let viewer = rest.with_key(Some(&world.client("reader", "viewer")));
    let operator = rest.with_key(Some(&world.client("night", "operator")));
    let view = json!({
        "name": "night",
        "filter": "severity>=error -has:assignee since=8h",
        "sort": "severity",
        "groupBy": "host",
        "columns": ["Seen", "Summary"],
    });
    assert_eq!(viewer.post(VIEWS, &view).await.status, 403);
    let made = operator.post(VIEWS, &view).await.ok()["view"].clone();
    assert_eq!(made["filter"], view["filter"]);
    assert_eq!(operator.post(VIEWS, &view).await.status, 409);
    let listed = viewer.get(VIEWS).await.ok();
    assert_eq!(listed["views"], json!([made]));
    assert_eq!(listed["totalSize"], 1);

    let wrong = json!({
        "name": "wrong",
        "filter": "severity>=",
        "sort": "count",
        "groupBy": "id",
        "columns": [""],
    });
    let refused = operator.post(VIEWS, &wrong).await;
    assert_eq!(refused.status, 400);
    for field in ["filter", "sort", "groupBy", "columns[0]"] {
        assert!(
            refused.text().contains(field),
            "{field}: {}",
            refused.text()
        );
    }

    let mut edited = made.clone();
    edited["ascending"] = json!(true);
    edited["etag"] = json!("another");
    let path = format!("{VIEWS}/night");
    assert_eq!(operator.put(&path, &edited).await.status, 409);
    edited["etag"] = made["etag"].clone();
    let edited = operator.put(&path, &edited).await.ok()["view"].clone();
    assert_eq!(edited["ascending"], true);

    world.kill();
    world.start_again();
    let rest = world.rest();
    assert_eq!(rest.get(&path).await.ok()["view"], edited);
    let document = json!({"documents": [{"view": {"name": "day", "filter": "status=open"}}]});
    let applied = rest.post("/v1/config:apply", &document).await.ok();
    assert_eq!(applied["changes"][0]["kind"], "view");
    let log = rest.get("/v1/audit?kinds=view&names=night").await.ok();
    let entries = log["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "{log}");
    assert_eq!(rest.delete(&path).await.status, 200);
    assert_eq!(rest.get(&path).await.status, 404);
}
