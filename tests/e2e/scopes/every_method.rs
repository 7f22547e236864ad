//! Calls every method with a key restricted to a tag, on resources of another team.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_tests::{
    eventually::eventually,
    receiver::Receiver,
    wire::{self, Wire},
    world::World,
};
use serde_json::{Value, json};
use tonic::Code;

use super::client;
use crate::samples;

/// Methods that only read or compute. Every client with the role may call them, regardless of its
/// scope.
const READING: [&str; 85] = [
    "AuditService/ListAuditEntries",
    "CalendarService/ExpandCalendar",
    "CalendarService/GetCalendar",
    "CalendarService/ListCalendars",
    "CalendarService/PreviewCalendar",
    "ClientService/GetCaller",
    "ConfigService/PreviewImpact",
    "ContactService/GetContact",
    "ContactService/ListContacts",
    "DeliveryService/GetDelivery",
    "DeliveryService/ListDeliveries",
    "DeliveryService/ListObligations",
    "DestinationService/GetDestination",
    "DestinationService/ListDestinations",
    "DestinationService/RenderDestination",
    "DrillService/GetDrill",
    "DrillService/ListDrills",
    "EnrichmentTableService/GetEnrichmentTable",
    "EnrichmentTableService/ListEnrichmentTables",
    "EnrichmentTableService/PreviewEnrichmentTable",
    "EscalationPolicyService/GetEscalationPolicy",
    "EscalationPolicyService/ListEscalationPolicies",
    "EscalationPolicyService/PreviewEscalationPolicy",
    "EventQueryService/CountEvents",
    "EventQueryService/EventFrequency",
    "EventQueryService/ExplainEvent",
    "EventQueryService/GetEvent",
    "EventQueryService/GroupEvents",
    "EventQueryService/RouteEvents",
    "EventQueryService/SearchEvents",
    "EventQueryService/WatchEvents",
    "GroupService/GetGroup",
    "GroupService/ListGroups",
    "HeartbeatService/GetHeartbeat",
    "HeartbeatService/ListExpectations",
    "HeartbeatService/ListHeartbeats",
    "HeartbeatService/PreviewHeartbeat",
    "InhibitionService/GetInhibition",
    "InhibitionService/ListInhibitions",
    "InhibitionService/PreviewInhibition",
    "InsightService/GetNoise",
    "IntakeMappingService/GetIntakeMapping",
    "IntakeMappingService/ListIntakeMappings",
    "IntakeMappingService/TestIntakeMapping",
    "OverviewService/GetOverview",
    "OverviewService/GetStatistics",
    "PendingService/ListPending",
    "ResponseService/GetResponse",
    "ResponseService/ListResponses",
    "RuleService/GetRule",
    "RuleService/ListRules",
    "RuleService/PreviewRule",
    "ScheduleService/GetOnCall",
    "ScheduleService/GetSchedule",
    "ScheduleService/ListSchedules",
    "ScheduleService/ListShifts",
    "ScheduleService/PreviewSchedule",
    "SettingsService/GetSettings",
    "SilenceService/GetSilence",
    "SilenceService/ListSilences",
    "SilenceService/PreviewSilence",
    "TriggerService/GetTrigger",
    "TriggerService/ListTriggers",
    "TriggerService/TestTrigger",
    "TriggerService/TestTriggerWithProgress",
    "ViewService/GetView",
    "ViewService/ListViews",
    // Methods that are authorized by a link or an address, or that return a key.
    "HeartbeatService/BeatByKey",
    "LinkService/Acknowledge",
    "LinkService/OpenFeed",
    "LinkService/OpenLink",
    "SignInService/FinishSignIn",
    "SignInService/GetSignIn",
    "SignInService/StartSignIn",
    // Methods that require a role that cannot be restricted to a tag.
    "BackupService/ReadBackup",
    "CheckService/CheckStore",
    "ClientService/CreateClient",
    "ClientService/ListClients",
    "ClientService/RevokeClient",
    "ClientService/RotateClientKey",
    "ClientService/UpdateClient",
    "DataReceiverService/PutEvent",
    "DataReceiverService/PutEvents",
    "SettingsService/SetQuiet",
    "SettingsService/UpdateSettings",
];
/// Methods that require the role `ingest`, which is restricted to sources.
const SENDING: [&str; 2] = [
    "HeartbeatService/Beat",
    "IntakeMappingService/ReceiveWebhook",
];

