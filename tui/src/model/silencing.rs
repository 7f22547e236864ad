//! The dialog for a silence: scope, duration, and the effect of each scope.

use bellwether_language::filter::{self, Clause, Literal, print_condition, print_literal};
use bellwether_proto::v1;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Model, field::TextField, page::Content};
use crate::{
    client::Ticket,
    data::{GroupedEvents, Kind, Screen, when},
    limits,
    route::Route,
    text,
    theme::Token,
};

pub(crate) const LENGTHS: [(char, &str); 4] =
    [('1', "1h"), ('2', "2h"), ('8', "8h"), ('0', "08:00")];
const FIRST_LENGTH: usize = 1;
/// Number of open events from which a silence must be confirmed again.
const BROAD: i32 = 1_000;

#[derive(Clone, Debug)]
pub(crate) struct SilenceChoice {
    pub(crate) scopes: Vec<SilenceScope>,
    pub(crate) cursor: usize,
    pub(crate) length: usize,
    /// The text being typed.
    pub(crate) typing: Option<(SilencePart, TextField)>,
    pub(crate) reason: String,
    /// The selected end, if it was selected before the scope was counted.
    pub(crate) chosen: Option<Timestamp>,
    pub(crate) waiting: Vec<(Ticket, usize)>,
    /// The request for existing values of a field, and the scope for which it was sent, which
    /// covers no event.
    pub(crate) comparing: Option<(Ticket, usize)>,
    pub(crate) error: Option<String>,
}

/// The part of a silence that is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SilencePart {
    End,
    Reason,
}

const REASON: &str = "silenced manually from the console";
/// Maximum number of comparisons of a filter that are part of a silence's name.
const NAME_PARTS: usize = 2;
const NAME_CHARACTERS: usize = 80;

#[derive(Clone, Debug)]
pub(crate) struct SilenceScope {
    pub(crate) key: char,
    /// Label in the dialog, such as `all of db-1`.
    pub(crate) label: String,
    /// Description in messages, such as `disk-full on db-1`.
    pub(crate) what: String,
    pub(crate) fields: Value,
    /// The events and messages in scope; an error if the service rejects the silence.
    pub(crate) found: Option<Result<v1::PreviewSilenceResponse, String>>,
    /// Why no event is in scope.
    pub(crate) hint: Option<String>,
}

impl SilenceScope {
    fn new(key: char, label: impl Into<String>, what: impl Into<String>, fields: Value) -> Self {
        Self {
            key,
            label: label.into(),
            what: what.into(),
            fields,
            found: None,
            hint: None,
        }
    }

    pub(crate) fn from_filter(key: char, label: String, filter: &str) -> Self {
        Self::new(key, label.clone(), label, json!({ "filter": filter }))
    }

    pub(crate) fn from_form(found: v1::PreviewSilenceResponse) -> Self {
        Self {
            found: Some(Ok(found)),
            ..Self::new(' ', "", "", json!({}))
        }
    }

    pub(crate) fn format_scope_counts(&self) -> (Token, String) {
        match &self.found {
            None => (Token::Dim, "counting…".to_owned()),
            Some(Err(message)) => (Token::Bad, format!("✗ {message}")),
            Some(Ok(found)) => {
                let (covered, messages, least) = format_counts(found);
                let words = format!("{least}{covered} open, {least}{messages} messages in 7 days");
                (Token::Text, words)
            }
        }
    }

    pub(crate) fn lines(&self) -> Vec<(Token, String)> {
        let Some(Ok(found)) = &self.found else {
            return Vec::new();
        };
        let mut lines = vec![(Token::Dim, found.filter.clone())];
        lines.push((Token::Text, describe_coverage(found)));
        let warnings = found.warnings.iter().chain(&self.hint);
        lines.extend(warnings.map(|it| (Token::Warning, it.clone())));
        lines
    }

    /// Returns the field and the value that no open event has, if no event is in scope.
    pub(crate) fn missing_value(&self) -> Option<(String, String)> {
        let found = self.found.as_ref()?.as_ref().ok()?;
        let is_empty = found.covered_count == Some(0) && !found.stopped_early;
        first_comparison(&found.filter).filter(|_| is_empty)
    }

