//! Slack's `chat.postMessage`.

use serde_json::{Value, json};

use crate::{
    domain::Severity,
    message::{Facts, cut},
};

/// Slack cuts a message's text beyond this, in characters.
const TEXT_CHARACTERS_MAX: usize = 40_000;

/// The rule's message as it is; else the summary with severity, status and acknowledged.
pub(super) fn body(facts: &mut Facts<'_>) -> Value {
    // Links in events are for people to follow, not for Slack to fetch.
    let mut body = json!({"unfurl_links": false, "unfurl_media": false});
    if let Some(message) = facts.message.clone() {
        let start = cut::cut(&message, TEXT_CHARACTERS_MAX, cost);
        let limit = format!("{TEXT_CHARACTERS_MAX} characters");
        let start = facts.note_cut(&message, start, "Slack", &limit);
        body["text"] = escaped(&start).into();
        return body;
    }
    let field = |(label, value): (&str, String)| json!({"type": "mrkdwn", "text": format!("*{label}*\n{value}")});
    let fields: Vec<_> = facts.fields().into_iter().map(field).collect();
    let mut blocks = vec![json!({
        "type": "section",
        "fields": fields,
    })];
    if !facts.link.is_empty() {
        let link = format!("<{}|{}>", facts.link, facts.thread_id());
        let text = json!({"type": "mrkdwn", "text": link});
        blocks.push(json!({"type": "context", "elements": [text]}));
    }
    let mut text = escaped(&facts.headline);
    if let Some(change) = facts.change() {
        text = format!("{text} ({change})");
    }
    if let Some(members) = facts.members() {
        for line in members {
            text = format!("{text}\n\u{2022} {}", escaped(&line));
        }
    }
    body["text"] = text.into();
    body["attachments"] = json!([{"color": color(facts), "blocks": blocks}]);
    body
}

/// Characters that a letter takes in Slack's markup.
fn cost(letter: char) -> usize {
    match letter {
        '&' => "&amp;".len(),
        '<' | '>' => "&lt;".len(),
        _ => 1,
    }
}

/// A text that Slack shows as it is: nobody is called by an event that holds `<!channel>`.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn color(facts: &Facts<'_>) -> &'static str {
    if facts.change() == Some("closed") {
        return "#2eb67d";
    }
    match facts.occurrence().severity {
        Severity::Critical => "#b3001b",
        Severity::Error => "#e8590c",
        Severity::Warning => "#f2c037",
        Severity::Info => "#3b82c4",
        Severity::Debug => "#8a8f98",
    }
}
