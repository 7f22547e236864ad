//! Open events as alerts: query parameters, and the document of an alert.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE};
use bellwether_language::text::enum_word;
use bellwether_proto::{
    cloud::{Severity, Status},
    v1::{Clause, Destination, Event, EventRoute, HoldKind, Occurrence},
};
use prost_types::{Struct, value::Kind};
use regex::Regex;
use serde_json::{Value, json};

use super::{find_parameter, format_time, matcher, matcher::Matcher, read_flag, read_matchers};
use crate::{
    label::{self, NAME, SEVERITY},
    limits,
};

const UNROUTED: &str = "null";

const OTHER_PARTS: [&str; 6] = [
    "annotations",
    "generatorURL",
    "startsAt",
    "endsAt",
    "fingerprint",
    "severity",
];

const FINGERPRINT_BYTES: usize = 8;

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags of the request")]
pub(crate) struct AlertQuery {
    active: bool,
    silenced: bool,
    inhibited: bool,
    matchers: Vec<Matcher>,
    receiver: Option<Regex>,
    receiver_matchers: Vec<Matcher>,
    /// The receivers whose labels match; `None` if they do not matter.
    matching_receivers: Option<BTreeSet<String>>,
    /// Whether to list groups whose alerts are all suppressed or muted.
    muted: bool,
}

impl AlertQuery {
    pub(crate) fn read(pairs: &[(String, String)]) -> Result<Self, String> {
        let flag = |name: &str| read_flag(pairs, name);
        // The flag has no effect, because no stored event is unprocessed.
        flag("unprocessed")?;
        let receiver = find_parameter(pairs, "receiver").filter(|it| !it.is_empty());
        Ok(Self {
            active: flag("active")?,
            silenced: flag("silenced")?,
            inhibited: flag("inhibited")?,
            muted: flag("muted")?,
            matchers: read_matchers(pairs, "filter")?,
            receiver: receiver.map(matcher::compile_anchored).transpose()?,
            receiver_matchers: read_matchers(pairs, "receiver_matchers")?,
            matching_receivers: None,
        })
    }

    pub(crate) fn has_receiver_matchers(&self) -> bool {
        !self.receiver_matchers.is_empty()
    }

    /// Restricts the alerts to receivers whose labels match.
    pub(crate) fn with_receivers(mut self, receivers: &[Receiver]) -> Self {
        let matching = receivers
            .iter()
            .filter(|it| it.matches(&self.receiver_matchers));
        self.matching_receivers = Some(matching.map(|it| it.name.clone()).collect());
        self
    }

    fn shows_receiver(&self, name: &str) -> bool {
        let (regex, names) = (&self.receiver, &self.matching_receivers);
        regex.as_ref().is_none_or(|it| it.is_match(name))
            && names.as_ref().is_none_or(|it| it.contains(name))
    }

    fn is_limited_to_receivers(&self) -> bool {
        self.receiver.is_some() || self.matching_receivers.is_some()
    }

    pub(crate) fn to_clause(&self) -> Option<Clause> {
        let plain = self.matchers.iter().filter(|it| !it.is_regex());
        // A matcher that matches no alert needs no clause: it rejects all alerts when they are
        // filtered.
        let clauses = plain.filter_map(|it| it.to_clause().ok().flatten());
        matcher::all_of(clauses.collect())
    }

    fn matches(&self, alert: &Alert) -> bool {
        let is_shown = if alert.state_name() == "active" {
            self.active
        } else {
            let is_held = !alert.silenced_by.is_empty() || alert.is_suppressed;
            (self.silenced || !is_held) && (self.inhibited || alert.inhibited_by.is_empty())
        };
        let mut receivers = alert.receivers.iter();
        is_shown
            && self.matchers.iter().all(|it| it.matches(&alert.labels))
            && (!self.is_limited_to_receivers() || receivers.any(|it| self.shows_receiver(it)))
    }
}

#[derive(Debug)]
pub(crate) struct Alert {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    receivers: Vec<String>,
    silenced_by: Vec<String>,
    inhibited_by: Vec<String>,
    muted_by: Vec<String>,
    is_suppressed: bool,
    fingerprint: String,
    generator_url: String,
    start_ms: i64,
    end_ms: i64,
    update_ms: i64,
}

