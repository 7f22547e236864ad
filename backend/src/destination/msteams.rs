//! Microsoft Teams: a card in a channel.

mod classify;
mod message;

use serde_json::Value;

use super::{
    AttemptContext, AttemptOutcome, DestinationType, SettingsChecker, outlets::AttemptResources,
};
use crate::{domain::destination::MsTeams, message::Facts};

impl DestinationType for MsTeams {
    /// A card in the envelope of incoming webhooks.
    type Message = Value;

    const BYTES_MAX: Option<usize> = Some(message::BODY_BYTES_MAX);

    fn server(&self, _outlets: &AttemptResources) -> Option<String> {
        Some(self.url.reveal().to_owned())
    }

    fn check(&self, checks: &mut SettingsChecker<'_>) {
        checks.check_url("url", self.url.reveal());
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
