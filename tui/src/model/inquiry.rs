//! The request of a report, and the parser of its response.

use bellwether_language::text::enum_word;
use bellwether_proto::v1;
use serde_json::{Map, Value, json};

use super::Model;
use crate::{
    client::{Call, CallResult, EventFilter, Span, events, message},
    data::{EventKey, EventOrder, Failure, Kind},
    limits,
    route::Route,
};

/// A request for a report. Fields are those of the service's request in JSON; a destination or
/// mapping with only a name refers to the stored one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Inquiry {
    Destination {
        fields: Value,
        event_id: String,
    },
    Contact(String),
    Rule {
        fields: Value,
        event_id: String,
    },
    Trigger {
        fields: Value,
        span: Span,
    },
    Mapping {
        fields: Value,
        document: String,
    },
    Obligations(v1::ListObligationsRequest),
    Audit(v1::ListAuditEntriesRequest),
    Noise(v1::NoiseBy),
    /// The open events, the events and changes of the last `hours`, and the silences that end
    /// within the next `hours`.
    Handover {
        hours: i64,
    },
}

pub(crate) const HOUR_MS: i64 = 3_600_000;

/// The parts of a handover, read one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Handover {
    pub(crate) open: Option<v1::SearchEventsResponse>,
    pub(crate) recent: Option<v1::SearchEventsResponse>,
    /// An error if the role is not allowed to read the audit log.
    pub(crate) changes: Option<Result<v1::ListAuditEntriesResponse, Failure>>,
}

/// The result of a report. For lists, it contains all rows read so far and the token of the next
/// page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Test(Box<v1::TestDestinationResponse>),
    Methods(v1::TestContactResponse),
    Previews(v1::PreviewRuleResponse),
    Matches(v1::TestTriggerResponse),
    Mapped(v1::TestIntakeMappingResponse),
    Obligations(v1::ListObligationsResponse),
    Audit(v1::ListAuditEntriesResponse),
    Noise(v1::GetNoiseResponse),
    Handover(Box<Handover>),
}

impl Inquiry {
    /// Returns the screen that the report belongs to.
    pub(crate) fn screen(&self) -> Route {
        match self {
            Self::Destination { .. } => Route::List(Kind::Destination),
            Self::Contact(_) => Route::List(Kind::Contact),
            Self::Rule { .. } => Route::List(Kind::Rule),
            Self::Trigger { .. } => Route::List(Kind::Trigger),
            Self::Mapping { .. } => Route::List(Kind::Mapping),
            Self::Obligations(_) => Route::DELIVERIES,
            Self::Handover { .. } => Route::ON_CALL,
            Self::Audit(_) | Self::Noise(_) => Route::OVERVIEW,
        }
    }

    /// Returns the call; for lists, the call for the next page.
    pub(crate) fn call(&self, now_ms: i64, before: Option<&Outcome>) -> Call {
        match (self, before) {
            (Self::Destination { fields, event_id }, _) => {
                let body = with_field(fields, "eventId", event_id.as_str());
                Call::new("DestinationService", "TestDestination", body).with_long_timeout()
            }
            (Self::Contact(name), _) => {
                let request = v1::TestContactRequest { name: name.clone() };
                Call::from_request("ContactService", &request).with_long_timeout()
            }
            (Self::Rule { fields, event_id }, _) => preview(fields, event_id),
            (Self::Trigger { fields, span }, _) => {
                let start = span.start_ms(now_ms).map(|start| json!({"start": start}));
                let body = with_field(fields, "timeRange", start);
                Call::new("TriggerService", "TestTrigger", body)
            }
            (Self::Mapping { fields, document }, _) => {
                let body = with_document(fields, document);
                Call::new("IntakeMappingService", "TestIntakeMapping", body)
            }
            (Self::Obligations(request), before) => {
                let mut request = request.clone();
                request.page_size = limits::RESOURCE_PAGE;
                if let Some(Outcome::Obligations(read)) = before {
                    request.page_token.clone_from(&read.next_page_token);
                }
                Call::from_request("DeliveryService", &request).with_long_timeout()
            }
            (Self::Audit(request), before) => {
                let mut request = request.clone();
                let mut left = limits::HELD_AUDIT;
                if let Some(Outcome::Audit(read)) = before {
                    left = left.saturating_sub(read.entries.len());
                    request.page_token.clone_from(&read.next_page_token);
                }
                request.page_size = i32::try_from(left).unwrap_or(i32::MAX);
                Call::from_request("AuditService", &request).with_long_timeout()
            }
            (Self::Noise(by), _) => {
                let request = v1::GetNoiseRequest {
                    by: (*by).into(),
                    ..v1::GetNoiseRequest::default()
                };
                Call::from_request("InsightService", &request).with_long_timeout()
            }
            (Self::Handover { hours }, before) => {
                let parts = match before {
                    Some(Outcome::Handover(parts)) => Some(&**parts),
                    _ => None,
                };
                handover_call(parts, now_ms - hours * HOUR_MS)
            }
        }
    }