impl Alert {
    /// Converts a page of events to alerts, using their routes, and returns the alerts that pass
    /// the filter.
    pub(crate) fn select_page(
        query: &AlertQuery,
        events: Vec<Event>,
        routes: Vec<EventRoute>,
        silence_id: impl Fn(&str) -> String,
        now_ms: i64,
    ) -> Vec<Self> {
        let mut routes: HashMap<_, _> = routes
            .into_iter()
            .map(|route| (route.occurrence_id.clone(), route))
            .collect();
        let alerts = events.into_iter().filter_map(|mut event| {
            let occurrence = event.occurrences.pop()?;
            // The event was deleted in the meantime.
            let route = routes.remove(&occurrence.id)?;
            Some(Self::new(event, occurrence, route, &silence_id, now_ms))
        });
        alerts.filter(|it| query.matches(it)).collect()
    }

    fn new(
        event: Event,
        occurrence: Occurrence,
        route: EventRoute,
        silence_id: impl Fn(&str) -> String,
        now_ms: i64,
    ) -> Self {
        let mut labels = label::to_labels(event.dimensions);
        labels.insert(NAME.to_owned(), event.name);
        let fields = occurrence.metadata_fields.unwrap_or_default();
        // Restores the original label, which is not a dimension if an earlier version stored the
        // event or if the settings exclude the label.
        labels.entry(SEVERITY.to_owned()).or_insert_with(|| {
            let severity = Severity::try_from(occurrence.severity).unwrap_or_default();
            non_empty_text(&fields, SEVERITY)
                .map_or_else(|| severity_label(severity), str::to_owned)
        });
        let held_by = |kinds: &[HoldKind]| {
            let held = occurrence.holds.iter();
            let held = held.filter(|hold| kinds.contains(&hold.kind()));
            held.map(|hold| hold.name.clone()).collect::<Vec<_>>()
        };
        let generator_url = non_empty_text(&fields, "generatorURL").unwrap_or_default();
        Self {
            silenced_by: route
                .silence_names
                .iter()
                .map(|it| silence_id(it))
                .collect(),
            inhibited_by: held_by(&[HoldKind::Inhibition]),
            muted_by: held_by(&[HoldKind::ActiveTimes]),
            is_suppressed: occurrence.status == Status::Suppressed as i32,
            receivers: route.destination_names,
            fingerprint: fingerprint(&event.id),
            generator_url: if generator_url.starts_with("http") {
                generator_url.to_owned()
            } else {
                String::new()
            },
            annotations: annotations(&occurrence.summary, &occurrence.body, &fields),
            start_ms: occurrence.start_time,
            // Without an expiry, the alert ends after Alertmanager's default time.
            end_ms: occurrence
                .expire_time
                .unwrap_or_else(|| now_ms.saturating_add(limits::RESOLVE_TIMEOUT_MS)),
            update_ms: occurrence.last_seen,
            labels,
        }
    }

    fn state_name(&self) -> &'static str {
        let is_held =
            !self.silenced_by.is_empty() || !self.inhibited_by.is_empty() || self.is_suppressed;
        if is_held { "suppressed" } else { "active" }
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let pairs = self.labels.iter().chain(&self.annotations);
        let texts: usize = pairs.map(|(key, value)| key.len() + value.len() + 8).sum();
        texts + self.generator_url.len() + 400
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut alert = json!({
            "labels": self.labels,
            "annotations": self.annotations,
            "receivers": self.receivers.iter().map(|it| reference_json(it)).collect::<Vec<_>>(),
            "startsAt": format_time(self.start_ms),
            "endsAt": format_time(self.end_ms),
            "updatedAt": format_time(self.update_ms),
            "fingerprint": self.fingerprint,
            "status": {
                "state": self.state_name(),
                "silencedBy": self.silenced_by,
                "inhibitedBy": self.inhibited_by,
                "mutedBy": self.muted_by,
            },
        });
        if !self.generator_url.is_empty() {
            alert["generatorURL"] = self.generator_url.as_str().into();
        }
        alert
    }
}

