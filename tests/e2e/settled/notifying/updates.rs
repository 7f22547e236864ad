//! Notifications: updates of an occurrence, and outstanding resolutions.

use bellwether_tests::{
    eventually::eventually,
    receiver::{Received, Receiver},
    world::World,
};
use serde_json::{Value, json};

use super::{Play, Step, acknowledged, case, closed, compares, hold, plain, sent, set, updates};
use crate::settled::{event, send};

#[tokio::test]
async fn receivers_of_a_closing_get_the_reopening_and_next_closing() {
    hold(|| {
        let reported = |rule: Value, between: Vec<(Step, &'static str)>, reopened, closed_again| {
            let mut steps = vec![(plain(), "opening"), (closed(), "update")];
            steps.extend(between);
            steps.push((set("STATUS_OPEN"), reopened));
            steps.push((closed(), closed_again));
            (rule, steps)
        };
        let cases = [
            (
                "an operator reopens",
                reported(updates(), vec![], "opening", "update"),
            ),
            (
                "though no trigger matches any more",
                reported(
                    updates(),
                    vec![(Step::Trigger(compares("name", "other")), "")],
                    "opening",
                    "update",
                ),
            ),
            (
                "though the rule has lost its destinations",
                reported(
                    updates(),
                    vec![(Step::Rule(json!({"destinationNames": []})), "")],
                    "opening",
                    "update",
                ),
            ),
            (
                "though the trigger is gone",
                reported(
                    updates(),
                    vec![(Step::DeleteTrigger, "")],
                    "opening",
                    "update",
                ),
            ),
            (
                "each time",
                reported(
                    updates(),
                    vec![
                        (set("STATUS_OPEN"), "opening"),
                        (set("STATUS_CLOSED"), "update"),
                    ],
                    "opening",
                    "update",
                ),
            ),
        ];
        let mut all: Vec<_> = cases
            .into_iter()
            .map(|(name, (rule, steps))| case(name, rule, None, steps))
            .collect();
        all.push(case(
            "who got no closing gets no reopening",
            json!({}),
            None,
            vec![
                (plain(), "opening"),
                (closed(), ""),
                (set("STATUS_OPEN"), ""),
                (closed(), ""),
            ],
        ));
        all.push(case(
            "the operator's own close",
            updates(),
            None,
            vec![
                (plain(), "opening"),
                (set("STATUS_CLOSED"), "update"),
                (set("STATUS_OPEN"), "opening"),
                (set("STATUS_CLOSED"), "update"),
            ],
        ));
        all
    })
    .await;
}

#[tokio::test]
async fn closing_goes_to_every_receiver_of_the_opening() {
    hold(|| {
        let switch = |on: bool| Step::Rule(json!({"sendUpdates": on}));
        vec![
            case(
                "switched on later",
                json!({}),
                None,
                vec![
                    (plain(), "opening"),
                    (switch(true), ""),
                    (closed(), "update"),
                ],
            ),
            case(
                "switched off later",
                updates(),
                None,
                vec![(plain(), "opening"), (switch(false), ""), (closed(), "")],
            ),
            case(
                "off and on again",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (switch(false), ""),
                    (switch(true), ""),
                    (closed(), "update"),
                ],
            ),
            case(
                "deleted while it was on",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (Step::DeleteRule, ""),
                    (closed(), "update"),
                    (closed(), ""),
                ],
            ),
            case(
                "deleted while it was off",
                json!({}),
                None,
                vec![(plain(), "opening"), (Step::DeleteRule, ""), (closed(), "")],
            ),
            case(
                "switched off, then deleted",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (switch(false), ""),
                    (Step::DeleteRule, ""),
                    (closed(), ""),
                ],
            ),
            case(
                "disabled",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (Step::Rule(json!({"enabled": false})), ""),
                    (closed(), "update"),
                ],
            ),
            case(
                "the trigger does not match any more",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (Step::Trigger(compares("name", "other")), ""),
                    (closed(), "update"),
                ],
            ),
            case(
                "the destination is no longer the rule's",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (Step::Rule(json!({"destinationNames": []})), ""),
                    (closed(), "update"),
                ],
            ),
            case(
                "a match without destinations",
                json!({"sendUpdates": true, "destinationNames": []}),
                None,
                vec![(plain(), ""), (closed(), ""), (closed(), "")],
            ),
            case(
                "closed while suppressed",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (set("STATUS_SUPPRESSED"), ""),
                    (set("STATUS_CLOSED"), "update"),
                ],
            ),
            case(
                "nobody was told, nobody is owed",
                updates(),
                Some(compares("name", "other")),
                vec![(plain(), ""), (closed(), "")],
            ),
        ]
    })
    .await;
}

#[tokio::test]
async fn unacknowledging_sends_an_update() {
    hold(|| {
        let by_sender = |acknowledged: bool| sent(json!({"acknowledged": acknowledged}));
        vec![
            case(
                "by the operator",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (acknowledged(true), "update"),
                    (acknowledged(false), "update"),
                    (acknowledged(true), "update"),
                ],
            ),
            case(
                "by the sender",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (by_sender(true), "update"),
                    (by_sender(false), "update"),
                ],
            ),
            case(
                "what is already so changes nothing",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (acknowledged(false), ""),
                    (acknowledged(true), "update"),
                    (acknowledged(true), ""),
                    (by_sender(true), ""),
                ],
            ),
            case(
                "a rule without updates",
                json!({}),
                None,
                vec![
                    (plain(), "opening"),
                    (acknowledged(true), ""),
                    (acknowledged(false), ""),
                ],
            ),
        ]
    })
    .await;
}

#[tokio::test]
async fn bare_close_repeats_the_text_of_the_opening() {
    let world = World::start();
    let receiver = Receiver::start().await;
    for wire in world.wires() {
        let case = case("text", updates(), None, Vec::new());
        let play = Play::begin(&wire, &receiver.url("/"), 0, &case).await;
        send(&wire, &[event(&play.host)]).await;
        let close = json!({
            "name": "disk-full", "dimensions": {"host": play.host}, "status": "STATUS_CLOSED",
        });
        send(&wire, &[close]).await;

        let messages = eventually("opening and closing", async || {
            let messages: Vec<Value> = receiver.received().iter().map(Received::json).collect();
            let about = |message: &Value| message["event"]["dimensions"]["host"] == play.host;
            let mut messages: Vec<_> = messages.into_iter().filter(about).collect();
            messages.sort_by_key(|message| message["clear"].as_bool());
            (messages.len() == 2).then_some(messages)
        })
        .await;
        assert_eq!(messages[1]["clear"], true);
        assert_eq!(messages[1]["event"]["status"], 3);
        for field in ["summary", "body", "type", "fields", "severity", "name"] {
            let (opening, closing) = (&messages[0]["event"][field], &messages[1]["event"][field]);
            assert_eq!(opening, closing, "{}: {field}", wire.name());
        }
        assert_eq!(messages[0]["event"]["summary"], "disk is full");
    }
}
