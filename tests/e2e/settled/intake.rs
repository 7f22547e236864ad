//! Events: timestamps in the future, closings with few fields, a single open occurrence,
//! rejections.

use bellwether_tests::world::World;
use serde_json::{Value, json};

use super::{PUT, event, in_seconds, newest, send, set_status, stored, with};

const MINUTE: i64 = 60;

/// A description, the fields of consecutive events, and the expected fields of the newest
/// occurrence.
type Sequence = (&'static str, Vec<Value>, Value);

async fn hold(sequences: impl Fn() -> Vec<Sequence>) {
    let world = World::start();
    for wire in world.wires() {
        for (number, (case, sent, expected)) in sequences().into_iter().enumerate() {
            let host = format!("{}-{number}", wire.name());
            for members in sent {
                let mut event = with(&event(&host), &members);
                // Fields to omit.
                let members = event.as_object_mut().expect("an object");
                members.retain(|_, value| !value.is_null());
                send(&wire, &[event]).await;
            }
            let occurrence = newest(&wire, &host).await;
            for (field, value) in expected.as_object().expect("an object") {
                let found = occurrence.get(field).unwrap_or(&Value::Null);
                assert_eq!(found, value, "{}, {case}: {field}", wire.name());
            }
        }
    }
}

#[tokio::test]
async fn events_are_ordered_by_the_earlier_of_timestamp_and_receipt() {
    hold(|| {
        // Without a timestamp, an event has the time of its receipt.
        let stamped = |seconds: i64, members: Value| {
            let stamp = (seconds != 0).then(|| in_seconds(seconds));
            with(&members, &json!({"timestamp": stamp}))
        };
        let warning = |seconds| {
            stamped(
                seconds,
                json!({"severity": "SEVERITY_WARNING", "summary": "early"}),
            )
        };
        let critical = |seconds| {
            stamped(
                seconds,
                json!({"severity": "SEVERITY_CRITICAL", "summary": "late"}),
            )
        };
        let close = |seconds| stamped(seconds, json!({"status": "STATUS_CLOSED"}));
        let replaced =
            json!({"severity": "SEVERITY_CRITICAL", "summary": "late", "count": "2", "number": 1});
        let only_counted =
            json!({"severity": "SEVERITY_WARNING", "summary": "early", "count": "2", "number": 1});
        let ahead = in_seconds(50 * MINUTE);
        vec![
            (
                "a stamp ahead does not mute what comes after it",
                vec![warning(50 * MINUTE), critical(0)],
                replaced.clone(),
            ),
            (
                "of two ahead the one received last counts",
                vec![warning(50 * MINUTE), critical(10 * MINUTE)],
                replaced.clone(),
            ),
            (
                "a stamp ahead replaces what was stamped before it",
                vec![warning(-MINUTE), critical(50 * MINUTE)],
                replaced.clone(),
            ),
            (
                "in the past the stamp counts",
                vec![warning(-10 * MINUTE), critical(-5 * MINUTE)],
                replaced,
            ),
            (
                "what is older than what is stored only counts",
                vec![warning(0), critical(-10 * MINUTE)],
                only_counted.clone(),
            ),
            (
                "so it does behind a stamp ahead",
                vec![warning(50 * MINUTE), critical(-10 * MINUTE)],
                only_counted,
            ),
            (
                "a close ends what was stamped ahead",
                vec![warning(50 * MINUTE), close(0)],
                json!({"status": "STATUS_CLOSED", "closeReason": "SENDER", "number": 1}),
            ),
            (
                "after a close stamped ahead the next one opens",
                vec![warning(0), close(50 * MINUTE), critical(0)],
                json!({"status": "STATUS_OPEN", "severity": "SEVERITY_CRITICAL", "number": 2}),
            ),
            (
                "the stated stamp is kept",
                vec![json!({"timestamp": ahead})],
                json!({"startTime": ahead, "lastSeen": ahead}),
            ),
        ]
    })
    .await;
}

#[tokio::test]
async fn empty_event_list_returns_an_empty_object() {
    let world = World::start();
    for wire in world.wires() {
        for request in [
            json!({"events": []}),
            json!({"events": [], "detailedResponse": true}),
        ] {
            let answer = wire.ok(PUT, &request).await;
            assert_eq!(answer, json!({}), "{} {request}", wire.name());
        }
        let count = wire.ok("EventQueryService/CountEvents", &json!({})).await;
        assert_eq!(count["count"], 0, "{}", wire.name());
    }
}

#[tokio::test]
async fn future_timestamp_is_returned_until_the_next_event() {
    let world = World::start();
    for wire in world.wires() {
        let host = format!("{} ahead", wire.name());
        let ahead = in_seconds(50 * MINUTE);
        let stamped = with(&event(&host), &json!({"timestamp": ahead}));
        send(&wire, &[stamped]).await;
        send(&wire, &[event(&host)]).await;
        let occurrence = newest(&wire, &host).await;
        assert_eq!(occurrence["startTime"], ahead, "{occurrence}");
        let seen: i64 = occurrence["lastSeen"].as_str().unwrap().parse().unwrap();
        let ahead: i64 = ahead.parse().unwrap();
        assert!(seen < ahead - 40 * MINUTE * 1_000, "{occurrence}");
    }
}

#[tokio::test]
async fn simultaneous_changes_have_a_fixed_history_order() {
    let world = World::start();
    for wire in world.wires() {
        let noted = async |host: &str| {
            let occurrence = newest(&wire, host).await;
            let history = occurrence["history"].as_array().expect("a history");
            let fields = history.iter().skip(1).map(|it| it["field"].clone());
            fields.collect::<Vec<_>>()
        };
        let host = format!("{} history", wire.name());
        send(&wire, &[event(&host)]).await;
        let all = json!({
            "status": "STATUS_SUPPRESSED", "severity": "SEVERITY_DEBUG", "acknowledged": true,
        });
        send(&wire, &[with(&event(&host), &all)]).await;
        assert_eq!(noted(&host).await, ["severity", "acknowledged", "status"]);

        let host = format!("{} operator", wire.name());
        send(&wire, &[event(&host)]).await;
        let both = json!({"status": "STATUS_CLOSED", "acknowledged": true});
        set_status(&wire, &host, &both).await;
        assert_eq!(noted(&host).await, ["acknowledged", "status"]);
    }
}

#[tokio::test]
async fn fields_left_empty_by_a_repeat_or_close_are_retained() {
    hold(|| {
        let bare = json!({
            "type": null, "summary": null, "body": null, "metadataFields": null, "severity": null,
        });
        let empty = json!({
            "type": "", "summary": "", "body": "", "metadataFields": {},
            "severity": "SEVERITY_DEFAULT",
        });
        let stored = json!({
            "type": "disk", "summary": "disk is full", "body": "nothing can be written",
            "metadataFields": {"mount": "/var"}, "severity": "SEVERITY_ERROR", "number": 1,
        });
        let closed = with(&stored, &json!({"status": "STATUS_CLOSED"}));
        let open = with(&stored, &json!({"status": "STATUS_OPEN", "count": "2"}));
        let close = json!({"status": "STATUS_CLOSED"});
        vec![
            (
                "without a type the name is the type, from the opening on",
                vec![bare.clone(), json!({"type": null, "summary": "again"})],
                json!({"type": "disk-full", "summary": "again"}),
            ),
            ("a bare repeat", vec![json!({}), bare.clone()], open.clone()),
            ("an empty repeat", vec![json!({}), empty.clone()], open),
            (
                "a bare close",
                vec![json!({}), with(&bare, &close)],
                closed.clone(),
            ),
            (
                "an empty close",
                vec![json!({}), with(&empty, &close)],
                closed.clone(),
            ),
            (
                "a close repeated",
                vec![json!({}), with(&bare, &close), with(&bare, &close)],
                with(&closed, &json!({"count": "3"})),
            ),
            (
                "each by itself",
                vec![
                    json!({}),
                    with(&bare, &json!({"summary": "disk is very full"})),
                ],
                with(&stored, &json!({"summary": "disk is very full"})),
            ),
            (
                "what the close says replaces",
                vec![
                    json!({}),
                    json!({"status": "STATUS_CLOSED", "summary": "disk is fine", "body": ""}),
                ],
                json!({"summary": "disk is fine", "body": "nothing can be written"}),
            ),
            (
                "the next occurrence begins empty",
                vec![json!({}), with(&bare, &close), bare.clone()],
                json!({
                    "number": 2, "summary": null, "body": null, "metadataFields": null,
                    "severity": "SEVERITY_INFO",
                }),
            ),
        ]
    })
    .await;
}

#[tokio::test]
async fn older_occurrence_is_not_reopened_while_another_is_open() {
    let world = World::start();
    for wire in world.wires() {
        for (case, newer, wanted, allowed) in [
            ("beside an open one", "STATUS_OPEN", "STATUS_OPEN", false),
            ("suppressed", "STATUS_OPEN", "STATUS_SUPPRESSED", false),
            (
                "beside a suppressed one",
                "STATUS_SUPPRESSED",
                "STATUS_OPEN",
                false,
            ),
            ("beside a closed one", "STATUS_CLOSED", "STATUS_OPEN", true),
            ("closed again", "STATUS_OPEN", "STATUS_CLOSED", true),
        ] {
            let host = format!("{} {case}", wire.name());
            let close = with(&event(&host), &json!({"status": "STATUS_CLOSED"}));
            send(&wire, &[event(&host)]).await;
            send(&wire, &[close]).await;
            send(&wire, &[event(&host)]).await;
            set_status(&wire, &host, &json!({"status": newer})).await;

            let id = stored(&wire, &host).await["id"].clone();
            let first = format!("{}:1", id.as_str().expect("an id"));
            let item = json!({"occurrenceId": first, "status": wanted});
            let answer = set_status(&wire, &host, &item).await;

            let case = format!("{}, {case}: {answer}", wire.name());
            assert_eq!(answer["success"], allowed, "{case}");
            assert_eq!(answer["error"].is_string(), !allowed, "{case}");
            let request = json!({"id": id, "occurrenceIds": [first]});
            let read = wire.ok(super::GET, &request).await;
            let found = &read["result"]["occurrences"][0]["status"];
            let expected = if allowed { wanted } else { "STATUS_CLOSED" };
            assert_eq!(found, expected, "{case}");

            // The next event belongs to the open occurrence.
            if allowed && wanted == "STATUS_OPEN" {
                send(&wire, &[event(&host)]).await;
                let read = wire.ok(super::GET, &request).await;
                let count = &read["result"]["occurrences"][0]["count"];
                assert_eq!(count, "3", "{case}: {read}");
            }
        }
    }
}

#[tokio::test]
async fn events_without_a_valid_identity_are_rejected_individually() {
    let world = World::start();
    for wire in world.wires() {
        let good = event(&format!("{} good", wire.name()));
        for (case, members) in [
            ("an empty key", json!({"dimensions": {"": "x"}})),
            (
                "an empty key among others",
                json!({"dimensions": {"host": "x", "": "x"}}),
            ),
            ("a name of blanks", json!({"name": "   "})),
            ("a name of wide blanks", json!({"name": "\u{3000}\u{a0}"})),
            (
                "a type of blanks for a name",
                json!({"name": "", "type": " \t "}),
            ),
            ("a line break in the name", json!({"name": "disk\nfull"})),
            ("a null in the name", json!({"name": "disk\u{0}full"})),
            (
                "a control character in the type that serves as name",
                json!({"name": "", "type": "a\u{1b}[2J"}),
            ),
            (
                "a control character in a key",
                json!({"dimensions": {"ho\u{7}st": "x"}}),
            ),
            ("a tab in a key", json!({"dimensions": {"ho\tst": "x"}})),
            (
                "a C1 control in a key",
                json!({"dimensions": {"ho\u{85}st": "x"}}),
            ),
        ] {
            let events = [with(&good, &members), good.clone()];
            let request = json!({"detailedResponse": true, "events": events});
            let answer = wire.ok(PUT, &request).await;
            let case = format!("{}, {case}: {answer}", wire.name());
            assert_eq!(answer["failed"], 1, "{case}");
            assert_eq!(answer["succeeded"], 1, "{case}");
            let error = answer["failedEvents"][0]["error"].as_str();
            assert!(error.is_some_and(|error| !error.is_empty()), "{case}");
        }
        let count = wire.ok("EventQueryService/CountEvents", &json!({})).await;
        assert!(count["count"].as_i64() <= Some(2), "{count}");
    }
}
