//! Event destinations, whose messages become new events of this service.

mod message;
mod send;

use std::borrow::Cow;

use bellwether_proto::v1;
use serde_json::{Value, json};

use super::{
    AttemptContext, AttemptOutcome, DestinationType, SettingsChecker, outlets::AttemptResources,
};
use crate::{
    domain::{IncomingEvent, Severity, Status, TemplateLanguage, destination::EventTemplates},
    error::Violation,
    message::{Facts, domain_json},
};

impl DestinationType for EventTemplates {
    type Wire = v1::EventDestination;
    type Message = IncomingEvent;

    fn from_wire(wire: v1::EventDestination, violations: &mut Vec<Violation>) -> Self {
        let severity = Severity::from_number(wire.severity).unwrap_or_else(|| {
            violations.push(Violation::new(
                "type.event.severity",
                "is required: SEVERITY_DEBUG, SEVERITY_INFO, SEVERITY_WARNING, SEVERITY_ERROR or \
             SEVERITY_CRITICAL",
            ));
            Severity::Info
        });
        Self {
            name_template: wire.name_template,
            type_template: wire.type_template,
            summary_template: wire.summary_template,
            severity,
        }
    }

    fn to_wire(self) -> v1::EventDestination {
        v1::EventDestination {
            name_template: self.name_template,
            type_template: self.type_template,
            summary_template: self.summary_template,
            severity: self.severity as i32,
        }
    }

    fn lasting_effect(&self) -> &'static str {
        "an event in this service, which notifies like any other"
    }

    fn server(&self, _outlets: &AttemptResources) -> Option<String> {
        None
    }

    fn check(&self, checks: &mut SettingsChecker<'_>) {
        for (field, text) in self.templates() {
            checks.check_required(&field, text);
        }
    }

    fn templates(&self) -> Vec<(Cow<'static, str>, &str)> {
        vec![
            ("nameTemplate".into(), &self.name_template),
            ("typeTemplate".into(), &self.type_template),
            ("summaryTemplate".into(), &self.summary_template),
        ]
    }

    fn receivers(&self, _secret: &str, _language: TemplateLanguage) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn message(&self, facts: &mut Facts<'_>) -> IncomingEvent {
        message::build_event(facts, self)
    }

    fn reduced_message(&self, facts: &mut Facts<'_>) -> IncomingEvent {
        message::build_event(facts, self)
    }

    fn to_display(event: &IncomingEvent) -> Value {
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

    async fn send(&self, attempt: &mut AttemptContext<'_>, event: IncomingEvent) -> AttemptOutcome {
        send::submit_event(attempt, event).await
    }
}
