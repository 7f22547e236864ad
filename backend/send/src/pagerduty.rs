//! PagerDuty: one alert per occurrence, through the Events API v2.

mod classify;
mod message;

use std::borrow::Cow;

use bellwether_proto::v1;
use serde_json::Value;

use super::{
    AttemptContext, AttemptOutcome, DestinationType, SettingsChecker, outlets::AttemptResources,
};
use crate::{
    domain::{Secret, TemplateLanguage, destination::PagerDuty},
    error::Violation,
    message::Facts,
};

impl DestinationType for PagerDuty {
    type Wire = v1::PagerDuty;

    /// An Events API event without `routing_key`.
    type Message = Value;

    const BYTES_MAX: Option<usize> = Some(message::BODY_BYTES_MAX);

    fn from_wire(wire: v1::PagerDuty, _violations: &mut Vec<Violation>) -> Self {
        Self {
            routing_key: Secret::new(wire.routing_key),
            class: wire.class,
            component: wire.component,
            group: wire.group,
            custom_details: wire.custom_details,
            links: wire.links,
            images: wire.images,
        }
    }

    fn to_wire(self) -> v1::PagerDuty {
        v1::PagerDuty {
            routing_key: self.routing_key.to_string(),
            class: self.class,
            component: self.component,
            group: self.group,
            custom_details: self.custom_details,
            links: self.links,
            images: self.images,
        }
    }

    fn lasting_effect(&self) -> &'static str {
        "an incident in PagerDuty"
    }

    fn server(&self, outlets: &AttemptResources) -> Option<String> {
        Some(outlets.providers.pagerduty.clone())
    }

    fn check(&self, checks: &mut SettingsChecker<'_>) {
        checks.check_secret("routingKey", &self.routing_key);
    }

    fn templates(&self) -> Vec<(Cow<'static, str>, &str)> {
        vec![
            ("class".into(), &self.class),
            ("component".into(), &self.component),
            ("group".into(), &self.group),
            ("customDetails".into(), &self.custom_details),
            ("links".into(), &self.links),
            ("images".into(), &self.images),
        ]
    }

    fn receivers(&self, _secret: &str, _language: TemplateLanguage) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn message(&self, facts: &mut Facts<'_>) -> Value {
        message::body(facts, self)
    }

    fn reduced_message(&self, facts: &mut Facts<'_>) -> Value {
        message::reduced_message(facts, self)
    }

    fn to_display(body: &Value) -> Value {
        body.clone()
    }

    async fn send(&self, attempt: &mut AttemptContext<'_>, mut body: Value) -> AttemptOutcome {
        body["routing_key"] = self.routing_key.reveal().into();
        let base = attempt.outlets.providers.pagerduty.trim_end_matches('/');
        let url = format!("{base}/v2/enqueue");
        let (result, transcript) = attempt.post_json(url, None, body.to_string()).await;
        let verdict = match &result {
            Ok(answer) => classify::classify_response(attempt, answer),
            other => attempt.verdict_by_status(other),
        };
        (verdict, transcript)
    }
}
