//! Messages for Slack's `chat.postMessage`.

use serde_json::{Value, json};

use crate::{
    domain::{Severity, destination::Slack},
    message::{Facts, cut},
    template::{self, Escape},
};

/// Slack truncates texts beyond this many characters.
const TEXT_CHARACTERS_MAX: usize = 40_000;

const UPDATE_CHARACTERS_MAX: usize = 4_000;

const BLOCKS_MAX: usize = 50;
const BLOCKS: &str = "the blocks";

/// Builds a message from the author's blocks, or the rule's message, or the summary with severity,
/// status and acknowledgement.
pub(super) fn body(facts: &mut Facts<'_>, slack: &Slack) -> Value {
    // Slack must not fetch links in events.
    let mut body = json!({"unfurl_links": false, "unfurl_media": false});
    if let Some(blocks) = custom_blocks(facts, &slack.blocks) {
        body["blocks"] = blocks;
        // Fallback for notifications and clients without blocks.
        let cut = |text: &str| cut::truncate_to_cost(text, TEXT_CHARACTERS_MAX, escaped_cost);
        let text = match &facts.message {
            Some(markup) if facts.is_markup => cut(markup),
            Some(message) => escape_text(&cut(message)),
            None => escape_text(&cut(&facts.headline)),
        };
        body["text"] = with_change(text, facts).into();
        return body;
    }
    if let Some(message) = facts.message.clone() {
        let start = cut::truncate_to_cost(&message, TEXT_CHARACTERS_MAX, escaped_cost);
        let limit = format!("{TEXT_CHARACTERS_MAX} characters");
        let start = facts.warn_truncated(&message, start, "Slack", &limit);
        let text = if facts.is_markup {
            start
        } else {
            escape_text(&start)
        };
        body["text"] = text.into();
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
    if let Some(url) = facts.acknowledge_link() {
        let label = json!({"type": "plain_text", "text": "Acknowledge"});
        let button = json!({"type": "button", "text": label, "url": url, "style": "primary"});
        blocks.push(json!({"type": "actions", "elements": [button]}));
    }
    let mut text = with_change(escape_text(&facts.headline), facts);
    if let Some(members) = facts.members() {
        for line in members {
            text = format!("{text}\n\u{2022} {}", escape_text(&line));
        }
    }
    body["text"] = text.into();
    body["attachments"] = json!([{"color": color(facts), "blocks": blocks}]);
    body
}

pub(super) fn reduced_message(facts: &Facts<'_>) -> Value {
    let text = with_change(escape_text(&facts.headline), facts);
    let text = format!("{text} {}", facts.link);
    json!({"unfurl_links": false, "unfurl_media": false, "text": text.trim_end()})
}

/// Truncates a text to the length that `chat.update` accepts; links and entities are whole or
/// absent.
pub(super) fn truncate_update(text: &str) -> String {
    let mut start = cut::truncate_chars(text, UPDATE_CHARACTERS_MAX);
    if start == text {
        return start;
    }
    for (open, close) in [('&', ';'), ('<', '>')] {
        let last = start.rfind(open);
        if let Some(at) = last.filter(|at| !start[*at..].contains(close)) {
            start.truncate(at);
            start.push('\u{2026}');
        }
    }
    start
}

fn with_change(text: String, facts: &Facts<'_>) -> String {
    match facts.change_label() {
        Some(change) => format!("{text} ({change})"),
        None => text,
    }
}

/// Renders the author's blocks; `None` if Slack would not accept them.
fn custom_blocks(facts: &mut Facts<'_>, template: &str) -> Option<Value> {
    let is_left_out = facts.content.digest.is_some() && !template.contains("digest");
    let filled = facts
        .render(BLOCKS, template, Escape::SlackJson)
        .filter(|_| !is_left_out)?;
    let made: Result<Value, _> = serde_json::from_str(&filled);
    let wrong = match made {
        Ok(Value::Array(blocks)) if !(1..=BLOCKS_MAX).contains(&blocks.len()) => {
            format!("are {}; Slack accepts 1 to {BLOCKS_MAX}", blocks.len())
        }
        Ok(Value::Array(blocks)) if blocks.iter().all(Value::is_object) => {
            return Some(Value::Array(blocks));
        }
        Ok(_) => "are not a JSON list of objects".into(),
        Err(error) => format!("are not JSON ({error})"),
    };
    facts.warn(
        BLOCKS,
        &format!("{wrong}; sending the default blocks instead"),
    );
    None
}

fn escaped_cost(letter: char) -> usize {
    match letter {
        '&' => "&amp;".len(),
        '<' | '>' => "&lt;".len(),
        _ => 1,
    }
}

/// Escapes a text for Slack, so that an event with `<!channel>` notifies no one.
fn escape_text(text: &str) -> String {
    template::escape_text(text, Escape::Slack).into_owned()
}

fn color(facts: &Facts<'_>) -> &'static str {
    if facts.change_label() == Some("closed") {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_text_ends_without_a_broken_link_or_entity() {
        let filler = "x".repeat(UPDATE_CHARACTERS_MAX - 10);
        for end in [
            "&amp;&amp;&amp;&amp;",
            "<https://example.com/long|text>",
            "yyyyyyyyyyyyyyyyy",
        ] {
            let start = truncate_update(&format!("{filler}{end}"));
            assert!(start.chars().count() <= UPDATE_CHARACTERS_MAX);
            assert!(start.ends_with('\u{2026}'), "{start}");
            assert!(
                !start.contains('<') && !start.ends_with("&am\u{2026}"),
                "{start}"
            );
        }
        let short = "a &amp; b <https://example.com|c>";
        assert_eq!(truncate_update(short), short);
    }
}
