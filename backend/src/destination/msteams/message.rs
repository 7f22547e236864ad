//! Adaptive Cards for Teams incoming webhooks and workflows.

use serde_json::{Value, json};

use crate::{
    domain::Severity,
    message::{Facts, cut},
    template::{self, Escape},
};

/// Teams rejects messages over 28 KB, conservatively taken as thousands.
pub(super) const BODY_BYTES_MAX: usize = 28_000;
/// Room for the truncation mark and doubled escapes of line breaks.
const SPARE_BYTES: usize = 16;

/// Builds a card with the rule's message, or with the summary, severity, status and
/// acknowledgement. A message that is too long is cut to fit.
pub(super) fn body(facts: &mut Facts<'_>) -> Value {
    let (text, with_facts) = match &facts.message {
        Some(message) => (paragraphs(message), false),
        None => (default_text(facts), true),
    };
    let whole = card(facts, &text, with_facts);
    let size = whole.to_string().len();
    if size <= BODY_BYTES_MAX {
        return whole;
    }
    let around = card(facts, "", with_facts).to_string().len();
    let room = BODY_BYTES_MAX.saturating_sub(around + SPARE_BYTES);
    let start = cut::json_bytes(&text, room);
    let limit = format!("{BODY_BYTES_MAX} bytes in total");
    let start = facts.note_cut(&text, start, "Teams", &limit);
    card(facts, &start, with_facts)
}

fn default_text(facts: &Facts<'_>) -> String {
    // Events must not disguise the target of a link or mention anyone.
    let text_of = |text: &str| template::escaped(text, Escape::Card).into_owned();
    let headline = text_of(&facts.headline);
    let mut text = match facts.change() {
        Some(change) => format!("{headline} ({change})"),
        None => headline,
    };
    for line in facts.members().into_iter().flatten() {
        text.push_str("\n\n");
        text.push_str(&text_of(&line));
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
    if facts.change() == Some("closed") {
        return "Good";
    }
    match facts.occurrence().severity {
        Severity::Critical | Severity::Error => "Attention",
        Severity::Warning => "Warning",
        Severity::Info => "Accent",
        Severity::Debug => "Default",
    }
}
