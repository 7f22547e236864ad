//! Slack's `chat.postMessage`, with the limits of messages, attachments and blocks.

use serde_json::{Value, json};

use super::{
    Answer, Rules,
    shape::{Fields, Violations},
    stand_in::content_type,
};
use crate::receiver::Received;

const CHANNEL: &str = "C0123456789";
/// The timestamp that every message gets, and by which updates identify it.
const FIRST: &str = "1503435956.000247";

const ARGUMENTS: [&str; 9] = [
    "channel",
    "text",
    "blocks",
    "attachments",
    "thread_ts",
    "reply_broadcast",
    "ts",
    "unfurl_links",
    "unfurl_media",
];

/// A workspace with one channel and one token.
#[derive(Debug)]
pub struct Slack {
    /// The bot's token.
    pub token: String,
    /// The channel of the bot.
    pub channel: String,
    /// Error with which messages in threads are rejected; `None` if they are accepted.
    pub refuses_threads: Option<&'static str>,
}

impl Rules for Slack {
    fn judge(&mut self, request: &Received) -> Answer {
        let is_update = request.path == "/api/chat.update";
        let is_known = is_update || request.path == "/api/chat.postMessage";
        if request.method != "POST" || !is_known {
            return no(
                "unknown_method",
                Violations(vec![format!("unknown {}", request.path)]),
            );
        }
        let mut violations = Violations::default();
        let bearer = format!("Bearer {}", self.token);
        if request.headers.get("authorization") != Some(&bearer) {
            violations.0.push("the token is not the bot's".into());
            return no("invalid_auth", violations);
        }
        // Without the charset, Slack adds a warning to its response.
        if content_type(request) != "application/json; charset=utf-8" {
            violations
                .0
                .push(format!("content-type is {}", content_type(request)));
            return no("missing_charset", violations);
        }
        let Ok(message) = serde_json::from_slice::<Value>(&request.body) else {
            return no(
                "invalid_json",
                Violations(vec!["the body is not JSON".into()]),
            );
        };
        let arguments = violations.object("the message", &message, &ARGUMENTS);
        // An update identifies the channel by its id and the message by its timestamp.
        let channel = if is_update { CHANNEL } else { &self.channel };
        violations.unless(
            !is_update || arguments.get("ts") == FIRST,
            "ts is not a message of the channel",
        );
        violations.unless(
            !arguments.has("reply_broadcast") || arguments.has("thread_ts"),
            "reply_broadcast without a thread",
        );
        if arguments.get("channel").as_str() != Some(channel) {
            violations.0.push("the channel does not exist".into());
            return no("channel_not_found", violations);
        }
        let thread = arguments.get("thread_ts");
        if let (Some(error), false) = (self.refuses_threads, thread.is_null()) {
            let said = json!({"ok": false, "error": error});
            return Answer::without_message(200, said.to_string());
        }
        violations.unless(
            thread.is_null() || thread == FIRST,
            format!("thread_ts {thread} is not a message of the channel"),
        );
        self::message(arguments, &mut violations);
        if !violations.0.is_empty() {
            return no("invalid_blocks", violations);
        }
        // Slack echoes the message with every non-ASCII character as `\uXXXX`.
        let text = escaped(&message["text"].to_string());
        let answer = format!(
            r#"{{"ok":true,"channel":"{CHANNEL}","ts":"{FIRST}",
               "message":{{"type":"message","text":{text}}}}}"#
        );
        Answer::accepted(200, answer)
    }
}

fn escaped(text: &str) -> String {
    let letter = |unit| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
        _ => format!("\\u{unit:04x}"),
    };
    text.encode_utf16().map(letter).collect()
}

fn no(error: &str, violations: Violations) -> Answer {
    let messages: Vec<_> = violations
        .0
        .iter()
        .map(|violation| format!("[ERROR] {violation}"))
        .collect();
    let answer = json!({
        "ok": false,
        "error": error,
        "response_metadata": {"messages": messages},
    });
    Answer::refused(200, answer.to_string(), violations.0)
}

fn message(arguments: Fields<'_>, violations: &mut Violations) {
    violations.text("text", arguments.get("text"), 40_000);
    for name in ["unfurl_links", "unfurl_media"] {
        let flag = arguments.get(name);
        violations.unless(
            flag.is_null() || flag.is_boolean(),
            format!("{name} is not a boolean"),
        );
    }
    if arguments.has("blocks") {
        blocks(arguments.get("blocks"), violations);
    }
    if arguments.has("attachments") {
        for attachment in violations.list("attachments", arguments.get("attachments"), 100) {
            let attachment = violations.object("an attachment", attachment, &["color", "blocks"]);
            let color = attachment.get("color").as_str().unwrap_or_default();
            let hex = color.strip_prefix('#').is_some_and(|hex| {
                hex.len() == 6 && hex.chars().all(|digit| digit.is_ascii_hexdigit())
            });
            violations.unless(hex, format!("an attachment's color is {color:?}"));
            blocks(attachment.get("blocks"), violations);
        }
    }
}

fn blocks(blocks: &Value, violations: &mut Violations) {
    for block in violations.list("blocks", blocks, 50) {
        match block["type"].as_str() {
            Some("section") => {
                let known = ["type", "text", "fields", "block_id"];
                let section = violations.object("a section", block, &known);
                let filled = section.has("text") || section.has("fields");
                violations.unless(filled, "a section has neither text nor fields");
                if section.has("text") {
                    text("a section's text", section.get("text"), 3_000, violations);
                }
                if section.has("fields") {
                    for field in violations.list("a section's fields", section.get("fields"), 10) {
                        text("a section's field", field, 2_000, violations);
                    }
                }
            }
            Some("context") => {
                let context = violations.object("a context", block, &["type", "elements"]);
                for element in violations.list("a context's elements", context.get("elements"), 10)
                {
                    text("a context's element", element, 3_000, violations);
                }
            }
            Some("divider") => {}
            other => violations.0.push(format!("a block is of type {other:?}")),
        }
    }
}

fn text(path: &str, value: &Value, characters_max: usize, violations: &mut Violations) {
    let text = violations.object(path, value, &["type", "text", "emoji", "verbatim"]);
    violations.one_of(path, text.get("type"), &["mrkdwn", "plain_text"]);
    violations.text(path, text.get("text"), characters_max);
}
