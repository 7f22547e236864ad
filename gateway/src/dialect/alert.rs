//! An alert as Prometheus, Alertmanager and Grafana all write it, made into an event.
//!
//! Which way an alert comes does not matter: it is the same event.

use std::collections::BTreeMap;

use super::{
    Batch, Fault, Incoming, Settings, Severity,
    draft::Draft,
    json::{Broken, JsonPath, Object, Value},
    quoted,
};
use bellwether_proto::cloud::Event;
use jiff::Timestamp;

/// The label that names an alert.
const NAME: &str = "alertname";
/// The label that shows how bad it is.
const SEVERITY: &str = "severity";
/// The name of an alert without that label.
const NAMELESS: &str = "alert";

/// Annotations that become the event's summary; the first that is there.
const SUMMARIES: [&str; 2] = ["summary", "message"];
/// The annotation that becomes the event's body.
const BODY: &str = "description";

/// Members of an alert that are kept as they are.
const KEPT: [&str; 9] = [
    "startsAt",
    "generatorURL",
    "fingerprint",
    "silenceURL",
    "dashboardURL",
    "panelURL",
    "imageURL",
    "values",
    "valueString",
];

/// How old a time may be that an end is stamped with: a little less than events may be.
const OLDEST_END_MS: i64 = 23 * 60 * 60 * 1_000;

/// Members of the document around alerts that are kept with each of them.
const KEPT_AROUND: [&str; 2] = ["externalURL", "receiver"];

/// Makes events of a list of alerts, which stands at that path.
pub(super) fn batch(
    alerts: &[Value<'_>],
    list: &'static str,
    broken: &Broken,
    around: Option<&Object<'_>>,
    incoming: &Incoming<'_>,
) -> Batch {
    let mut batch = Batch::default();
    for (at, alert) in alerts.iter().enumerate() {
        let place = JsonPath::Element(list, at);
        let made = match broken.get(&at) {
            Some(why) => Err(Fault::invalid(format!("`{list}[{at}]` {why}"))),
            None => Object::of(alert, place)
                .and_then(|alert| event(&alert, around, incoming.settings, incoming.now_ms)),
        };
        batch.add(made);
    }
    batch
}

/// Makes an event of an alert. Its stamp is the moment of receipt, that of an end which Prometheus sends
/// the end: `startsAt` may be days old, and is kept beside it.
///
/// # Errors
/// With what is wrong with it, named from the body on.
fn event(
    alert: &Object<'_>,
    around: Option<&Object<'_>>,
    settings: &Settings,
    now_ms: i64,
) -> Result<Event, Fault> {
    let labels = alert.texts("labels")?;
    if labels.values().all(|value| value.is_empty()) {
        let labels = alert.path("labels");
        return Err(Fault::invalid(format!(
            "`{labels}` is required, with at least one label that is not empty"
        )));
    }
    let mut draft = Draft::new(name(&labels));
    let replica = identify(&mut draft, &labels, settings);
    let said = labels.get(SEVERITY).copied().unwrap_or_default();
    let severity = Severity::of_any_word(said).unwrap_or(settings.alert_severity);
    draft.severity(severity);
    if said != severity.word() {
        draft.keep(SEVERITY, said);
    }
    annotate(&mut draft, &alert.texts("annotations")?);
    let start_ms = moment(alert, "startsAt")?;
    let end_ms = moment(alert, "endsAt")?;
    draft.report(start_ms, &reporter(&replica, alert));
    let is_over = is_over(alert, end_ms, now_ms)?;
    match (end_ms, around) {
        // Prometheus repeats an end, also after another replica has reported the alert again. A
        // webhook tells an end once, after an Alertmanager has united what they reported.
        (Some(end_ms), None) if is_over && start_ms.is_some() => {
            draft.timestamp_ms(end_ms.clamp(now_ms - OLDEST_END_MS, now_ms));
        }
        // Prometheus repeats an alert before that; a webhook does not.
        (Some(end_ms), None) if !is_over => draft.expires_ms(end_ms),
        _ => {}
    }
    if is_over {
        draft.closed();
        draft.keep_members(alert, &["endsAt"]);
    }
    draft.keep(NAME, name(&labels));
    draft.keep_members(alert, &KEPT);
    if let Some(around) = around {
        draft.keep_around(around, &KEPT_AROUND);
    }
    Ok(draft.finish())
}

fn name<'a>(labels: &BTreeMap<&str, &'a str>) -> &'a str {
    let name = labels.get(NAME).filter(|name| !name.is_empty());
    name.copied().unwrap_or(NAMELESS)
}

/// Puts the labels into the event, less those that are something else; answers which replica they name.
/// An empty label is none to Prometheus.
fn identify(draft: &mut Draft, labels: &BTreeMap<&str, &str>, settings: &Settings) -> String {
    let mut replica = String::new();
    for (key, value) in labels {
        if settings.replica_labels.iter().any(|label| label == key) {
            replica.push_str(value);
            replica.push(' ');
        } else if ![NAME, SEVERITY].contains(key) && !value.is_empty() {
            draft.dimension(key, *value);
        }
    }
    // An event is about something: without a further label, about the alert itself.
    if draft.is_about_nothing() {
        draft.dimension(NAME, name(labels));
    }
    replica
}

/// What tells the sender of an alert from its replicas: its label, and where its graphs are.
fn reporter(replica: &str, alert: &Object<'_>) -> String {
    let graph = alert.get("generatorURL").and_then(Value::as_str);
    let place = graph.and_then(|url| url.split('?').next());
    format!("{replica}{}", place.unwrap_or_default())
}

fn annotate(draft: &mut Draft, annotations: &BTreeMap<&str, &str>) {
    let found = |name: &str| annotations.get(name).copied().unwrap_or_default();
    let summary = SUMMARIES.into_iter().find(|name| !found(name).is_empty());
    draft.summary(summary.map(found).unwrap_or_default());
    draft.body(found(BODY));
    let others = annotations
        .iter()
        .filter(|(name, _)| **name != BODY && Some(**name) != summary);
    let others = others.map(|(name, text)| (*name, Value::from(*text)));
    draft.keep("annotations", Value::Object(others.collect()));
}

/// Whether the alert says that it is over.
fn is_over(alert: &Object<'_>, end_ms: Option<i64>, now_ms: i64) -> Result<bool, Fault> {
    let is_past = end_ms.is_some_and(|end_ms| end_ms <= now_ms);
    match alert.text("status")? {
        None | Some("" | "firing") => Ok(is_past),
        Some("resolved") => Ok(true),
        Some(other) => {
            let status = alert.path("status");
            Err(Fault::invalid(format!(
                "`{status}` has to be `firing` or `resolved`, and is {}",
                quoted(other)
            )))
        }
    }
}

/// A time, in milliseconds since 1970. Year 1, by which Go says "never", is none.
fn moment(alert: &Object<'_>, member: &str) -> Result<Option<i64>, Fault> {
    let Some(text) = alert.text(member)?.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let moment: Timestamp = text.parse().map_err(|_not_a_time| {
        let member = alert.path(member);
        Fault::invalid(format!(
            "`{member}` has to be a time such as `2026-01-31T08:00:00Z`"
        ))
    })?;
    Ok(Some(moment.as_millisecond()).filter(|ms| *ms > 0))
}
