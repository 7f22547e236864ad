//! Routing of methods and paths to operations.

use bellwether_proto::v1;

use crate::world::World;

const OPERATIONS: &str = "
    POST /v1/notification/triggers bellwether.v1.TriggerService/CreateTrigger
    GET /v1/notification/triggers bellwether.v1.TriggerService/ListTriggers
    GET /v1/notification/triggers/a bellwether.v1.TriggerService/GetTrigger
    PUT /v1/notification/triggers/a bellwether.v1.TriggerService/UpdateTrigger
    DELETE /v1/notification/triggers/a bellwether.v1.TriggerService/DeleteTrigger
    POST /v1/notification/triggers:test bellwether.v1.TriggerService/TestTrigger
    POST /v1/notification/destinations bellwether.v1.DestinationService/CreateDestination
    GET /v1/notification/destinations bellwether.v1.DestinationService/ListDestinations
    GET /v1/notification/destinations/a bellwether.v1.DestinationService/GetDestination
    PUT /v1/notification/destinations/a bellwether.v1.DestinationService/UpdateDestination
    DELETE /v1/notification/destinations/a bellwether.v1.DestinationService/DeleteDestination
    POST /v1/notification/destinations:test bellwether.v1.DestinationService/TestDestination
    POST /v1/notification/rules bellwether.v1.RuleService/CreateRule
    GET /v1/notification/rules bellwether.v1.RuleService/ListRules
    GET /v1/notification/rules/a bellwether.v1.RuleService/GetRule
    PUT /v1/notification/rules/a bellwether.v1.RuleService/UpdateRule
    DELETE /v1/notification/rules/a bellwether.v1.RuleService/DeleteRule
    POST /v1/config:apply bellwether.v1.ConfigService/ApplyConfig
    POST /v1/notification/rules:preview bellwether.v1.RuleService/PreviewRule
    GET /v1/notification/deliveries bellwether.v1.DeliveryService/ListDeliveries
    GET /v1/notification/deliveries/a bellwether.v1.DeliveryService/GetDelivery
    POST /v1/notification/deliveries/a:retry bellwether.v1.DeliveryService/RetryDelivery
    POST /v1/notification/deliveries/a:cancel bellwether.v1.DeliveryService/CancelDelivery
    GET /v1/events/a bellwether.v1.EventQueryService/GetEvent
    GET /v1/events/a:explain bellwether.v1.EventQueryService/ExplainEvent
    POST /v1/events:search bellwether.v1.EventQueryService/SearchEvents
    POST /v1/events:count bellwether.v1.EventQueryService/CountEvents
    POST /v1/events:route bellwether.v1.EventQueryService/RouteEvents
    POST /v1/events:group bellwether.v1.EventQueryService/GroupEvents
    POST /v1/events:frequency bellwether.v1.EventQueryService/EventFrequency
    POST /v1/event-management/annotate bellwether.v1.EventManagementService/Annotate
    POST /v1/event-management/status bellwether.v1.EventManagementService/SetStatus
    POST /v1/data-receiver/events zenoss.cloud.DataReceiverService/PutEvents
    GET /v1/overview bellwether.v1.OverviewService/GetOverview
";

#[tokio::test]
async fn every_operation_is_routed_by_method_and_path() {
    let world = World::new().await;
    for line in OPERATIONS.trim().lines() {
        let columns: Vec<_> = line.split_whitespace().collect();
        let [method, path, operation] = columns[..] else {
            panic!("{line}")
        };
        let body = if ["POST", "PUT"].contains(&method) {
            "{}"
        } else {
            ""
        };
        let answer = world.call(method, path, body).await;
        assert_eq!(answer.status, 200, "{line}: {answer:?}");
        assert_eq!(answer.body, "{}", "{line}");
        assert_eq!(answer.header("content-type"), "application/json");
        let call = world.backend.calls().pop().unwrap();
        assert_eq!(call.path, format!("/{operation}"), "{line}");
    }
}

#[tokio::test]
async fn captured_segment_is_decoded_once() {
    let world = World::new().await;
    let table = [
        ("disk-full", "disk-full"),
        ("disk%20full", "disk full"),
        ("a%2Fb", "a/b"),
        ("100%25", "100%"),
        ("%2523", "%23"),
        ("a+b", "a+b"),
        ("Stra%C3%9Fe", "Straße"),
        ("a%3Atest", "a:test"),
        ("a:other", "a:other"),
    ];
    for (segment, name) in table {
        let answer = world
            .get(&format!("/v1/notification/triggers/{segment}"))
            .await;
        assert_eq!(answer.status, 200, "{segment}");
        let request: v1::GetTriggerRequest = world.backend.calls().pop().unwrap().decode();
        assert_eq!(request.name, name, "{segment}");
    }
}

#[tokio::test]
async fn undecodable_segment_is_rejected_by_field_name() {
    let world = World::new().await;
    for segment in ["%", "a%2", "%zz", "%ff", "%C3"] {
        let answer = world
            .get(&format!("/v1/notification/triggers/{segment}"))
            .await;
        assert_eq!(answer.status, 400, "{segment}");
        assert_eq!(answer.violated(), ["name"], "{segment}");
    }
    assert!(world.backend.calls().is_empty());
}

#[tokio::test]
async fn unknown_path_is_404() {
    let world = World::new().await;
    let paths = [
        "/events/",
        "/v1",
        "/v1/",
        "/v1/notification",
        "/v1/notification/triggers/",
        "/v1/notification/triggers/a/b",
        "/v1/notification//triggers",
        "/v1/Notification/triggers",
        "/v2/notification/triggers",
        "/v1/events",
        "/bellwether.v1.TriggerService/ListTriggers",
        "/healthz/",
    ];
    for path in paths {
        let answer = world.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.json()["code"], 5, "{path}");
        assert_eq!(answer.header("content-type"), "application/json");
    }
}

#[tokio::test]
async fn wrong_method_is_405_with_the_allowed_methods() {
    let world = World::new().await;
    let table = [
        ("DELETE", "/v1/notification/triggers", "GET, HEAD, POST"),
        (
            "POST",
            "/v1/notification/triggers/a",
            "DELETE, GET, HEAD, PUT",
        ),
        (
            "PATCH",
            "/v1/notification/rules/a",
            "DELETE, GET, HEAD, PUT",
        ),
        ("GET", "/v1/notification/destinations:test", "POST"),
        ("GET", "/v1/notification/deliveries/a:retry", "POST"),
        ("POST", "/v1/events/a:explain", "GET, HEAD"),
        ("GET", "/v1/data-receiver/events", "POST"),
        ("OPTIONS", "/v1/data-receiver/events", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
    ];
    for (method, path, allow) in table {
        let answer = world.call(method, path, "").await;
        assert_eq!(answer.status, 405, "{method} {path}");
        assert_eq!(answer.header("allow"), allow, "{method} {path}");
        assert_eq!(answer.json()["code"], 12, "{method} {path}");
    }
    assert!(world.backend.calls().is_empty());
}

#[tokio::test]
async fn head_responds_like_get_without_a_body() {
    let world = World::new().await;
    for path in [
        "/v1/notification/triggers",
        "/healthz",
        "/openapi.json",
        "/docs",
    ] {
        let get = world.get(path).await;
        let head = world.call("HEAD", path, "").await;
        assert_eq!(head.status, 200, "{path}");
        assert!(head.body.is_empty(), "{path}");
        assert_eq!(
            head.header("content-length"),
            get.body.len().to_string(),
            "{path}"
        );
    }
}
