//! Slack: a message in a channel.

mod classify;
mod message;
mod send;
mod thread;

use std::borrow::Cow;

use serde_json::Value;

use super::{
    AttemptContext, AttemptOutcome, ChatThread, DestinationType, SettingsChecker,
    outlets::AttemptResources,
};
use crate::{domain::destination::Slack, message::Facts};

impl DestinationType for Slack {
    /// The body of `chat.postMessage` without `channel`.
    type Message = Value;

    const THREADS: bool = true;

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
