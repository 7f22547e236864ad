//! Maps a document to an event; no I/O.

use std::collections::BTreeMap;

use bellwether_proto::{
    cloud::{Event, Status as WireStatus},
    severity,
};
use prost_types::{ListValue, Struct, Value as WireValue, value::Kind};
use serde_json::Value;

use super::entry::{EntryContext, without_request};
use crate::{
    domain::{Clause, MappedEvent, Severity, value::list_index},
    error::Error,
    limits::{EVENT_SUMMARY_BYTES_MAX, MAPPED_DATA_DEPTH_MAX},
    matching::DocumentQuery,
    template::{Escape, Template},
};

/// The parsed templates and conditions of a mapping to events.
pub(super) struct PreparedEvent<'a> {
    mapped: &'a MappedEvent,
    name: (&'a str, Template),
    kind: (&'a str, Template),
    summary: (&'a str, Template),
    body: (&'a str, Template),
    dimensions: Vec<(String, &'a str, (&'a str, Template))>,
    closed: Option<DocumentQuery>,
    acknowledged: Option<DocumentQuery>,
}

impl<'a> PreparedEvent<'a> {
    pub(super) fn new(event: &'a MappedEvent) -> Result<Self, Error> {
        let template = |source: &'a str| {
            let parsed = Template::parse(source);
            let parsed = parsed.map_err(|error| Error::invalid("mapping", error.to_string()))?;
            Ok::<_, Error>((source, parsed))
        };
        let query = |clause: Option<&Clause>| {
            let compiled = clause.map(DocumentQuery::compile).transpose();
            compiled.map_err(Error::Invalid)
        };
        let dimensions = event.dimensions.iter();
        let dimensions = dimensions.map(|(key, source)| {
            let field = format!("event.dimensions[{key}]");
            Ok((field, key.as_str(), template(source)?))
        });
        Ok(Self {
            mapped: event,
            name: template(&event.name)?,
            kind: template(&event.kind)?,
            summary: template(&event.summary)?,
            body: template(&event.body)?,
            dimensions: dimensions.collect::<Result<_, Error>>()?,
            closed: query(event.closed.as_ref())?,
            acknowledged: query(event.acknowledged.as_ref())?,
        })
    }

    pub(super) fn has_conditions(&self) -> bool {
        self.closed.is_some() || self.acknowledged.is_some()
    }

    /// Maps an entry. `stored` is the part of the data that is stored with the event. `on_empty` is
    /// called with each template that rendered an empty text.
    pub(super) fn map(
        &self,
        entry: &mut EntryContext<'_>,
        stored: &Value,
        mut on_empty: impl FnMut(&str),
    ) -> Result<Event, Error> {
        let closed = entry.is("event.closed", self.closed.as_ref())?;
        let acknowledged = entry.is("event.acknowledged", self.acknowledged.as_ref())?;
        let mut fill = |what: &str, (source, template): &(&str, Template)| {
            let filled = entry.render(what, |data, budget| {
                template.render(data, Escape::None, budget)
            })?;
            if filled.trim().is_empty() && !source.trim().is_empty() {
                on_empty(what);
            }
            Ok::<_, Error>(filled)
        };
        let mut dimensions = BTreeMap::new();
        for (field, key, template) in &self.dimensions {
            let value = fill(field, template)?;
            if !value.trim().is_empty() {
                dimensions.insert((*key).to_owned(), value);
            }
        }
        Ok(Event {
            name: join_lines(&fill("event.name", &self.name)?),
            r#type: join_lines(&fill("event.type", &self.kind)?),
            dimensions,
            summary: truncate(&join_lines(&fill("event.summary", &self.summary)?)),
            body: fill("event.body", &self.body)?,
            severity: self.severity(entry.data).map_or(0, |it| it as i32),
            status: match closed {
                Some(true) => WireStatus::Closed.into(),
                _ => WireStatus::Default.into(),
            },
            // `false` is not passed on: an operator may have acknowledged the event here.
            acknowledged: acknowledged.filter(|it| *it),
            metadata_fields: Some(metadata(stored)),
            ..Event::default()
        })
    }

    fn severity(&self, data: &Value) -> Option<Severity> {
        let severity = &self.mapped.severity;
        let at = |path: &str| {
            let mut steps = path.trim().split('.');
            let found = steps.try_fold(data, |value, step| match value {
                Value::Array(list) => list.get(list_index(step)?),
                value => value.get(step),
            });
            match found? {
                Value::String(text) => Some(text.trim().to_lowercase()),
                Value::Number(number) => Some(number.to_string()),
                Value::Bool(flag) => Some(flag.to_string()),
                _ => None,
            }
        };
        let Some(said) = severity.from.split('|').find_map(at) else {
            return severity.default;
        };
        let mut mapped = severity.map.iter();
        let mapped = mapped.find(|(value, _)| value.to_lowercase() == said);
        let own = || severity::from_name(&said).and_then(|it| Severity::from_number(it.into()));
        mapped.map(|(_, it)| *it).or_else(own).or(severity.default)
    }
}

/// Returns the metadata of an event: the document without the request.
fn metadata(data: &Value) -> Struct {
    let fields = BTreeMap::from([("data".to_owned(), to_wire_value(&without_request(data), 0))]);
    Struct { fields }
}

/// Converts a value to the wire; values nested too deeply become text.
fn to_wire_value(value: &Value, depth: usize) -> WireValue {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(flag) => Kind::BoolValue(*flag),
        Value::Number(number) => number
            .as_f64()
            .filter(|it| it.is_finite())
            .map_or_else(|| Kind::StringValue(number.to_string()), Kind::NumberValue),
        Value::String(text) => Kind::StringValue(text.clone()),
        deep @ (Value::Array(_) | Value::Object(_)) if depth >= MAPPED_DATA_DEPTH_MAX => {
            Kind::StringValue(deep.to_string())
        }
        Value::Array(list) => Kind::ListValue(ListValue {
            values: list.iter().map(|it| to_wire_value(it, depth + 1)).collect(),
        }),
        Value::Object(members) => {
            let fields = members.iter();
            Kind::StructValue(Struct {
                fields: fields
                    .map(|(name, it)| (name.clone(), to_wire_value(it, depth + 1)))
                    .collect(),
            })
        }
    };
    WireValue { kind: Some(kind) }
}

fn join_lines(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").replace(char::is_control, "")
}

fn truncate(text: &str) -> String {
    const MORE: &str = "\u{2026}";
    if text.len() <= EVENT_SUMMARY_BYTES_MAX {
        return text.to_owned();
    }
    let mut end = EVENT_SUMMARY_BYTES_MAX - MORE.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MORE}", &text[..end])
}
