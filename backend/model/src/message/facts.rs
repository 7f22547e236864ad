//! The facts of a message, as templates and documents see them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Context, cut, digest, domain_json, labels, members};
use crate::{
    domain::{
        Content, DestinationKind, DigestId, GroupId, NO_SNIPPETS, Occurrence, Severity, Snippets,
        Status, TemplateLanguage, delivery::RuleContent, destination::ValueMap,
    },
    template::{AnyTemplate, Budget, Escape, Variables},
};
const HEADLINE_CHARACTERS_MAX: usize = 200;

/// Maximum length of a title, in characters. All receivers with a limit on titles accept this
/// length.
const TITLE_CHARACTERS_MAX: usize = 100;

/// Maximum length of strings when a template is rendered in its simplest form.
const SIMPLE_CHARACTERS_MAX: usize = 200;

const RULE_MESSAGE: &str = "the rule's message";

/// A template that exceeded a rendering limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExceededLimit {
    /// Whether the template is the rule's message, rather than one of the destination or the
    /// settings.
    pub of_rule: bool,
    /// The template and the limit.
    pub message: String,
}

#[derive(Debug)]
pub struct Facts<'a> {
    pub content: &'a Content,
    pub context: &'a Context<'a>,
    /// One line that shows the problem, with a count for a group; never empty.
    pub headline: String,
    /// The values of the dimensions other than `severity`, joined.
    pub entity: String,
    /// The link to details; may be empty.
    pub link: String,
    /// The rule's message; `None` if the rule uses the default, or its template failed.
    pub message: Option<String>,
    pub warnings: Vec<String>,
    pub exceeded: Option<ExceededLimit>,
    /// The remaining budget of all templates of the message.
    budget: Budget,
    /// Whether the rule's message is in the markup of the destination, with its values escaped.
    pub is_markup: bool,
    pub language: TemplateLanguage,
    values: BTreeMap<String, String>,
    variables: Option<Variables>,
}

impl<'a> Facts<'a> {
    /// Creates the facts of a delivery and renders the rule's message.
    pub fn new(content: &'a Content, around: &'a Context<'a>) -> Self {
        let occurrence = &content.occurrence;
        let values = occurrence.dimensions.iter();
        let values = values.filter(|(key, _)| *key != "severity");
        let values: Vec<_> = values.map(|(_, value)| value.as_str()).collect();
        let mut facts = Self {
            content,
            context: around,
            headline: match (&content.digest, &content.group) {
                (Some(digest), _) => digest::digest_headline(digest, &headline(occurrence)),
                (None, Some(group)) => members::group_headline(group, &headline(occurrence)),
                (None, None) => headline(occurrence),
            },
            entity: values.join(", "),
            link: String::new(),
            message: None,
            warnings: Vec::new(),
            exceeded: None,
            budget: Budget::for_message(),
            is_markup: false,
            language: content.template_language,
            values: BTreeMap::new(),
            variables: None,
        };
        let own = &around.links.template;
        // A digest does not have a single link.
        if content.digest.is_none() {
            facts.link = around.links.content_link(content, facts.timestamp_ms());
        }
        let mustache = TemplateLanguage::Mustache;
        let what = "the setting link_template";
        let link = facts.render_with((mustache, &NO_SNIPPETS), what, own, Escape::Percent);
        if let Some(link) = link {
            if let Some(variables) = &mut facts.variables {
                let variables = variables.edit();
                variables["link"] = link.as_str().into();
                if content.group.is_some() {
                    variables["group"]["link"] = link.as_str().into();
                }
            }
            facts.link = link;
        }
        let RuleContent {
            message,
            template_language,
            ..
        } = &content.rule;
        let (place, is_markup) = message_context(&content.destination_kind, *template_language);
        facts.message = facts.render_as(*template_language, RULE_MESSAGE, message, place);
        facts.is_markup = is_markup;
        // Templates can use the message from here on.
        if let (Some(variables), Some(message)) = (&mut facts.variables, &facts.message) {
            variables.edit()["rule"]["message"] = message.as_str().into();
        }
        facts
    }

