//! A bulk change of events: the ids found, and the progress.

use std::{cmp::Reverse, collections::HashSet};

use super::{BulkStep, pluralize};
use crate::{
    client::{Call, EventFilter, StatusChange, events, parse_empty},
    data::{BulkTally, EventRow, Label, Status},
    kind::EventCell,
    limits,
    model::bulk_undo::BulkUndo,
    text,
    theme::Token,
};

const NAMED: usize = 5;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EventTransition {
    Set(StatusChange),
    Note(String),
}

/// A change of all events that match a filter. The ids are those found while counting; later events
/// are not included.
#[derive(Clone, Debug)]
pub(crate) struct EventBulk {
    pub(crate) transition: EventTransition,
    filter: EventFilter,
    /// Description of the events, such as `with severity=error` or `on db-1`; empty for all.
    words: String,
    ids: Vec<String>,
    known: HashSet<String>,
    /// The worst events, first.
    named: Vec<EventCell>,
    before: Vec<StatusChange>,
    pub(crate) is_quiet: bool,
    pub(crate) found: Option<i64>,
    pub(crate) through: usize,
    failed: i64,
    first_error: String,
    left: bool,
}

impl EventBulk {
    pub(crate) fn new(transition: EventTransition, filter: EventFilter, words: String) -> Self {
        Self {
            transition,
            filter,
            words,
            ids: Vec::new(),
            known: HashSet::new(),
            named: Vec::new(),
            before: Vec::new(),
            is_quiet: false,
            found: None,
            through: 0,
            failed: 0,
            first_error: String::new(),
            left: false,
        }
    }

    pub(crate) fn request_ids(&self, cursor: String) -> (Call, BulkStep) {
        if cursor.is_empty() {
            (self.filter.count(), BulkStep::Count)
        } else {
            self.page(cursor)
        }
    }

    pub(crate) fn page(&self, cursor: String) -> (Call, BulkStep) {
        (
            self.filter.search(cursor).with_long_timeout(),
            BulkStep::Gather,
        )
    }

    /// Adds a page of events. Returns the tally, and whether the limit is reached.
    pub(crate) fn add_page(&mut self, rows: Vec<EventRow>, host_field: &str) -> (BulkTally, bool) {
        let mut tally = BulkTally::default();
        for row in rows {
            if !self.known.insert(row.id.to_string()) {
                continue;
            }
            if let Some(reason) = self.skip_reason(&row) {
                *tally.skipped.entry(reason).or_default() += 1;
                continue;
            }
            if self.ids.len() >= limits::BULK_EVENTS {
                self.left = true;
                break;
            }
            self.named.push(EventCell::from_row(&row, host_field));
            self.named.sort_by_key(|cell| Reverse(cell.severity));
            self.named.truncate(NAMED);
            tally.count += 1;
            let severity = row.severity.label().to_owned();
            *tally.destinations.entry(severity).or_default() += 1;
            self.before.extend(self.undo_change(&row));
            self.ids.push(row.id.into());
        }
        (tally, self.left)
    }

    /// Returns the change that undoes this one for an occurrence; `None` for a note.
    fn undo_change(&self, row: &EventRow) -> Option<StatusChange> {
        match &self.transition {
            EventTransition::Set(StatusChange::Acknowledged(_)) => {
                Some(StatusChange::Acknowledged(row.acknowledged))
            }
            EventTransition::Set(StatusChange::Status(_)) => Some(StatusChange::Status(row.status)),
            EventTransition::Set(StatusChange::Assigned(_)) => {
                Some(StatusChange::Assigned(row.assignee.to_string()))
            }
            EventTransition::Note(_) => None,
        }
    }

    pub(crate) fn to_undo(&self, sent: i64) -> BulkUndo {
        let mut groups: Vec<(StatusChange, Vec<String>)> = Vec::new();
        let done = self.ids.iter().zip(&self.before).take(self.through);
        for (id, before) in done {
            match groups.iter_mut().find(|(known, _)| known == before) {
                Some((_, ids)) => ids.push(id.clone()),
                None => groups.push((before.clone(), vec![id.clone()])),
            }
        }
        let sends = self.updates() && !self.is_quiet;
        BulkUndo::new(groups, self.closes(), if sends { sent } else { 0 })
    }

