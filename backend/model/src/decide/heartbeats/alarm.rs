//! The name, summary and dimensions of the event for a missing beat, rendered from the templates of
//! its heartbeat.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    decide::time_format::format_time,
    domain::{
        Expectation, Heartbeat, HeartbeatEvent, NO_SNIPPETS, TemplateLanguage, drill::DRILL,
        hold::SharedValue, is_reserved_key,
    },
    message::template_violation,
    template::{AnyTemplate, Budget, Escape, Template, Variables},
    violation::Violation,
};

const NAME_CHARACTERS_MAX: usize = 100;
const TEXT_CHARACTERS_MAX: usize = 250;
const NAMED: &str = "heartbeat";
/// Variables that every template may use. Only summaries may use other variables, because an event
/// must keep its identity while it is open.
const IDENTITY_VARIABLES: [&str; 2] = ["name", "by"];
const SUMMARY_VARIABLES: [&str; 4] = ["name", "by", "last_beat", "due"];
const BY: &str = "by.";

#[derive(Debug)]
pub struct AlarmTexts {
    name: Option<AnyTemplate>,
    summary: Option<AnyTemplate>,
    dimensions: Vec<(String, Option<AnyTemplate>)>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct AlarmFacts {
    /// Time at which the beat was due, in milliseconds since 1970, if known.
    pub due_ms: Option<i64>,
    /// The maximum duration of a run that was exceeded, in milliseconds, if any.
    pub overrun_ms: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedAlarm {
    pub name: String,
    pub summary: String,
    pub dimensions: BTreeMap<String, String>,
}

impl AlarmTexts {
    /// Compiles the templates of a heartbeat, skipping invalid ones.
    pub fn new(heartbeat: &Heartbeat) -> Self {
        let event = &heartbeat.event;
        let read = |text: &str| {
            let is_set = !text.is_empty();
            is_set.then(|| AnyTemplate::parse(TemplateLanguage::Mustache, text).ok())?
        };
        let dimensions = event.dimensions.iter();
        Self {
            name: read(&event.name),
            summary: read(&event.summary),
            dimensions: dimensions
                .map(|(key, text)| (key.clone(), read(text)))
                .collect(),
        }
    }

    pub fn render(
        &self,
        heartbeat: &Heartbeat,
        expected: &Expectation,
        facts: AlarmFacts,
    ) -> RenderedAlarm {
        let variables = template_variables(heartbeat, expected, facts);
        let mut budget = Budget::for_message();
        let mut render = |template: &Option<AnyTemplate>, characters_max: usize| {
            let rendered = template.as_ref()?;
            let rendered = rendered.render(&variables, Escape::Header, &mut budget);
            let text = rendered.ok()?;
            let text: String = text.trim().chars().take(characters_max).collect();
            (!text.is_empty()).then_some(text)
        };
        let name = render(&self.name, NAME_CHARACTERS_MAX);
        let mut dimensions = BTreeMap::new();
        for (key, template) in &self.dimensions {
            if let Some(text) = render(template, TEXT_CHARACTERS_MAX) {
                dimensions.insert(key.clone(), text);
            }
        }
        // A missing beat of own events must not itself look like an own event.
        for (key, value) in label_values(&expected.values) {
            dimensions.insert(key.to_owned(), value.to_owned());
        }
        dimensions.retain(|key, value| !is_reserved_key(key, value) && key != DRILL);
        dimensions.insert(NAMED.to_owned(), heartbeat.name.to_string());
        let summary = render(&self.summary, TEXT_CHARACTERS_MAX);
        let summary = summary.unwrap_or_else(|| describe_alarm(heartbeat, expected, facts));
        RenderedAlarm {
            name: name.unwrap_or_else(|| heartbeat.name.to_string()),
            summary: summary.chars().take(TEXT_CHARACTERS_MAX).collect(),
            dimensions,
        }
    }
}

/// Returns the violations in the templates of a heartbeat, with the paths of their fields.
pub fn alarm_violations(by: &[String], event: &HeartbeatEvent) -> Vec<Violation> {
    let keys: Vec<_> = by.iter().map(|it| label_key(it)).collect();
    let dimensions = event.dimensions.iter();
    let dimensions = dimensions.map(|(key, text)| {
        let path = format!("event.dimensions.{key}");
        (path, text, &IDENTITY_VARIABLES[..])
    });
    let texts = [
        (
            "event.name".to_owned(),
            &event.name,
            &IDENTITY_VARIABLES[..],
        ),
        (
            "event.summary".to_owned(),
            &event.summary,
            &SUMMARY_VARIABLES,
        ),
    ];
    let texts = texts.into_iter().chain(dimensions);
    let violations =
        texts.filter_map(|(path, text, known)| text_violation(path, text, known, &keys));
    violations.collect()
}

fn text_violation(path: String, text: &str, known: &[&str], keys: &[&str]) -> Option<Violation> {
    let Ok(template) = Template::parse(text) else {
        return template_violation(path, TemplateLanguage::Mustache, text, &NO_SNIPPETS);
    };
    let is_known = |name: &&str| {
        let of_values = name.strip_prefix(BY).is_some_and(|it| keys.contains(&it));
        known.contains(name) || of_values
    };
    let unknown = template
        .used_names()
        .into_iter()
        .find(|name| !is_known(name))?;
    let values = keys.iter().map(|key| format!("{BY}{key}"));
    let plain = known.iter().filter(|it| **it != "by");
    let known = plain.map(|it| (*it).to_owned()).chain(values);
    let known = known.collect::<Vec<_>>().join("`, `");
    let message = format!("uses the unknown variable `{unknown}`; expected one of `{known}`");
    Some(Violation::new(path, message))
}

fn template_variables(
    heartbeat: &Heartbeat,
    expected: &Expectation,
    facts: AlarmFacts,
) -> Variables {
    let by: Map<_, _> = label_values(&expected.values)
        .map(|(key, value)| (key.to_owned(), Value::from(value)))
        .collect();
    let mut all = Map::from_iter([
        ("name".to_owned(), Value::from(heartbeat.name.as_str())),
        ("by".to_owned(), Value::from(by)),
    ]);
    let moments = [("last_beat", expected.last_ms), ("due", facts.due_ms)];
    for (name, at_ms) in moments {
        all.extend(at_ms.map(|at_ms| (name.to_owned(), json!(format_time(at_ms)))));
    }
    Variables::new(Value::from(all))
}

/// Returns the dimension key for a field of `by`.
fn label_key(field: &str) -> &str {
    field.rsplit_once('.').map_or(field, |(_, key)| key)
}

fn label_values(values: &[SharedValue]) -> impl Iterator<Item = (&str, &str)> {
    values.iter().filter_map(|(field, value)| {
        let value = value.as_deref().filter(|it| !it.is_empty())?;
        Some((label_key(field), value))
    })
}

fn describe_alarm(heartbeat: &Heartbeat, expected: &Expectation, facts: AlarmFacts) -> String {
    let named = expected.values.iter();
    let named = named.filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
    let whose = match named.collect::<Vec<_>>().join(", ") {
        values if values.is_empty() => heartbeat.name.to_string(),
        values => format!("{} ({values})", heartbeat.name),
    };
    let last = expected.last_ms.map(format_time);
    match (expected.has_failed, facts.overrun_ms, last) {
        (true, ..) => format!("{whose} reported a failure"),
        (false, Some(overrun_ms), _) => {
            let seconds = overrun_ms / 1_000;
            format!("{whose} did not end within {seconds} s of its start")
        }
        (false, None, Some(last)) => format!("no beat from {whose} since {last}"),
        (false, None, None) => format!("no beat from {whose} yet"),
    }
}