/// Returns the definitions of a team.
#[expect(clippy::too_many_lines, reason = "a table")]
fn definitions(name: &str, team: &str, url: &str) -> Vec<(&'static str, &'static str, Value)> {
    let tags = json!([format!("team:{team}")]);
    let mut all = vec![
        (
            "CalendarService/CreateCalendar",
            "calendar",
            json!({"windows": [{"dtstart": "2026-01-05T09:00:00", "duration": "PT1H"}],
                   "timeZone": "UTC"}),
        ),
        (
            "TriggerService/CreateTrigger",
            "trigger",
            json!({"type": {"event": {"filter": format!("host={name}")}}}),
        ),
        (
            "DestinationService/CreateDestination",
            "destination",
            json!({"type": {"webhook": {"url": url}}}),
        ),
        (
            "ContactService/CreateContact",
            "contact",
            json!({"methods": [{"destinationName": name}]}),
        ),
        (
            "ScheduleService/CreateSchedule",
            "schedule",
            json!({"timeZone": "UTC", "layers": [{
                "slots": [{"contactNames": [name]}], "dtstart": "2026-01-05T09:00:00",
            }]}),
        ),
        (
            "EscalationPolicyService/CreateEscalationPolicy",
            "policy",
            json!({"steps": [{"targets": [{"scheduleName": name}], "wait": "600s"},
                             {"targets": [{"destinationName": name}]}]}),
        ),
        (
            "RuleService/CreateRule",
            "rule",
            json!({"enabled": true, "triggerNames": [name], "destinationNames": [name],
                   "escalationPolicyName": name, "group": {"by": ["name"], "wait": "0s"}}),
        ),
        (
            "SilenceService/CreateSilence",
            "silence",
            json!({"reason": "quiet", "filter": format!("team={team} and host=nowhere"),
                   "span": {"endTime": samples::in_seconds(600)}}),
        ),
        (
            "InhibitionService/CreateInhibition",
            "inhibition",
            json!({"enabled": true, "sourceFilter": "name=down",
                   "targetFilter": format!("team={team} and host=nowhere"),
                   "equal": [{"source": "host"}]}),
        ),
        (
            "HeartbeatService/CreateHeartbeat",
            "heartbeat",
            json!({"enabled": true, "every": "3600s", "by": ["host"]}),
        ),
        ("DrillService/CreateDrill", "drill", json!({})),
        (
            "IntakeMappingService/CreateIntakeMapping",
            "mapping",
            json!({"event": {"name": "x", "dimensions": {"host": "{{host}}"}}}),
        ),
        (
            "EnrichmentTableService/CreateEnrichmentTable",
            "enrichment",
            json!({"matchFields": ["host"], "csv": "host,owner\nnowhere,ana"}),
        ),
        (
            "ViewService/CreateView",
            "view",
            json!({"filter": format!("host={name}")}),
        ),
    ];
    for (_, _, draft) in &mut all {
        draft["name"] = json!(name);
        draft["tags"] = tags.clone();
    }
    all
}

/// Returns the client's draft of a kind, with a reference to another team's resource at `pointer`.
fn referring(drafts: &[(&str, &str, Value)], word: &str, pointer: &str, to: &Value) -> Value {
    let found = drafts.iter().find(|(_, it, _)| *it == word);
    let mut draft = found.expect("a draft of that kind").2.clone();
    draft["name"] = json!("mine");
    *draft.pointer_mut(pointer).expect("a field") = to.clone();
    json!({ word: draft })
}

