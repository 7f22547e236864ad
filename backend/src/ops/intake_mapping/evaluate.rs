//! What a mapping makes of a document; pure.

use std::collections::BTreeMap;

use bellwether_proto::cloud::{Event, Status as WireStatus};
use prost_types::{ListValue, Struct, Value as WireValue, value::Kind};
use serde_json::{Value, json};

use crate::{
    domain::{Clause, IntakeMapping, Severity},
    error::Error,
    limits::{
        EVENT_SUMMARY_BYTES_MAX, EVENTS_PER_REQUEST_MAX, MAPPED_BYTES_MAX, MAPPED_DATA_BYTES_MAX,
        MAPPED_DATA_DEPTH_MAX, RENDERED_BYTES_MAX,
    },
    matching::{Document, DocumentQuery},
    message::sample,
    template::{Escape, Template},
};

/// Where templates and clauses see an entry of the list, and the request.
const ITEM: &str = "item";
const REQUEST: &str = "request";

/// What a service sent.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// The body.
    pub body: &'a [u8],
    /// The headers, by their names in lower case.
    pub headers: &'a BTreeMap<String, String>,
}

/// What became of a document.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mapped {
    /// The events, not checked yet.
    pub events: Vec<Event>,
    /// How many entries were passed over.
    pub dropped: usize,
}

/// A mapping, ready to be used.
struct Ready<'a> {
    mapping: &'a IntakeMapping,
    name: Template,
    kind: Template,
    summary: Template,
    body: Template,
    dimensions: Vec<(&'a str, Template)>,
    drop: Option<DocumentQuery>,
    closed: Option<DocumentQuery>,
    acknowledged: Option<DocumentQuery>,
}

/// Makes events of what a service sent.
///
/// # Errors
/// [`Error::Invalid`] with what is wrong with the document.
pub fn evaluate(mapping: &IntakeMapping, incoming: Incoming<'_>) -> Result<Mapped, Error> {
    let ready = Ready::new(mapping)?;
    let wrong = |what: String| Error::invalid("body", what);
    let document: Value = serde_json::from_slice(incoming.body)
        .map_err(|error| wrong(format!("is not JSON: {error}")))?;
    let Value::Object(mut members) = document else {
        return match document {
            // A list alone is what `each` leads through when it names nothing.
            Value::Array(list) => ready.all(json!({REQUEST: request(incoming)}), list),
            _ => Err(wrong("is no JSON object or list".into())),
        };
    };
    members.insert(REQUEST.into(), request(incoming));
    let mut document = Value::Object(members);
    if mapping.each.is_empty() {
        let mut mapped = Mapped::default();
        let asked = Document::new(&document, sample::occurrence(0));
        ready.one(&document, &asked, &mut mapped)?;
        return Ok(mapped);
    }
    match at_path(&mut document, &mapping.each).map(Value::take) {
        Some(Value::Array(list)) => ready.all(document, list),
        Some(_) => Err(wrong(format!(
            "has no list at `{}`, which is something else",
            mapping.each
        ))),
        None => Err(wrong(format!("has no list at `{}`", mapping.each))),
    }
}

fn request(incoming: Incoming<'_>) -> Value {
    json!({"headers": incoming.headers})
}

/// The member at a dotted path.
fn at_path<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut steps = path.split('.');
    steps.try_fold(value, |value, step| match value {
        Value::Object(members) => members.get_mut(step),
        Value::Array(list) => list.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    })
}

impl<'a> Ready<'a> {
    fn new(mapping: &'a IntakeMapping) -> Result<Self, Error> {
        let event = &mapping.event;
        let template = |source: &str| {
            Template::parse(source).map_err(|error| Error::invalid("mapping", error.to_string()))
        };
        let query = |clause: Option<&Clause>| {
            let compiled = clause.map(DocumentQuery::compile).transpose();
            compiled.map_err(Error::Invalid)
        };
        let dimensions = event.dimensions.iter();
        let dimensions = dimensions.map(|(key, source)| Ok((key.as_str(), template(source)?)));
        Ok(Self {
            mapping,
            name: template(&event.name)?,
            kind: template(&event.kind)?,
            summary: template(&event.summary)?,
            body: template(&event.body)?,
            dimensions: dimensions.collect::<Result<_, Error>>()?,
            drop: query(mapping.drop.as_ref())?,
            closed: query(event.closed.as_ref())?,
            acknowledged: query(event.acknowledged.as_ref())?,
        })
    }