pub(crate) fn groups_json(query: &AlertQuery, alerts: &[Alert]) -> Value {
    let mut groups: BTreeMap<(&str, &str), Vec<&Alert>> = BTreeMap::new();
    for alert in alerts {
        let name = alert.labels.get(NAME).map_or("", String::as_str);
        let routed = alert.receivers.iter().map(String::as_str);
        let unrouted = alert.receivers.is_empty().then_some(UNROUTED);
        let routed = routed.filter(|it| query.shows_receiver(it));
        for receiver in routed.chain(unrouted) {
            groups.entry((receiver, name)).or_default().push(alert);
        }
    }
    let is_muted = |it: &&Alert| it.state_name() != "active" || !it.muted_by.is_empty();
    let shown = groups.into_iter();
    let shown = shown.filter(|(_, alerts)| query.muted || !alerts.iter().all(is_muted));
    let groups = shown.map(|((to, name), alerts)| {
        json!({
            "labels": {NAME: name},
            // A rule has no labels.
            "routeLabels": {},
            "receiver": reference_json(to),
            "alerts": alerts.into_iter().map(Alert::to_json).collect::<Vec<_>>(),
        })
    });
    groups.collect()
}

/// A destination as a receiver, whose labels are its tags of the form `key:value`.
#[derive(Debug)]
pub(crate) struct Receiver {
    name: String,
    labels: BTreeMap<String, String>,
}

impl Receiver {
    pub(crate) fn from_destination(destination: Destination) -> Self {
        let tags = destination.tags.iter().rev();
        let labels = tags.filter_map(|tag| tag.split_once(':'));
        Self {
            labels: labels
                .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
                .collect(),
            name: destination.name,
        }
    }

    pub(crate) fn matches(&self, matchers: &[Matcher]) -> bool {
        matchers.iter().all(|it| it.matches(&self.labels))
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({"name": self.name, "labels": self.labels})
    }
}

fn reference_json(name: &str) -> Value {
    json!({"name": name})
}

fn severity_label(severity: Severity) -> String {
    enum_word(severity.as_str_name(), "SEVERITY_")
}

fn annotations(summary: &str, body: &str, fields: &Struct) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let nested = fields
        .fields
        .get("annotations")
        .and_then(|it| it.kind.as_ref());
    let nested = match nested {
        Some(Kind::StructValue(nested)) => Some(nested),
        _ => None,
    };
    let outer = fields.fields.keys();
    let outer = outer.filter(|key| !OTHER_PARTS.contains(&key.as_str()));
    for key in outer {
        if let Some(text) = non_empty_text(fields, key) {
            found.insert(key.clone(), truncate(text));
        }
    }
    if let Some(nested) = nested {
        for key in nested.fields.keys() {
            if let Some(text) = non_empty_text(nested, key) {
                found.insert(key.clone(), truncate(text));
            }
        }
    }
    for (key, text) in [("summary", summary), ("description", body)] {
        if !text.is_empty() {
            found.insert(key.to_owned(), truncate(text));
        }
    }
    found
}

fn non_empty_text<'a>(fields: &'a Struct, name: &str) -> Option<&'a str> {
    match fields.fields.get(name)?.kind.as_ref()? {
        Kind::StringValue(text) => Some(text),
        _ => None,
    }
}

fn truncate(text: &str) -> String {
    if text.len() <= limits::ANNOTATION_BYTES {
        return text.to_owned();
    }
    let end = bellwether_language::text::longest_prefix(text, limits::ANNOTATION_BYTES).len();
    format!("{}\u{2026}", &text[..end])
}

fn fingerprint(event_id: &str) -> String {
    let bytes = URL_SAFE.decode(event_id).unwrap_or_default();
    let mut text = String::with_capacity(2 * FINGERPRINT_BYTES);
    for byte in bytes.iter().take(FINGERPRINT_BYTES) {
        let _infallible = write!(text, "{byte:02x}");
    }
    text
}
