//! PagerDuty's Events API v2, following the reference of `POST /v2/enqueue`.

use serde_json::{Value, json};

use super::{Answer, Rules, shape::Violations, stand_in::content_type};
use crate::receiver::Received;

const TOP: [&str; 8] = [
    "routing_key",
    "event_action",
    "dedup_key",
    "payload",
    "images",
    "links",
    "client",
    "client_url",
];
const PAYLOAD: [&str; 8] = [
    "summary",
    "source",
    "severity",
    "timestamp",
    "component",
    "group",
    "class",
    "custom_details",
];
const BODY_BYTES_MAX: usize = 512 * 1024;

/// A PagerDuty service with one integration key.
#[derive(Debug)]
pub struct PagerDuty {
    /// Integration key of 32 characters.
    pub routing_key: String,
}

impl Rules for PagerDuty {
    fn judge(&mut self, request: &Received) -> Answer {
        let mut violations = Violations::default();
        if (request.method.as_str(), request.path.as_str()) != ("POST", "/v2/enqueue") {
            let wrong = format!("{} {} is not known", request.method, request.path);
            return Answer::refused(404, "Not Found", vec![wrong]);
        }
        if request.body.len() > BODY_BYTES_MAX {
            return Answer::refused(413, "", vec!["the event is beyond 512 KB".into()]);
        }
        let json = content_type(request).starts_with("application/json");
        violations.unless(json, "content-type is not application/json");
        let event = serde_json::from_slice(&request.body).unwrap_or_default();
        self.event(&event, &mut violations);
        if violations.0.is_empty() {
            let body = json!({
                "status": "success",
                "message": "Event processed",
                "dedup_key": event["dedup_key"],
            });
            return Answer::accepted(202, body.to_string());
        }
        let body = json!({
            "status": "invalid event",
            "message": "Event object is invalid",
            "errors": violations.0,
        });
        Answer::refused(400, body.to_string(), violations.0)
    }
}

impl PagerDuty {
    fn event(&self, event: &Value, violations: &mut Violations) {
        let event = violations.object("the event", event, &TOP);
        let key = event.get("routing_key").as_str().unwrap_or_default();
        let length = "Length of 'routing_key' is incorrect (should be 32 characters)";
        violations.unless(key.len() == 32, length);
        violations.unless(key == self.routing_key, "'routing_key' is of no service");
        let actions = ["trigger", "acknowledge", "resolve"];
        violations.one_of("'event_action'", event.get("event_action"), &actions);
        let opens = event.get("event_action") == "trigger";
        if !opens || event.has("dedup_key") {
            violations.text("'dedup_key'", event.get("dedup_key"), 255);
        }
        if opens || event.has("payload") {
            payload(event.get("payload"), violations);
        }
        violations.optional_text("'client'", event.get("client"), 1_024);
        if event.has("client_url") {
            violations.web_address("'client_url'", event.get("client_url"));
        }
        if event.has("images") {
            for image in violations.list("'images'", event.get("images"), 100) {
                let image = violations.object("an image", image, &["src", "href", "alt"]);
                violations.web_address("an image's 'src'", image.get("src"));
                violations.optional_text("an image's 'alt'", image.get("alt"), 1_024);
            }
        }
        if event.has("links") {
            for link in violations.list("'links'", event.get("links"), 100) {
                let link = violations.object("a link", link, &["href", "text"]);
                violations.web_address("a link's 'href'", link.get("href"));
                violations.optional_text("a link's 'text'", link.get("text"), 1_024);
            }
        }
    }
}

fn payload(payload: &Value, violations: &mut Violations) {
    let payload = violations.object("'payload'", payload, &PAYLOAD);
    violations.text("'payload.summary'", payload.get("summary"), 1_024);
    violations.text("'payload.source'", payload.get("source"), 1_024);
    let severities = ["critical", "warning", "error", "info"];
    violations.one_of("'payload.severity'", payload.get("severity"), &severities);
    let timestamp = payload.get("timestamp").as_str().unwrap_or_default();
    let moment = timestamp.parse::<jiff::Timestamp>();
    violations.unless(
        moment.is_ok(),
        format!("'payload.timestamp' is not a time: {timestamp}"),
    );
    for name in ["component", "group", "class"] {
        violations.optional_text(&format!("'payload.{name}'"), payload.get(name), 1_024);
    }
    let details = payload.get("custom_details");
    violations.unless(
        details.is_object(),
        "'payload.custom_details' is not an object",
    );
}
