//! Notifications: events that cause an opening message.

use bellwether_tests::{receiver::Receiver, world::World};
use serde_json::{Value, json};

use super::{
    CREATE_DESTINATION, CREATE_RULE, CREATE_TRIGGER, MINUTE, Step, case, closed, compares, hold,
    plain, sent, set, updates,
};
use crate::settled::{event, in_seconds, send, with};

#[tokio::test]
async fn openings_are_sent_only_for_open_occurrences() {
    hold(|| {
        let late = || sent(json!({"timestamp": in_seconds(-10 * MINUTE)}));
        let by_status = || Some(compares("status", "closed"));
        let not_suppressed = json!({"not": {"clause": compares("status", "suppressed")}});
        let either = json!({"or": {"clauses": [
            compares("status", "open"), compares("summary", "disk is full"),
        ]}});
        vec![
            case(
                "an OK heartbeat",
                updates(),
                None,
                vec![(closed(), ""), (closed(), ""), (closed(), "")],
            ),
            case(
                "a close repeated",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (closed(), "update"),
                    (closed(), ""),
                    (closed(), ""),
                ],
            ),
            case(
                "a close repeated, with every match told",
                json!({"repeat": true, "repeatInterval": 0}),
                None,
                vec![
                    (plain(), "opening"),
                    (plain(), "opening"),
                    (closed(), ""),
                    (closed(), ""),
                ],
            ),
            case(
                "a late event after the closing",
                updates(),
                None,
                vec![(plain(), "opening"), (closed(), "update"), (late(), "")],
            ),
            case(
                "a late event after a closing of something never seen",
                updates(),
                None,
                vec![(closed(), ""), (late(), ""), (plain(), "opening")],
            ),
            case(
                "a match that begins with the close",
                json!({}),
                Some(compares("summary", "over")),
                vec![
                    (plain(), ""),
                    (
                        sent(json!({"status": "STATUS_CLOSED", "summary": "over"})),
                        "",
                    ),
                ],
            ),
            case(
                "a query that speaks of status matches what is closed",
                json!({}),
                by_status(),
                vec![
                    (plain(), ""),
                    (closed(), "update"),
                    (closed(), ""),
                    (plain(), ""),
                    (closed(), "update"),
                ],
            ),
            case(
                "and what is closed from the start",
                json!({}),
                by_status(),
                vec![(closed(), "update"), (closed(), "")],
            ),
            case(
                "it may speak of status inside a `not`",
                json!({}),
                Some(not_suppressed),
                vec![(closed(), "update"), (closed(), "")],
            ),
            case(
                "and beside other clauses",
                json!({}),
                Some(either),
                vec![(closed(), "update"), (closed(), "")],
            ),
            case(
                "an operator's close opens nothing",
                json!({}),
                Some(compares("acknowledged", "true")),
                vec![
                    (plain(), ""),
                    (
                        Step::Set(json!({"acknowledged": true, "status": "STATUS_CLOSED"})),
                        "",
                    ),
                ],
            ),
            case(
                "what was told stays once per occurrence",
                json!({}),
                Some(not_closed_or_all()),
                vec![(plain(), "opening"), (closed(), ""), (closed(), "")],
            ),
        ]
    })
    .await;
}

/// Returns a clause about the status that matches every status.
fn not_closed_or_all() -> Value {
    json!({"greaterAndEquals": {"field": "status", "value": "open"}})
}

#[tokio::test]
async fn occurrence_suppressed_until_closed_notifies_nobody() {
    hold(|| {
        let suppressed = || sent(json!({"status": "STATUS_SUPPRESSED"}));
        let by_status = || Some(compares("status", "closed"));
        vec![
            case(
                "closed by its sender",
                updates(),
                None,
                vec![
                    (suppressed(), ""),
                    (closed(), ""),
                    (closed(), ""),
                    (closed(), ""),
                ],
            ),
            case(
                "closed by an operator",
                updates(),
                None,
                vec![
                    (suppressed(), ""),
                    (set("STATUS_CLOSED"), ""),
                    (closed(), ""),
                ],
            ),
            case(
                "though the query speaks of status",
                updates(),
                by_status(),
                vec![
                    (suppressed(), ""),
                    (closed(), ""),
                    (closed(), ""),
                    (closed(), ""),
                ],
            ),
            case(
                "the next occurrence is another matter",
                updates(),
                None,
                vec![
                    (suppressed(), ""),
                    (closed(), ""),
                    (plain(), "opening"),
                    (closed(), "update"),
                ],
            ),
        ]
    })
    .await;
}

#[tokio::test]
async fn new_rule_notifies_of_open_occurrences_on_request() {
    let world = World::start();
    let receiver = Receiver::start().await;
    for wire in world.wires() {
        let name = format!("{} new", wire.name());
        let hosts: Vec<_> = (0..7).map(|at| format!("{name} {at}")).collect();
        let mut events: Vec<_> = hosts.iter().map(|host| event(host)).collect();
        events[5]["status"] = json!("STATUS_CLOSED");
        events[6]["status"] = json!("STATUS_SUPPRESSED");
        send(&wire, &events).await;
        let destination = json!({"name": name, "type": {"webhook": {"url": receiver.url("/")}}});
        wire.ok(CREATE_DESTINATION, &json!({"destination": destination}))
            .await;
        let clause = json!({"startsWith": {"field": "dimensions.host", "value": name}});
        let trigger = json!({
            "name": name, "type": {"event": {"query": {"clause": clause}}},
        });
        wire.ok(CREATE_TRIGGER, &json!({"trigger": trigger})).await;
        let rule = json!({
            "name": name, "enabled": true, "triggerNames": [name], "destinationNames": [name],
        });
        let request = json!({"rule": rule, "notifyOpen": true});
        let counts = async || {
            let request = json!({"destinationNames": [name], "pageSize": 1_000});
            let list = wire.ok("DeliveryService/ListDeliveries", &request).await;
            list["deliveries"].as_array().map_or(0, Vec::len)
        };

        let dry_run = with(&request, &json!({"validateOnly": true}));
        let counted = wire.ok(CREATE_RULE, &dry_run).await;
        assert_eq!(counted["notifyCount"], 5, "{counted}");
        assert_eq!(counts().await, 0, "a preview notifies no one");
        wire.ok(CREATE_RULE, &request).await;
        assert_eq!(counts().await, 5);
        send(&wire, &events[..5]).await;
        assert_eq!(counts().await, 5, "once per rule and occurrence");
    }
}
