//! The webhook of Alertmanager, version 4, which Grafana sends as well.

use bellwether_proto::{bulk, cloud::Event};
use http::{Method, StatusCode};
use serde_json::json;

use super::{
    Answer, Bodies, Dialect, Endpoint, Fault, FaultContext, Incoming, Severity, Success,
    Translated, alert,
    draft::Draft,
    json::{self, List, Object},
    plain_fault,
};

/// The dialect.
pub(super) const DIALECT: Dialect = Dialect {
    name: "alertmanager",
    bodies: Bodies::Batches,
    is_json: |_| true,
    key_in_body: None,
    endpoints: &[
        Endpoint {
            method: Method::POST,
            path: "/v1/intake/alertmanager",
            about: "Accepts a webhook message of Alertmanager or Grafana.",
            success: StatusCode::OK,
            open: false,
            read,
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/intake/alertmanager/{key}",
            about: "The same, with the key in the path.",
            success: StatusCode::OK,
            open: false,
            read,
        },
    ],
    fault,
};

/// The name of the event that reports on alerts that were left out.
const TRUNCATED: &str = "alertmanager-truncated";

fn read(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    let list = List::Member("alerts");
    let batch = json::with_list(incoming.body, list, |body, broken| {
        let message = Object::of(body, "")?;
        let alerts = message.list("alerts")?.ok_or_else(|| {
            Fault::invalid("`alerts` is required: send what Alertmanager sends to a webhook")
        })?;
        let mut batch = alert::batch(alerts, "alerts", broken, Some(&message), incoming);
        // An Alertmanager repeats no message that was refused, so what it lacks is an event as well.
        let beyond = std::mem::take(&mut batch.refused.beyond);
        batch.events.extend(truncated(&message, beyond));
        Ok(batch)
    });
    let success = Success::whole(|outcome| {
        let succeeded = outcome.result.succeeded;
        Answer::json(StatusCode::OK, &json!({"succeeded": succeeded}))
    });
    batch?.translated(success)
}

/// Says that alerts are missing: their sender was asked to cut its message, or `beyond` of them are
/// more than are accepted.
fn truncated(message: &Object<'_>, beyond: usize) -> Option<Event> {
    let cut = message.text("truncatedAlerts");
    let cut = cut.and_then(|it| it.parse().ok()).unwrap_or(0);
    let count = u64::saturating_add(cut, beyond as u64);
    if count == 0 {
        return None;
    }
    let mut draft = Draft::new(TRUNCATED);
    draft.dimension(
        "receiver",
        message
            .text("receiver")
            .as_deref()
            .unwrap_or("alertmanager"),
    );
    draft.severity(Severity::Warning);
    draft.summary(&if beyond == 0 {
        format!(
            "Alertmanager left {count} alerts out of a message; raise `max_alerts` of its receiver"
        )
    } else {
        let most = bulk::EVENTS_MAX;
        format!(
            "{count} alerts of a message are missing; set `max_alerts` of its receiver to {most}"
        )
    });
    draft.keep("truncatedAlerts", count);
    draft.keep_around(message, &["groupKey", "externalURL"]);
    Some(draft.finish())
}

/// Alertmanager sends again what is answered with 5xx and drops everything else, also with 429.
fn fault(context: &FaultContext<'_>, fault: &Fault) -> Answer {
    let mut answer = plain_fault(context, fault);
    if answer.status == StatusCode::TOO_MANY_REQUESTS {
        answer.status = StatusCode::SERVICE_UNAVAILABLE;
    }
    answer
}