/// Returns by method the calls that try to use another team's resources. Each must be rejected.
#[expect(clippy::too_many_lines, reason = "a table")]
fn reaching(
    theirs: &[(&str, &str, Value)],
    ours: &[(&str, &str, Value)],
    ids: &BTreeMap<&str, String>,
) -> Vec<(String, Value)> {
    let mut calls = Vec::new();
    let mut add = |method: &str, request: Value| calls.push((method.to_owned(), request));
    for (create, word, draft) in theirs {
        let (service, noun) = create.split_once("/Create").expect("a method that creates");
        let mut new = draft.clone();
        new["name"] = json!("further");
        add(create, json!({ *word: new }));
        let mut tagged = draft.clone();
        tagged["tags"] = json!(["team:db"]);
        add(&format!("{service}/Update{noun}"), json!({ *word: tagged }));
        add(
            &format!("{service}/Delete{noun}"),
            json!({"name": "theirs"}),
        );
        if *word != "silence" {
            let documents = json!({"documents": [{ *word: tagged }]});
            add("ConfigService/ApplyConfig", documents);
        }
    }
    let refers = [
        ("contact", "/methods/0/destinationName", json!("theirs")),
        (
            "schedule",
            "/layers/0/slots/0/contactNames",
            json!(["theirs"]),
        ),
        (
            "policy",
            "/steps/0/targets/0",
            json!({"scheduleName": "theirs"}),
        ),
        (
            "policy",
            "/steps/0/targets/0",
            json!({"contactName": "theirs"}),
        ),
        (
            "policy",
            "/steps/1/targets/0",
            json!({"destinationName": "theirs"}),
        ),
        ("rule", "/destinationNames", json!(["ours", "theirs"])),
        ("rule", "/escalationPolicyName", json!("theirs")),
        ("silence", "/filter", json!("host=theirs")),
        ("inhibition", "/targetFilter", json!("host=theirs")),
    ];
    for (word, pointer, to) in refers {
        let create = ours.iter().find(|(_, it, _)| *it == word).unwrap().0;
        let draft = referring(ours, word, pointer, &to);
        add(create, draft.clone());
        if word != "silence" {
            add("ConfigService/ApplyConfig", json!({"documents": [draft]}));
        }
    }
    let mut with_fallback = referring(ours, "policy", "/tags", &json!(["team:db"]));
    with_fallback["policy"]["fallbackDestinationName"] = json!("theirs");
    add(
        "EscalationPolicyService/CreateEscalationPolicy",
        with_fallback,
    );
    let span = json!({"contactNames": ["ours"], "endTime": samples::in_seconds(600)});
    let by_theirs = json!({"contactNames": ["theirs"], "endTime": samples::in_seconds(600)});
    let named = json!({"name": "theirs"});
    let rows = [
        (
            "ScheduleService/CreateOverride",
            json!({"name": "theirs", "override": span}),
        ),
        (
            "ScheduleService/CreateOverride",
            json!({"name": "ours", "override": by_theirs}),
        ),
        (
            "ScheduleService/DeleteOverride",
            json!({"name": "theirs", "id": ids["override"]}),
        ),
        ("ScheduleService/GetScheduleFeed", named.clone()),
        ("ScheduleService/RotateScheduleFeed", named.clone()),
        ("ContactService/GetContactFeed", named.clone()),
        ("ContactService/RotateContactFeed", named.clone()),
        (
            "HeartbeatService/ForgetExpectation",
            json!({"name": "theirs", "key": ids["expectation"]}),
        ),
        ("HeartbeatService/RotateHeartbeatKey", named.clone()),
        ("DrillService/RunDrill", named.clone()),
        ("DestinationService/PauseDestination", named.clone()),
        ("DestinationService/ResumeDestination", named.clone()),
        ("DestinationService/TestDestination", named.clone()),
        ("ContactService/TestContact", named.clone()),
        (
            "SilenceService/ExtendSilence",
            json!({"name": "theirs", "duration": "60s"}),
        ),
        ("SilenceService/ExpireSilence", named.clone()),
        (
            "SilenceService/CommentSilence",
            json!({"name": "theirs", "text": "x"}),
        ),
        (
            "DeliveryService/RetryDelivery",
            json!({"id": ids["delivery"]}),
        ),
        (
            "DeliveryService/CancelDelivery",
            json!({"id": ids["delivery"]}),
        ),
        (
            "DeliveryService/RetryDeliveries",
            json!({"ids": [ids["delivery"]]}),
        ),
        (
            "DeliveryService/CancelDeliveries",
            json!({"filter": {"ruleNames": ["theirs"], "states": ["DELIVERED"]}}),
        ),
        (
            "GroupService/SetGroupStatus",
            json!({"id": ids["group"], "acknowledged": true}),
        ),
        (
            "ResponseService/EscalateResponse",
            json!({"id": ids["response"]}),
        ),
        (
            "PendingService/ReleasePending",
            json!({"ruleName": "slowly", "eventId": ids["event"]}),
        ),
        (
            "EventManagementService/SetStatus",
            json!({"statuses": [{"eventId": ids["event"], "acknowledged": true}]}),
        ),
        (
            "EventManagementService/Annotate",
            json!({"annotations": [{"eventId": ids["event"], "annotation": "x"}]}),
        ),
    ];
    for (method, request) in rows {
        add(method, request);
    }
    calls
}