    /// Explains that no open event has a value, and lists values that exist.
    pub(crate) fn explain_missing(&mut self, counted: &GroupedEvents) {
        let Some((field, value)) = self.missing_value() else {
            return;
        };
        let others = counted.rows.iter().filter(|row| row.has_field);
        let others: Vec<&str> = others.map(|row| row.value.as_str()).collect();
        if others.contains(&value.as_str()) {
            return;
        }
        let is_whole = usize::try_from(counted.group_count) == Ok(counted.rows.len());
        let field = field.trim_start_matches("dimensions.");
        let near = filter::nearest_field(&value, others);
        let near = near.map(|(_, near)| format!("did you mean {near}?"));
        let none =
            (counted.is_complete && is_whole).then(|| format!("no open event has {field} {value}"));
        let parts: Vec<String> = none.into_iter().chain(near).collect();
        self.hint = (!parts.is_empty()).then(|| parts.join("; "));
    }

    /// Returns the values that identify the scope, for the name of the silence: `db-1`, or
    /// `disk-db-1`.
    fn object(&self) -> String {
        let filter = match &self.found {
            Some(Ok(found)) => &found.filter,
            _ => self.fields["filter"].as_str().unwrap_or_default(),
        };
        let parsed = filter::parse(filter, None).ok();
        let parts = parsed.iter().flat_map(filter::ParsedFilter::conjuncts);
        let values = parts.filter_map(|(clause, _)| match clause {
            Clause::Equals(field, Literal::Text(text)) => Some((field.as_str(), text.as_str())),
            _ => None,
        });
        let mut values: Vec<_> = values.collect();
        // The host and the name come first: other dimensions, such as the environment, are the same
        // for many events.
        let is_common = |field: &str| !matches!(field, "name" | "host" | "dimensions.host");
        values.sort_by_key(|(field, _)| is_common(field));
        let values = values.into_iter().map(|(_, value)| value);
        let values: Vec<&str> = values.take(NAME_PARTS).collect();
        let is_plain = |char: char| char.is_alphanumeric() || "._-".contains(char);
        let plain = |char: char| if is_plain(char) { char } else { '-' };
        let name: String = values.join("-").chars().map(plain).collect();
        let name: String = name.chars().take(NAME_CHARACTERS).collect();
        match name.trim_matches(['-', '.', '_']) {
            "" => "events".to_owned(),
            name => name.to_owned(),
        }
    }

    pub(crate) fn is_too_broad(&self) -> bool {
        let found = self.found.as_ref().and_then(|it| it.as_ref().ok());
        found.is_some_and(|it| it.too_broad || it.covered_count.unwrap_or_default() > BROAD)
    }
}

/// Formats the numbers of open events and of messages, with a prefix if they are lower bounds.
fn format_counts(found: &v1::PreviewSilenceResponse) -> (String, String, &'static str) {
    let days = found.last_days.clone().unwrap_or_default();
    let least = if found.stopped_early { "at least " } else { "" };
    let grouped = |count: Option<i32>| text::group_digits(count.unwrap_or_default().into());
    (
        grouped(found.covered_count),
        grouped(days.message_count),
        least,
    )
}

/// Describes the events in scope now, and the messages that the silence would have held recently.
fn describe_coverage(found: &v1::PreviewSilenceResponse) -> String {
    let (covered, messages, least) = format_counts(found);
    let days = found.last_days.clone().unwrap_or_default();
    let plural = |count: Option<i32>| if count == Some(1) { "" } else { "s" };
    format!(
        "covers {least}{covered} open event{} now, would have held {least}{messages} message{} in {} days",
        plural(found.covered_count),
        plural(days.message_count),
        days.days
    )
}

impl SilenceChoice {
    pub(crate) fn new(scopes: Vec<SilenceScope>) -> Option<Self> {
        (!scopes.is_empty()).then_some(Self {
            scopes,
            cursor: 0,
            length: FIRST_LENGTH,
            typing: None,
            reason: String::new(),
            chosen: None,
            waiting: Vec::new(),
            comparing: None,
            error: None,
        })
    }

    pub(crate) fn scope(&self) -> &SilenceScope {
        &self.scopes[self.cursor]
    }

    pub(crate) fn reason(&self) -> &str {
        if self.reason.is_empty() {
            REASON
        } else {
            &self.reason
        }
    }

    /// Returns the next scope to count: the selected one, else the first uncounted one.
    pub(crate) fn next_scope_to_count(&self) -> Option<usize> {
        let is_free = |at: &usize| {
            self.scopes[*at].found.is_none() && self.waiting.iter().all(|(_, it)| it != at)
        };
        let chosen = Some(self.cursor).filter(is_free);
        let any = || (0..self.scopes.len()).find(|at| self.waiting.is_empty() && is_free(at));
        chosen.or_else(any)
    }
}

