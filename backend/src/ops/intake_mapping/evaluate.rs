//! Evaluation of mappings; no I/O.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
};

use bellwether_proto::{
    cloud::{Event, Status as WireStatus},
    severity,
};
use prost_types::{ListValue, Struct, Value as WireValue, value::Kind};
use serde_json::{Map, Value, json};

use super::{
    RejectedDocument,
    body::{self, Body, IncomingBody, MalformedEntries},
    excerpt::{excerpt_reason, excerpt_value},
};

use crate::{
    destination::{RenderPurpose, Renderers},
    domain::{Clause, IntakeMapping, Name, Severity, value::list_index},
    error::Error,
    limits::{
        DIALECT_EVENTS_MAX, EVENT_SUMMARY_BYTES_MAX, MAPPED_BYTES_MAX, MAPPED_DATA_DEPTH_MAX,
        MAPPING_STEPS_MAX, REJECTED_DOCUMENTS_MAX, RENDERED_BYTES_MAX, TEMPLATE_STEPS_MAX,
    },
    matching::{Document, DocumentQuery},
    message::sample,
    template::{Budget, Escape, RenderError, Template},
};

/// Names of the list entry and of the request in templates and clauses.
const ITEM: &str = "item";
const REQUEST: &str = "request";

/// Evaluator of mappings that runs outside of the async runtime.
#[derive(Debug)]
pub struct Evaluator(Renderers);

impl Evaluator {
    pub fn new(renderers: Renderers) -> Self {
        Self(renderers)
    }

    /// Maps a body with its headers into events, on behalf of the calling client.
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
            evaluate(&mapping, IncomingBody { body, headers })
        };
        match sender {
            Some(sender) => {
                self.0
                    .run_for_client(RenderPurpose::Mapping, sender.as_str(), work)
                    .await?
            }
            None => self.0.run(RenderPurpose::Preview, work).await?,
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
    /// The last refused and dropped entries.
    pub rejected: Vec<RejectedDocument>,
    /// Templates that rendered an empty text, with the number of events.
    pub empty_templates: Vec<String>,
}

#[derive(Debug)]
struct Rejection {
    dropped: bool,
    reason: String,
    entry: Value,
}

struct MappingRun {
    budget: Budget,
    mapped: MappingResult,
    /// Size of the events mapped from list entries.
    mapped_bytes: usize,
    /// The templates that rendered an empty text, each with the number of events and the first of
    /// them.
    empty: BTreeMap<String, (usize, usize)>,
    rejected: VecDeque<Rejection>,
}

impl Default for MappingRun {
    fn default() -> Self {
        Self {
            budget: Budget::new(MAPPING_STEPS_MAX, TEMPLATE_STEPS_MAX, RENDERED_BYTES_MAX),
            mapped: MappingResult::default(),
            mapped_bytes: 0,
            empty: BTreeMap::new(),
            rejected: VecDeque::new(),
        }
    }
}

impl MappingRun {
    /// Returns the reason why no more entries are mapped; `None` if there is none.
    fn limit_reason(&self, at: usize, total: usize) -> Option<String> {
        if at >= DIALECT_EVENTS_MAX {
            Some(format!(
                "has {total} entries; the limit is {DIALECT_EVENTS_MAX}"
            ))
        } else if self.mapped.events.len() >= DIALECT_EVENTS_MAX {
            // Only possible with several lists in one body.
            Some(format!("maps to more than {DIALECT_EVENTS_MAX} events"))
        } else if self.mapped_bytes > MAPPED_BYTES_MAX {
            Some(format!(
                "maps to more than {MAPPED_BYTES_MAX} bytes of events"
            ))
        } else {
            None
        }
    }

    fn reject_entry(&mut self, at: usize, reason: String, entry: &Value) {
        let rejection = Rejection {
            dropped: false,
            reason: format!("entry {at}: {reason}"),
            entry: entry.clone(),
        };
        push_rejection(&mut self.rejected, rejection);
        self.mapped.refused.push((at, reason));
    }

    fn reject_entries(&mut self, places: Range<usize>, reason: &str, first: &Value) {
        let Range { start, end } = places;
        self.reject_entry(start, reason.to_owned(), first);
        let others = (start + 1..end).map(|at| (at, reason.to_owned()));
        self.mapped.refused.extend(others);
    }

    /// Rejects an invalid entry.
    ///
    /// # Errors
    /// Returns any error other than [`Error::Invalid`].
    fn reject_invalid(&mut self, at: usize, error: Error, entry: &Value) -> Result<(), Error> {
        let Error::Invalid(violations) = error else {
            return Err(error);
        };
        let texts = violations.into_iter().map(|it| it.description);
        self.reject_entry(at, texts.collect::<Vec<_>>().join("; "), entry);
        Ok(())
    }