/// Returns the ids of the other team's event, message, group and other operational records, by
/// kind.
async fn rows(admin: &Wire) -> BTreeMap<&'static str, String> {
    let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = eventually("a message, a group and a response", async || {
        let all = json!({"ruleNames": ["theirs"]});
        let deliveries = admin.ok("DeliveryService/ListDeliveries", &all).await;
        let groups = admin.ok("GroupService/ListGroups", &all).await;
        let responses = admin.ok("ResponseService/ListResponses", &all).await;
        let pending = admin.ok("PendingService/ListPending", &json!({})).await;
        let mut pending = pending["pending"].as_array()?.iter();
        pending.find(|it| it["ruleName"] == "slowly")?;
        let event = responses["responses"][0]["eventId"].as_str()?;
        let ids = [
            ("delivery", &deliveries["deliveries"][0]["id"]),
            ("group", &groups["groups"][0]["id"]),
            ("response", &responses["responses"][0]["id"]),
            ("event", &json!(event)),
        ]
        .map(|(kind, value)| (kind, id(value)));
        let is_whole = ids.iter().all(|(_, id)| !id.is_empty());
        is_whole.then_some(ids)
    });
    let mut ids: BTreeMap<_, _> = found.await.into_iter().collect();
    let span = json!({"contactNames": ["theirs"], "endTime": samples::in_seconds(600)});
    let made = json!({"name": "theirs", "override": span});
    let made = admin.ok("ScheduleService/CreateOverride", &made).await;
    ids.insert("override", id(&made["override"]["id"]));
    let beat = json!({"name": "theirs", "dimensions": {"host": "a"}});
    admin.ok("HeartbeatService/Beat", &beat).await;
    let expected = json!({"name": "theirs"});
    let expected = admin.ok("HeartbeatService/ListExpectations", &expected);
    ids.insert("expectation", id(&expected.await["expectations"][0]["key"]));
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_denies_scoped_keys_foreign_resources() {
    let receiver = Receiver::start().await;
    let world = World::start();
    let [_, admin] = world.wires();
    let theirs = definitions("theirs", "web", &receiver.url("/theirs"));
    let ours = definitions("ours", "db", &receiver.url("/ours"));
    for (create, word, draft) in theirs.iter().chain(&ours) {
        let draft = json!({ *word: draft });
        admin.ok(create, &draft).await;
    }
    // Create another rule of the other team, with a pending notification, and a rule of the
    // client's own team that matches all events.
    let slowly = json!({"rule": {
        "name": "slowly", "tags": ["team:web"], "enabled": true, "delay": "3600s",
        "triggerNames": ["theirs"], "destinationNames": ["theirs"],
    }});
    admin.ok("RuleService/CreateRule", &slowly).await;
    let key = client(&world, "db", "editor", &["--scope-tag", "team:db"]);
    let db = world.rest().with_key(Some(&key));
    let db_grpc = Wire::Grpc(bellwether_tests::grpc::channel(
        world.service().address("grpc"),
        Some(&key),
    ));
    let everything = json!({
        "name": "everything", "tags": ["team:db"],
        "type": {"event": {"filter": "severity>=debug"}},
    });
    db.post("/v1/notification/triggers", &everything).await.ok();
    let mut about_all = samples::rule("everything", "everything", "ours", "");
    about_all["tags"] = json!(["team:db"]);
    db.post("/v1/notification/rules", &about_all).await.ok();
    let event = samples::event("slow", "theirs", "SEVERITY_ERROR", "page is slow");
    let sent = samples::events(&[event]);
    let rest = world.rest();
    rest.post("/v1/data-receiver/events", &sent).await.ok();
    let ids = rows(&admin).await;

    let calls = reaching(&theirs, &ours, &ids);
    let named: BTreeSet<&str> = calls.iter().map(|(method, _)| method.as_str()).collect();
    for method in wire::methods() {
        let name = format!("{}/{}", method.parent_service().name(), method.name());
        let rows = [
            READING.contains(&name.as_str()),
            SENDING.contains(&name.as_str()),
            named.contains(name.as_str()),
        ];
        let count = rows.iter().filter(|it| **it).count();
        assert_eq!(count, 1, "{name} needs one row in this test");
    }
    for (method, request) in &calls {
        let why = match db_grpc.call(method, request).await {
            Err(refusal) => {
                assert_eq!(
                    refusal.code,
                    Code::PermissionDenied,
                    "{method} {request}: {refusal:?}"
                );
                refusal.message
            }
            // The response contains one result per item.
            Ok(answer) => {
                let list = ["statusResponses", "annotationResponses"];
                let item = list.iter().find_map(|it| answer[*it].as_array()?.first());
                let item = item.unwrap_or_else(|| panic!("{method} {request}: {answer}"));
                assert_eq!(item["code"], 7, "{method} {request}: {answer}");
                item["error"].to_string()
            }
        };
        assert!(why.contains("team:db"), "{method} {request}: {why}");
    }
    // No data was changed.
    let request = json!({"id": ids["event"]});
    let found = admin.ok("EventQueryService/GetEvent", &request).await;
    let occurrence = &found["result"]["occurrences"][0];
    assert_eq!(occurrence["acknowledged"], false, "{found}");
}
