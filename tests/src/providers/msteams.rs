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
    /// Whether it responds like a workflow (202 with an empty body) or like an incoming webhook
    /// (200 with `1`).
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
        let mut faults = Violations::default();
        let json = content_type(request).starts_with("application/json");
        faults.unless(json, "content-type is not application/json");
        let message = serde_json::from_slice(&request.body).unwrap_or_default();
        self::message(&message, &mut faults);
        match (faults.0.is_empty(), self.is_workflow) {
            (true, true) => Answer::taken(202, ""),
            (true, false) => Answer::taken(200, "1"),
            (false, _) => {
                let said = "Bad payload received by generic incoming webhook.";
                Answer::refused(400, said, faults.0)
            }
        }
    }
}

fn message(message: &Value, faults: &mut Violations) {
    let message = faults.object("the message", message, &["type", "attachments", "summary"]);
    faults.word("type", message.get("type"), &["message"]);
    for attachment in faults.list("attachments", message.get("attachments"), 1) {
        let known = ["contentType", "contentUrl", "content"];
        let attachment = faults.object("an attachment", attachment, &known);
        faults.word("contentType", attachment.get("contentType"), &[CARD]);
        faults.unless(
            attachment.get("contentUrl").is_null(),
            "contentUrl is not null",
        );
        card(attachment.get("content"), faults);
    }
}

fn card(card: &Value, faults: &mut Violations) {
    let known = ["$schema", "type", "version", "body", "actions", "msteams"];
    let card = faults.object("the card", card, &known);
    faults.word("the card's type", card.get("type"), &["AdaptiveCard"]);
    // Teams supports cards up to version 1.5.
    let versions = ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"];
    faults.word("the card's version", card.get("version"), &versions);
    for element in faults.list("the card's body", card.get("body"), 50) {
        match element["type"].as_str() {
            Some("TextBlock") => text_block(element, faults),
            Some("FactSet") => {
                let set = faults.object("a fact set", element, &["type", "facts"]);
                for fact in faults.list("facts", set.get("facts"), 50) {
                    let fact = faults.object("a fact", fact, &["title", "value"]);
                    faults.text("a fact's title", fact.get("title"), BODY_BYTES_MAX);
                    faults.text("a fact's value", fact.get("value"), BODY_BYTES_MAX);
                }
            }
            other => faults.0.push(format!("an element is of type {other:?}")),
        }
    }
    if card.has("actions") {
        for action in faults.list("actions", card.get("actions"), 6) {
            let action = faults.object("an action", action, &["type", "title", "url"]);
            faults.word("an action's type", action.get("type"), &["Action.OpenUrl"]);
            faults.text("an action's title", action.get("title"), 200);
            faults.web_address("an action's url", action.get("url"));
        }
    }
    let width = card.get("msteams");
    faults.unless(
        width.is_null() || width["width"] == "Full",
        "msteams is not a width",
    );
}

fn text_block(block: &Value, faults: &mut Violations) {
    let known = ["type", "text", "wrap", "size", "weight", "color"];
    let block = faults.object("a text block", block, &known);
    faults.text("a text block's text", block.get("text"), BODY_BYTES_MAX);
    faults.unless(
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
            faults.word(name, block.get(name), words);
        }
    }
}
