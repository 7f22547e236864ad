//! Receivers that choose the ids of their items: issues, tickets and messages. Each enforces the
//! published rules of its API.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

use super::{Answer, Rules, shape::Violations, stand_in::content_type};
use crate::receiver::Received;

/// An issue, ticket or message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Item {
    pub is_closed: bool,
    /// Texts of the requests about it, oldest first.
    pub texts: Vec<String>,
    /// The idempotency key with which it was created.
    key: String,
}

/// A request as understood by a receiver.
#[derive(Debug, Clone)]
pub enum Act {
    Create,
    /// Creates an item that nothing can refer to.
    Note,
    /// Changes the item with this id; `Some(true)` closes it, `Some(false)` reopens it.
    Change(String, Option<bool>),
}

/// The API of a receiver.
#[derive(Debug)]
pub struct Api {
    pub name: &'static str,
    /// A header that authenticates requests, if the address does not.
    pub header: (&'static str, &'static str),
    pub content_type: &'static str,
    /// Whether a second request with the same idempotency key creates nothing.
    pub is_idempotent: bool,
    /// Reads a request and adds its violations. Returns `None` for an unknown path or method.
    pub read: fn(&Received, &mut Violations) -> Option<(Act, String)>,
    /// Returns the status and the body of the response about an item.
    pub respond: fn(u64, &Act) -> (u16, Value),
}

#[derive(Debug, Default)]
struct State {
    items: BTreeMap<u64, Item>,
    is_hanging: bool,
    /// The numbers of deleted items.
    deleted: BTreeSet<u64>,
}

/// The items of a receiver, shared with the test.
#[derive(Debug, Clone, Default)]
pub struct Items(Arc<Mutex<State>>);

impl Items {
    /// Returns all items by number.
    pub fn all(&self) -> BTreeMap<u64, Item> {
        self.0.lock().unwrap().items.clone()
    }

    /// Deletes an item, so that it takes no more changes.
    pub fn delete(&self, number: u64) {
        self.0.lock().unwrap().deleted.insert(number);
    }

    /// Sets whether requests take effect without a response.
    pub fn hang(&self, is_hanging: bool) {
        self.0.lock().unwrap().is_hanging = is_hanging;
    }
}

/// A receiver with one of the [`APIS`].
#[derive(Debug)]
pub struct Desk {
    api: &'static Api,
    items: Items,
}

impl Desk {
    /// Creates a receiver and its items.
    pub fn new(api: &'static Api) -> (Self, Items) {
        let items = Items::default();
        let desk = Self {
            api,
            items: items.clone(),
        };
        (desk, items)
    }
}

impl Rules for Desk {
    fn judge(&mut self, request: &Received) -> Answer {
        let mut violations = Violations::default();
        let (name, value) = self.api.header;
        let found = request.headers.get(name).map(String::as_str);
        violations.unless(
            name.is_empty() || found == Some(value),
            format!("{name} is {found:?}"),
        );
        let content_type = content_type(request);
        violations.unless(
            content_type == self.api.content_type,
            format!("the content type is {content_type}"),
        );
        let Some((act, text)) = (self.api.read)(request, &mut violations) else {
            let wrong = format!("unknown: {} {}", request.method, request.path);
            return Answer::refused(404, "{}", vec![wrong]);
        };
        let mut state = self.items.0.lock().unwrap();
        let key = request.header("idempotency-key").to_owned();
        let number = match &act {
            Act::Create | Act::Note => {
                let mut known = state.items.iter();
                let known = known.find(|(_, it)| self.api.is_idempotent && it.key == key);
                known.map_or(state.items.len() as u64 + 1, |(number, _)| *number)
            }
            Act::Change(id, _) => {
                let mut numbers = state.items.keys();
                let found = numbers.find(|it| item_id(**it) == *id || it.to_string() == *id);
                if found.is_none() {
                    violations.0.push(format!("no item has the id {id:?}"));
                }
                found.copied().unwrap_or_default()
            }
        };
        if !violations.0.is_empty() {
            return Answer::refused(400, "{}", violations.0);
        }
        if state.deleted.contains(&number) {
            let (status, body) = gone_response(self.api.name);
            return Answer::without_message(status, body);
        }
        let item = state.items.entry(number).or_default();
        if let Act::Change(_, Some(is_closed)) = act {
            item.is_closed = is_closed;
        }
        item.key = key;
        item.texts.push(text);
        let (status, body) = (self.api.respond)(number, &act);
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let hour = Duration::from_secs(3_600);
        let delay = if state.is_hanging {
            hour
        } else {
            Duration::ZERO
        };
        Answer::accepted(status, body).delayed_by(delay)
    }
}

