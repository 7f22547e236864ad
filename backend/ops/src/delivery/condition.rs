//! Conditions on deliveries as one line of text, about the delivery itself and its event.

use std::sync::{Arc, LazyLock};

use bellwether_language::filter::{self, FilterError, ParsedFilter, TimeReference};
use serde_json::{Value, json};

use super::Deliveries;
use crate::{
    domain::{
        Clause, Delivery, DeliveryState, EventId, Literal, NO_EVENT_ID, Occurrence, Query, RecordId,
    },
    error::{Error, Violation},
    limits::CLAUSES_MAX,
    matching::{CompiledQuery, Document, DocumentQuery, Subject, compile, time_bounds},
    message::sample,
};

/// Fields of deliveries; all others are fields of the event.
const OWN: [&str; 10] = [
    "state",
    "resent",
    "rule",
    "destination",
    "event",
    "digest",
    "attempts",
    "error",
    "test",
    "clear",
];
/// Alias for all states that have not ended.
const WAITING: &str = "waiting";
const STATES: [(&str, DeliveryState); 9] = [
    ("pending", DeliveryState::Pending { due_ms: 0 }),
    ("leased", DeliveryState::Leased { until_ms: 0 }),
    ("sending", DeliveryState::Leased { until_ms: 0 }),
    ("retry", DeliveryState::Retry { due_ms: 0 }),
    ("delivered", DeliveryState::Delivered),
    ("dead", DeliveryState::Dead),
    ("cancelled", DeliveryState::Cancelled),
    ("folded", DeliveryState::Folded),
    ("shadowed", DeliveryState::Shadowed),
];

#[derive(Debug)]
pub struct Condition {
    text: String,
    root: Node,
    pub(super) narrow: IndexConditions,
    pub(super) names_states: bool,
}

/// Compares conditions by their text.
impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.narrow == other.narrow
    }
}

impl Eq for Condition {}

/// The necessary parts of a condition that an index or the delivery ids can evaluate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct IndexConditions {
    pub(super) states: Vec<u8>,
    pub(super) rule_names: Vec<String>,
    pub(super) destination_names: Vec<String>,
    pub(super) event: Option<EventId>,
    pub(super) digest: Option<RecordId>,
    /// Start of the decision time (inclusive), in milliseconds since the epoch.
    pub(super) start_ms: Option<i64>,
    /// End of the decision time (exclusive), in milliseconds since the epoch.
    pub(super) end_ms: Option<i64>,
}

#[derive(Debug)]
enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Own(DocumentQuery),
    Event(CompiledQuery),
}

impl Condition {
    /// Parses a condition relative to a time; `None` for an empty text. Returns all errors with
    /// their positions.
    fn read(text: &str, now_ms: i64) -> Result<Option<(Self, ParsedFilter)>, Vec<FilterError>> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let parsed = filter::parse(text, Some(&TimeReference::in_utc(now_ms)))
            .map_err(|error| vec![error])?;
        let mut reader = Reader::default();
        let root = reader.compile_outermost(&parsed.clause);
        if let (Some(start_ms), Some(end_ms)) = (reader.narrow.start_ms, reader.narrow.end_ms)
            && start_ms >= end_ms
        {
            reader.add_violation("clause", "`since` must be earlier than `until`".into());
        }
        if !reader.violations.is_empty() {
            let placed = reader
                .violations
                .into_iter()
                .map(|(path, message)| FilterError {
                    at: parsed.position(&path),
                    message,
                });
            return Err(placed.collect());
        }
        let condition = Self {
            text: text.to_owned(),
            root,
            narrow: reader.narrow,
            names_states: reader.names_states,
        };
        Ok(Some((condition, parsed)))
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the condition matches a delivery. Decision times are checked through
    /// [`IndexConditions`] instead.
    pub(super) fn matches(&self, delivery: &Delivery) -> bool {
        let events: Vec<_> = delivery_events(delivery).map(Subject::new).collect();
        self.root.matches(&delivery_document(delivery), &events)
    }
}

