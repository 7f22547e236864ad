//! The audit log, over REST and gRPC.

use bellwether_tests::{
    eventually::eventually, process, receiver::Receiver, rest::Rest, world::World,
};
use http::Method;
use serde_json::{Value, json};

use crate::samples;

async fn entries(rest: &Rest, filters: &str) -> Vec<Value> {
    let page = rest.get(&format!("/v1/audit?{filters}")).await.ok();
    page["entries"].as_array().cloned().unwrap_or_default()
}

/// Returns client, action, kind and names of each entry.
fn entry_lines(entries: &[Value]) -> Vec<String> {
    let text = |entry: &Value| {
        let names: Vec<_> = entry["names"].as_array().into_iter().flatten().collect();
        let names: Vec<_> = names.iter().filter_map(|it| it.as_str()).collect();
        format!(
            "{} {} {} {}",
            entry["clientName"].as_str().unwrap_or_default(),
            entry["action"].as_str().unwrap_or_default(),
            entry["kind"].as_str().unwrap_or_default(),
            names.join("+")
        )
    };
    entries.iter().map(text).collect()
}

fn exported(world: &World, arguments: &[&str]) -> Vec<Value> {
    let output = process::run(world.command(&[&["audit"], arguments].concat()));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    let lines = String::from_utf8(output.stdout).expect("text");
    let line = |line: &str| serde_json::from_str(line).expect("an object per line");
    lines.lines().map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_entries_have_author_and_diff_and_survive_a_kill() {
    let receiver = Receiver::start().await;
    let mut world = World::start();
    let jane = world.client("jane", "editor");
    let rest = world.rest().with_key(Some(&jane));
    let mut hook = samples::webhook("hook", &receiver.url("/hook"));
    let trigger = samples::trigger("disk", "disk");
    let rule = samples::rule("tell", "disk", "hook", "");
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    rest.post("/v1/notification/destinations", &hook).await.ok();
    rest.post("/v1/notification/rules", &rule).await.ok();
    hook["description"] = json!("the pager");
    hook["type"]["webhook"]["headers"] = json!({"authorization": "Bearer s3cret-s3cret"});
    rest.put("/v1/notification/destinations/hook", &hook)
        .await
        .ok();
    // A dry run leaves no entry.
    let tried = "/v1/notification/rules?validateOnly=true";
    rest.post(tried, &samples::rule("tried", "disk", "hook", ""))
        .await
        .ok();
    rest.delete("/v1/notification/triggers/disk?force=true")
        .await
        .ok();
    world.kill();
    world.start_again();

    let rest = world.rest().with_key(Some(&jane));
    let all = entries(&rest, "").await;
    assert_eq!(
        entry_lines(&all),
        [
            "jane DELETED trigger disk",
            "jane UPDATED rule tell",
            "jane UPDATED destination hook",
            "jane CREATED rule tell",
            "jane CREATED destination hook",
            "jane CREATED trigger disk",
        ]
    );
    let edit = &all[2];
    assert_eq!(edit["address"], "127.0.0.1", "{edit}");
    let method = "bellwether.v1.DestinationService/UpdateDestination";
    assert_eq!(edit["method"], method, "{edit}");
    assert_eq!(edit["before"]["destination"]["description"], Value::Null);
    assert_eq!(edit["after"]["destination"]["description"], "the pager");
    let secret = "webhook.headers.authorization";
    assert!(
        edit["changedSecrets"][0]
            .as_str()
            .is_some_and(|it| it.contains("authorization")),
        "{secret}: {edit}"
    );
    assert!(!edit.to_string().contains("s3cret"), "{edit}");
    let of_rule = entries(&rest, "kinds=rule&names=tell").await;
    assert_eq!(
        entry_lines(&of_rule),
        ["jane UPDATED rule tell", "jane CREATED rule tell"]
    );
    let deleted = entries(&rest, "actions=DELETED&clientNames=jane").await;
    assert_eq!(entry_lines(&deleted), ["jane DELETED trigger disk"]);
    assert_eq!(entries(&rest, "clientNames=john").await, [] as [Value; 0]);
    // Paging and gRPC return the same entries.
    let first = rest.get("/v1/audit?pageSize=4").await.ok();
    let token = first["nextPageToken"].as_str().expect("a token");
    let rest_of_it = entries(&rest, &format!("pageSize=4&pageToken={token}")).await;
    assert_eq!(rest_of_it, all[4..]);
    let exported = exported(&world, &["--client", "jane"]);
    assert_eq!(exported, all);
    let check = process::run(world.command(&["check"]));
    let found = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(check.status.success(), "{found}");
    assert!(found.contains("audit entry"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_actions_and_rejections_are_audited() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let admin = world.rest();
    crate::journey::set_up(&admin, &receiver).await;
    let operator = world.client("olga", "operator");
    let operator = admin.with_key(Some(&operator));
    let event = samples::event("full", "h", "SEVERITY_ERROR", "disk is full");
    let body = samples::events(&[event]);
    admin.post("/v1/data-receiver/events", &body).await.ok();
    let found = admin
        .post("/v1/events:search", &json!({"query": {}}))
        .await
        .ok();
    let id = found["results"][0]["id"]
        .as_str()
        .expect("an event")
        .to_owned();
    let note = json!({"annotations": [{"eventId": id, "annotation": "on it"}]});
    operator
        .post("/v1/event-management/annotate", &note)
        .await
        .ok();
    let status = json!({"statuses": [{"eventId": id, "acknowledged": true}]});
    operator
        .post("/v1/event-management/status", &status)
        .await
        .ok();
    let listed = admin.get("/v1/notification/destinations").await.ok();
    let test = json!({"name": listed["destinations"][0]["name"]});
    operator
        .post("/v1/notification/destinations:test", &test)
        .await
        .ok();
    let created = entry_lines(&entries(&operator, "clientNames=olga").await);
    assert!(
        created.contains(&format!("olga UPDATED occurrence {id}:1")),
        "{created:?}"
    );
    let of_it = format!("kinds=occurrence&names={}:1", id.replace('=', "%3D"));
    let of_it = entry_lines(&entries(&admin, &of_it).await);
    assert!(
        of_it.contains(&format!("olga UPDATED occurrence {id}:1")),
        "{of_it:?}"
    );
    let is_test = |it: &&String| it.starts_with("olga CREATED delivery ");
    assert_eq!(created.iter().filter(is_test).count(), 1, "{created:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_calls_are_audited_for_admins() {
    let world = World::start();
    let admin = world.rest();
    let operator = admin.with_key(Some(&world.client("olga", "operator")));
    let definition = samples::trigger("mine", "x");
    for _ in 0..5 {
        let refused = operator
            .post("/v1/notification/triggers", &definition)
            .await;
        assert_eq!(refused.status, 403);
        let unknown_client = admin.with_key(Some("wrong"));
        let refused = unknown_client
            .send(Method::GET, "/v1/notification/rules", "")
            .await;
        assert_eq!(refused.status, 401);
    }
    let (by_olga, by_stranger) = eventually("rejected calls to be recorded", async || {
        let refused = entries(&admin, "actions=REFUSED").await;
        let by = |client: &str| {
            refused
                .iter()
                .find(|it| it["clientName"].as_str().unwrap_or_default() == client)
        };
        Some((by("olga")?.clone(), by("")?.clone()))
    })
    .await;
    assert_eq!(
        by_olga["method"],
        "bellwether.v1.TriggerService/CreateTrigger"
    );
    assert!(
        by_olga["reason"]
            .as_str()
            .is_some_and(|it| it.contains("role `editor`"))
    );
    assert_eq!(by_stranger["address"], "127.0.0.1");

    // Only admins see entries about clients and rejected calls.
    let seen = entries(&operator, "").await;
    let is_hidden = |it: &Value| it["kind"] == "client" || it["action"] == "REFUSED";
    assert!(!seen.iter().any(is_hidden), "{seen:?}");
    let all = entries(&admin, "kinds=client").await;
    assert_eq!(entry_lines(&all), ["admin CREATED client olga"]);
    assert_eq!(all[0]["changedSecrets"], json!(["key"]));
    let viewer = admin.with_key(Some(&world.client("vera", "viewer")));
    assert_eq!(viewer.get("/v1/audit").await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_is_audited_and_contains_its_own_entry() {
    let world = World::start();
    let copy = world.folder().join("copy");
    let copy = copy.to_str().expect("a name");
    let output = process::run(world.command(&["backup", copy, "--with-keys"]));
    assert!(output.status.success(), "{output:?}");
    let read = entries(&world.rest(), "actions=READ").await;
    assert_eq!(entry_lines(&read), ["admin READ backup "]);
    let restored = world.folder().join("restored");
    let restored = restored.to_str().expect("a name");
    let arguments = ["restore", copy, "--data-dir", restored];
    let output = process::run(process::command(world.folder(), arguments));
    assert!(output.status.success(), "{output:?}");
    let check = process::command(world.folder(), ["check", "--data-dir", restored]);
    let output = process::run(check);
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && found.contains("audit entry"),
        "{found}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn applied_configuration_is_audited_per_resource_in_one_commit() {
    let world = World::start();
    let rest = world.rest();
    let documents = json!({"documents": [
        {"trigger": samples::trigger("disk", "disk")},
        {"destination": samples::webhook("hook", "http://192.0.2.1/")},
    ]});
    let answer = rest.post("/v1/config:apply", &documents).await;
    // The address is invalid, so none of the documents is stored.
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(entries(&rest, "kinds=trigger").await, [] as [Value; 0]);
    let documents = json!({"documents": [
        {"trigger": samples::trigger("disk", "disk")},
        {"destination": samples::webhook("hook", "http://127.0.0.1:9/")},
    ]});
    for _ in 0..2 {
        rest.post("/v1/config:apply", &documents).await.ok();
    }
    let expected = [
        "admin CREATED destination hook",
        "admin CREATED trigger disk",
    ];
    let mut found = entry_lines(&entries(&rest, "kinds=trigger&kinds=destination").await);
    found.sort();
    assert_eq!(found, expected);
}