    /// Defines the destination's custom variables for templates.
    pub fn define_variables(&mut self, values: &BTreeMap<String, ValueMap>) {
        for (name, value) in values {
            let what = format!("the value `{name}`");
            let from = format!("{{{{{{{}}}}}}}", value.from);
            let mustache = (TemplateLanguage::Mustache, &NO_SNIPPETS);
            let found = self.render_with(mustache, &what, &from, Escape::None);
            let mapped = found.and_then(|found| value.map.get(&found));
            let mapped = mapped.unwrap_or(&value.default);
            self.values.insert(name.clone(), mapped.clone());
        }
        // Templates can use the custom variables from here on.
        if let Some(variables) = &mut self.variables {
            variables.edit()["values"] = json!(self.values);
        }
    }

    pub fn is_closing(&self) -> bool {
        self.content.is_closing()
    }

    /// Returns the occurrence. For a group or a digest, returns its representative.
    pub fn occurrence(&self) -> &'a Occurrence {
        &self.content.occurrence
    }

    /// Returns the time the notification was decided, in milliseconds since 1970.
    pub fn timestamp_ms(&self) -> i64 {
        self.context.timestamp_ms()
    }

    /// Returns the rule's message; empty if there is none.
    pub fn message(&self) -> &str {
        self.message.as_deref().unwrap_or_default()
    }

    /// Returns the change of the occurrence or its flapping, if the message reports one.
    pub fn change_label(&self) -> Option<&'static str> {
        let occurrence = self.occurrence();
        if self.content.digest.is_some() {
            return None;
        }
        match (self.content.clear, occurrence.status) {
            (false, _) => occurrence.is_notified_flapping().then_some("flapping"),
            (true, _) if self.are_all_closed() => Some("closed"),
            (true, _) if occurrence.is_notified_settled() => Some("settled, still open"),
            (true, _) if self.is_acknowledged() => Some("acknowledged"),
            (true, _) => Some("changed"),
        }
    }

    /// Whether all events that the message reports are closed.
    pub fn are_all_closed(&self) -> bool {
        let group = self.content.group.as_ref();
        group.map_or(self.occurrence().status == Status::Closed, |it| it.is_over)
    }

    /// Whether all open events that the message reports are acknowledged.
    pub fn is_acknowledged(&self) -> bool {
        let group = self.content.group.as_ref();
        group.map_or(self.occurrence().acknowledged, |it| it.acknowledged)
    }

    /// Returns the link with which the contact can acknowledge, if there is an event to
    /// acknowledge.
    pub fn acknowledge_link(&self) -> Option<String> {
        let contact = self.content.contact.as_ref()?;
        let is_done = self.content.clear || self.is_acknowledged();
        let link = self.context.links.acknowledge(self.content, contact);
        Some(link).filter(|it| !is_done && !it.is_empty())
    }

    /// Returns the id of the thread for receivers: the occurrence, the group or the digest.
    pub fn thread_id(&self) -> String {
        match (&self.content.digest, &self.content.group) {
            (Some(digest), _) => DigestId(digest.id).to_string(),
            (None, Some(group)) => GroupId(group.id).to_string(),
            (None, None) => self.content.displayed_occurrence().to_string(),
        }
    }

    /// Returns the most important facts as pairs of a label and a value.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let occurrence = self.occurrence();
        if let Some(digest) = &self.content.digest {
            return digest::digest_fields(digest, occurrence);
        }
        let acknowledged = if self.is_acknowledged() { "yes" } else { "no" };
        vec![
            ("Severity", occurrence.severity.as_str().to_owned()),
            ("Status", occurrence.status.as_str().to_owned()),
            ("Acknowledged", acknowledged.to_owned()),
        ]
    }

    /// Returns one line per member of the group, or per message of the digest, and one with the
    /// number of further ones. `None` for a single occurrence.
    pub fn members(&self) -> Option<Vec<String>> {
        if let Some(digest) = &self.content.digest {
            return Some(digest::digest_lines(digest, headline));
        }
        let group = self.content.group.as_ref()?;
        Some(members::member_lines(group, &self.link, headline))
    }

    /// Renders a template of the destination. `None` if the template is empty, fails or renders
    /// blank for this event; the latter two add a warning.
    pub fn render(&mut self, what: &str, source: &str, escape: Escape) -> Option<String> {
        self.render_as(self.language, what, source, escape)
    }

    /// Renders a part of a request like [`Self::render`], except that it may be blank and includes
    /// no templates.
    pub fn fill_part(&mut self, what: &str, source: &str, escape: Escape) -> Option<String> {
        self.render_with((self.language, &NO_SNIPPETS), what, source, escape)
    }

    fn render_as(
        &mut self,
        language: TemplateLanguage,
        what: &str,
        source: &str,
        escape: Escape,
    ) -> Option<String> {
        let including = (language, &**self.context.snippets);
        let filled = self.render_with(including, what, source, escape)?;
        if is_blank(&filled) {
            self.warn(what, "renders blank for this event; the default is used");
            return None;
        }
        Some(filled)
    }

    fn render_with(
        &mut self,
        (language, snippets): (TemplateLanguage, &Snippets),
        what: &str,
        source: &str,
        escape: Escape,
    ) -> Option<String> {
        if source.is_empty() {
            return None;
        }
        let template = match AnyTemplate::parse_with(language, source, snippets) {
            Ok(template) => template,
            Err(error) => {
                self.warn(what, &error.to_string());
                return None;
            }
        };
        for name in template.unknown_variables() {
            self.warn(what, &format!("events have no variable `{name}`"));
        }
        let variables = self.variables();
        let filled = template.render(&variables, escape, &mut self.budget);
        self.variables = Some(variables);
        match filled {
            Ok(text) => Some(text),
            Err(error) => {
                self.warn(what, &error.to_string());
                if error.is_limit() {
                    self.exceeded.get_or_insert_with(|| ExceededLimit {
                        of_rule: what == RULE_MESSAGE,
                        message: format!("{what}: {error}"),
                    });
                }
                None
            }
        }
    }

    /// Renders a template of the destination with reduced variables: short strings, empty lists,
    /// and every value escaped. `None` if this rendering fails too.
    pub fn render_reduced(&mut self, source: &str, escape: Escape) -> Option<String> {
        let snippets = self.context.snippets;
        let template = AnyTemplate::parse_with(self.language, source, snippets).ok()?;
        let mut json = self.make_variables();
        // The receiver may have rejected the message because of a blank string.
        for path in ["/event/body", "/event/summary", "/rule/message"] {
            let text = json.pointer_mut(path);
            if let Some(text) = text.filter(|it| it.as_str().is_some_and(is_blank)) {
                *text = self.headline.as_str().into();
            }
        }
        simplify(&mut json);
        let variables = Variables::new(json);
        template
            .render_simply(&variables, escape, &mut Budget::for_message())
            .ok()
    }

    fn variables(&mut self) -> Variables {
        let made = self.variables.take();
        made.unwrap_or_else(|| Variables::new(self.make_variables()))
    }

    pub fn warn(&mut self, what: &str, wrong: &str) {
        self.warnings.push(format!("{what}: {wrong}"));
    }

    /// Adds a warning if a text was truncated; returns the text to send.
    pub fn warn_truncated(
        &mut self,
        whole: &str,
        cut: String,
        provider: &str,
        limit: &str,
    ) -> String {
        if cut != whole {
            let wrong = format!("truncated to the limit of {provider}, {limit}");
            self.warn("the message", &wrong);
        }
        cut
    }

    pub(super) fn make_variables(&self) -> Value {
        let Content {
            clear,
            occurrence,
            rule,
            trigger,
            destination_kind,
            template_language: _,
            group,
            thread: _,
            digest,
            contact,
            previous,
        } = self.content;
        let kept = self.context.kept.iter().flat_map(|it| &it.values);
        let kept: BTreeMap<_, _> = kept.map(|it| (&it.name, it.text.reveal())).collect();
        let mut variables = json!({
            "clear": clear,
            "thread_id": self.thread_id(),
            "labels": labels::labels(self.content, self.thread_id()),
            "headline": self.headline,
            "title": cut::to_one_line(&self.headline, TITLE_CHARACTERS_MAX),
            "is_over": digest.is_none() && self.are_all_closed(),
            "acknowledged": digest.is_none() && self.is_acknowledged(),
            "id": self.context.delivery_id.to_string(),
            "link": self.link,
            "url": self.context.links.url(),
            "tenant": self.context.tenant,
            "timestamp": domain_json::time(self.timestamp_ms()),
            "timestamp_ms": self.timestamp_ms(),
            "event": event_variables(occurrence),
            "entity": {"name": self.entity},
            "trigger": {"name": trigger.as_ref().map_or("", |trigger| trigger.name.as_str())},
            "values": self.values,
            "kept": kept,
            "rule": {
                "name": rule.name,
                "description": rule.description,
                "message": self.message(),
            },
            "destination": {
                "name": self.context.destination_name,
                "type": destination_kind.as_str(),
            },
        });
        if let Some(contact) = contact {
            let mut shown = json!(contact.variables);
            shown["name"] = json!(contact.name.as_str());
            variables["contact"] = shown;
            let url = self.context.links.acknowledge(self.content, contact);
            variables["ack"] = json!({ "url": url });
        }
        if let Some(previous) = previous {
            variables["previous"] = json!({
                "severity": previous.severity.as_str(),
                "status": previous.status.as_str(),
            });
        }
        if let Some(group) = group {
            variables["group"] = members::member_variables(
                group,
                &self.link,
                &event_variables,
                self.content.names_all_members(self.context.snippets),
            );
        }
        if let Some(digest) = digest {
            let events: Vec<_> = digest::digest_events(digest, event_variables).collect();
            variables["digest"] = digest::digest_variables(digest, &events);
        }
        variables
    }
}

