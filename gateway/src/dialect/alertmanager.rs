//! The webhook of Alertmanager, version 4, which Grafana uses as well.

use bellwether_proto::{bulk, cloud::Event};
use http::{Method, StatusCode};
use serde_json::json;

use super::{
    BodyLimit, Dialect, DialectError, DialectResponse, Endpoint, ErrorContext, IncomingRequest,
    Severity, Success, Translation, alert,
    draft::EventDraft,
    json::{self, List, Object},
    plain_error,
};

pub(super) const DIALECT: Dialect = Dialect {
    name: "alertmanager",
    bodies: BodyLimit::Batches,
    is_json: |_| true,
    key_in_body: None,
    endpoints: &[
        Endpoint {
            method: Method::POST,
            path: "/v1/intake/alertmanager",
            about: "Accepts a webhook message from Alertmanager or Grafana.",
            success: StatusCode::OK,
            open: false,
            read,
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/intake/alertmanager/{key}",
            about: "Same, with the key in the path.",
            success: StatusCode::OK,
            open: false,
            read,
        },
    ],
    error_response,
};

const TRUNCATED: &str = "alertmanager-truncated";

fn read(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    let list = List::Member("alerts");
    let batch = json::with_list(incoming.body, list, |body, broken| {
        let message = Object::new(body, "")?;
        let alerts = message.list("alerts")?.ok_or_else(|| {
            DialectError::new_invalid("`alerts` is required, as in Alertmanager's webhook messages")
        })?;
        let mut batch = alert::read_batch(alerts, "alerts", broken, Some(&message), incoming);
        // Alertmanager does not repeat a rejected message, so missing alerts are reported as an
        // event.
        let beyond = std::mem::take(&mut batch.refused.beyond);
        batch.events.extend(truncation_event(&message, beyond));
        Ok(batch)
    });
    let success = Success::from_outcome(|outcome| {
        let succeeded = outcome.result.succeeded;
        DialectResponse::json(StatusCode::OK, &json!({"succeeded": succeeded}))
    });
    batch?.into_translation(success)
}

/// Returns an event that reports missing alerts: the alerts truncated by the sender, or the
/// `beyond` alerts above the limit.
fn truncation_event(message: &Object<'_>, beyond: usize) -> Option<Event> {
    let cut = message.text("truncatedAlerts");
    let cut = cut.and_then(|it| it.parse().ok()).unwrap_or(0);
    let count = u64::saturating_add(cut, beyond as u64);
    if count == 0 {
        return None;
    }
    let mut draft = EventDraft::new(TRUNCATED);
    draft.add_dimension(
        "receiver",
        message
            .text("receiver")
            .as_deref()
            .unwrap_or("alertmanager"),
    );
    draft.set_severity(Severity::Warning);
    draft.set_summary(&if beyond == 0 {
        format!(
            "Alertmanager omitted {count} alerts from a message; raise `max_alerts` of its receiver"
        )
    } else {
        let most = bulk::EVENTS_MAX;
        format!(
            "{count} alerts are missing from a message; set `max_alerts` of its receiver to {most}"
        )
    });
    draft.store_field("truncatedAlerts", count);
    draft.store_envelope_fields(message, &["groupKey", "externalURL"]);
    Some(draft.finish())
}

/// Returns 503 instead of 429: Alertmanager retries only after a 5xx status and drops the message
/// otherwise.
fn error_response(context: &ErrorContext<'_>, error: &DialectError) -> DialectResponse {
    let mut answer = plain_error(context, error);
    if answer.status == StatusCode::TOO_MANY_REQUESTS {
        answer.status = StatusCode::SERVICE_UNAVAILABLE;
    }
    answer
}
