//! The preview or validation of a form by the service, updated while the form is filled in.

use bellwether_proto::{json, v1};
use serde_json::{Value, json};

use super::{Form, Input};
use crate::{
    client::{Call, CallResult, EventFilter, Ticket, events::parse_estimate, message},
    data::{Failure, Kind},
    limits,
    model::inquiry::{Inquiry, preview},
};

#[derive(Clone, Debug, Default)]
pub(crate) struct LivePreviewState {
    pub(crate) due_ms: Option<i64>,
    pub(crate) waiting: Option<Ticket>,
    /// The last response, shown until the next one.
    pub(crate) made: Option<Result<LivePreview, Failure>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LivePreview {
    Messages(v1::PreviewRuleResponse),
    Request(Box<v1::RenderDestinationResponse>),
    /// Number of open events that a trigger matches; `None` if counting would take long.
    Matching(Option<i32>),
    Shifts(v1::PreviewScheduleResponse),
    Notices(v1::PreviewEscalationPolicyResponse),
}

/// Beginnings of warnings about a rendered message, each with the field concerned.
const WARNED: [(&str, &str); 12] = [
    ("the webhook's payload", "type.webhook.payload"),
    ("the webhook's url", "type.webhook.url"),
    ("the header", "type.webhook.headers"),
    ("the subject", "type.email.subject"),
    ("the mail's subject", "type.email.subject"),
    ("the mail's body", "type.email.body"),
    ("the blocks", "type.slack.blocks"),
    ("the event's name", "type.event.nameTemplate"),
    ("the event's type", "type.event.typeTemplate"),
    ("the event's summary", "type.event.summaryTemplate"),
    ("the message", "message"),
    ("the rule's message", "message"),
];

impl LivePreviewState {
    pub(super) fn warning_for(&self, path: &str) -> Option<String> {
        let warnings = self.made.as_ref()?.as_ref().ok()?.warnings();
        let is_about = |warning: &String| {
            let mut all = WARNED.iter();
            all.any(|(start, field)| *field == path && warning.starts_with(start))
        };
        warnings.into_iter().find(is_about)
    }

    pub(super) fn schedule_preview(&mut self, now_ms: i64) {
        self.due_ms = Some(now_ms.saturating_add(limits::CHECK_PAUSE_MS));
        self.waiting = None;
        // Removes an outdated number, which would be misleading. Rendered messages stay until they
        // are replaced.
        self.made
            .take_if(|made| matches!(made, Ok(LivePreview::Matching(_))));
    }

    fn record_preview(&mut self, ticket: Ticket, found: Result<LivePreview, Failure>) -> bool {
        let is_waited_for = self.waiting.take_if(|it| *it == ticket).is_some();
        if is_waited_for {
            self.made = Some(found);
        }
        is_waited_for
    }
}

impl LivePreview {
    /// Returns the service's warnings. A warning about a payload that cannot be sent states what is
    /// sent instead.
    pub(crate) fn warnings(&self) -> Vec<String> {
        match self {
            Self::Request(made) => {
                let body = made.request.as_ref().map_or("", |it| it.body.as_str());
                let body: Value = serde_json::from_str(body).unwrap_or_default();
                let warnings = made.warnings.iter();
                let warnings = warnings.map(|warning| {
                    let is_fallback = body["fallback"] == **warning;
                    let reason = warning.strip_prefix("the webhook's payload: ");
                    match reason.filter(|_| is_fallback) {
                        Some(reason) => format!(
                            "the webhook's payload is replaced by the standard document: {reason}"
                        ),
                        None => warning.clone(),
                    }
                });
                warnings.collect()
            }
            Self::Messages(made) => {
                let each = made.previews.iter().flat_map(|it| &it.warnings);
                made.warnings.iter().chain(each).cloned().collect()
            }
            Self::Matching(_) | Self::Shifts(_) | Self::Notices(_) => Vec::new(),
        }
    }
}

impl Form {
    /// Records the response of the live call, and returns whether the form was waiting for it.
    pub(crate) fn record_live_response(&mut self, ticket: Ticket, answer: CallResult) -> bool {
        let found = match self.kind {
            Kind::Rule => message(answer).map(LivePreview::Messages),
            Kind::Destination => message(answer).map(|it| LivePreview::Request(Box::new(it))),
            Kind::Schedule => message(answer).map(LivePreview::Shifts),
            Kind::Policy => message(answer).map(LivePreview::Notices),
            _ => parse_estimate(answer).map(LivePreview::Matching),
        };
        self.live.record_preview(ticket, found)
    }

    pub(crate) fn live_call(&self) -> Option<Call> {
        match self.kind {
            Kind::Rule => Some(preview(&self.to_json(), "")),
            Kind::Destination => {
                let fields = self.test_fields();
                let event_id = self.bench.event_id.clone();
                Inquiry::Destination { fields, event_id }.render_call()
            }
            Kind::Trigger => {
                let mut clauses = self.inputs.iter().filter_map(|input| match input {
                    Input::Clause(clause) if clause.error(false).is_none() => clause.write(),
                    _ => None,
                });
                let clause = clauses.next()?.to_string();
                let filter = EventFilter {
                    clause: Some(json::from_json(clause.as_bytes()).ok()?),
                    open_only: true,
                    ..EventFilter::default()
                };
                Some(filter.estimate())
            }
            Kind::Schedule if self.has_value("layers") => {
                let request = json!({"schedule": self.to_json()});
                Some(Call::new("ScheduleService", "PreviewSchedule", request))
            }
            Kind::Policy if self.has_value("steps") => {
                let request = json!({"policy": self.to_json()});
                let service = "EscalationPolicyService";
                Some(Call::new(service, "PreviewEscalationPolicy", request))
            }
            _ => None,
        }
    }

    /// Whether a field is filled in and has no error.
    fn has_value(&self, path: &str) -> bool {
        let mut fields = self.specs.iter().zip(&self.inputs);
        let found = fields.find(|(spec, _)| spec.path == path);
        found.is_some_and(|(spec, input)| !input.is_blank() && input.error(spec).is_none())
    }
}