    fn finish(self, mapping: &IntakeMapping) -> MappingResult {
        let events = self.mapped.events.len();
        let empty = self.empty.into_iter().map(|(template, (count, first))| {
            format!("{template} is empty in {count} of {events} events, first in events[{first}]")
        });
        let secret = mapping.signature.as_ref();
        let secret = secret.map_or("", |it| it.secret.reveal());
        let rejected = self.rejected.into_iter().map(|it| RejectedDocument {
            dropped: it.dropped,
            reason: excerpt_reason(&it.reason, secret),
            size_bytes: it.entry.to_string().len(),
            document: excerpt_value(&it.entry, secret),
        });
        MappingResult {
            rejected: rejected.collect(),
            empty_templates: empty.collect(),
            ..self.mapped
        }
    }
}

fn push_rejection(rejected: &mut VecDeque<Rejection>, rejection: Rejection) {
    if rejected.len() == REJECTED_DOCUMENTS_MAX {
        rejected.pop_front();
    }
    rejected.push_back(rejection);
}

struct PreparedMapping<'a> {
    mapping: &'a IntakeMapping,
    name: (&'a str, Template),
    kind: (&'a str, Template),
    summary: (&'a str, Template),
    body: (&'a str, Template),
    dimensions: Vec<(String, &'a str, (&'a str, Template))>,
    drop: Option<DocumentQuery>,
    closed: Option<DocumentQuery>,
    acknowledged: Option<DocumentQuery>,
}

/// Maps a request into events.
///
/// # Errors
/// Returns [`Error::Invalid`] if the body cannot be mapped.
pub fn evaluate(
    mapping: &IntakeMapping,
    incoming: IncomingBody<'_>,
) -> Result<MappingResult, Error> {
    let ready = PreparedMapping::new(mapping)?;
    let body = body::parse_body(mapping, incoming)?;
    let request = request_value(incoming);
    let mut work = MappingRun::default();
    match body {
        Body::Document(members, broken) => {
            ready.map_document(members, request, broken, None, &mut work)?;
        }
        Body::List(list, broken) if !mapping.each.is_empty() => {
            ready.map_entries(json!({REQUEST: request}), list, broken, &mut work)?;
        }
        Body::List(list, broken) | Body::Lines(list, broken) => {
            ready.map_documents(list, broken, &request, &mut work)?;
        }
    }
    Ok(work.finish(mapping))
}

fn missing_list_error(mapping: &IntakeMapping, found: Option<&Value>) -> Error {
    let what = match found {
        Some(_) => "has a value other than a list at",
        None => "has no list at",
    };
    Error::invalid("body", format!("{what} `{}`", mapping.each))
}

fn request_value(incoming: IncomingBody<'_>) -> Value {
    json!({"headers": incoming.headers})
}

fn at_path<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut steps = path.split('.');
    steps.try_fold(value, |value, step| match value {
        Value::Object(members) => members.get_mut(step),
        Value::Array(list) => list.get_mut(list_index(step)?),
        _ => None,
    })
}

impl<'a> PreparedMapping<'a> {
    fn new(mapping: &'a IntakeMapping) -> Result<Self, Error> {
        let event = &mapping.event;
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

    /// Maps a document, or the entries of its list. An invalid document is refused if it is one of
    /// several, and otherwise an error.
    fn map_document(
        &self,
        mut members: Map<String, Value>,
        request: Value,
        broken: MalformedEntries,
        at: Option<usize>,
        work: &mut MappingRun,
    ) -> Result<(), Error> {
        members.insert(REQUEST.into(), request);
        let mut document = Value::Object(members);
        if self.mapping.each.is_empty() {
            let condition_document = self.condition_document(&document);
            return self
                .map_event(&document, &document, condition_document.as_ref(), work)
                .map(drop);
        }
        match at_path(&mut document, &self.mapping.each).map(Value::take) {
            Some(Value::Array(list)) => self.map_entries(document, list, broken, work),
            found => {
                let error = missing_list_error(self.mapping, found.as_ref());
                let Some(at) = at else {
                    return Err(error);
                };
                work.reject_invalid(at, error, &without_request(&document))
            }
        }
    }

    /// Maps each of several documents. Invalid ones are refused.
    fn map_documents(
        &self,
        list: Vec<Value>,
        broken: MalformedEntries,
        request: &Value,
        work: &mut MappingRun,
    ) -> Result<(), Error> {
        let mut broken = broken.into_iter().peekable();
        let total = list.len();
        for (at, document) in list.into_iter().enumerate() {
            let broken = broken.next_if(|(place, _)| *place == at);
            if let Some(reason) = work.limit_reason(at, total) {
                work.reject_entries(at..total, &reason, &document);
                break;
            }
            match (broken, document) {
                (Some((_, why)), document) => {
                    work.reject_entry(at, format!("is not JSON: {why}"), &document);
                }
                (None, Value::Object(members)) if !self.mapping.each.is_empty() => {
                    let request = request.clone();
                    self.map_document(members, request, MalformedEntries::new(), Some(at), work)?;
                }
                (None, document) => self.map_entry_document(at, document, request, work)?,
            }
        }
        Ok(())
    }

    /// Maps a list entry that is a document itself. Its templates can also use `item`.
    fn map_entry_document(
        &self,
        at: usize,
        entry: Value,
        request: &Value,
        work: &mut MappingRun,
    ) -> Result<(), Error> {
        let mut members = match &entry {
            Value::Object(members) => members.clone(),
            _ => Map::new(),
        };
        let has_item = members.contains_key(ITEM);
        if !has_item {
            members.insert(ITEM.into(), entry);
        }
        members.insert(REQUEST.into(), request.clone());
        let document = Value::Object(members);
        let stored = if has_item { &document } else { &document[ITEM] };
        let condition_document = self.condition_document(&document);
        match self.map_event(&document, stored, condition_document.as_ref(), work) {
            Ok(added) => work.mapped_bytes += added,
            Err(error) => work.reject_invalid(at, error, &without_request(stored))?,
        }
        Ok(())
    }

    /// Maps each entry of a list as `item` of the surrounding document. Invalid entries are
    /// refused.
    fn map_entries(
        &self,
        mut document: Value,
        list: Vec<Value>,
        broken: MalformedEntries,
        work: &mut MappingRun,
    ) -> Result<(), Error> {
        let mut broken = broken.into_iter().peekable();
        let mut condition_document = self.condition_document(&document);
        let total = list.len();
        for (at, item) in list.into_iter().enumerate() {
            if let Some((_, why)) = broken.next_if(|(place, _)| *place == at) {
                work.reject_entry(at, format!("is not JSON: {why}"), &item);
                continue;
            }
            if let Some(reason) = work.limit_reason(at, total) {
                // The remaining entries are not mapped.
                work.reject_entries(at..total, &reason, &item);
                break;
            }
            if let Some(condition_document) = &mut condition_document {
                condition_document.set_member(ITEM, &item);
            }
            if let Value::Object(members) = &mut document {
                members.insert(ITEM.into(), item);
            }
            let item = &document[ITEM];
            match self.map_event(&document, item, condition_document.as_ref(), work) {
                Ok(added) => work.mapped_bytes += added,
                Err(error) => work.reject_invalid(at, error, item)?,
            }
        }
        Ok(())
    }

    fn condition_document(&self, document: &Value) -> Option<Document> {
        let mut queries = [&self.drop, &self.closed, &self.acknowledged].into_iter();
        let is_needed = queries.any(Option::is_some);
        is_needed.then(|| Document::new(document, sample::sample_occurrence(0)))
    }

    /// Maps an entry to an event unless the entry is dropped. Returns the size of the event in
    /// bytes. `stored` is the part of the data that is stored with the event.
    fn map_event(
        &self,
        data: &Value,
        stored: &Value,
        condition_document: Option<&Document>,
        work: &mut MappingRun,
    ) -> Result<usize, Error> {
        let MappingRun {
            budget,
            mapped,
            empty,
            rejected,
            ..
        } = work;
        // An entry over the limit must not affect the next one.
        budget.begin_template();
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
            let rejection = Rejection {
                dropped: true,
                reason: "matches the condition `drop`".to_owned(),
                entry: without_request(stored),
            };
            push_rejection(rejected, rejection);
            return Ok(0);
        }
        let closed = is("event.closed", &self.closed)?;
        let acknowledged = is("event.acknowledged", &self.acknowledged)?;
        let at = mapped.events.len();
        let mut fill = |what: &str, (source, template): &(&str, Template)| {
            let filled = template.render(data, Escape::None, budget);
            let filled = filled.map_err(|error| over(what, error))?;
            if filled.trim().is_empty() && !source.trim().is_empty() {
                let found = empty.entry(what.to_owned()).or_insert((0, at));
                found.0 += 1;
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
        let event = Event {
            name: join_lines(&fill("event.name", &self.name)?),
            r#type: join_lines(&fill("event.type", &self.kind)?),
            dimensions,
            summary: truncate(&join_lines(&fill("event.summary", &self.summary)?)),
            body: fill("event.body", &self.body)?,
            severity: self.severity(data).map_or(0, |it| it as i32),
            status: match closed {
                Some(true) => WireStatus::Closed.into(),
                _ => WireStatus::Default.into(),
            },
            // `false` is not passed on: an operator may have acknowledged the event here.
            acknowledged: acknowledged.filter(|it| *it),
            metadata_fields: Some(metadata(stored)),
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

fn without_request(data: &Value) -> Value {
    match data {
        Value::Object(members) => {
            let members = members.iter().filter(|(name, _)| *name != REQUEST);
            members
                .map(|(name, it)| (name.clone(), it.clone()))
                .collect()
        }
        other => other.clone(),
    }
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
