//! Microsoft Teams: a card in a channel.

mod classify;
mod message;

use bellwether_proto::v1;
use serde_json::Value;

use super::{
    AttemptContext, AttemptOutcome, DestinationType, SettingsChecker, outlets::AttemptResources,
};
use crate::{
    domain::{Secret, TemplateLanguage, destination::MsTeams},
    error::Violation,
    message::Facts,
};

impl DestinationType for MsTeams {
    type Wire = v1::MsTeams;

    /// A card in the envelope of incoming webhooks.
    type Message = Value;

    const BYTES_MAX: Option<usize> = Some(message::BODY_BYTES_MAX);

    fn from_wire(wire: v1::MsTeams, _violations: &mut Vec<Violation>) -> Self {
        Self {
            url: Secret::new(wire.url),
        }
    }

    fn to_wire(self) -> v1::MsTeams {
        v1::MsTeams {
            url: self.url.to_string(),
        }
    }

    fn server(&self, _outlets: &AttemptResources) -> Option<String> {
        Some(self.url.reveal().to_owned())
    }

    fn check(&self, checks: &mut SettingsChecker<'_>) {
        checks.check_url("url", self.url.reveal());
    }

    fn receivers(&self, _secret: &str, _language: TemplateLanguage) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn message(&self, facts: &mut Facts<'_>) -> Value {
        message::card_body(facts)
    }

    fn reduced_message(&self, facts: &mut Facts<'_>) -> Value {
        message::reduced_message(facts)
    }

    fn size_bytes(body: &Value) -> usize {
        message::size_bytes(body)
    }

    fn to_display(body: &Value) -> Value {
        body.clone()
    }

    async fn send(&self, attempt: &mut AttemptContext<'_>, body: Value) -> AttemptOutcome {
        let url = self.url.reveal().to_owned();
        let (result, transcript) = attempt.post_json(url.clone(), None, body.to_string()).await;
        let verdict = match &result {
            Ok(answer) => classify::classify_response(attempt, answer, &url),
            other => attempt.verdict_by_status(other),
        };
        (verdict, transcript)
    }
}
