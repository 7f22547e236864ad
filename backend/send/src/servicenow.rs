//! ServiceNow: `em_event` records through the table API, with an OAuth token.

mod message;
mod send;

use bellwether_proto::v1;
use serde_json::Value;

use super::{
    AttemptContext, AttemptOutcome, DestinationType, SettingsChecker, normalized_address,
    outlets::AttemptResources,
};
use crate::{
    domain::{Secret, TemplateLanguage, destination::ServiceNow},
    error::Violation,
    message::Facts,
};

impl DestinationType for ServiceNow {
    type Wire = v1::ServiceNow;
    type Message = Value;

    fn from_wire(wire: v1::ServiceNow, _violations: &mut Vec<Violation>) -> Self {
        Self {
            instance_url: wire.instance_url,
            client_id: wire.client_id,
            client_secret: Secret::new(wire.client_secret),
            token_url: wire.token_url,
            refresh_token: Secret::new(wire.refresh_token),
        }
    }

    fn to_wire(self) -> v1::ServiceNow {
        v1::ServiceNow {
            instance_url: self.instance_url,
            client_id: self.client_id,
            client_secret: self.client_secret.to_string(),
            token_url: self.token_url,
            refresh_token: self.refresh_token.to_string(),
        }
    }

    fn lasting_effect(&self) -> &'static str {
        "an event in ServiceNow, which can open an alert"
    }

    fn server(&self, _outlets: &AttemptResources) -> Option<String> {
        Some(self.instance_url.clone())
    }

    fn check(&self, checks: &mut SettingsChecker<'_>) {
        checks.check_url("instanceUrl", &self.instance_url);
        checks.check_setting("clientId", &self.client_id);
        checks.check_secret("clientSecret", &self.client_secret);
        if !self.token_url.is_empty() {
            checks.check_url("tokenUrl", &self.token_url);
        }
        checks.check_one_line("refreshToken", self.refresh_token.reveal());
    }

    /// The instance receives the tokens that the secrets are exchanged for.
    fn receivers(&self, _secret: &str, _language: TemplateLanguage) -> Vec<(&'static str, String)> {
        let token_url = match self.token_url.as_str() {
            "" => &self.instance_url,
            other => other,
        };
        vec![
            ("instanceUrl", normalized_address(&self.instance_url)),
            ("tokenUrl", normalized_address(token_url)),
        ]
    }

    fn message(&self, facts: &mut Facts<'_>) -> Value {
        message::body(facts)
    }

    fn reduced_message(&self, facts: &mut Facts<'_>) -> Value {
        message::reduced_message(facts)
    }

    fn to_display(body: &Value) -> Value {
        body.clone()
    }

    async fn send(&self, attempt: &mut AttemptContext<'_>, body: Value) -> AttemptOutcome {
        send::send_request(self, attempt, &body).await
    }
}
