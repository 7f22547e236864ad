//! Adaptive Cards for Teams incoming webhooks and workflows.

use serde_json::{Value, json};

use crate::{
    domain::Severity,
    message::{Facts, cut},
    template::{self, Escape},
};

/// Teams rejects messages over 28 KB. A KB is taken as 1,000 bytes, to be on the safe side.
pub(super) const BODY_BYTES_MAX: usize = 28_000;

/// Returns the size of a card as Teams counts it: a workflow forwards it as a string inside JSON.
pub(super) fn size_bytes(card: &Value) -> usize {
    Value::from(card.to_string()).to_string().len()
}

/// Returns the bytes of a character in a string of JSON that is itself a string of JSON.
fn json_cost(letter: char) -> usize {
    match letter {
        '"' | '\\' => 4,
        '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 3,
        letter if letter < ' ' => 7,
        letter => letter.len_utf8(),
    }
}

/// Builds a card with the rule's message, or with the summary, severity, status and
/// acknowledgement. A message that is too long is cut to fit.
pub(super) fn card_body(facts: &mut Facts<'_>) -> Value {
    let (text, with_facts) = match &facts.message {
        Some(message) => (paragraphs(message), false),
        None => (default_text(facts), true),
    };
    let whole = card(facts, &text, with_facts);
    if size_bytes(&whole) <= BODY_BYTES_MAX {
        return whole;
    }
    let around = size_bytes(&card(facts, "", with_facts));
    let start = cut::truncate_to_cost(&text, BODY_BYTES_MAX.saturating_sub(around), json_cost);
    let limit = format!("{BODY_BYTES_MAX} bytes in total");
    let start = facts.warn_truncated(&text, start, "Teams", &limit);
    card(facts, &start, with_facts)
}

pub(super) fn reduced_message(facts: &Facts<'_>) -> Value {
    card(facts, &headline(facts), false)
}

fn headline(facts: &Facts<'_>) -> String {
    // Events must not disguise the target of a link or mention anyone.
    let headline = template::escape_text(&facts.headline, Escape::Card);
    match facts.change_label() {
        Some(change) => format!("{headline} ({change})"),
        None => headline.into_owned(),
    }
}

fn default_text(facts: &Facts<'_>) -> String {
    let mut text = headline(facts);
    for line in facts.members().into_iter().flatten() {
        text.push_str("\n\n");
        text.push_str(&template::escape_text(&line, Escape::Card));
    }
    text
}

/// Teams renders a single line break as a space.
fn paragraphs(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\n\n")
}

fn card(facts: &Facts<'_>, text: &str, with_facts: bool) -> Value {
    let mut block = json!({"type": "TextBlock", "text": text, "wrap": true});
    let mut blocks = Vec::new();
    if with_facts {
        block["size"] = "Medium".into();
        block["weight"] = "Bolder".into();
        block["color"] = color(facts).into();
        let fact = |(title, value): (&str, String)| json!({"title": title, "value": value});
        let shown: Vec<_> = facts.fields().into_iter().map(fact).collect();
        blocks.push(json!({
            "type": "FactSet",
            "facts": shown,
        }));
    }
    blocks.insert(0, block);
    let mut content = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": blocks,
    });
    let open =
        |title: &str, url: String| json!({"type": "Action.OpenUrl", "title": title, "url": url});
    let acknowledge = facts.acknowledge_link();
    let link = Some(facts.link.clone()).filter(|it| !it.is_empty());
    let actions = [
        acknowledge.map(|url| open("Acknowledge", url)),
        link.map(|url| open("Open the event", url)),
    ];
    let actions: Vec<_> = actions.into_iter().flatten().collect();
    if !actions.is_empty() {
        content["actions"] = actions.into();
    }
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": content,
        }],
    })
}

fn color(facts: &Facts<'_>) -> &'static str {
    if facts.change_label() == Some("closed") {
        return "Good";
    }
    match facts.occurrence().severity {
        Severity::Critical | Severity::Error => "Attention",
        Severity::Warning => "Warning",
        Severity::Info => "Accent",
        Severity::Debug => "Default",
    }
}
