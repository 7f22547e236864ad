//! Open events as alerts: query parameters, and the document of an alert.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE};
use bellwether_proto::{
    cloud::{Severity, Status},
    text::enum_word,
    v1::{Clause, Event, EventRoute, HoldKind, Occurrence},
};
use prost_types::{Struct, value::Kind};
use regex::Regex;
use serde_json::{Value, json};

use super::{format_time, matcher, matcher::Matcher};
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
pub(crate) struct AlertQuery {
    active: bool,
    silenced: bool,
    inhibited: bool,
    matchers: Vec<Matcher>,
    receiver: Option<Regex>,
}

impl AlertQuery {
    pub(crate) fn read(pairs: &[(String, String)]) -> Result<Self, String> {
        let flag = |name: &str| match find_parameter(pairs, name) {
            None | Some("true" | "1") => Ok(true),
            Some("false" | "0") => Ok(false),
            Some(_) => Err(format!("`{name}` must be `true` or `false`")),
        };
        // The flag has no effect, because no stored event is unprocessed.
        flag("unprocessed")?;
        let receiver = find_parameter(pairs, "receiver").filter(|it| !it.is_empty());
        Ok(Self {
            active: flag("active")?,
            silenced: flag("silenced")?,
            inhibited: flag("inhibited")?,
            matchers: matcher::parse_all(filter_parameters(pairs))?,
            receiver: receiver.map(matcher::compile_anchored).transpose()?,
        })
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
            && self
                .receiver
                .as_ref()
                .is_none_or(|regex| receivers.any(|it| regex.is_match(it)))
    }
}

pub(crate) fn filter_parameters(pairs: &[(String, String)]) -> impl Iterator<Item = &str> {
    let pairs = pairs.iter().filter(|(name, _)| name == "filter");
    pairs.map(|(_, value)| value.as_str())
}

fn find_parameter<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = pairs.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str())
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
            "receivers": self.receivers.iter().map(|it| receiver_json(it)).collect::<Vec<_>>(),
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

pub(crate) fn groups_json(alerts: &[Alert]) -> Value {
    let mut groups: BTreeMap<(&str, &str), Vec<Value>> = BTreeMap::new();
    for alert in alerts {
        let name = alert.labels.get(NAME).map_or("", String::as_str);
        let routed = alert.receivers.iter().map(String::as_str);
        let unrouted = alert.receivers.is_empty().then_some(UNROUTED);
        for receiver in routed.chain(unrouted) {
            groups
                .entry((receiver, name))
                .or_default()
                .push(alert.to_json());
        }
    }
    let groups = groups.into_iter().map(|((to, name), alerts)| {
        json!({"labels": {NAME: name}, "receiver": receiver_json(to), "alerts": alerts})
    });
    groups.collect()
}

pub(crate) fn receiver_json(name: &str) -> Value {
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
    let end = bellwether_proto::text::longest_prefix(text, limits::ANNOTATION_BYTES).len();
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