    fn skip_reason(&self, row: &EventRow) -> Option<&'static str> {
        match self.transition {
            EventTransition::Set(StatusChange::Acknowledged(true)) if row.acknowledged => {
                Some("already acknowledged")
            }
            EventTransition::Set(StatusChange::Status(Status::Closed))
                if row.status == Status::Closed =>
            {
                Some("already closed")
            }
            EventTransition::Set(StatusChange::Status(Status::Suppressed))
                if row.status == Status::Suppressed =>
            {
                Some("already suppressed")
            }
            _ => None,
        }
    }

    pub(crate) fn ids(&self) -> &[String] {
        &self.ids
    }

    pub(crate) fn updates(&self) -> bool {
        matches!(
            self.transition,
            EventTransition::Set(StatusChange::Acknowledged(_))
        )
    }

    pub(crate) fn closes(&self) -> bool {
        self.transition == EventTransition::Set(StatusChange::Status(Status::Closed))
    }

    fn batch(&self) -> &[String] {
        let end = self.ids.len().min(self.through + limits::BULK_EVENT_STEP);
        &self.ids[self.through..end]
    }

    pub(crate) fn batch_call(&self) -> (Call, BulkStep) {
        let call = match &self.transition {
            EventTransition::Set(change) if self.is_quiet => {
                events::set_status_without_updates(self.batch(), change)
            }
            EventTransition::Set(change) => events::set_status(self.batch(), change),
            EventTransition::Note(text) => events::write_notes(self.batch(), text),
        };
        let read = call.parse_outcome.unwrap_or(parse_empty);
        (call, BulkStep::Part(read))
    }

    /// Processes the result of a batch. Returns the number of changed events, and whether it was
    /// the last batch.
    pub(crate) fn apply_batch(&mut self, failed: i64, first_error: String) -> (i64, bool) {
        let count = self.batch().len();
        self.through += count;
        self.failed += failed;
        if self.first_error.is_empty() {
            self.first_error = first_error;
        }
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        (count - failed, self.through >= self.ids.len())
    }

    pub(crate) fn title(&self, is_counted: bool) -> String {
        let count = match (is_counted, self.ids.len()) {
            (false, _) => "all".to_owned(),
            (true, count) => text::group_digits(i64::try_from(count).unwrap_or(i64::MAX)),
        };
        let open = if self.filter.open_only { " open" } else { "" };
        let plural = if is_counted && self.ids.len() == 1 {
            ""
        } else {
            "s"
        };
        let all = format!("{count}{open} event{plural} {}", self.words);
        let all = all.trim_end();
        match &self.transition {
            EventTransition::Note(_) => format!("Add a note to {all}?"),
            EventTransition::Set(_) => format!("{} {all}?", self.verb()),
        }
    }

    pub(crate) fn verb(&self) -> &'static str {
        match self.transition {
            EventTransition::Set(StatusChange::Acknowledged(true)) => "Acknowledge",
            EventTransition::Set(StatusChange::Acknowledged(false)) => "Unacknowledge",
            EventTransition::Set(StatusChange::Status(Status::Closed)) => "Close",
            EventTransition::Set(StatusChange::Status(Status::Suppressed)) => "Suppress",
            EventTransition::Set(StatusChange::Status(_)) => "Open",
            EventTransition::Set(StatusChange::Assigned(_)) => "Assign",
            EventTransition::Note(_) => "Add",
        }
    }

    pub(crate) fn announcement(&self, count: i64) -> String {
        let events = pluralize(count, "event");
        match &self.transition {
            EventTransition::Note(text) => format!("Note for {events}: {text}"),
            EventTransition::Set(_) => format!("{events} will be {}:", self.past_participle()),
        }
    }

    fn past_participle(&self) -> &'static str {
        match self.transition {
            EventTransition::Set(StatusChange::Acknowledged(true)) => "acknowledged",
            EventTransition::Set(StatusChange::Acknowledged(false)) => "unacknowledged",
            EventTransition::Set(StatusChange::Status(Status::Closed)) => "closed",
            EventTransition::Set(StatusChange::Status(Status::Suppressed)) => "suppressed",
            EventTransition::Set(StatusChange::Status(_)) => "reopened",
            EventTransition::Set(StatusChange::Assigned(_)) => "assigned",
            EventTransition::Note(_) => "annotated",
        }
    }

    pub(crate) fn lines(&self) -> Vec<(Token, String)> {
        let mut lines: Vec<(Token, String)> = Vec::new();
        lines.extend(self.named.iter().map(|it| (Token::Text, it.line())));
        if self.ids.len() > self.named.len() {
            let more = self.ids.len() - self.named.len();
            lines.push((Token::Dim, format!("and {more} more")));
        }
        if self.left {
            let found = self
                .found
                .map_or_else(String::new, |it| format!(" of {it} found"));
            let most = limits::BULK_EVENTS;
            let message = format!("Up to {most}{found} per action; the rest are unchanged.");
            lines.push((Token::Warning, message));
        }
        lines
    }

    pub(crate) fn outcome(&self, count: i64) -> (String, bool) {
        let events = pluralize(count, "event");
        let done = match self.transition {
            EventTransition::Note(_) => format!("note added to {events}"),
            EventTransition::Set(_) => format!("{events} {}", self.past_participle()),
        };
        let failed = match self.failed {
            0 => String::new(),
            failed => format!("; {failed} failed: {}", self.first_error),
        };
        let left = match (self.left, self.found) {
            (false, _) => String::new(),
            (true, Some(found)) => {
                let rest = found - i64::try_from(self.through).unwrap_or(found);
                format!("; {rest} remain: repeat the action")
            }
            (true, None) => "; more remain: repeat the action".to_owned(),
        };
        (format!("{done}{failed}{left}"), self.failed > 0)
    }

    pub(crate) fn is_repeatable(&self) -> bool {
        !matches!(self.transition, EventTransition::Note(_))
    }

    pub(crate) fn infinitive(&self) -> &'static str {
        match self.transition {
            EventTransition::Set(StatusChange::Acknowledged(true)) => "acknowledge",
            EventTransition::Set(StatusChange::Acknowledged(false)) => "unacknowledge",
            EventTransition::Set(StatusChange::Status(Status::Closed)) => "close",
            EventTransition::Set(StatusChange::Status(Status::Suppressed)) => "suppress",
            EventTransition::Set(StatusChange::Status(_)) => "reopen",
            EventTransition::Set(StatusChange::Assigned(_)) => "assign",
            EventTransition::Note(_) => "annotate",
        }
    }
}
