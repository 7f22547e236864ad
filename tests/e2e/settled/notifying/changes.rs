//! Notifications: changes on which rules are evaluated, by senders, operators or the service.

use bellwether_tests::{eventually::eventually, receiver::Receiver, world::World};
use serde_json::json;

use super::{
    MINUTE, Play, Step, acknowledged, case, closed, compares, hold, plain, sent, set, updates,
};
use crate::settled::{in_seconds, stored};

#[tokio::test]
async fn rules_are_evaluated_on_changes_only() {
    hold(|| {
        let late = || sent(json!({"timestamp": in_seconds(-10 * MINUTE)}));
        let counted = json!({"greaterAndEquals": {"field": "count", "value": 2}});
        let acked = || Some(json!({"equals": {"field": "acknowledged", "boolVal": true}}));
        let any = || compares("name", "disk-full");
        let none = || Some(compares("name", "other"));
        let off = || json!({"enabled": false});
        let on = || json!({"enabled": true});
        vec![
            case(
                "an operator acknowledges",
                json!({}),
                acked(),
                vec![
                    (plain(), ""),
                    (acknowledged(true), "opening"),
                    (plain(), ""),
                ],
            ),
            case(
                "a sender acknowledges",
                json!({}),
                acked(),
                vec![
                    (plain(), ""),
                    (sent(json!({"acknowledged": true})), "opening"),
                ],
            ),
            case(
                "an operator lifts a suppression",
                json!({}),
                None,
                vec![
                    (sent(json!({"status": "STATUS_SUPPRESSED"})), ""),
                    (set("STATUS_OPEN"), "opening"),
                ],
            ),
            case(
                "a sender lifts a suppression",
                json!({}),
                None,
                vec![
                    (sent(json!({"status": "STATUS_SUPPRESSED"})), ""),
                    (plain(), ""),
                    (sent(json!({"status": "STATUS_OPEN"})), "opening"),
                ],
            ),
            case(
                "a late event only counts",
                json!({}),
                Some(counted),
                vec![(plain(), ""), (late(), ""), (plain(), "opening")],
            ),
            case(
                "a late event is not a repeat",
                json!({"repeat": true, "repeatInterval": 0}),
                None,
                vec![(plain(), "opening"), (late(), ""), (plain(), "opening")],
            ),
            case(
                "a rule that is enabled tells at the next change",
                off(),
                None,
                vec![
                    (plain(), ""),
                    (Step::Rule(on()), ""),
                    (late(), ""),
                    (plain(), "opening"),
                ],
            ),
            case(
                "the next change may be an operator's",
                off(),
                None,
                vec![
                    (plain(), ""),
                    (Step::Rule(on()), ""),
                    (acknowledged(true), "opening"),
                ],
            ),
            case(
                "a trigger that is edited tells at the next change",
                json!({}),
                none(),
                vec![
                    (plain(), ""),
                    (Step::Trigger(any()), ""),
                    (plain(), "opening"),
                ],
            ),
            case(
                "and of nothing that is closed by then",
                json!({}),
                none(),
                vec![(plain(), ""), (Step::Trigger(any()), ""), (closed(), "")],
            ),
            case(
                "an enabled rule tells of what is open when that is asked for",
                off(),
                None,
                vec![
                    (plain(), ""),
                    (Step::RuleForOpen(on()), "opening"),
                    (plain(), ""),
                ],
            ),
            case(
                "so does an edited trigger",
                json!({}),
                none(),
                vec![
                    (plain(), ""),
                    (Step::TriggerForOpen(any()), "opening"),
                    (plain(), ""),
                ],
            ),
            case(
                "what is closed is not told of then",
                off(),
                None,
                vec![(plain(), ""), (closed(), ""), (Step::RuleForOpen(on()), "")],
            ),
            case(
                "nor what is suppressed",
                off(),
                None,
                vec![
                    (sent(json!({"status": "STATUS_SUPPRESSED"})), ""),
                    (Step::RuleForOpen(on()), ""),
                ],
            ),
            case(
                "nor what was told",
                json!({}),
                None,
                vec![(plain(), "opening"), (Step::RuleForOpen(on()), "")],
            ),
        ]
    })
    .await;
}

#[tokio::test]
async fn ageing_is_evaluated_like_any_change() {
    let mut world = World::with_settings("[lifetime]\nerror_age_max = \"1ms\"\n");
    let receiver = Receiver::start().await;
    let suppressed = || sent(json!({"status": "STATUS_SUPPRESSED"}));
    let by_status = || Some(compares("status", "closed"));
    let cases = || {
        [
            (
                case("a closing that is owed", updates(), None, Vec::new()),
                plain(),
                "opening update",
            ),
            (
                case(
                    "a query that speaks of status",
                    json!({}),
                    by_status(),
                    Vec::new(),
                ),
                plain(),
                "update",
            ),
            (
                case("nothing is opened by it", json!({}), None, Vec::new()),
                suppressed(),
                "",
            ),
            (
                case("suppressed all along", json!({}), by_status(), Vec::new()),
                suppressed(),
                "",
            ),
        ]
    };
    let mut plays = Vec::new();
    for wire in world.wires() {
        for (number, (case, first, expected)) in cases().into_iter().enumerate() {
            let mut play = Play::begin(&wire, &receiver.url("/"), number, &case).await;
            play.take(&first).await;
            plays.push((case.name, play, expected));
        }
    }
    // Restart the service, which closes due events at startup and then once per minute.
    world.terminate();
    world.start_again();
    for (name, mut play, expected) in plays {
        let wires = world.wires();
        let mut wires = wires.iter();
        let same = wires.find(|wire| wire.name() == play.wire.name());
        play.wire = same.expect("both protocols").clone();
        eventually("the occurrence to age out", async || {
            let event = stored(&play.wire, &play.host).await;
            (event["occurrences"][0]["closeReason"] == "AGED").then_some(())
        })
        .await;
        assert_eq!(
            play.decided().await.join(" "),
            expected,
            "{}: {name}",
            play.wire.name()
        );
    }
}