    /// Each entry of a list, as `item` of the document around it.
    fn all(&self, mut document: Value, list: Vec<Value>) -> Result<Mapped, Error> {
        if list.len() > EVENTS_PER_REQUEST_MAX {
            let fault = format!(
                "has {} entries; at most {EVENTS_PER_REQUEST_MAX} are taken",
                list.len()
            );
            return Err(Error::invalid("body", fault));
        }
        let mut mapped = Mapped::default();
        let mut asked = Document::new(&document, sample::occurrence(0));
        let mut bytes = 0;
        for item in list {
            asked.put(ITEM, &item);
            if let Value::Object(members) = &mut document {
                members.insert(ITEM.into(), item);
            }
            bytes += self.one(&document, &asked, &mut mapped)?;
            if bytes > MAPPED_BYTES_MAX {
                let fault = format!("becomes more than {MAPPED_BYTES_MAX} bytes of events");
                return Err(Error::invalid("body", fault));
            }
        }
        Ok(mapped)
    }

    /// One event, unless it is passed over; answers how many bytes it has.
    fn one(&self, data: &Value, asked: &Document, mapped: &mut Mapped) -> Result<usize, Error> {
        if self.drop.as_ref().is_some_and(|it| it.matches(asked)) {
            mapped.dropped += 1;
            return Ok(0);
        }
        let fill = |what: &str, template: &Template| {
            let filled = template.render(data, Escape::None, RENDERED_BYTES_MAX);
            filled.map_err(|error| Error::invalid("body", format!("{what}: {error}")))
        };
        let mut dimensions = BTreeMap::new();
        for (key, template) in &self.dimensions {
            let value = fill(key, template)?;
            if !value.trim().is_empty() {
                dimensions.insert((*key).to_owned(), value);
            }
        }
        let is = |query: &Option<DocumentQuery>| query.as_ref().map(|it| it.matches(asked));
        let kept = data.get(ITEM).filter(|_| !self.mapping.each.is_empty());
        let event = Event {
            name: one_line(&fill("event.name", &self.name)?),
            r#type: one_line(&fill("event.type", &self.kind)?),
            dimensions,
            summary: cut(&one_line(&fill("event.summary", &self.summary)?)),
            body: fill("event.body", &self.body)?,
            severity: self.severity(data).map_or(0, |it| it as i32),
            status: match is(&self.closed) {
                Some(true) => WireStatus::Closed.into(),
                _ => WireStatus::Default.into(),
            },
            // What is not true says nothing: an operator may have acknowledged it here.
            acknowledged: is(&self.acknowledged).filter(|it| *it),
            metadata_fields: metadata(kept.unwrap_or(data)),
            ..Event::default()
        };
        let texts = event.summary.len() + event.body.len() + event.name.len();
        let pairs = event.dimensions.iter();
        let bytes = texts
            + pairs
                .map(|(key, value)| key.len() + value.len())
                .sum::<usize>();
        mapped.events.push(event);
        Ok(bytes)
    }

    fn severity(&self, data: &Value) -> Option<Severity> {
        let severity = &self.mapping.event.severity;
        let mut steps = severity.from.split('.');
        let found = steps.try_fold(data, |value, step| match value {
            Value::Array(list) => list.get(step.parse::<usize>().ok()?),
            value => value.get(step),
        });
        let said = match found {
            Some(Value::String(text)) => text.trim().to_lowercase(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Bool(flag)) => flag.to_string(),
            _ => return severity.default,
        };
        let mut mapped = severity.map.iter();
        let mapped = mapped.find(|(value, _)| value.to_lowercase() == said);
        let own = || Severity::from_word(&said);
        mapped.map(|(_, it)| *it).or_else(own).or(severity.default)
    }
}

/// What of a document is kept with its event: all of it but the request, unless it is too large.
fn metadata(data: &Value) -> Option<Struct> {
    let kept = match data {
        Value::Object(members) => {
            let members = members.iter().filter(|(name, _)| *name != REQUEST);
            members
                .map(|(name, it)| (name.clone(), it.clone()))
                .collect()
        }
        other => other.clone(),
    };
    let is_fitting = kept.to_string().len() <= MAPPED_DATA_BYTES_MAX;
    let fields = BTreeMap::from([("data".to_owned(), wire(&kept, 0))]);
    is_fitting.then_some(Struct { fields })
}

/// A value on the wire; what lies too deep becomes text.
fn wire(value: &Value, depth: usize) -> WireValue {
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
            values: list.iter().map(|it| wire(it, depth + 1)).collect(),
        }),
        Value::Object(members) => {
            let fields = members.iter();
            Kind::StructValue(Struct {
                fields: fields
                    .map(|(name, it)| (name.clone(), wire(it, depth + 1)))
                    .collect(),
            })
        }
    };
    WireValue { kind: Some(kind) }
}

/// A text of one line: names and summaries are.
fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").replace(char::is_control, "")
}

/// As much of a text as a summary holds, with a sign that it goes on.
fn cut(text: &str) -> String {
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
