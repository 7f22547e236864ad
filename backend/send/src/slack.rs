//! Slack: a message in a channel.

mod classify;
mod message;
mod send;
mod thread;

use std::borrow::Cow;

use bellwether_proto::v1;
use serde_json::Value;

use super::{
    AttemptContext, AttemptOutcome, ChatThread, DestinationType, SettingsChecker,
    outlets::AttemptResources,
};
use crate::{
    domain::{Secret, TemplateLanguage, destination::Slack},
    error::Violation,
    message::Facts,
};

impl DestinationType for Slack {
    type Wire = v1::Slack;

    /// The body of `chat.postMessage` without `channel`.
    type Message = Value;

    const THREADS: bool = true;

    fn from_wire(wire: v1::Slack, _violations: &mut Vec<Violation>) -> Self {
        Self {
            channel: wire.channel,
            token: Secret::new(wire.token),
            blocks: wire.blocks,
            update_first: wire.update_first,
            broadcast_replies: wire.broadcast_replies,
        }
    }

    fn to_wire(self) -> v1::Slack {
        v1::Slack {
            channel: self.channel,
            token: self.token.to_string(),
            blocks: self.blocks,
            update_first: self.update_first,
            broadcast_replies: self.broadcast_replies,
        }
    }

    fn can_reply_to(&self, first: &Self) -> bool {
        self.channel == first.channel
    }

    fn thread(response: &str) -> Option<ChatThread> {
        thread::thread(response)
    }

    fn server(&self, outlets: &AttemptResources) -> Option<String> {
        Some(outlets.providers.slack.clone())
    }

    fn check(&self, checks: &mut SettingsChecker<'_>) {
        checks.check_setting("channel", &self.channel);
        checks.check_secret("token", &self.token);
    }

    fn templates(&self) -> Vec<(Cow<'static, str>, &str)> {
        vec![("blocks".into(), &self.blocks)]
    }

    fn receivers(&self, _secret: &str, _language: TemplateLanguage) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn message(&self, facts: &mut Facts<'_>) -> Value {
        message::body(facts, self)
    }

    fn reduced_message(&self, facts: &mut Facts<'_>) -> Value {
        message::reduced_message(facts)
    }

    fn to_display(body: &Value) -> Value {
        body.clone()
    }

    async fn send(&self, attempt: &mut AttemptContext<'_>, body: Value) -> AttemptOutcome {
        send::post_message(self, attempt, body).await
    }
}
