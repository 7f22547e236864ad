//! Converts an alert in the common format of Prometheus, Alertmanager and Grafana to an event.
//!
//! The resulting event is the same, however the alert was delivered.

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    Batch, DialectError, IncomingRequest, Settings, Severity,
    draft::EventDraft,
    json::{DecodeErrors, JsonPath, Object, Value},
    quote_for_message,
};
use crate::{
    alertmanager::parse_time as time,
    label::{NAME, SEVERITY},
};
use bellwether_proto::cloud::Event;

const NAMELESS: &str = "alert";

const SUMMARIES: [&str; 2] = ["summary", "message"];
const BODY: &str = "description";

const STORED: [&str; 11] = [
    "startsAt",
    "generatorURL",
    "fingerprint",
    "silenceURL",
    "dashboardURL",
    "panelURL",
    "imageURL",
    "values",
    "valueString",
    "ruleUID",
    "orgId",
];

/// Members of the enclosing document to store with each alert.
const STORED_AROUND: [&str; 3] = ["externalURL", "receiver", "orgId"];

type TextMap<'a> = BTreeMap<&'a str, Cow<'a, str>>;

/// Converts a list of alerts; `list` is its path, for errors.
pub(super) fn read_batch(
    alerts: &[Value<'_>],
    list: &'static str,
    broken: &DecodeErrors,
    around: Option<&Object<'_>>,
    incoming: &IncomingRequest<'_>,
) -> Batch {
    let mut batch = Batch::default();
    for (at, alert) in alerts.iter().enumerate() {
        let place = JsonPath::Element(list, at);
        let made = match broken.get(&at) {
            Some(why) => Err(DialectError::new_invalid(format!("`{list}[{at}]` {why}"))),
            None => Object::new(alert, place)
                .and_then(|alert| read_event(&alert, around, incoming.settings, incoming.now_ms)),
        };
        batch.add(made);
    }
    batch
}

/// Converts an alert to an event whose timestamp is the time of receipt. The start and end of the
/// alert, which are by the sender's clock, are stored separately.
fn read_event(
    alert: &Object<'_>,
    around: Option<&Object<'_>>,
    settings: &Settings,
    now_ms: i64,
) -> Result<Event, DialectError> {
    let labels = alert.texts("labels")?;
    if labels.values().all(|value| value.is_empty()) {
        let labels = alert.path("labels");
        return Err(DialectError::new_invalid(format!(
            "`{labels}` is required, with at least one non-empty label"
        )));
    }
    let mut draft = EventDraft::new(event_name(&labels));
    let replica = identify(&mut draft, &labels, settings);
    let said = labels.get(SEVERITY).map_or("", |it| it);
    let severity = Severity::from_known_name(said).unwrap_or(settings.alert_severity);
    draft.set_severity(severity);
    if said != severity.as_str() {
        draft.store_field(SEVERITY, said);
    }
    match alert.texts("annotations") {
        Ok(annotations) => add_annotations(&mut draft, &annotations),
        Err(_no_object) => draft.store_members(alert, &["annotations"]),
    }
    let start_ms = parse_time_ms(alert, "startsAt")?;
    let end_ms = parse_time_ms(alert, "endsAt")?;
    draft.set_report(start_ms, end_ms, &sender_id(&replica, alert, around));
    let is_over = is_resolved(alert, end_ms, now_ms)?;
    // Prometheus repeats an alert before `endsAt` and can stop without resolving it. Webhooks are
    // not repeated.
    if let (Some(end_ms), None, false) = (end_ms, around, is_over) {
        draft.set_expires_ms(end_ms);
    }
    if is_over {
        draft.set_closed();
        draft.store_members(alert, &["endsAt"]);
    }
    draft.store_field(NAME, event_name(&labels));
    if let Some(around) = around {
        draft.store_envelope_fields(around, &STORED_AROUND);
    }
    draft.store_members(alert, &STORED);
    Ok(draft.finish())
}

fn event_name<'a>(labels: &'a TextMap<'_>) -> &'a str {
    let name = labels.get(NAME).filter(|name| !name.is_empty());
    name.map_or(NAMELESS, |name| name)
}

/// Sets the dimensions from the labels that identify the alert, and returns the values of the
/// replica labels. Empty labels are skipped, because Prometheus treats them as missing.
fn identify(draft: &mut EventDraft, labels: &TextMap<'_>, settings: &Settings) -> String {
    let mut replica = String::new();
    for (key, value) in labels {
        if settings.replica_labels.iter().any(|label| label == key) {
            replica.push_str(value);
            replica.push(' ');
        } else if *key != NAME
            && !settings.fold_labels.iter().any(|label| label == key)
            && !value.is_empty()
        {
            draft.add_dimension(key, &**value);
        }
    }
    // An event requires a dimension, so an alert without other labels gets its name as one.
    if draft.lacks_dimensions() {
        draft.add_dimension(NAME, event_name(labels));
    }
    replica
}

/// Returns an identifier that tells the sender of an alert apart from its replicas. For a webhook,
/// this is the address of its Alertmanager. Otherwise it is the replica label and the generator URL
/// without the query, which contains the rule's expression.
fn sender_id(replica: &str, alert: &Object<'_>, around: Option<&Object<'_>>) -> String {
    let address = around
        .and_then(|it| it.get("externalURL"))
        .and_then(Value::as_str);
    if let Some(address) = address.filter(|it| !it.is_empty()) {
        return address.to_owned();
    }
    let graph = alert.get("generatorURL").and_then(Value::as_str);
    let place = graph.and_then(|url| url.split(['?', '#']).next());
    format!("{replica}{}", place.unwrap_or_default())
}

fn add_annotations(draft: &mut EventDraft, annotations: &TextMap<'_>) {
    let found = |name: &str| annotations.get(name).map_or("", |text| text);
    let summary = SUMMARIES.into_iter().find(|name| !found(name).is_empty());
    draft.set_summary(summary.map(found).unwrap_or_default());
    draft.set_body(found(BODY));
    let others = annotations
        .iter()
        .filter(|(name, _)| **name != BODY && Some(**name) != summary);
    let others = others.map(|(name, text)| (*name, Value::from(&**text)));
    draft.store_field("annotations", Value::Object(others.collect()));
}

/// Whether the alert is resolved: by its status, else by its end.
fn is_resolved(alert: &Object<'_>, end_ms: Option<i64>, now_ms: i64) -> Result<bool, DialectError> {
    let is_past = end_ms.is_some_and(|end_ms| end_ms <= now_ms);
    match alert.get("status").and_then(Value::as_str) {
        None | Some("") => Ok(is_past),
        Some("firing") => Ok(false),
        Some("resolved") => Ok(true),
        Some(other) => {
            let status = alert.path("status");
            Err(DialectError::new_invalid(format!(
                "`{status}` must be `firing` or `resolved`, not {}",
                quote_for_message(other)
            )))
        }
    }
}

/// Parses a time into milliseconds since 1970. Year 1, Go's zero time, and values other than text
/// are `None`.
fn parse_time_ms(alert: &Object<'_>, member: &str) -> Result<Option<i64>, DialectError> {
    let text = alert.get(member).and_then(Value::as_str);
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let moment = time(text).ok_or_else(|| {
        let member = alert.path(member);
        let found = quote_for_message(text);
        DialectError::new_invalid(format!(
            "`{member}` must be a time such as `2026-01-31T08:00:00Z`, not {found}"
        ))
    })?;
    Ok(Some(moment.as_millisecond()).filter(|ms| *ms > 0))
}