struct SilenceFields {
    event_id: String,
    name: String,
    dimensions: Vec<(String, String)>,
}

impl SilenceFields {
    /// Returns the dimension that locates the event: the host, or else the first one.
    fn host_or_first_dimension(&self) -> Option<&(String, String)> {
        let host = self.dimensions.iter().find(|(key, _)| key == "host");
        host.or(self.dimensions.first())
    }
}

pub(crate) struct GroupFilter {
    part: String,
    filter: String,
    /// Description of the group, such as `on db-1`.
    place: String,
}

impl GroupFilter {
    pub(crate) fn group_filter(&self) -> String {
        let Self { part, filter, .. } = self;
        let is_either = filter.contains(" or ") || filter.contains("||");
        let filter = if is_either {
            format!("({filter})")
        } else {
            filter.clone()
        };
        format!("{filter} {part}").trim().to_owned()
    }

    /// Describes the events, such as `on db-1 with severity=error`.
    pub(crate) fn description(&self) -> String {
        if self.filter.is_empty() {
            self.place.clone()
        } else {
            format!("{} with {}", self.place, self.filter)
        }
    }
}

fn filter_scope(filter: &str) -> Option<SilenceScope> {
    let filter = filter.trim();
    let what = format!("events matching {filter}");
    let fields = json!({ "filter": filter });
    (!filter.is_empty()).then(|| SilenceScope::new('f', "all matches", what, fields))
}

impl Model {
    pub(crate) fn silence_scopes(&self) -> Vec<SilenceScope> {
        match &self.page.route {
            Route::EventGroups { .. } => self.group_scopes(),
            Route::Screen(Screen::Events) | Route::Event(_) => self.event_scopes(),
            _ => Vec::new(),
        }
    }

    fn event_scopes(&self) -> Vec<SilenceScope> {
        let ids = self.selected_targets();
        let events: Vec<SilenceFields> = ids
            .iter()
            .filter_map(|id| self.silence_fields(id))
            .collect();
        let Some(first) = events.first() else {
            return Vec::new();
        };
        let mut scopes = Vec::new();
        let (name, place) = (&first.name, first.host_or_first_dimension());
        if events.len() == 1 {
            let fields = json!({"fromEventId": first.event_id});
            let what = place.map_or_else(|| name.clone(), |(_, it)| format!("{name} on {it}"));
            scopes.push(SilenceScope::new('e', "this event", what, fields));
        } else {
            let ids = events.iter().map(|it| print_literal(&it.event_id));
            let filter = format!("id in ({})", ids.collect::<Vec<_>>().join(", "));
            let label = format!("these {} events", events.len());
            scopes.push(SilenceScope::from_filter('e', label, &filter));
        }
        let is_one_name = events.iter().all(|it| it.name == *name);
        let place = place.filter(|place| {
            events
                .iter()
                .all(|it| it.host_or_first_dimension() == Some(place))
        });
        let named = print_condition("name", name);
        if let Some((key, at)) = place {
            let placed = print_condition(&format!("dimensions.{key}"), at);
            if is_one_name {
                let filter = format!("{named} {placed}");
                let label = format!("{name} on {at}");
                scopes.push(SilenceScope::from_filter('b', label, &filter));
            }
            scopes.push(SilenceScope::from_filter(
                'h',
                format!("all of {at}"),
                &placed,
            ));
        }
        if is_one_name {
            scopes.push(SilenceScope::from_filter(
                'a',
                format!("all {name}"),
                &named,
            ));
        }
        scopes.extend(filter_scope(&self.page.list.filter));
        scopes
    }

    fn group_scopes(&self) -> Vec<SilenceScope> {
        let Some(group) = self.group() else {
            return Vec::new();
        };
        let (key, label) = match group.place.split_once(' ') {
            Some(("on", host)) => ('h', format!("all of {host}")),
            Some(("named", name)) => ('a', format!("all {name}")),
            _ => ('h', format!("all {}", group.place)),
        };
        let mut scopes = vec![SilenceScope::from_filter(key, label, &group.part)];
        if !group.filter.is_empty() {
            scopes.extend(filter_scope(&group.group_filter()));
        }
        scopes
    }

