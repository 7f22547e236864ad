//! Evaluation of mappings; no I/O.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
};

use bellwether_proto::cloud::Event;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::{
    RejectedDocument,
    action::{PreparedAction, ThreadAction},
    body::{self, Body, IncomingBody, MalformedEntries},
    entry::{EntryContext, REQUEST, without_request},
    event::PreparedEvent,
    excerpt::{excerpt_reason, excerpt_value},
};

use crate::{
    domain::{IntakeMapping, Name, TemplateLanguage, value::list_index},
    error::Error,
    limits::{
        DIALECT_EVENTS_MAX, MAPPED_ACTIONS_MAX, MAPPED_BYTES_MAX, MAPPING_STEPS_MAX,
        REJECTED_DOCUMENTS_MAX, RENDERED_BYTES_MAX, TEMPLATE_STEPS_MAX,
    },
    matching::{Document, DocumentQuery},
    message::sample,
    send::{RenderPurpose, Renderers},
    template::{AnyTemplate, Budget, Escape, Variables},
};

/// Name of the list entry in templates and clauses.
const ITEM: &str = "item";

/// Evaluator of mappings that runs outside of the async runtime.
#[derive(Debug)]
pub struct Evaluator(Renderers);

impl Evaluator {
    pub fn new(renderers: Renderers) -> Self {
        Self(renderers)
    }

    /// Maps a body with its headers into events or actions, on behalf of the calling client.
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
    /// The actions of a mapping to actions on threads.
    pub actions: Vec<ThreadAction>,
    pub dropped: usize,
    /// Entries that result in no event or action, by position, with the reason.
    pub refused: Vec<(usize, String)>,
    /// The last refused and dropped entries.
    pub rejected: Vec<RejectedDocument>,
    /// Templates that rendered an empty text, with the number of events.
    pub empty_templates: Vec<String>,
    /// The rendered reply; empty for the default.
    pub reply: String,
}

#[derive(Debug)]
struct Rejection {
    dropped: bool,
    reason: String,
    entry: Value,
}

struct MappingRun {
    /// Maximum number of entries in a list, and of events or actions.
    entries_max: usize,
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
            entries_max: DIALECT_EVENTS_MAX,
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
        let most = self.entries_max;
        if at >= most {
            Some(format!("has {total} entries; the limit is {most}"))
        } else if self.mapped.events.len() + self.mapped.actions.len() >= most {
            // Only possible with several lists in one body.
            Some(format!("maps to more than {most} events or actions"))
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
    target: MappingTarget<'a>,
    reply: Option<AnyTemplate>,
    drop: Option<DocumentQuery>,
}

enum MappingTarget<'a> {
    Event(PreparedEvent<'a>),
    Action(PreparedAction<'a>),
}

/// Maps a request into events or actions.
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
    if mapping.response.is_some() {
        work.entries_max = MAPPED_ACTIONS_MAX;
    }
    match body {
        Body::Document(members, broken) => {
            work.mapped.reply = ready.render_reply(&members, &request, &mut work.budget)?;
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
        let drop = mapping.drop.as_ref().map(DocumentQuery::compile);
        let target = match (&mapping.event, &mapping.response) {
            (_, Some(response)) => MappingTarget::Action(PreparedAction::new(response)?),
            (Some(event), None) => MappingTarget::Event(PreparedEvent::new(event)?),
            (None, None) => {
                return Err(Error::invalid("mapping", "has neither event nor response"));
            }
        };
        let language = mapping.response.as_ref().map(|it| it.template_language);
        let language = language.unwrap_or(TemplateLanguage::Mustache);
        let reply = match &*mapping.reply {
            "" => None,
            source => Some(
                AnyTemplate::parse(language, source)
                    .map_err(|error| Error::invalid("mapping", error.to_string()))?,
            ),
        };
        Ok(Self {
            mapping,
            target,
            reply,
            drop: drop.transpose().map_err(Error::Invalid)?,
        })
    }

    /// Renders the reply to a document; empty for the default.
    fn render_reply(
        &self,
        members: &Map<String, Value>,
        request: &Value,
        budget: &mut Budget,
    ) -> Result<String, Error> {
        let Some(template) = &self.reply else {
            return Ok(String::new());
        };
        let mut members = members.clone();
        members.insert(REQUEST.into(), request.clone());
        let document = Value::Object(members);
        let reply = EntryContext::new(&document, None, budget)
            .render("reply", |data, budget| {
                template.render(&Variables::new(data.clone()), Escape::Json, budget)
            })?;
        serde_json::from_str::<IgnoredAny>(&reply)
            .map_err(|error| Error::invalid("body", format!("reply: is not JSON: {error}")))?;
        Ok(reply)
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
                .map_entry(&document, &document, condition_document.as_ref(), work)
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
        match self.map_entry(&document, stored, condition_document.as_ref(), work) {
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
            match self.map_entry(&document, item, condition_document.as_ref(), work) {
                Ok(added) => work.mapped_bytes += added,
                Err(error) => work.reject_invalid(at, error, item)?,
            }
        }
        Ok(())
    }

    fn condition_document(&self, document: &Value) -> Option<Document> {
        let has_others = match &self.target {
            MappingTarget::Event(event) => event.has_conditions(),
            MappingTarget::Action(_) => false,
        };
        let is_needed = self.drop.is_some() || has_others;
        is_needed.then(|| Document::new(document, sample::sample_occurrence(0)))
    }

    /// Maps an entry to an event or an action, unless the entry is dropped. Returns the size of the
    /// event in bytes. `stored` is the part of the data that is stored with the event.
    fn map_entry(
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
        let mut entry = EntryContext::new(data, condition_document, budget);
        let mut drop_entry = |reason: &str| {
            let rejection = Rejection {
                dropped: true,
                reason: reason.to_owned(),
                entry: without_request(stored),
            };
            push_rejection(rejected, rejection);
        };
        if entry.is("drop", self.drop.as_ref())? == Some(true) {
            mapped.dropped += 1;
            drop_entry("matches the condition `drop`");
            return Ok(0);
        }
        let event = match &self.target {
            MappingTarget::Event(event) => {
                let at = mapped.events.len();
                let on_empty = |what: &str| empty.entry(what.to_owned()).or_insert((0, at)).0 += 1;
                event.map(&mut entry, stored, on_empty)?
            }
            MappingTarget::Action(action) => {
                if let Some(action) = action.map(&mut entry)? {
                    mapped.actions.push(action);
                } else {
                    mapped.dropped += 1;
                    drop_entry("the action is empty");
                }
                return Ok(0);
            }
        };
        let texts = event.summary.len() + event.body.len() + event.name.len();
        let pairs = event.dimensions.iter();
        let pairs = pairs.map(|(key, value)| key.len() + value.len());
        let bytes = texts + pairs.sum::<usize>();
        mapped.events.push(event);
        Ok(bytes)
    }
}
