//! Event destinations: a message that becomes a new event of this service.

mod message;
mod send;

use serde_json::{Value, json};

use super::{AttemptContext, Checks, DestinationType, Ending};
use crate::{
    domain::{IncomingEvent, Severity, Status, destination::EventTemplates},
    message::{Facts, domain_json},
};

impl DestinationType for EventTemplates {
    type Message = IncomingEvent;

    const KEEPS_STATE: bool = true;

    fn check(&self, checks: &mut Checks<'_>) {
        for (field, text) in self.templates() {
            checks.required(field, text);
        }
    }

    fn templates(&self) -> Vec<(&'static str, &str)> {
        vec![
            ("nameTemplate", &self.name_template),
            ("typeTemplate", &self.type_template),
            ("summaryTemplate", &self.summary_template),
        ]
    }

    fn message(&self, facts: &mut Facts<'_>) -> IncomingEvent {
        message::event(facts, self)
    }

    fn shown(event: &IncomingEvent) -> Value {
        json!({
            "name": event.name,
            "type": event.kind,
            "dimensions": event.dimensions,
            "metadataFields": domain_json::object(&event.metadata),
            "summary": event.summary,
            "body": event.body,
            "severity": event.severity.map(Severity::enum_name),
            "status": event.status.map(Status::enum_name),
            "timestamp": event.timestamp_ms,
        })
    }

    async fn send(&self, attempt: &mut AttemptContext<'_>, event: IncomingEvent) -> Ending {
        send::send(attempt, event).await
    }
}
