//! Compares the reference topics with the running service.

use std::collections::BTreeMap;

use bellwether_proto::reference::{Block, Topic};
use bellwether_tests::world::World;
use serde_json::{Value, json};

/// Returns the rows of a topic's tables by heading, without header rows.
fn tables(topic: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut tables = BTreeMap::new();
    let mut under = String::new();
    let topic = Topic::find(topic).expect("the topic exists");
    for block in topic.blocks() {
        match block {
            Block::Heading(title) => under = title,
            Block::Table(rows) => {
                tables.insert(under.clone(), rows[1..].to_vec());
            }
            _ => {}
        }
    }
    tables
}

fn value(field: &str) -> Value {
    match field {
        "url" | "secretUrl" | "instanceUrl" | "tokenUrl" => json!("https://example.com/in"),
        "method" => json!("PUT"),
        "headers" => json!({"x-team": "ops"}),
        "plainHeaders" => json!(["x-team"]),
        "signingSecret" => json!("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        "auth" => json!({"bearer": {"token": "x"}}),
        "onClear" => json!({"method": "DELETE"}),
        "onUpdate" => json!({"method": "PATCH"}),
        "keep" => json!({"issue": "key"}),
        "keepSecret" => json!([]),
        "values" => json!({"priority": {"from": "event.severity"}}),
        "expect" => json!({"status": [200]}),
        "to" => json!("ops@example.com, b@example.com"),
        "cc" | "bcc" | "replyTo" | "from" => json!("c@example.com"),
        "listId" => json!("ops.example.com"),
        "priority" => json!("HIGH"),
        "compress" | "broadcastReplies" | "updateFirst" => json!(true),
        "severity" => json!("SEVERITY_ERROR"),
        _ => json!("x"),
    }
}

#[tokio::test]
async fn required_and_secret_destination_fields_match_the_reference() {
    let world = World::start();
    let rest = world.rest();
    let path = "/v1/notification/destinations";
    for (kind, rows) in tables("destinations") {
        if kind == "delivery" {
            continue;
        }
        let name = |row: &Vec<String>| row[0].trim_matches('`').to_owned();
        let definition = |name: &str, rows: &[&Vec<String>]| {
            let fields: Value = rows
                .iter()
                .map(|row| row[0].trim_matches('`'))
                .map(|field| (field.to_owned(), value(field)))
                .collect();
            json!({"name": name, "type": {kind.as_str(): fields}})
        };
        let instead: Vec<_> = rows.iter().filter(|row| row[1] == "one").collect();
        let forms = match &*instead {
            [] => vec![rows.iter().collect()],
            instead => {
                let form = |chosen: &Vec<String>| {
                    let rows = rows.iter();
                    rows.filter(|row| row[1] != "one" || *row == chosen)
                        .collect()
                };
                instead
                    .iter()
                    .map(|chosen| form(chosen))
                    .collect::<Vec<Vec<_>>>()
            }
        };
        for (at, all) in forms.into_iter().enumerate() {
            let full = rest
                .post(path, &definition(&format!("{kind}-{at}"), &all))
                .await
                .ok();
            for row in &all {
                let field = name(row);
                let shown = &full["destination"]["type"][&kind][&field];
                let masked = shown == "********";
                if row[2] != "some" {
                    assert_eq!(masked, row[2] == "yes", "{kind}.{field}: {shown}");
                }
            }
            let required = || all.iter().copied().filter(|row| row[1] != "no");
            let least: Vec<_> = required().collect();
            let draft = definition(&format!("least-{kind}-{at}"), &least);
            rest.post(path, &draft).await.ok();
            for left_out in required() {
                let rest_of: Vec<_> = all.iter().copied().filter(|row| *row != left_out).collect();
                let answer = rest.post(path, &definition("never", &rest_of)).await;
                assert_eq!(answer.status, 400, "{kind}: {}", answer.text());
                // If one of several fields is required, the error names the first.
                let named = instead.first().filter(|_| left_out[1] == "one");
                let field = format!("type.{kind}.{}", name(named.unwrap_or(&left_out)));
                assert!(answer.text().contains(&field), "{field}: {}", answer.text());
            }
        }
    }
}

#[tokio::test]
async fn every_documented_query_is_accepted() {
    let world = World::start();
    let rest = world.rest();
    let mut clauses: Vec<Value> = Vec::new();
    for row in &tables("queries")["Fields"] {
        clauses.push(serde_json::from_str(row[2].trim_matches('`')).unwrap());
    }
    for block in Topic::find("queries").unwrap().blocks() {
        if let Block::Code(_, lines) = block {
            let value: Value = serde_json::from_str(&lines.join("\n")).unwrap();
            let query = &value["type"]["event"]["query"]["clause"];
            clauses.push(if query.is_null() {
                value
            } else {
                query.clone()
            });
        }
    }
    assert!(clauses.len() > 14);
    for (at, clause) in clauses.into_iter().enumerate() {
        let draft = json!({
            "name": format!("example-{at}"),
            "type": {"event": {"query": {"clause": clause}}},
        });
        rest.post("/v1/notification/triggers", &draft).await.ok();
    }
}

#[tokio::test]
async fn documented_destinations_are_accepted() {
    let world = World::start();
    let rest = world.rest();
    for topic in ["destinations", "chat"] {
        for block in Topic::find(topic).unwrap().blocks() {
            let Block::Code(_, lines) = block else {
                continue;
            };
            let text = lines
                .join("\n")
                .replace("https://…", "https://example.com/hook");
            let draft: Value = serde_json::from_str(&text.replace('…', "x")).unwrap();
            rest.post("/v1/notification/destinations", &draft)
                .await
                .ok();
        }
    }
}
