//! Notifications: a test of each sentence in the reference topic `notifications`.

use serde_json::json;

use super::{Step, acknowledged, case, closed, compares, hold, plain, sent, set, updates};
use crate::settled::with;

#[tokio::test]
async fn notifications_match_the_reference() {
    hold(|| {
        let by_status = || Some(compares("status", "closed"));
        let every_match = || json!({"repeat": true, "repeatInterval": 0});
        let critical = || sent(json!({"severity": "SEVERITY_CRITICAL"}));
        let disabled = || Step::Rule(json!({"enabled": false}));
        vec![
            case(
                "destinations that come later are told as by a new rule",
                updates(),
                None,
                vec![
                    (Step::Destination(false), ""),
                    (plain(), ""),
                    (Step::Destination(true), ""),
                    (plain(), "opening"),
                    (closed(), "update"),
                ],
            ),
            case(
                "a match without destinations owes nothing to those that come later",
                updates(),
                None,
                vec![
                    (Step::Destination(false), ""),
                    (plain(), ""),
                    (Step::Destination(true), ""),
                    (closed(), ""),
                ],
            ),
            case(
                "a message about what is closed is its closing as well",
                updates(),
                by_status(),
                vec![
                    (plain(), ""),
                    (closed(), "update"),
                    (closed(), ""),
                    (set("STATUS_OPEN"), "opening"),
                    (closed(), "update"),
                ],
            ),
            case(
                "but not where no closings are wanted",
                json!({}),
                by_status(),
                vec![
                    (plain(), ""),
                    (closed(), "update"),
                    (set("STATUS_OPEN"), ""),
                    (closed(), ""),
                ],
            ),
            case(
                "an annotation is not a change",
                json!({"enabled": false}),
                None,
                vec![
                    (plain(), ""),
                    (Step::Rule(json!({"enabled": true})), ""),
                    (Step::Annotate, ""),
                    (plain(), "opening"),
                ],
            ),
            case(
                "nor is what is set to what it is",
                json!({"enabled": false}),
                None,
                vec![
                    (plain(), ""),
                    (Step::Rule(json!({"enabled": true})), ""),
                    (set("STATUS_OPEN"), ""),
                    (acknowledged(false), ""),
                    (acknowledged(true), "opening"),
                ],
            ),
            case(
                "a repeat is news from a sender",
                every_match(),
                None,
                vec![
                    (plain(), "opening"),
                    (acknowledged(true), ""),
                    (set("STATUS_SUPPRESSED"), ""),
                    (set("STATUS_OPEN"), ""),
                    (plain(), "opening"),
                ],
            ),
            case(
                "an update takes the place of a repeat",
                with(&every_match(), &updates()),
                None,
                vec![
                    (plain(), "opening"),
                    (critical(), "update"),
                    (critical(), "opening"),
                ],
            ),
            case(
                "a disabled rule tells of the closing and of what is open again",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (disabled(), ""),
                    (acknowledged(true), ""),
                    (closed(), "update"),
                    (set("STATUS_OPEN"), "opening"),
                    (acknowledged(false), ""),
                    (closed(), "update"),
                ],
            ),
            case(
                "so does a deleted one",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (Step::DeleteRule, ""),
                    (acknowledged(true), ""),
                    (closed(), "update"),
                    (set("STATUS_OPEN"), "opening"),
                    (closed(), "update"),
                ],
            ),
            case(
                "open again by way of a suppression",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (closed(), "update"),
                    (set("STATUS_SUPPRESSED"), ""),
                    (set("STATUS_OPEN"), "opening"),
                    (closed(), "update"),
                ],
            ),
            case(
                "after a closing no second one before an opening",
                updates(),
                None,
                vec![
                    (plain(), "opening"),
                    (closed(), "update"),
                    (set("STATUS_SUPPRESSED"), ""),
                    (set("STATUS_CLOSED"), ""),
                ],
            ),
            case(
                "what was open once was not suppressed from its start",
                json!({}),
                by_status(),
                vec![
                    (plain(), ""),
                    (set("STATUS_SUPPRESSED"), ""),
                    (set("STATUS_CLOSED"), "update"),
                ],
            ),
        ]
    })
    .await;
}