/// Returns the response of a chat about a change of a deleted message.
fn gone_response(name: &str) -> (u16, &'static str) {
    match name {
        "telegram-edit" => (
            400,
            r#"{"ok":false,"error_code":400,"description":"Bad Request: message to edit not found"}"#,
        ),
        "discord-edit" => (404, r#"{"message":"Unknown Message","code":10008}"#),
        "mattermost-bot" => (404, r#"{"id":"app.post.get.app_error","status_code":404}"#),
        "rocket-chat-bot" => (
            400,
            r#"{"success":false,"error":"No message found with the id of \"id-1\"."}"#,
        ),
        _ => (400, r#"{"message":"The edit limit has been reached."}"#),
    }
}

/// Returns the id of an item for receivers with texts as ids.
fn item_id(number: u64) -> String {
    format!("id-{number}")
}

fn json_body(request: &Received) -> Value {
    serde_json::from_slice(&request.body).unwrap_or_default()
}

fn form_body(request: &Received) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(&request.body)
        .into_owned()
        .collect()
}

/// Returns the method, and the path below a prefix.
fn route<'a>(request: &'a Received, prefix: &str) -> Option<(&'a str, &'a str)> {
    let below = request.path.strip_prefix(prefix)?;
    Some((request.method.as_str(), below.trim_start_matches('/')))
}

/// All receivers, by the name of their preset.
pub const APIS: &[Api] = &[
    Api {
        name: "jira-issue",
        header: ("authorization", "Basic canary"),
        content_type: "application/json",
        is_idempotent: false,
        read: |it, violations| {
            let body = json_body(it);
            let (method, below) = route(it, "/rest/api/2/issue")?;
            match (method, below.split_once('/')) {
                ("POST", None) if below.is_empty() => {
                    let fields = violations.object("body", &body, &["fields"]).get("fields");
                    let known = ["project", "issuetype", "labels", "summary", "description"];
                    violations.object("fields", fields, &known);
                    violations.text("project.key", &fields["project"]["key"], 255);
                    violations.text("issuetype.name", &fields["issuetype"]["name"], 255);
                    violations.text("description", &fields["description"], 32_767);
                    let text = violations.text("summary", &fields["summary"], 255);
                    Some((Act::Create, text.to_owned()))
                }
                ("POST", Some((key, "comment"))) => {
                    violations.object("body", &body, &["body"]);
                    let text = violations.text("body", &body["body"], 32_767).to_owned();
                    Some((Act::Change(key.to_owned(), None), text))
                }
                ("POST", Some((key, "transitions"))) => {
                    violations.object("body", &body, &["transition"]);
                    let is_closed = match body["transition"]["id"].as_str() {
                        Some("31") => true,
                        Some("11") => false,
                        _ => {
                            violations.0.push(format!("no such transition: {body}"));
                            return None;
                        }
                    };
                    Some((Act::Change(key.to_owned(), Some(is_closed)), String::new()))
                }
                _ => None,
            }
        },
        respond: |number, act| match act {
            Act::Create | Act::Note => (201, json!({"id": "10000", "key": item_id(number)})),
            Act::Change(_, None) => (201, json!({"id": "7"})),
            Act::Change(..) => (204, Value::Null),
        },
    },
    Api {
        name: "github-issue",
        header: ("authorization", "Bearer canary"),
        content_type: "application/json",
        is_idempotent: false,
        read: |it, violations| {
            violations.unless(
                it.header("accept") == "application/vnd.github+json",
                "no `accept`",
            );
            let body = json_body(it);
            let known = ["title", "body", "labels", "state", "state_reason"];
            violations.object("body", &body, &known);
            violations.optional_text("title", &body["title"], 256);
            violations.optional_text("body", &body["body"], 65_536);
            let text = body["body"].as_str().unwrap_or_default().to_owned();
            match route(it, "/repos/OWNER/REPOSITORY/issues")? {
                ("POST", "") => {
                    violations.text("title", &body["title"], 256);
                    Some((Act::Create, text))
                }
                ("PATCH", number) => {
                    violations.one_of("state", &body["state"], &["open", "closed"]);
                    let is_closed = body["state"] == "closed";
                    Some((Act::Change(number.to_owned(), Some(is_closed)), text))
                }
                _ => None,
            }
        },
        respond: |number, act| {
            let status = if matches!(act, Act::Create) { 201 } else { 200 };
            (status, json!({"id": 9_000 + number, "number": number}))
        },
    },
    Api {
        name: "gitlab-issue",
        header: ("private-token", "canary"),
        content_type: "application/json",
        is_idempotent: false,
        read: |it, violations| {
            let body = json_body(it);
            let known = ["title", "description", "labels", "state_event"];
            violations.object("body", &body, &known);
            violations.optional_text("title", &body["title"], 255);
            violations.optional_text("description", &body["description"], 1_048_576);
            let text = body["description"].as_str().unwrap_or_default().to_owned();
            match route(it, "/api/v4/projects/PROJECT/issues")? {
                ("POST", "") => {
                    violations.text("title", &body["title"], 255);
                    Some((Act::Create, text))
                }
                ("PUT", number) => {
                    let change = match body["state_event"].as_str() {
                        Some("close") => Some(true),
                        Some("reopen") => Some(false),
                        None => None,
                        Some(other) => {
                            violations.0.push(format!("state_event is {other}"));
                            None
                        }
                    };
                    Some((Act::Change(number.to_owned(), change), text))
                }
                _ => None,
            }
        },
        respond: |number, act| {
            let status = if matches!(act, Act::Create) { 201 } else { 200 };
            (status, json!({"id": 9_000 + number, "iid": number}))
        },
    },
    Api {
        name: "zendesk",
        header: ("authorization", "Basic canary"),
        content_type: "application/json",
        is_idempotent: true,
        read: |it, violations| {
            let body = json_body(it);
            let ticket = &body["ticket"];
            let known = ["subject", "priority", "tags", "comment", "status"];
            violations.object("ticket", ticket, &known);
            let text = violations.text("comment.body", &ticket["comment"]["body"], 65_536);
            let text = text.to_owned();
            if !ticket["priority"].is_null() {
                let words = ["urgent", "high", "normal", "low"];
                violations.one_of("priority", &ticket["priority"], &words);
            }
            violations.unless(
                it.header("idempotency-key").len() <= 255,
                "the idempotency key is too long",
            );
            match route(it, "/api/v2/tickets")? {
                ("POST", "") => Some((Act::Create, text)),
                ("PUT", number) => {
                    let words = ["open", "pending", "hold", "solved"];
                    violations.one_of("status", &ticket["status"], &words);
                    let is_closed = ticket["status"] == "solved";
                    Some((Act::Change(number.to_owned(), Some(is_closed)), text))
                }
                _ => None,
            }
        },
        respond: |number, act| {
            let status = if matches!(act, Act::Create) { 201 } else { 200 };
            (status, json!({"ticket": {"id": number}}))
        },
    },
    Api {
        name: "telegram-edit",
        header: ("", ""),
        content_type: "application/json",
        is_idempotent: false,
        read: |it, violations| {
            let body = json_body(it);
            let text = violations.text("text", &body["text"], 4_096).to_owned();
            let known = ["chat_id", "text", "link_preview_options", "message_id"];
            violations.object("body", &body, &known);
            match route(it, "/bot1:canary")? {
                ("POST", "sendMessage") => {
                    violations.text("chat_id", &body["chat_id"], 100);
                    Some((Act::Create, text))
                }
                ("POST", "editMessageText") => {
                    violations.unless(body["chat_id"] == "-100", "another chat");
                    let message = body["message_id"].as_u64()?;
                    Some((chat_change(message.to_string(), &text), text))
                }
                _ => None,
            }
        },
        respond: |number, _| {
            let result = json!({"message_id": number, "chat": {"id": -100}});
            (200, json!({"ok": true, "result": result}))
        },
    },
    Api {
        name: "discord-edit",
        header: ("", ""),
        content_type: "application/json",
        is_idempotent: false,
        read: |it, violations| {
            let body = json_body(it);
            violations.object("body", &body, &["content", "allowed_mentions"]);
            let text = violations
                .text("content", &body["content"], 2_000)
                .to_owned();
            match route(it, "/api/webhooks/1/canary")? {
                ("POST", "?wait=true") => Some((Act::Create, text)),
                ("PATCH", below) => {
                    let id = below.strip_prefix("messages/")?.split('?').next()?;
                    Some((chat_change(id.to_owned(), &text), text))
                }
                _ => None,
            }
        },
        respond: |number, _| (200, json!({"id": item_id(number)})),
    },
    Api {
        name: "mattermost-bot",
        header: ("authorization", "Bearer canary"),
        content_type: "application/json",
        is_idempotent: false,
        read: |it, violations| {
            let body = json_body(it);
            let text = violations
                .text("message", &body["message"], 16_383)
                .to_owned();
            match route(it, "/api/v4/posts")? {
                ("POST", "") => {
                    violations.object("body", &body, &["channel_id", "message"]);
                    violations.text("channel_id", &body["channel_id"], 26);
                    Some((Act::Create, text))
                }
                ("PUT", below) => {
                    violations.object("body", &body, &["message"]);
                    let id = below.strip_suffix("/patch")?;
                    Some((chat_change(id.to_owned(), &text), text))
                }
                _ => None,
            }
        },
        respond: |number, act| {
            let status = if matches!(act, Act::Create) { 201 } else { 200 };
            (status, json!({"id": item_id(number)}))
        },
    },
    Api {
        name: "rocket-chat-bot",
        header: ("x-auth-token", "canary"),
        content_type: "application/json",
        is_idempotent: false,
        read: |it, violations| {
            violations.unless(it.header("x-user-id") == "USER", "no `x-user-id`");
            let body = json_body(it);
            let text = violations.text("text", &body["text"], 5_000).to_owned();
            match route(it, "/api/v1")? {
                ("POST", "chat.postMessage") => {
                    violations.object("body", &body, &["channel", "text"]);
                    violations.text("channel", &body["channel"], 100);
                    Some((Act::Create, text))
                }
                ("POST", "chat.update") => {
                    violations.object("body", &body, &["roomId", "msgId", "text"]);
                    violations.unless(body["roomId"] == "room", "another room");
                    let id = body["msgId"].as_str()?;
                    Some((chat_change(id.to_owned(), &text), text))
                }
                _ => None,
            }
        },
        respond: |number, _| {
            let message = json!({"_id": item_id(number), "rid": "room"});
            (200, json!({"success": true, "message": message}))
        },
    },
    Api {
        name: "webex-bot",
        header: ("authorization", "Bearer canary"),
        content_type: "application/json",
        is_idempotent: false,
        read: |it, violations| {
            let body = json_body(it);
            violations.object("body", &body, &["roomId", "text"]);
            violations.text("roomId", &body["roomId"], 200);
            let text = violations.text("text", &body["text"], 7_439).to_owned();
            match route(it, "/v1/messages")? {
                ("POST", "") => Some((Act::Create, text)),
                ("PUT", id) => Some((chat_change(id.to_owned(), &text), text)),
                _ => None,
            }
        },
        respond: |number, _| (200, json!({"id": item_id(number), "roomId": "ROOM"})),
    },
    Api {
        name: "pushover",
        header: ("", ""),
        content_type: "application/x-www-form-urlencoded",
        is_idempotent: false,
        read: |it, violations| {
            let (path, query) = it.path.split_once('?')?;
            violations.unless(query == "token=canary&user=u", "no token");
            let fields = form_body(it);
            let text = fields.get("message").cloned().unwrap_or_default();
            let below = path.strip_prefix("/1/")?;
            if let Some(id) = below.strip_prefix("receipts/") {
                let id = id.strip_suffix("/cancel.json")?;
                return Some((Act::Change(id.to_owned(), Some(true)), text));
            }
            violations.unless(below == "messages.json", "unknown path");
            violations.unless(
                (1..=1_024).contains(&text.chars().count()),
                "`message` has not 1 to 1,024 characters",
            );
            let number = |name: &str| fields.get(name).and_then(|it| it.parse::<u32>().ok());
            let is_emergency = number("priority") == Some(2);
            violations.unless(
                !is_emergency
                    || number("retry").is_some_and(|it| it >= 30)
                        && number("expire").is_some_and(|it| it <= 10_800),
                "an emergency needs `retry` and `expire`",
            );
            let act = if is_emergency { Act::Create } else { Act::Note };
            Some((act, text))
        },
        respond: |number, act| match act {
            Act::Create => (
                200,
                json!({"status": 1, "request": "r", "receipt": item_id(number)}),
            ),
            Act::Note | Act::Change(..) => (200, json!({"status": 1, "request": "r"})),
        },
    },
];

/// An edit of a chat message, whose text contains the state of the event.
fn chat_change(id: String, text: &str) -> Act {
    Act::Change(id, Some(text.contains("closed")))
}
