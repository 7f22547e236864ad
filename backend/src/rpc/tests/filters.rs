//! Tests of filters over the wire: searches, counts and triggers, and syntax errors.

use std::collections::BTreeMap;

use bellwether_proto::cloud::{Event, Events};

use super::*;

async fn put(world: &World, host: &str, severity: i32, summary: &str) {
    let event = Event {
        name: format!("disk-{host}"),
        dimensions: BTreeMap::from([("host".into(), host.into()), ("env".into(), "lab".into())]),
        summary: summary.into(),
        severity,
        ..Event::default()
    };
    let request = Events {
        detailed_response: true,
        events: vec![event],
    };
    let result = world.receiver(&world.key).put_events(request).await;
    assert_eq!(inner(result.unwrap()).failed, 0);
}

fn query(filter: &str) -> v1::EventQuery {
    v1::EventQuery {
        filter: filter.into(),
        ..v1::EventQuery::default()
    }
}

async fn count(world: &World, filter: &str) -> Result<i32, Status> {
    let request = v1::CountEventsRequest {
        query: Some(query(filter)),
    };
    let answer = world.events(&world.key).count_events(request).await;
    Ok(inner(answer?).count.unwrap())
}

/// Returns fields and messages of the violations.
fn violations(status: &Status) -> Vec<(String, String)> {
    let details = status.get_error_details();
    let violations = details.bad_request().unwrap().field_violations.iter();
    violations
        .map(|violation| (violation.field.clone(), violation.description.clone()))
        .collect()
}

#[tokio::test]
async fn filter_works_in_every_event_query() {
    let world = World::start().await;
    put(&world, "db-1", 4, "the disk is full").await;
    put(&world, "db-2", 5, "the disk is gone").await;
    put(&world, "web-1", 3, "a page is slow").await;
    let cases = [
        ("", 3),
        ("disk", 3),
        ("gone", 1),
        ("severity>=error", 2),
        ("severity>error", 1),
        ("host=db-*", 2),
        ("host=DB-1", 1),
        ("host!=db-1", 2),
        ("summary~\"disk is (full|gone)$\"", 2),
        ("summary!~disk", 1),
        ("has:host -host=web-1", 2),
        ("has:severity", 3),
        ("env in (lab, test) severity<critical", 2),
        ("status=open acked=no count<=1 since=2h", 3),
        ("since=2099-01-01T00:00:00Z", 0),
        ("until=2000-01-01T00:00:00Z", 0),
        ("severity=critical or host=web-1", 2),
    ];
    for (filter, expected) in cases {
        assert_eq!(count(&world, filter).await.unwrap(), expected, "{filter}");
        let request = v1::SearchEventsRequest {
            query: Some(query(filter)),
        };
        let found = world.events(&world.key).search_events(request).await;
        let found = inner(found.unwrap()).results.len();
        assert_eq!(i32::try_from(found).unwrap(), expected, "{filter}");
    }
}

#[tokio::test]
async fn filter_errors_name_their_position() {
    let world = World::start().await;
    put(&world, "db-1", 4, "the disk is full").await;
    let cases = [
        (
            "host=db-1 (severity>=eror)",
            "at character 12: \"eror\" is not one of debug",
        ),
        ("disk or", "at character 8: a condition is missing here"),
        (
            "summary~\"(\"",
            "at character 1: is not a valid regular expression: unclosed group",
        ),
    ];
    for (filter, expected) in cases {
        let status = count(&world, filter).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        let (field, message) = violations(&status).remove(0);
        assert_eq!(field, "query.filter");
        assert!(message.starts_with(expected), "{filter}: {message}");
    }
    let both = v1::CountEventsRequest {
        query: Some(v1::EventQuery {
            clause: Some(contains("summary", "disk")),
            filter: "disk".into(),
            ..v1::EventQuery::default()
        }),
    };
    let status = world
        .events(&world.key)
        .count_events(both)
        .await
        .unwrap_err();
    assert_eq!(
        violations(&status)[0].1,
        "conflicts with `clause`; set only one of them"
    );
}