    /// Returns the call that renders the request of a test; `None` for other reports.
    pub(crate) fn render_call(&self) -> Option<Call> {
        let Self::Destination { fields, event_id } = self else {
            return None;
        };
        let mut body = with_field(fields, "eventId", event_id.as_str());
        if let Some(fields) = body.as_object_mut() {
            fields.remove("delivery");
        }
        Some(Call::new("DestinationService", "RenderDestination", body))
    }

    /// Parses a response; for lists, appends it to the rows read before.
    pub(crate) fn read(
        &self,
        before: Option<Outcome>,
        answer: CallResult,
    ) -> Result<Outcome, Failure> {
        Ok(match self {
            Self::Destination { .. } => Outcome::Test(Box::new(message(answer)?)),
            Self::Contact(_) => Outcome::Methods(message(answer)?),
            Self::Rule { .. } => Outcome::Previews(message(answer)?),
            Self::Trigger { .. } => Outcome::Matches(message(answer)?),
            Self::Mapping { .. } => Outcome::Mapped(message(answer)?),
            Self::Obligations(_) => {
                let mut read: v1::ListObligationsResponse = message(answer)?;
                if let Some(Outcome::Obligations(before)) = before {
                    read.obligations.splice(0..0, before.obligations);
                }
                Outcome::Obligations(read)
            }
            Self::Audit(_) => {
                let mut read: v1::ListAuditEntriesResponse = message(answer)?;
                if let Some(Outcome::Audit(before)) = before {
                    read.entries.splice(0..0, before.entries);
                }
                Outcome::Audit(read)
            }
            Self::Noise(_) => Outcome::Noise(message(answer)?),
            Self::Handover { .. } => {
                let mut parts = match before {
                    Some(Outcome::Handover(parts)) => parts,
                    _ => Box::default(),
                };
                if parts.open.is_none() {
                    parts.open = Some(message(answer)?);
                } else if parts.recent.is_none() {
                    parts.recent = Some(message(answer)?);
                } else {
                    parts.changes = Some(message(answer));
                }
                Outcome::Handover(parts)
            }
        })
    }
}

impl Outcome {
    pub(crate) fn has_more(&self, calls: usize) -> bool {
        match self {
            Self::Obligations(read) => {
                let has_room = read.obligations.len() < limits::HELD_OBLIGATIONS;
                has_room && !read.next_page_token.is_empty()
            }
            // With a selective filter, a call may return few entries, because it scans only a part
            // of the log.
            Self::Audit(read) => {
                let has_room = read.entries.len() < limits::HELD_AUDIT;
                has_room && !read.next_page_token.is_empty() && calls < limits::AUDIT_CALLS
            }
            Self::Handover(parts) => parts.changes.is_none(),
            _ => false,
        }
    }
}

/// Returns the call for the next part of a handover: first the open events, most severe first, then
/// the events seen since, then the changes.
fn handover_call(parts: Option<&Handover>, since_ms: i64) -> Call {
    let is_read = |part: fn(&Handover) -> bool| parts.is_some_and(part);
    if is_read(|it| it.recent.is_some()) {
        let start = jiff::Timestamp::from_millisecond(since_ms).ok();
        let start = start.map(|it| prost_types::Timestamp {
            seconds: it.as_second(),
            nanos: 0,
        });
        let request = v1::ListAuditEntriesRequest {
            start,
            page_size: i32::try_from(limits::HELD_AUDIT).unwrap_or(i32::MAX),
            ..v1::ListAuditEntriesRequest::default()
        };
        return Call::from_request("AuditService", &request).with_long_timeout();
    }
    if is_read(|it| it.open.is_some()) {
        return events::search_seen_since(since_ms);
    }
    let worst_first = EventFilter {
        open_only: true,
        order: EventOrder {
            by: EventKey::Severity,
            ascending: false,
        },
        ..EventFilter::default()
    };
    worst_first.search(String::new()).with_long_timeout()
}

/// Requests the messages of a rule, for a stored event or, without an id, for the sample.
pub(crate) fn preview(fields: &Value, event_id: &str) -> Call {
    let body = with_field(fields, "eventId", event_id);
    Call::new("RuleService", "PreviewRule", body)
}

fn with_field(fields: &Value, name: &str, value: impl Into<Value>) -> Value {
    let mut fields = fields.clone();
    fields[name] = value.into();
    fields
}