impl Node {
    fn matches(&self, own: &Document, events: &[Subject<'_>]) -> bool {
        match self {
            Self::And(nodes) => nodes.iter().all(|it| it.matches(own, events)),
            Self::Or(nodes) => nodes.iter().any(|it| it.matches(own, events)),
            Self::Not(node) => !node.matches(own, events),
            Self::Own(query) => query.matches(own),
            Self::Event(query) => events.iter().any(|it| query.matches_subject(it)),
        }
    }
}

fn delivery_events(delivery: &Delivery) -> impl Iterator<Item = &Occurrence> {
    let content = &delivery.content;
    let members = content.group.iter().flat_map(|it| &it.members);
    std::iter::once(&content.occurrence).chain(members.map(|(_, it)| it))
}

fn delivery_document(delivery: &Delivery) -> Document {
    static BLANK: LazyLock<Occurrence> = LazyLock::new(|| sample::sample_occurrence(0));
    let number = delivery.state.number();
    let states = STATES.iter().filter(|(_, state)| state.number() == number);
    let mut states: Vec<&str> = states.map(|(word, _)| *word).collect();
    if delivery.state.due_ms().is_some() {
        states.push(WAITING);
    }
    let ids = delivery_events(delivery).map(|it| it.event.to_string());
    let mut own = json!({
        "state": states,
        "destination": delivery.destination_name,
        "event": ids.collect::<Vec<_>>(),
        "attempts": delivery.attempts,
        "test": delivery.test,
        "resent": delivery.retried_as.is_some(),
        "clear": delivery.content.clear,
    });
    // Empty values count as missing.
    let mut put = |field: &str, text: String| {
        if !text.is_empty() {
            own[field] = Value::String(text);
        }
    };
    if !delivery.test {
        put("rule", delivery.content.rule.name.clone());
    }
    put("error", delivery.last_error.clone());
    let digest = delivery.folding.digest_id();
    put(
        "digest",
        digest.map_or_else(String::new, |it| it.to_string()),
    );
    Document::new(&own, BLANK.clone())
}

#[derive(Default)]
struct Reader {
    narrow: IndexConditions,
    comparisons: usize,
    names_states: bool,
    violations: Vec<(String, String)>,
}

impl Reader {
    /// Compiles the outermost clause, all of whose parts must match.
    fn compile_outermost(&mut self, clause: &Clause) -> Node {
        match clause {
            Clause::And(clauses) => {
                let inside = clauses.iter().enumerate();
                let nodes = inside.filter_map(|(at, clause)| {
                    self.compile_needed(clause, &format!("clause.and.clauses[{at}]"))
                });
                Node::And(nodes.collect())
            }
            clause => {
                let node = self.compile_needed(clause, "clause");
                node.unwrap_or_else(|| Node::And(Vec::new()))
            }
        }
    }

    /// Compiles a part that must match; `None` if it is fully covered by [`IndexConditions`].
    fn compile_needed(&mut self, clause: &Clause, path: &str) -> Option<Node> {
        if self.consume_time_clause(clause, path) {
            return None;
        }
        let narrow = &mut self.narrow;
        match clause {
            Clause::Equals(field, Literal::Text(text)) => match field.as_str() {
                "rule" => narrow.rule_names.push(text.clone()),
                "destination" => narrow.destination_names.push(text.clone()),
                "event" => narrow.event = EventId::parse(text).or(narrow.event),
                "digest" => narrow.digest = RecordId::parse(text).or(narrow.digest),
                "state" if narrow.states.is_empty() => narrow.states = state_numbers(text),
                _ => {}
            },
            Clause::In(field, values) if field == "state" && narrow.states.is_empty() => {
                let words = values.iter().filter_map(literal_text);
                narrow.states = words.flat_map(state_numbers).collect();
            }
            _ => {}
        }
        Some(self.compile_clause(clause, path))
    }

    /// Consumes `since` and `until`, which refer to the decision time; returns whether the clause
    /// is one of them.
    fn consume_time_clause(&mut self, clause: &Clause, path: &str) -> bool {
        let is_since = matches!(clause, Clause::GreaterAndEquals(field, _) if field == "lastSeen");
        let is_until = matches!(clause, Clause::Less(field, _) if field == "startTime");
        let (since_ms, until_ms) = time_bounds(clause);
        if (is_since || is_until) && since_ms.or(until_ms).is_none() {
            self.add_violation(path, "is not a time".into());
        }
        let narrow = &mut self.narrow;
        narrow.start_ms = narrow.start_ms.max(since_ms);
        narrow.end_ms = match (narrow.end_ms, until_ms) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        is_since || is_until
    }

    fn add_violation(&mut self, path: &str, message: String) {
        self.violations.push((path.to_owned(), message));
    }