#[tokio::test]
async fn unknown_fields_produce_hints() {
    let world = World::start().await;
    let nothing = answer(&world, "quite=else").await;
    assert!(nothing.warnings.is_empty(), "no event can have it");
    put(&world, "db-1", 4, "the disk is full").await;
    let cases: [(&str, i32, &[&str]); 9] = [
        (
            "host=db-1 severty>=error",
            0,
            &["at character 11: no event has a field `severty`: `severity`?"],
        ),
        (
            "hots=db-1",
            0,
            &["at character 1: no event has a field `hots`: `host`?"],
        ),
        (
            "quite=else",
            0,
            &["at character 1: no event has a field `quite`"],
        ),
        (
            "alertname=x || labels.host=db-1",
            0,
            &[
                "at character 1: no event has a field `alertname`; use `name`",
                "at character 16: no event has a field `labels.host`; use `host`",
            ],
        ),
        (
            "status.phase=open",
            0,
            &["at character 1: no event has a field `status.phase`; use `status`"],
        ),
        ("host=db-1 && env=~\"lab|test\"", 1, &[]),
        ("host=~\"db\"", 0, &[]),
        ("!(host=db-2) && env!=test", 1, &[]),
        ("severity>=error host!~web", 1, &[]),
    ];
    for (filter, count, warnings) in cases {
        let counted = answer(&world, filter).await;
        assert_eq!(counted.count, Some(count), "{filter}");
        assert_eq!(counted.warnings, warnings, "{filter}");
    }
}

#[tokio::test]
async fn new_field_names_are_known_immediately() {
    let world = World::start().await;
    put(&world, "db-1", 4, "the disk is full").await;
    let by_clause = v1::CountEventsRequest {
        query: Some(v1::EventQuery {
            clause: Some(contains("hots", "db")),
            ..v1::EventQuery::default()
        }),
    };
    let counted = world.events(&world.key).count_events(by_clause).await;
    let counted = inner(counted.unwrap()).warnings;
    assert_eq!(counted, ["no event has a field `hots`: `host`?"]);
    let event = Event {
        name: "new".into(),
        dimensions: BTreeMap::from([("hots".into(), "db-9".into())]),
        ..Event::default()
    };
    let request = Events {
        detailed_response: true,
        events: vec![event],
    };
    world
        .receiver(&world.key)
        .put_events(request)
        .await
        .unwrap();
    let counted = answer(&world, "hots=db-9").await;
    assert_eq!((counted.count, counted.warnings), (Some(1), Vec::new()));
    let search = v1::SearchEventsRequest {
        query: Some(query("hst=db-1")),
    };
    let found = inner(
        world
            .events(&world.key)
            .search_events(search)
            .await
            .unwrap(),
    );
    assert!(found.results.is_empty() && found.warnings.len() == 1);
}

async fn answer(world: &World, filter: &str) -> v1::CountEventsResponse {
    let request = v1::CountEventsRequest {
        query: Some(query(filter)),
    };
    inner(
        world
            .events(&world.key)
            .count_events(request)
            .await
            .unwrap(),
    )
}

fn filtered(name: &str, filter: &str) -> v1::Trigger {
    let mut trigger = trigger(name);
    trigger.r#type = Some(v1::TriggerType {
        r#type: Some(v1::trigger_type::Type::Event(v1::EventTrigger {
            query: None,
            filter: filter.into(),
        })),
    });
    trigger
}

async fn create(world: &World, trigger: v1::Trigger) -> Result<v1::CreateTriggerResponse, Status> {
    let request = v1::CreateTriggerRequest {
        trigger: Some(trigger),
        ..v1::CreateTriggerRequest::default()
    };
    Ok(inner(world.triggers().create_trigger(request).await?))
}

#[tokio::test]
async fn trigger_accepts_a_filter_and_returns_filter_and_clause() {
    let world = World::start().await;
    put(&world, "db-1", 4, "the disk is full").await;
    let text = "severity>=error host=db-* -env=lab";
    let made = create(&world, filtered("disk", text)).await.unwrap();
    assert!(made.warnings.is_empty());
    let stored = made.trigger.unwrap();
    assert_eq!(stored.filter, "severity>=error host=db-* env!=lab");
    let Some(v1::trigger_type::Type::Event(event)) = stored.r#type.unwrap().r#type else {
        panic!("it has no type");
    };
    assert!(event.query.unwrap().clause.is_some());

    let warned = create(&world, filtered("typo", "severty>=error"))
        .await
        .unwrap();
    assert_eq!(
        warned.warnings,
        ["no event has a field `severty`: `severity`?"]
    );

    let preview = v1::PreviewRuleRequest {
        trigger_names: vec!["disk".into(), "typo".into()],
        ..v1::PreviewRuleRequest::default()
    };
    let preview = inner(world.rules().preview_rule(preview).await.unwrap());
    let expected = "trigger `typo`: no event has a field `severty`: `severity`?";
    assert_eq!(preview.warnings, [expected]);

    let aged = create(&world, filtered("aged", "since=2h"))
        .await
        .unwrap_err();
    let (field, message) = violations(&aged).remove(0);
    assert_eq!(field, "type.event.filter");
    assert!(
        message.starts_with("at character 7: `2h` is relative to now"),
        "{message}"
    );
}
