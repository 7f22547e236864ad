//! Evaluation of mappings; no I/O.

use std::collections::BTreeMap;

use bellwether_proto::{
    cloud::{Event, Status as WireStatus},
    json::isolate::{List, isolate},
    repair, severity,
};
use prost_types::{ListValue, Struct, Value as WireValue, value::Kind};
use serde_json::{Value, json};

use crate::{
    destination::{Purpose, Renderers},
    domain::{Clause, IntakeMapping, Name, Severity},
    error::Error,
    limits::{
        DIALECT_EVENTS_MAX, EVENT_SUMMARY_BYTES_MAX, MAPPED_BYTES_MAX, MAPPED_DATA_DEPTH_MAX,
        MAPPING_STEPS_MAX, RENDERED_BYTES_MAX, TEMPLATE_STEPS_MAX,
    },
    matching::{Document, DocumentQuery},
    message::sample,
    template::{Budget, Escape, RenderError, Template},
};

/// Names of the list entry and of the request in templates and clauses.
const ITEM: &str = "item";
const REQUEST: &str = "request";

#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    pub body: &'a [u8],
    /// Headers by lower-case name.
    pub headers: &'a BTreeMap<String, String>,
}

/// Evaluator of mappings that runs outside of the async runtime.
#[derive(Debug)]
pub struct Evaluator(Renderers);

impl Evaluator {
    pub fn new(renderers: Renderers) -> Self {
        Self(renderers)
    }

    /// Maps a body with its headers into events, in the name of the calling client.
    ///
    /// # Errors
    /// Returns the errors of [`evaluate`] and of [`Renderers::run`].
    pub async fn run(
        &self,
        sender: Option<&Name>,
        mapping: IntakeMapping,
        body: impl AsRef<[u8]> + Send + 'static,
        headers: BTreeMap<String, String>,
    ) -> Result<MappingResult, Error> {
        let work = move || {
            let (body, headers) = (body.as_ref(), &headers);
            evaluate(&mapping, Incoming { body, headers })
        };
        match sender {
            Some(sender) => {
                self.0
                    .run_for(Purpose::Mapping, sender.as_str(), work)
                    .await?
            }
            None => self.0.run(Purpose::Preview, work).await?,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct MappingResult {
    /// The events, not validated yet.
    pub events: Vec<Event>,
    pub dropped: usize,
    /// Entries that do not result in an event, by position, with the reason.
    pub refused: Vec<(usize, String)>,
}

struct Work {
    budget: Budget,
    mapped: MappingResult,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            budget: Budget::new(MAPPING_STEPS_MAX, TEMPLATE_STEPS_MAX, RENDERED_BYTES_MAX),
            mapped: MappingResult::default(),
        }
    }
}

struct PreparedMapping<'a> {
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

/// Maps a request into events.
///
/// # Errors
/// Returns [`Error::Invalid`] if the document cannot be mapped.
pub fn evaluate(mapping: &IntakeMapping, incoming: Incoming<'_>) -> Result<MappingResult, Error> {
    let ready = PreparedMapping::new(mapping)?;
    let wrong = |what: String| Error::invalid("body", what);
    let body = repair::json(incoming.body);
    let (document, broken) = match serde_json::from_slice::<Value>(&body) {
        Ok(document) => (document, Vec::new()),
        Err(error) => {
            let refuse = || wrong(format!("is not JSON: {error}"));
            let list = match mapping.each.rsplit('.').next() {
                None | Some("") => List::Root,
                Some(name) => List::Any(name),
            };
            let isolated = isolate(&body, list).ok_or_else(refuse)?;
            let document = serde_json::from_slice(&isolated.body).map_err(|_still| refuse())?;
            (document, isolated.broken)
        }
    };
    let Value::Object(mut members) = document else {
        return match document {
            // Without a path, `each` iterates over the document itself.
            Value::Array(list) => ready.map_all(json!({REQUEST: request(incoming)}), list, broken),
            _ => Err(wrong("is not a JSON object or list".into())),
        };
    };
    members.insert(REQUEST.into(), request(incoming));
    let mut document = Value::Object(members);
    if mapping.each.is_empty() {
        let mut work = Work::default();
        let condition_document = ready.condition_document(&document);
        ready.map_one(&document, condition_document.as_ref(), &mut work)?;
        return Ok(work.mapped);
    }
    match at_path(&mut document, &mapping.each).map(Value::take) {
        Some(Value::Array(list)) => ready.map_all(document, list, broken),
        Some(_) => Err(wrong(format!(
            "has a value other than a list at `{}`",
            mapping.each
        ))),
        None => Err(wrong(format!("has no list at `{}`", mapping.each))),
    }
}

fn request(incoming: Incoming<'_>) -> Value {
    json!({"headers": incoming.headers})
}

fn at_path<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut steps = path.split('.');
    steps.try_fold(value, |value, step| match value {
        Value::Object(members) => members.get_mut(step),
        Value::Array(list) => list.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    })
}

impl<'a> PreparedMapping<'a> {
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

