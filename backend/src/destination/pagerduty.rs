//! PagerDuty: one alert an occurrence, by Events API v2.

mod classify;
mod message;

use serde_json::Value;

use super::{AttemptContext, Checks, DestinationType, Ending};
use crate::{domain::destination::PagerDuty, message::Facts};

impl DestinationType for PagerDuty {
    /// An event without `routing_key`.
    type Message = Value;

    const KEEPS_STATE: bool = true;

    const BYTES_MAX: Option<usize> = Some(message::BODY_BYTES_MAX);

    fn check(&self, checks: &mut Checks<'_>) {
        checks.secret("routingKey", &self.routing_key);
    }

    fn message(&self, facts: &mut Facts<'_>) -> Value {
        message::body(facts)
    }

    fn shown(body: &Value) -> Value {
        body.clone()
    }

    async fn send(&self, attempt: &mut AttemptContext<'_>, mut body: Value) -> Ending {
        body["routing_key"] = self.routing_key.reveal().into();
        let base = attempt.outlets.providers.pagerduty.trim_end_matches('/');
        let url = format!("{base}/v2/enqueue");
        let (result, transcript) = attempt.post_json(url, None, body.to_string()).await;
        let verdict = match &result {
            Ok(answer) => classify::judge(attempt, answer),
            other => attempt.judge(other),
        };
        (verdict, transcript)
    }
}
