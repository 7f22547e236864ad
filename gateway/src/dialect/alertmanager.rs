//! The webhook of Alertmanager, version 4, which Grafana sends as well.

use bellwether_proto::cloud::Event;
use http::{Method, StatusCode};
use serde_json::json;

use super::{
    Answer, Dialect, Endpoint, Fault, FaultContext, Incoming, Severity, Success, Translated, alert,
    draft::Draft,
    json::{self, JsonPath, Object},
    plain_fault,
};

/// The dialect.
pub(super) const DIALECT: Dialect = Dialect {
    name: "alertmanager",
    body_limit_bytes: None,
    key_in_body: None,
    endpoints: &[
        Endpoint {
            method: Method::POST,
            path: "/v1/intake/alertmanager",
            about: "Takes in a webhook message of Alertmanager or Grafana.",
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

/// The name of the event that tells of alerts that were left out.
const TRUNCATED: &str = "alertmanager-truncated";

fn read(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    let body = json::body(incoming.body)?;
    let message = Object::of(&body, "")?;
    let alerts = message.list("alerts")?.ok_or_else(|| {
        Fault::invalid("`alerts` is required: send what Alertmanager sends to a webhook")
    })?;
    let mut events = Vec::with_capacity(alerts.len() + 1);
    for (at, alert) in alerts.iter().enumerate() {
        let alert = Object::of(alert, JsonPath::Element("alerts", at))?;
        let (settings, now_ms) = (incoming.settings, incoming.now_ms);
        events.push(alert::event(&alert, Some(&message), settings, now_ms)?);
    }
    events.extend(truncated(&message)?);
    let success = Success::whole(|outcome| {
        let succeeded = outcome.result.succeeded;
        Answer::json(StatusCode::OK, &json!({"succeeded": succeeded}))
    });
    Ok(Translated::of(events, success))
}

/// Says that alerts are missing from the message because its sender was told to cut it.
fn truncated(message: &Object<'_>) -> Result<Option<Event>, Fault> {
    let count = match message.get("truncatedAlerts") {
        None => 0,
        Some(count) => count.as_u64().ok_or_else(|| {
            Fault::invalid("`truncatedAlerts` has to be how many alerts were left out")
        })?,
    };
    if count == 0 {
        return Ok(None);
    }
    let mut draft = Draft::new(TRUNCATED);
    draft.dimension(
        "receiver",
        message.text("receiver")?.unwrap_or("alertmanager"),
    );
    draft.severity(Severity::Warning);
    draft.summary(&format!(
        "Alertmanager left {count} alerts out of a message; raise `max_alerts` of its receiver"
    ));
    draft.keep("truncatedAlerts", count);
    draft.keep_members(message, &["groupKey", "externalURL"]);
    Ok(Some(draft.finish()))
}

/// Alertmanager sends again what is answered with 5xx and drops everything else, also with 429.
fn fault(context: &FaultContext<'_>, fault: &Fault) -> Answer {
    let mut answer = plain_fault(context, fault);
    if answer.status == StatusCode::TOO_MANY_REQUESTS {
        answer.status = StatusCode::SERVICE_UNAVAILABLE;
    }
    answer
}