/// Returns the escaping of values in a rule's message for a kind of destination, and whether the
/// message is in the markup of that kind. Otherwise the message is plain text, which the
/// destination escapes as a whole.
fn message_context(kind: &DestinationKind, language: TemplateLanguage) -> (Escape, bool) {
    match (kind, language) {
        (DestinationKind::Slack(_), TemplateLanguage::Jinja) => (Escape::Slack, true),
        (DestinationKind::MsTeams(_), _) => (Escape::Card, true),
        _ => (Escape::None, false),
    }
}

pub fn is_blank(text: &str) -> bool {
    let is_invisible = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}');
    text.chars()
        .all(|c| c.is_whitespace() || c.is_control() || is_invisible(c))
}

/// Truncates strings and empties lists.
pub fn simplify(variables: &mut Value) {
    match variables {
        Value::String(text) => *text = cut::truncate_chars(text, SIMPLE_CHARACTERS_MAX),
        Value::Array(entries) => entries.clear(),
        Value::Object(fields) => fields.values_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn headline(occurrence: &Occurrence) -> String {
    [&occurrence.summary, &occurrence.name, &occurrence.kind]
        .into_iter()
        .map(|text| cut::to_one_line(text, HEADLINE_CHARACTERS_MAX))
        .find(|line| !line.is_empty())
        .unwrap_or_else(|| occurrence.event.to_string())
}

fn event_variables(occurrence: &Occurrence) -> Value {
    let headline = headline(occurrence);
    json!({
        "id": occurrence.event.to_string(),
        "occurrence_id": occurrence.id().to_string(),
        "headline": headline,
        "title": cut::to_one_line(&headline, TITLE_CHARACTERS_MAX),
        "name": occurrence.name,
        "type": occurrence.kind,
        "summary": occurrence.summary,
        "body": occurrence.body,
        "severity": occurrence.severity.as_str(),
        "severity_number": occurrence.severity as i32,
        "is_debug": occurrence.severity == Severity::Debug,
        "is_info": occurrence.severity == Severity::Info,
        "is_warning": occurrence.severity == Severity::Warning,
        "is_error": occurrence.severity == Severity::Error,
        "is_critical": occurrence.severity == Severity::Critical,
        "status": occurrence.status.as_str(),
        "is_open": occurrence.status == Status::Open,
        "is_closed": occurrence.status == Status::Closed,
        "acknowledged": occurrence.acknowledged,
        "assignee": occurrence.assignee.as_ref().map_or("", |it| it.as_str()),
        "flapping": occurrence.is_notified_flapping(),
        "count": occurrence.count,
        "timestamp": domain_json::time(occurrence.last_seen_ms),
        "start_time": domain_json::time(occurrence.start_ms),
        "start_time_ms": occurrence.start_ms,
        "last_seen": domain_json::time(occurrence.last_seen_ms),
        "dimensions": occurrence.dimensions,
        "metadata": domain_json::object(&occurrence.metadata),
    })
}