    /// Maps each entry of a list as `item` of the surrounding document. Invalid entries are
    /// refused.
    fn map_all(
        &self,
        mut document: Value,
        list: Vec<Value>,
        broken: Vec<(usize, String)>,
    ) -> Result<MappingResult, Error> {
        let mut work = Work::default();
        let mut broken = broken.into_iter().peekable();
        let mut condition_document = self.condition_document(&document);
        let mut bytes = 0;
        let total = list.len();
        for (at, item) in list.into_iter().enumerate() {
            if let Some((_, why)) = broken.next_if(|(place, _)| *place == at) {
                work.mapped
                    .refused
                    .push((at, format!("is not JSON: {why}")));
                continue;
            }
            let beyond = if at >= DIALECT_EVENTS_MAX {
                format!("has {total} entries; the limit is {DIALECT_EVENTS_MAX}")
            } else if bytes > MAPPED_BYTES_MAX {
                format!("maps to more than {MAPPED_BYTES_MAX} bytes of events")
            } else {
                if let Some(condition_document) = &mut condition_document {
                    condition_document.set_member(ITEM, &item);
                }
                if let Value::Object(members) = &mut document {
                    members.insert(ITEM.into(), item);
                }
                match self.map_one(&document, condition_document.as_ref(), &mut work) {
                    Ok(added) => bytes += added,
                    Err(Error::Invalid(violations)) => {
                        let texts = violations.into_iter().map(|it| it.description);
                        work.mapped
                            .refused
                            .push((at, texts.collect::<Vec<_>>().join("; ")));
                    }
                    Err(other) => return Err(other),
                }
                continue;
            };
            // The remaining entries are not mapped.
            work.mapped
                .refused
                .extend((at..total).map(|at| (at, beyond.clone())));
            break;
        }
        Ok(work.mapped)
    }

    /// Returns the document for evaluating conditions; `None` if there are none.
    fn condition_document(&self, document: &Value) -> Option<Document> {
        let mut queries = [&self.drop, &self.closed, &self.acknowledged].into_iter();
        let is_needed = queries.any(Option::is_some);
        is_needed.then(|| Document::new(document, sample::occurrence(0)))
    }

    /// Maps an entry into an event unless it is dropped; returns the size of the event in bytes.
    fn map_one(
        &self,
        data: &Value,
        condition_document: Option<&Document>,
        work: &mut Work,
    ) -> Result<usize, Error> {
        let Work { budget, mapped } = work;
        let over =
            |what: &str, error: RenderError| Error::invalid("body", format!("{what}: {error}"));
        let mut is = |what: &str, query: &Option<DocumentQuery>| -> Result<Option<bool>, Error> {
            let Some((query, condition_document)) = query.as_ref().zip(condition_document) else {
                return Ok(None);
            };
            let spent = budget.spend(query.steps(condition_document));
            spent.map_err(|error| over(what, error))?;
            Ok(Some(query.matches(condition_document)))
        };
        if is("drop", &self.drop)? == Some(true) {
            mapped.dropped += 1;
            return Ok(0);
        }
        let closed = is("event.closed", &self.closed)?;
        let acknowledged = is("event.acknowledged", &self.acknowledged)?;
        let mut fill = |what: &str, template: &Template| {
            let filled = template.render(data, Escape::None, budget);
            filled.map_err(|error| over(what, error))
        };
        let mut dimensions = BTreeMap::new();
        for (key, template) in &self.dimensions {
            let value = fill(&format!("event.dimensions[{key}]"), template)?;
            if !value.trim().is_empty() {
                dimensions.insert((*key).to_owned(), value);
            }
        }
        let stored = data.get(ITEM).filter(|_| !self.mapping.each.is_empty());
        let event = Event {
            name: one_line(&fill("event.name", &self.name)?),
            r#type: one_line(&fill("event.type", &self.kind)?),
            dimensions,
            summary: truncate(&one_line(&fill("event.summary", &self.summary)?)),
            body: fill("event.body", &self.body)?,
            severity: self.severity(data).map_or(0, |it| it as i32),
            status: match closed {
                Some(true) => WireStatus::Closed.into(),
                _ => WireStatus::Default.into(),
            },
            // `false` is not passed on: an operator may have acknowledged the event here.
            acknowledged: acknowledged.filter(|it| *it),
            metadata_fields: Some(metadata(stored.unwrap_or(data))),
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
        let own = || severity::from_name(&said).and_then(|it| Severity::from_number(it.into()));
        mapped.map(|(_, it)| *it).or_else(own).or(severity.default)
    }
}

/// Returns the metadata of an event: the document without the request.
fn metadata(data: &Value) -> Struct {
    let stored = match data {
        Value::Object(members) => {
            let members = members.iter().filter(|(name, _)| *name != REQUEST);
            members
                .map(|(name, it)| (name.clone(), it.clone()))
                .collect()
        }
        other => other.clone(),
    };
    let fields = BTreeMap::from([("data".to_owned(), wire(&stored, 0))]);
    Struct { fields }
}

/// Converts a value to the wire; values nested too deeply become text.
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

/// Joins a text into one line, as required for names and summaries.
fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").replace(char::is_control, "")
}

/// Truncates a text to the length of a summary, with an ellipsis.
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