/// Splits a document from the request headers before it, given as `name: value;` each.
fn with_document(fields: &Value, document: &str) -> Value {
    let begin = document.find(['{', '[']).unwrap_or(0);
    let (headers, body) = document.split_at(begin);
    let headers = headers.split(';').filter_map(|it| it.split_once(':'));
    let headers: Map<String, Value> = headers
        .map(|(name, value)| (name.trim().to_lowercase(), value.trim().into()))
        .collect();
    with_field(&with_field(fields, "body", body), "headers", headers)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LastingEffect {
    /// The test creates an event of this severity in this service. The console closes it after the
    /// test.
    Event(String),
    /// The test has an effect at the receiver, described by this sentence.
    AtReceiver(String),
}

/// Hosts of webhook receivers that open an alert or an incident for each new event.
const OPENING_HOSTS: [(&str, &str); 7] = [
    ("api.opsgenie.com", "an alert in Opsgenie"),
    ("api.eu.opsgenie.com", "an alert in Opsgenie"),
    ("api.atlassian.com", "an alert in Jira Service Management"),
    ("events.pagerduty.com", "an incident in PagerDuty"),
    ("events.eu.pagerduty.com", "an incident in PagerDuty"),
    ("alert.victorops.com", "an incident in Splunk On-Call"),
    ("api.incident.io", "an alert in incident.io"),
];
/// Hosts of webhook receivers that send text messages.
const TEXTING_HOSTS: [&str; 3] = ["api.twilio.com", "rest.nexmo.com", "api.nexmo.com"];

impl LastingEffect {
    fn from_destination_type(kind: &Value) -> Option<Self> {
        let (kind, settings) = kind.as_object()?.iter().next()?;
        match kind.as_str() {
            "event" => {
                let severity = settings["severity"].as_str().unwrap_or_default();
                Some(Self::Event(enum_word(severity, "SEVERITY_")))
            }
            "pagerduty" => Some(Self::opening("an incident in PagerDuty")),
            "servicenow" => Some(Self::opening("an alert in ServiceNow")),
            "webhook" => {
                let urls = ["url", "secretUrl"].map(|field| settings[field].as_str());
                let host = urls.into_iter().flatten().find_map(host)?;
                let is_it = |known: &str| known.eq_ignore_ascii_case(host);
                if TEXTING_HOSTS.into_iter().any(is_it) {
                    return Some(Self::AtReceiver(format!(
                        "Sends a text message through {host}."
                    )));
                }
                let mut opening = OPENING_HOSTS.into_iter();
                let (_, what) = opening.find(|(known, _)| is_it(known))?;
                Some(Self::opening(what))
            }
            _ => None,
        }
    }

    fn opening(what: &str) -> Self {
        Self::AtReceiver(format!("Opens {what}. Close it there afterwards."))
    }
}

fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.split([':', '/', '?', '#']).next()
}

impl Model {
    /// Returns the destination whose test has a lasting effect, and the effect.
    pub(crate) fn lasting_effect(&self, inquiry: &Inquiry) -> Option<(String, LastingEffect)> {
        let Inquiry::Destination { fields, .. } = inquiry else {
            return None;
        };
        let name = fields["name"].as_str().unwrap_or_default();
        let stored = self.store.object(Kind::Destination, name);
        let kind = fields.get("type").or_else(|| stored?.value_at("type"))?;
        Some((name.to_owned(), LastingEffect::from_destination_type(kind)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lasting_effect_of_a_test_depends_on_type_and_host() {
        let effect = |kind: Value| match LastingEffect::from_destination_type(&kind)? {
            LastingEffect::Event(words) | LastingEffect::AtReceiver(words) => Some(words),
        };
        let webhook = |url: &str| json!({"webhook": {"url": url}});
        for (kind, expected) in [
            (json!({"event": {"severity": "SEVERITY_ERROR"}}), "error"),
            (json!({"pagerduty": {}}), "an incident in PagerDuty"),
            (json!({"servicenow": {}}), "an alert in ServiceNow"),
            (
                webhook("https://api.opsgenie.com/v2/alerts"),
                "an alert in Opsgenie",
            ),
            (
                json!({"webhook": {"secretUrl": "https://API.twilio.com:443/x"}}),
                "Sends a text message through API.twilio.com.",
            ),
        ] {
            let found = effect(kind.clone()).unwrap_or_default();
            assert!(found.contains(expected), "{kind}: {found}");
        }
        for kind in [
            webhook("https://hooks.example.com/api.opsgenie.com"),
            json!({"slack": {}}),
        ] {
            assert_eq!(effect(kind), None);
        }
    }
}