    fn compile_clause(&mut self, clause: &Clause, path: &str) -> Node {
        let mut all = |clauses: &[Clause], word: &str| {
            let inside = clauses.iter().enumerate();
            let nodes = inside
                .map(|(at, it)| self.compile_clause(it, &format!("{path}.{word}.clauses[{at}]")));
            nodes.collect()
        };
        match clause {
            Clause::And(clauses) => Node::And(all(clauses, "and")),
            Clause::Or(clauses) => Node::Or(all(clauses, "or")),
            Clause::Not(inner) => {
                Node::Not(Box::new(self.compile_clause(inner, &format!("{path}.not"))))
            }
            comparison => self.compile_comparison(comparison, path),
        }
    }

    fn compile_comparison(&mut self, clause: &Clause, path: &str) -> Node {
        self.comparisons += 1;
        if self.comparisons > CLAUSES_MAX {
            if self.comparisons == CLAUSES_MAX + 1 {
                self.add_violation(path, format!("has more than {CLAUSES_MAX} conditions"));
            }
            return Node::And(Vec::new());
        }
        let field = clause.field().unwrap_or_default();
        if ["lastSeen", "startTime", "timestamp"].contains(&field) {
            let message = "`since=` and `until=` compare the time of the decision; use them at \
                           the top level, not in `or` or `not`";
            self.add_violation(path, message.into());
        }
        let is_own = OWN.contains(&field);
        self.names_states |= field == "state";
        if let ("state", Some(word)) = (field, unknown_state(clause)) {
            let known = STATES.map(|(word, _)| word).join(", ");
            self.add_violation(
                path,
                format!("`{word}` is not a state; expected one of {WAITING}, {known}"),
            );
        }
        if let Clause::Equals(_, Literal::Text(id)) = clause {
            if field == "event" && EventId::parse(id).is_none() {
                self.add_violation(path, format!("`{id}` {NO_EVENT_ID}"));
            }
            if field == "digest" && RecordId::parse(id).is_none() {
                self.add_violation(
                    path,
                    format!("`{id}` is not a delivery id; expected 26 letters and digits"),
                );
            }
        }
        let query = Query {
            clause: clause.clone(),
        };
        let read = if is_own {
            DocumentQuery::compile(clause).map(Node::Own)
        } else {
            compile(&query).map(Node::Event)
        };
        read.unwrap_or_else(|violations| {
            for violation in violations {
                self.add_violation(path, violation.description);
            }
            Node::And(Vec::new())
        })
    }
}

fn unknown_state(clause: &Clause) -> Option<&str> {
    let words: Vec<&str> = match clause {
        Clause::Equals(_, literal) => literal_text(literal).into_iter().collect(),
        Clause::In(_, literals) => literals.iter().filter_map(literal_text).collect(),
        _ => Vec::new(),
    };
    let is_known = |word: &&str| !state_numbers(word).is_empty();
    words.into_iter().find(|word| !is_known(word))
}

fn literal_text(literal: &Literal) -> Option<&str> {
    match literal {
        Literal::Text(text) => Some(text),
        Literal::Number(_) | Literal::Bool(_) => None,
    }
}

fn state_numbers(word: &str) -> Vec<u8> {
    let is_waiting = word.eq_ignore_ascii_case(WAITING);
    let meant = STATES.iter().filter(|(own, state)| {
        own.eq_ignore_ascii_case(word) || is_waiting && state.due_ms().is_some()
    });
    let mut numbers: Vec<_> = meant.map(|(_, state)| state.number()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

impl Deliveries {
    /// Parses the condition in a field of a request, and returns hints for its author; `None` for
    /// an empty text.
    pub async fn condition(
        &self,
        field: &str,
        text: &str,
    ) -> Result<(Option<Arc<Condition>>, Vec<String>), Error> {
        let invalid = |errors: Vec<FilterError>| {
            let errors = errors.into_iter();
            Error::Invalid(
                errors
                    .map(|it| Violation::new(field, it.to_string()))
                    .collect(),
            )
        };
        let read = Condition::read(text, self.clock.now_ms()).map_err(invalid)?;
        let Some((condition, parsed)) = read else {
            return Ok((None, Vec::new()));
        };
        let mut named = parsed.fields();
        named.retain(|(name, _)| !OWN.contains(name));
        let named: Vec<_> = named
            .into_iter()
            .map(|(name, at)| (name, Some(at)))
            .collect();
        let hints = self.fields.field_hints(&named, &OWN).await?;
        Ok((Some(Arc::new(condition)), hints))
    }
}
