//! Microsoft Teams: the URL of a workflow or an incoming webhook, which accepts Adaptive Cards.

use serde_json::Value;

use super::{Answer, Rules, shape::Violations, stand_in::content_type};
use crate::receiver::Received;

const BODY_BYTES_MAX: usize = 28 * 1024;
const CARD: &str = "application/vnd.microsoft.card.adaptive";

/// A channel that posts the messages sent to its URL.
#[derive(Debug)]
pub struct MsTeams {
    /// Path and query of the URL.
    pub path: String,
    /// Whether the channel responds like a workflow (202 with an empty body) or like an incoming
    /// webhook (200 with `1`).
    pub is_workflow: bool,
}

impl Rules for MsTeams {
    fn judge(&mut self, request: &Received) -> Answer {
        if request.method != "POST" || request.path != self.path {
            return Answer::refused(404, "", vec![format!("no workflow at {}", request.path)]);
        }
        if request.body.len() > BODY_BYTES_MAX {
            // Incoming webhooks report this error with a success status.
            let said = "Webhook message delivery failed with error: Microsoft Teams endpoint \
                        returned HTTP error 413 with ContextId tcid=0.";
            return Answer::refused(200, said, vec!["the message is beyond 28 KB".into()]);
        }
        let mut violations = Violations::default();
        let json = content_type(request).starts_with("application/json");
        violations.unless(json, "content-type is not application/json");
        let message = serde_json::from_slice(&request.body).unwrap_or_default();
        self::message(&message, &mut violations);
        match (violations.0.is_empty(), self.is_workflow) {
            (true, true) => Answer::accepted(202, ""),
            (true, false) => Answer::accepted(200, "1"),
            (false, _) => {
                let said = "Bad payload received by generic incoming webhook.";
                Answer::refused(400, said, violations.0)
            }
        }
    }
}

fn message(message: &Value, violations: &mut Violations) {
    let message = violations.object("the message", message, &["type", "attachments", "summary"]);
    violations.one_of("type", message.get("type"), &["message"]);
    for attachment in violations.list("attachments", message.get("attachments"), 1) {
        let known = ["contentType", "contentUrl", "content"];
        let attachment = violations.object("an attachment", attachment, &known);
        violations.one_of("contentType", attachment.get("contentType"), &[CARD]);
        violations.unless(
            attachment.get("contentUrl").is_null(),
            "contentUrl is not null",
        );
        card(attachment.get("content"), violations);
    }
}

fn card(card: &Value, violations: &mut Violations) {
    let known = ["$schema", "type", "version", "body", "actions", "msteams"];
    let card = violations.object("the card", card, &known);
    violations.one_of("the card's type", card.get("type"), &["AdaptiveCard"]);
    // Teams supports cards up to version 1.5.
    let versions = ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"];
    violations.one_of("the card's version", card.get("version"), &versions);
    for element in violations.list("the card's body", card.get("body"), 50) {
        match element["type"].as_str() {
            Some("TextBlock") => text_block(element, violations),
            Some("FactSet") => {
                let set = violations.object("a fact set", element, &["type", "facts"]);
                for fact in violations.list("facts", set.get("facts"), 50) {
                    let fact = violations.object("a fact", fact, &["title", "value"]);
                    violations.text("a fact's title", fact.get("title"), BODY_BYTES_MAX);
                    violations.text("a fact's value", fact.get("value"), BODY_BYTES_MAX);
                }
            }
            other => violations
                .0
                .push(format!("an element is of type {other:?}")),
        }
    }
    if card.has("actions") {
        for action in violations.list("actions", card.get("actions"), 6) {
            let action = violations.object("an action", action, &["type", "title", "url"]);
            violations.one_of("an action's type", action.get("type"), &["Action.OpenUrl"]);
            violations.text("an action's title", action.get("title"), 200);
            violations.web_address("an action's url", action.get("url"));
        }
    }
    let width = card.get("msteams");
    violations.unless(
        width.is_null() || width["width"] == "Full",
        "msteams is not a width",
    );
}

fn text_block(block: &Value, violations: &mut Violations) {
    let known = ["type", "text", "wrap", "size", "weight", "color"];
    let block = violations.object("a text block", block, &known);
    violations.text("a text block's text", block.get("text"), BODY_BYTES_MAX);
    violations.unless(
        block.get("wrap").as_bool() != Some(false),
        "a text block is cut off",
    );
    let words = [
        (
            "size",
            ["Default", "Small", "Medium", "Large", "ExtraLarge", ""].as_slice(),
        ),
        ("weight", &["Default", "Lighter", "Bolder"]),
        (
            "color",
            &[
                "Default",
                "Dark",
                "Light",
                "Accent",
                "Good",
                "Warning",
                "Attention",
            ],
        ),
    ];
    for (name, words) in words {
        if block.has(name) {
            violations.one_of(name, block.get(name), words);
        }
    }
}
