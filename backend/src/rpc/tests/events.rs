//! Tests of events over the wire: received, changed by operators, and read.

use std::collections::BTreeMap;

use bellwether_proto::cloud::{
    Event, EventStatusResult, EventWrapper, Events, event_wrapper::EventType,
};

use super::*;

fn event(host: &str) -> Event {
    Event {
        name: "disk-full".into(),
        dimensions: BTreeMap::from([("host".into(), host.into())]),
        summary: "the disk is full".into(),
        severity: 4,
        ..Event::default()
    }
}

async fn put(world: &World, events: Vec<Event>) -> EventStatusResult {
    let request = Events {
        detailed_response: true,
        events,
    };
    inner(
        world
            .receiver(&world.key)
            .put_events(request)
            .await
            .unwrap(),
    )
}

async fn all_events(world: &World) -> Vec<v1::Event> {
    let request = v1::SearchEventsRequest { query: None };
    let answer = world.events(&world.key).search_events(request).await;
    inner(answer.unwrap()).results
}

async fn read_count(world: &World) -> Option<i32> {
    let request = v1::CountEventsRequest { query: None };
    let answer = world.events(&world.key).count_events(request).await;
    inner(answer.unwrap()).count
}

#[tokio::test]
async fn invalid_events_are_reported_and_others_accepted() {
    let world = World::start().await;
    let nameless = Event {
        name: String::new(),
        ..event("b")
    };
    let result = put(&world, vec![event("a"), nameless.clone(), event("c")]).await;
    assert_eq!((result.succeeded, result.failed), (2, 1));
    assert!(result.message.contains("events[1]"), "{}", result.message);
    assert_eq!(result.failed_events[0].event.as_ref(), Some(&nameless));
    assert!(
        result.failed_events[0]
            .error
            .starts_with("events[1]: name: is required")
    );
    assert_eq!(all_events(&world).await.len(), 2);

    let request = Events {
        detailed_response: false,
        events: vec![nameless],
    };
    let brief = world.receiver(&world.key).put_events(request).await;
    let brief = inner(brief.unwrap());
    assert_eq!((brief.failed, brief.failed_events.len()), (1, 0));
}

#[tokio::test]
async fn empty_list_is_accepted_and_overlong_list_refused() {
    let world = World::start().await;
    assert_eq!(put(&world, Vec::new()).await, EventStatusResult::default());
    let request = Events {
        detailed_response: false,
        events: vec![event("a"); 1001],
    };
    let refused = world.receiver(&world.key).put_events(request).await;
    assert_eq!(fields(refused), ["events"]);
}

#[tokio::test]
async fn stream_completes_when_stored_and_ends_at_first_error() {
    let world = World::start().await;
    let wrapped = |event| EventWrapper {
        event_type: Some(EventType::Canonical(event)),
    };
    let many: Vec<_> = (0..500).map(|at| wrapped(event(&at.to_string()))).collect();
    let stream = tokio_stream::iter(many);
    world.receiver(&world.key).put_event(stream).await.unwrap();
    assert_eq!(read_count(&world).await, Some(500));

    let nameless = Event {
        name: String::new(),
        ..event("y")
    };
    let stream = tokio_stream::iter(["x", "", "z"].map(|host| match host {
        "" => wrapped(nameless.clone()),
        host => wrapped(event(host)),
    }));
    let refused = world.receiver(&world.key).put_event(stream).await;
    assert_eq!(fields(refused), ["canonical.name"]);
    assert_eq!(read_count(&world).await, Some(501));
}

#[tokio::test]
async fn annotate_and_set_status_return_a_result_per_item() {
    let world = World::start().await;
    put(&world, vec![event("a")]).await;
    let id = all_events(&world).await[0].id.clone();
    let operator = world.key("ann", Role::Operator).await;
    let note = |event_id: &str, text: &str| v1::AnnotationItem {
        event_id: event_id.into(),
        annotation: text.into(),
        ..v1::AnnotationItem::default()
    };
    let request = v1::AnnotateRequest {
        annotations: vec![note("what", "x"), note(&id, "looking"), note(&id, "")],
    };
    let answer = world.management(&operator).annotate(request).await;
    let results = inner(answer.unwrap()).annotation_responses;
    let succeeded: Vec<_> = results.iter().map(|it| it.success).collect();
    assert_eq!(succeeded, [Some(false), Some(true), Some(false)]);
    assert_eq!(results[1].occurrence_id, format!("{id}:1"));
    assert_eq!(results[1].annotation_id.len(), 20);
    assert!(results[2].error.starts_with("annotation: is required"));

    let item = |status, occurrence_id: &str| v1::StatusItem {
        event_id: id.clone(),
        occurrence_id: occurrence_id.into(),
        status,
        acknowledged: Some(true),
        ..v1::StatusItem::default()
    };
    let request = v1::SetStatusRequest {
        statuses: vec![item(3, ""), item(9, ""), item(1, &format!("{id}:2"))],
        ..v1::SetStatusRequest::default()
    };
    let answer = world.management(&operator).set_status(request).await;
    let results = inner(answer.unwrap()).status_responses;
    let succeeded: Vec<_> = results.iter().map(|it| it.success).collect();
    assert_eq!(succeeded, [Some(true), Some(false), Some(false)]);
    assert!(results[1].error.starts_with("status: 9"));

    let occurrence = all_events(&world).await[0].occurrences[0].clone();
    assert_eq!(
        (occurrence.status, occurrence.acknowledged),
        (3, Some(true))
    );
    assert_eq!(occurrence.annotations[0].author, "ann");
    assert_eq!(occurrence.history.last().unwrap().author, "ann");

    let request = v1::SetStatusRequest {
        statuses: vec![v1::StatusItem::default(); 1001],
        ..v1::SetStatusRequest::default()
    };
    let refused = world.management(&operator).set_status(request).await;
    assert_eq!(fields(refused), ["statuses"]);
}

#[tokio::test]
async fn watch_receives_new_events() {
    let world = World::start().await;
    let request = v1::WatchEventsRequest::default();
    let stream = world.events(&world.key).watch_events(request).await;
    let mut stream = inner(stream.unwrap());
    put(&world, vec![event("a")]).await;
    let seen = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let news = stream.message().await.unwrap().unwrap();
            if !news.events.is_empty() {
                break news;
            }
        }
    });
    let news = seen.await.unwrap();
    assert_eq!(news.events[0].dimensions["host"], "a");
    assert!(!news.resume_token.is_empty());
}

#[tokio::test]
async fn explanation_includes_the_delivery() {
    let world = World::start().await;
    world.create_trigger(trigger("disk")).await.unwrap();
    world.create_destination(destination("hook")).await.unwrap();
    let mut enabled = rule("page", &["disk"], &["hook"]);
    enabled.enabled = Some(true);
    world.create_rule(enabled).await.unwrap();
    put(&world, vec![event("a")]).await;
    let request = v1::ExplainEventRequest {
        id: all_events(&world).await[0].id.clone(),
        occurrence_id: String::new(),
    };
    let answer = world.events(&world.key).explain_event(request).await;
    let rules = inner(answer.unwrap()).rules;
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].notified, Some(true));
    assert_eq!(rules[0].triggers[0].matched, Some(true));
    assert_eq!(rules[0].deliveries[0].destination_name, "hook");
    assert_eq!(rules[0].deliveries[0].state, "PENDING");
}
