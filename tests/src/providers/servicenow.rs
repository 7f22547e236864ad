//! ServiceNow: the OAuth token endpoint and the table API that inserts `em_event` records.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use url::form_urlencoded;

use super::{Answer, Rules, shape::Violations, stand_in::content_type};
use crate::receiver::Received;

/// The fields that a sender may set, with their maximum lengths in characters.
const FIELDS: [(&str, usize); 13] = [
    ("source", 100),
    ("event_class", 100),
    ("node", 100),
    ("resource", 100),
    ("metric_name", 100),
    ("type", 100),
    ("message_key", 1_024),
    ("severity", 1),
    ("resolution_state", 100),
    ("time_of_event", 19),
    ("description", 4_000),
    // No limit is documented.
    ("additional_info", usize::MAX),
    ("ci_type", 100),
];

/// An instance with one OAuth client.
#[derive(Debug)]
pub struct ServiceNow {
    pub client_id: String,
    pub client_secret: String,
    /// Refresh token; `None` for the client-credentials grant.
    pub refresh_token: Option<String>,
    /// Number of requests for which a token is valid.
    pub uses_per_token: usize,
    /// Delay before a token is issued.
    pub token_delay: Duration,
    tokens: usize,
    uses_left: usize,
}

impl ServiceNow {
    /// Creates an instance whose tokens expire after this many requests.
    pub fn new(client_secret: &str, refresh_token: Option<&str>, uses_per_token: usize) -> Self {
        Self {
            client_id: "bellwether".into(),
            client_secret: client_secret.into(),
            refresh_token: refresh_token.map(str::to_owned),
            uses_per_token,
            token_delay: Duration::ZERO,
            tokens: 0,
            uses_left: 0,
        }
    }

    fn token(&self) -> String {
        format!("access-token-{}", self.tokens)
    }

    fn give_token(&mut self, request: &Received) -> Answer {
        let mut violations = Violations::default();
        let form = "application/x-www-form-urlencoded";
        violations.unless(
            content_type(request) == form,
            "content-type is not a form's",
        );
        let given: BTreeMap<_, _> = form_urlencoded::parse(&request.body).into_owned().collect();
        let mut expected = BTreeMap::from([
            ("client_id".to_owned(), self.client_id.clone()),
            ("client_secret".to_owned(), self.client_secret.clone()),
            ("grant_type".to_owned(), "client_credentials".to_owned()),
        ]);
        if let Some(token) = &self.refresh_token {
            expected.insert("refresh_token".into(), token.clone());
            expected.insert("grant_type".into(), "refresh_token".into());
        }
        violations.unless(given == expected, format!("the form is {given:?}"));
        if !violations.0.is_empty() {
            let body = json!({"error": "server_error", "error_description": "access_denied"});
            return Answer::refused(401, body.to_string(), violations.0);
        }
        self.tokens += 1;
        self.uses_left = self.uses_per_token;
        let body = json!({
            "access_token": self.token(),
            "scope": "useraccount",
            "token_type": "Bearer",
            "expires_in": 1799,
        });
        Answer::without_message(200, body.to_string()).delayed_by(self.token_delay)
    }

    fn insert(&mut self, request: &Received) -> Answer {
        let bearer = format!("Bearer {}", self.token());
        if self.uses_left == 0 || request.headers.get("authorization") != Some(&bearer) {
            let body = json!({
                "error": {
                    "message": "User Not Authenticated",
                    "detail": "Required to provide Auth information",
                },
                "status": "failure",
            });
            return Answer::without_message(401, body.to_string());
        }
        self.uses_left -= 1;
        let mut violations = Violations::default();
        let json = content_type(request).starts_with("application/json");
        violations.unless(json, "content-type is not application/json");
        let event = serde_json::from_slice(&request.body).unwrap_or_default();
        record(&event, &mut violations);
        if violations.0.is_empty() {
            return Answer::accepted(201, json!({"result": event}).to_string());
        }
        let error = json!({"message": "Exception while reading request", "detail": violations.0});
        let body = json!({"error": error, "status": "failure"});
        Answer::refused(400, body.to_string(), violations.0)
    }
}

impl Rules for ServiceNow {
    fn judge(&mut self, request: &Received) -> Answer {
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/oauth_token.do") => self.give_token(request),
            ("POST", "/api/now/table/em_event") => self.insert(request),
            (method, path) => {
                let body = json!({"error": {"message": "Invalid table", "detail": null}});
                let wrong = format!("{method} {path} is not known");
                Answer::refused(404, body.to_string(), vec![wrong])
            }
        }
    }
}

fn record(event: &Value, violations: &mut Violations) {
    let event = violations.object("the record", event, &FIELDS.map(|(name, _)| name));
    for (name, characters_max) in FIELDS {
        violations.optional_text(name, event.get(name), characters_max);
    }
    for name in ["source", "severity", "message_key", "node"] {
        violations.unless(event.has(name), format!("{name} is missing"));
    }
    violations.one_of(
        "severity",
        event.get("severity"),
        &["0", "1", "2", "3", "4", "5"],
    );
    violations.one_of(
        "resolution_state",
        event.get("resolution_state"),
        &["New", "Closing"],
    );
    let time = event.get("time_of_event").as_str().unwrap_or_default();
    let read = jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", time);
    violations.unless(read.is_ok(), format!("time_of_event is {time:?}"));
    let info = event.get("additional_info").as_str().unwrap_or_default();
    let info: Value = serde_json::from_str(info).unwrap_or_default();
    // From the reference: "The JSON data is supported for String values only."
    let texts = |info: &serde_json::Map<String, Value>| info.values().all(Value::is_string);
    let right = info.as_object().is_some_and(texts);
    violations.unless(
        right,
        format!("additional_info holds other values than texts: {info}"),
    );
}
