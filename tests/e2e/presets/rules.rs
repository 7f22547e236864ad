//! The published rules of the receivers that presets send to, and checks of messages against them.

mod chats;
mod gateways;
mod incidents;

use std::collections::BTreeMap;

use bellwether_tests::receiver::{Received, Receiver, Reply};
use serde_json::Value;

/// The hostile text as it must appear on one line.
const SHOWN: &str = "x\",\"y\":\"z\"} x-evil: 1</a><b>&to=evil&b=%41#f/../{{event.name}} \u{e4}";

pub(super) struct Rules {
    pub(super) file: &'static str,
    pub(super) secret_path: &'static str,
    /// The other variable that must be set.
    pub(super) secret: &'static str,
    /// The response to an accepted message: its status and body.
    pub(super) accepts: (u16, &'static str),
    /// Responses that mean that the destination is wrong, not the message.
    pub(super) wrong: &'static [(u16, &'static str)],
    pub(super) check: fn(&Received, ChangeKind),
}

impl Rules {
    pub(super) fn receiver(&self) -> impl Future<Output = Receiver> {
        let reply = reply(self.accepts);
        Receiver::with_rule(move |_| reply.clone())
    }
}

pub(super) fn reply((status, body): (u16, &str)) -> Reply {
    Reply::answer(status, Vec::new(), body.to_owned())
}

/// The kind of change that a message reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ChangeKind {
    Opening,
    Closing,
}

impl ChangeKind {
    fn choose(self, opening: &'static str, closing: &'static str) -> &'static str {
        match self {
            Self::Opening => opening,
            Self::Closing => closing,
        }
    }
}

/// Returns the JSON of a `POST` to this path, which must have exactly these fields.
fn posted(received: &Received, path: &str, fields: &[&str]) -> Value {
    assert_eq!(
        (received.method.as_str(), received.path.as_str()),
        ("POST", path)
    );
    fielded(received, fields)
}

fn fielded(received: &Received, fields: &[&str]) -> Value {
    assert_eq!(received.header("content-type"), "application/json");
    let body = received.json();
    let known = body.as_object().unwrap().keys();
    assert!(
        known.clone().all(|key| fields.contains(&key.as_str())) && known.len() == fields.len(),
        "{body}"
    );
    body
}

/// Asserts that a text contains the complete hostile summary, and has at most `characters_max`
/// characters.
fn assert_has_summary(value: &Value, characters_max: usize) {
    let text = value.as_str().unwrap();
    assert!(plain(text).contains(SHOWN), "{text}");
    assert!(text.chars().count() <= characters_max, "{text}");
}

/// Returns the text without the characters that escape markup.
pub(super) fn plain(text: &str) -> String {
    text.replace(['\u{2060}', '\\'], "")
}

/// Asserts that a text begins with the hostile summary, and has at most `characters_max`
/// characters.
fn assert_starts_with_summary(value: &Value, characters_max: usize) {
    let text = value.as_str().unwrap();
    assert!(text.starts_with("x\",\"y\""), "{text}");
    assert!(text.chars().count() <= characters_max, "{text}");
}

fn form(received: &Received, path: &str) -> BTreeMap<String, String> {
    assert_eq!(
        (received.method.as_str(), received.path.as_str()),
        ("POST", path)
    );
    assert_eq!(
        received.header("content-type"),
        "application/x-www-form-urlencoded"
    );
    let pairs: Vec<_> = url::form_urlencoded::parse(&received.body)
        .into_owned()
        .collect();
    let fields: BTreeMap<_, _> = pairs.iter().cloned().collect();
    assert_eq!(fields.len(), pairs.len(), "{pairs:?}");
    fields
}

/// Checks a request of Opsgenie's Alert API, version 2, which Jira Service Management has adopted.
fn assert_opsgenie_request(received: &Received, reported: ChangeKind, path: &str) {
    assert_eq!(received.header("authorization"), "GenieKey canary");
    let fields = [
        "message",
        "alias",
        "source",
        "entity",
        "description",
        "priority",
    ];
    let body = fielded(received, &fields);
    assert_starts_with_summary(&body["message"], 130);
    assert_has_summary(&body["description"], 15_000);
    assert_eq!(body["priority"], "P1");
    let alias: String =
        url::form_urlencoded::byte_serialize(body["alias"].as_str().unwrap().as_bytes()).collect();
    let end = match reported {
        ChangeKind::Opening => String::new(),
        ChangeKind::Closing => format!("/{alias}/close?identifierType=alias"),
    };
    assert_eq!(received.path, format!("{path}{end}"));
}

/// Returns the names of fields, with that of the buttons unless the event is closed.
fn with_buttons(
    fields: &[&'static str],
    buttons: &'static str,
    reported: ChangeKind,
) -> Vec<&'static str> {
    let mut fields = fields.to_vec();
    if reported == ChangeKind::Opening {
        fields.push(buttons);
    }
    fields
}

/// Asserts that each of the three buttons names a thread in a field of at most this many bytes.
fn assert_buttons(buttons: Option<&Vec<Value>>, field: &str, bytes_max: usize) {
    let Some(buttons) = buttons else {
        return;
    };
    assert_eq!(buttons.len(), 3);
    for button in buttons {
        let data = button[field].as_str().unwrap();
        assert!(data.len() <= bytes_max, "{data}");
        assert!(data.contains(':') || data.len() > 10, "{data}");
    }
}

/// Returns the rules of all presets that send messages.
pub(super) fn all_rules() -> impl Iterator<Item = &'static Rules> {
    [chats::RULES, gateways::RULES, incidents::RULES]
        .into_iter()
        .flatten()
}
