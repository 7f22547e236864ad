//! Tests that texts of events in chats notify no room, mention no one, and contain no links.

use std::collections::BTreeMap;

use bellwether_tests::{
    receiver::{Received, Receiver},
    world::World,
};
use serde_json::{Value, json};

use super::{
    rules::{all_rules, plain},
    store,
};

/// Text that chats interpret as mentions, links or tags.
const CALLS: &str = "@all @Channel @here @room @everyone @team @**all** <!channel> <!here> <users/all> \
                     <@U1> <at>x</at> [x](https://evil.example) <https://evil.example|x>";

/// The text fields in which chats interpret markup. Other presets send plain text, which is checked
/// with the fields in `all_rules`.
const MARKUP: [(&str, &str); 13] = [
    ("apprise", "/body"),
    ("apprise", "/title"),
    ("discord", "/content"),
    ("feishu", "/content/text"),
    ("github-issue", "/body"),
    ("google-chat", "/text"),
    ("matrix", "/body"),
    ("mattermost", "/text"),
    ("rocket-chat", "/text"),
    ("slack-webhook", "/text"),
    ("zulip", "content"),
    ("slack", "/text"),
    ("msteams", "/attachments/0/content/body/0/text"),
];

/// Replaces each backslash escape with a middle dot.
fn without_escapes(text: &str) -> String {
    let mut chars = text.chars();
    let mut read = String::new();
    while let Some(c) = chars.next() {
        let is_escape = c == '\\' && chars.next().is_some();
        read.push(if is_escape { '\u{b7}' } else { c });
    }
    read
}

/// Markup that a chat would interpret, in lower case.
const READ: [&str; 13] = [
    "@all",
    "@channel",
    "@here",
    "@room",
    "@everyone",
    "@team",
    "@**",
    "<!",
    "<users",
    "<@",
    "<at",
    "<https",
    "](",
];

/// Returns the text at a JSON pointer, or the form field with this name.
fn text_at(received: &Received, place: &str) -> String {
    if place.starts_with('/') {
        let body = received.json();
        return body.pointer(place).unwrap().as_str().unwrap().to_owned();
    }
    let pairs = url::form_urlencoded::parse(&received.body).into_owned();
    pairs.collect::<BTreeMap<_, _>>().remove(place).unwrap()
}

/// Starts a receiver for each chat, each with three rules.
async fn chats(world: &World) -> BTreeMap<&'static str, Receiver> {
    let rest = world.rest();
    let mut receivers = BTreeMap::new();
    let query = json!({"clause": {"equals": {"field": "name", "stringVal": "disk"}}});
    let trigger = json!({"name": "disk", "type": {"event": {"query": query}}});
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    for (file, _) in MARKUP {
        if receivers.contains_key(file) {
            continue;
        }
        let rules = all_rules().find(|it| it.file == file);
        let receiver = match rules {
            Some(rules) => rules.receiver().await,
            None => Receiver::start().await,
        };
        let kind = match file {
            "slack" => json!({"slack": {"channel": "#ops", "token": "xoxb-1"}}),
            "msteams" => json!({"msteams": {"url": receiver.url("/workflows/1")}}),
            _ => Value::Null,
        };
        if kind.is_null() {
            store(world, rules.unwrap(), |path| receiver.url(path));
        } else {
            let draft = json!({"name": file, "type": kind});
            rest.post("/v1/notification/destinations", &draft)
                .await
                .ok();
        }
        receivers.insert(file, receiver);
        // One rule has the default message, the others a message in each template language.
        for (name, message, language) in [
            ("default", "", "MUSTACHE"),
            ("mustache", "{{event.summary}}", "MUSTACHE"),
            ("jinja", "{{ event.summary }}", "JINJA"),
        ] {
            let rule = json!({"name": format!("{file} {name}"), "enabled": true,
                "message": message, "templateLanguage": language,
                "triggerNames": ["disk"], "destinationNames": [file]});
            rest.post("/v1/notification/rules", &rule).await.ok();
        }
    }
    receivers
}

#[tokio::test]
async fn chat_presets_neutralize_mentions_and_links() {
    let builtin = Receiver::start().await;
    let world = World::with_settings(&format!("[providers]\nslack = {:?}\n", builtin.url("")));
    let rest = world.rest();
    let receivers = chats(&world).await;
    let event = json!({"name": "disk", "dimensions": {"host": CALLS}, "summary": CALLS,
        "severity": "SEVERITY_CRITICAL"});
    let events = json!({"events": [event]});
    rest.post("/v1/data-receiver/events", &events).await.ok();
    for (file, place) in MARKUP {
        let receiver = match file {
            "slack" => &builtin,
            _ => &receivers[file],
        };
        receiver.wait_for(3).await;
        for received in receiver.received() {
            let text = text_at(&received, place);
            if file != "slack-webhook" {
                // Titles may be truncated after this part.
                assert!(plain(&text).contains("@Channel @here"), "{file}: {text}");
            }
            let read = without_escapes(&text).to_lowercase();
            for call in READ {
                // Slack does not support Markdown links.
                let is_read = read.contains(call) && !(file == "slack" && call == "](");
                assert!(!is_read, "{file}: {call} in {text}");
            }
        }
    }
}