    pub(crate) fn group(&self) -> Option<GroupFilter> {
        let Route::EventGroups { field, filter } = &self.page.route else {
            return None;
        };
        let value = self.selected_id()?;
        let mut rows = self.store.loaded_groups()?.rows.iter();
        let row = rows.find(|row| row.value == value)?;
        let (part, place) = match (row.has_field, field.as_str()) {
            (false, _) => (format!("-has:{field}"), format!("without {field}")),
            (true, "name") => (print_condition(field, &value), format!("named {value}")),
            (true, "host" | "dimensions.host") => {
                (print_condition(field, &value), format!("on {value}"))
            }
            (true, _) => (
                print_condition(field, &value),
                format!("with {field}={value}"),
            ),
        };
        let filter = filter.trim().to_owned();
        Some(GroupFilter {
            part,
            filter,
            place,
        })
    }

    fn silence_fields(&self, id: &str) -> Option<SilenceFields> {
        let event_id = id.split_once(':').map_or(id, |(event, _)| event).to_owned();
        if let Content::Event { detail, .. } = &self.page.content {
            let event = detail.value.as_ref()?;
            let dimensions = event.dimensions.clone().into_iter().collect();
            return Some(SilenceFields {
                event_id,
                name: event.name.clone(),
                dimensions,
            });
        }
        let row = self.store.events.find(id)?;
        Some(SilenceFields {
            event_id,
            name: row.name.to_string(),
            dimensions: row.dimensions(),
        })
    }

    /// Names occurrences in brief: `disk-full on db-1`, or `3 events on db-1`.
    pub(crate) fn name_events(&self, ids: &[String]) -> String {
        let events: Vec<SilenceFields> = ids
            .iter()
            .filter_map(|id| self.silence_fields(id))
            .collect();
        let place = events
            .first()
            .and_then(SilenceFields::host_or_first_dimension);
        let place = place.filter(|place| {
            events
                .iter()
                .all(|it| it.host_or_first_dimension() == Some(place))
        });
        let on = place.map_or_else(String::new, |(_, at)| format!(" on {at}"));
        match (ids, events.as_slice()) {
            ([_], [event]) => format!("{}{on}", event.name),
            ([_], _) => "1 event".to_owned(),
            (ids, events) if events.len() < ids.len() => format!("{} events", ids.len()),
            (ids, _) => format!("{} events{on}", ids.len()),
        }
    }

    /// Returns an unused name for a silence: what it covers and the time, such as `db-03-0301`.
    pub(crate) fn silence_name(&self, scope: &SilenceScope) -> String {
        let at = self.to_zoned(self.now_ms);
        let at = at.map_or_else(String::new, |at| at.strftime("-%H%M").to_string());
        let name = format!("{}{at}", scope.object());
        let is_used = |name: &String| self.store.object(Kind::Silence, name).is_some();
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        names.find(|name| !is_used(name)).unwrap_or(name)
    }

    pub(crate) fn silence_end(&self, typed: &str) -> Result<Timestamp, String> {
        let typed = typed.trim();
        let typed = typed.strip_prefix("until ").unwrap_or(typed);
        let end = when::parse_time(typed, self.now_ms, &self.zone)?;
        let ahead = end.as_millisecond().saturating_sub(self.now_ms);
        match ahead {
            ..=0 => Err(format!("`{typed}` has passed; expected {}", when::MOMENTS)),
            ahead if ahead > limits::SILENCE_MS => Err(format!(
                "`{typed}` is too far ahead; a silence lasts up to 30 days"
            )),
            _ => Ok(end),
        }
    }

    pub(crate) fn format_silence_end(&self, end: Timestamp) -> String {
        let zoned = |at: Timestamp| at.to_zoned(self.zone.clone());
        let now = zoned(Timestamp::from_millisecond(self.now_ms).unwrap_or_default());
        let end = zoned(end);
        let format = if end.date() == now.date() {
            "%H:%M"
        } else if now.date().tomorrow().is_ok_and(|it| it == end.date()) {
            "tomorrow %H:%M"
        } else {
            "%a %-d %b %H:%M"
        };
        format!("until {}", end.strftime(format))
    }
}

/// Returns the first comparison in a condition of a field with a text that every covered event has.
fn first_comparison(text: &str) -> Option<(String, String)> {
    fn first_clause_pair(clause: &Clause) -> Option<(String, String)> {
        match clause {
            Clause::Equals(field, Literal::Text(text)) => Some((field.clone(), text.clone())),
            Clause::And(all) => all.iter().find_map(first_clause_pair),
            _ => None,
        }
    }
    first_clause_pair(&filter::parse(text, None).ok()?.clause)
}
