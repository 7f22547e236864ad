//! Undo of recent changes, by further changes of the same resources.

use bellwether_proto::v1;

use super::{Model, bulk_undo::BulkUndo, form::describe_changes};
use crate::{
    client::{Call, Note, StatusChange, events, parse_empty, resources},
    data::{HealthState, Kind, Object, Status},
    kind, limits, text,
    theme::Token,
};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Undo {
    pub(crate) what: String,
    back: UndoAction,
    at_ms: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum UndoAction {
    Set(Vec<(StatusChange, Vec<String>)>),
    Enable { rule: String, on: bool },
    Notes(Vec<Note>),
    Silence(String),
    Many(Box<BulkUndo>),
    Edited(Box<Object>),
    Paused { destination: String, was: bool },
}

const LINES: usize = 40;

impl UndoAction {
    pub(crate) fn from_change(model: &Model, ids: &[String], change: &StatusChange) -> Self {
        // The ids are grouped by the previous state, because there are only a few states.
        let mut before: Vec<(StatusChange, Vec<String>)> = Vec::new();
        for id in ids {
            let Some(standing) = model.occurrence_status(id) else {
                continue;
            };
            let was = match change {
                StatusChange::Acknowledged(_) => StatusChange::Acknowledged(standing.acknowledged),
                StatusChange::Status(_) => StatusChange::Status(standing.status),
                StatusChange::Assigned(_) => StatusChange::Assigned(standing.assignee),
            };
            if was == *change {
                continue;
            }
            match before.iter_mut().find(|(other, _)| *other == was) {
                Some((_, ids)) => ids.push(id.clone()),
                None => before.push((was, vec![id.clone()])),
            }
        }
        Self::Set(before)
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Set(groups) => groups.is_empty(),
            Self::Many(done) => done.is_empty(),
            Self::Enable { .. } | Self::Silence(_) | Self::Edited(_) | Self::Paused { .. } => false,
            Self::Notes(notes) => notes.is_empty(),
        }
    }

    /// Returns the question before the undo; empty if the undo requires no confirmation.
    pub(crate) fn question_lines(&self, model: &Model) -> Vec<(Token, String)> {
        match self {
            Self::Set(_) | Self::Enable { .. } | Self::Notes(_) | Self::Silence(_) => Vec::new(),
            Self::Many(done) => done.question_lines(),
            Self::Edited(before) => {
                let now = model.store.object(before.kind, before.name());
                let mut lines = describe_changes(now.map(kind::editable_part).as_ref(), before);
                lines.truncate(LINES);
                let words = "Secrets keep their current values; sent messages cannot be recalled.";
                lines.push((Token::Dim, words.to_owned()));
                lines
            }
            Self::Paused { destination, was } => {
                vec![(Token::Text, model.pause_words(destination, !was))]
            }
        }
    }

    fn undo_calls(self, model: &Model) -> Vec<Call> {
        match self {
            Self::Set(groups) => groups
                .into_iter()
                .map(|(change, ids)| events::set_status(&ids, &change))
                .collect(),
            Self::Enable { rule, on } => {
                let rule = model.store.object(Kind::Rule, &rule);
                let rule = rule.filter(|rule| rule.flag("enabled") != on);
                let update = rule.map(|rule| {
                    let mut draft = kind::editable_part(rule);
                    draft.set("enabled", Some(on.into()));
                    resources::update(&draft, rule.etag())
                });
                update.into_iter().collect()
            }
            Self::Many(done) => done.undo_calls(),
            Self::Edited(before) => {
                let now = model.store.object(before.kind, before.name());
                vec![now.map_or_else(
                    || resources::create(&before),
                    |now| resources::update(&before, now.etag()),
                )]
            }
            Self::Paused { destination, was } => vec![pause_call(&destination, was)],
            Self::Notes(notes) => vec![events::remove_notes(notes)],
            Self::Silence(name) => vec![resources::delete(Kind::Silence, &name, "", false)],
        }
    }
}

pub(crate) fn pause_call(name: &str, pause: bool) -> Call {
    let (service, name) = ("DestinationService", name.to_owned());
    let call = if pause {
        Call::from_request(service, &v1::PauseDestinationRequest { name })
    } else {
        Call::from_request(service, &v1::ResumeDestinationRequest { name })
    };
    call.into_write(parse_empty)
}

pub(crate) struct OccurrenceStatus {
    pub(crate) status: Status,
    pub(crate) acknowledged: bool,
    pub(crate) assignee: String,
}

impl Model {
    pub(crate) fn occurrence_status(&self, id: &str) -> Option<OccurrenceStatus> {
        if let Some(row) = self.store.events.find(id) {
            return Some(OccurrenceStatus {
                status: row.status,
                acknowledged: row.acknowledged,
                assignee: row.assignee.to_string(),
            });
        }
        let occurrence = self.shown_occurrence().filter(|it| it.id == id)?;
        Some(OccurrenceStatus {
            status: occurrence.status(),
            acknowledged: occurrence.acknowledged.unwrap_or_default(),
            assignee: occurrence.assignee.clone(),
        })
    }

    /// Whether all occurrences are known to be open. If so, undoing a change notifies no one again.
    pub(crate) fn are_all_open(&self, ids: &[String]) -> bool {
        ids.iter().all(|id| {
            self.occurrence_status(id)
                .is_some_and(|it| it.status != Status::Closed)
        })
    }

    pub(crate) fn record_undo(&mut self, what: String, back: UndoAction) {
        let message = self.expand_keys(&format!("✓ {what} · ‹undo› undoes it"));
        self.show_toast(message);
        let at_ms = self.now_ms;
        self.done.push(Undo { what, back, at_ms });
        if self.done.len() > limits::UNDO_STEPS {
            self.done.remove(0);
        }
    }

    pub(crate) fn is_paused(&self, destination: &str) -> bool {
        let found = self.store.object(Kind::Destination, destination);
        found.is_some_and(|it| kind::destination::health_state(it) == HealthState::Paused)
    }

    pub(crate) fn pause_words(&self, destination: &str, resume: bool) -> String {
        let found = self.store.object(Kind::Destination, destination);
        let waiting = found.and_then(|it| it.number("health.waitingCount"));
        match waiting.unwrap_or_default() {
            _ if !resume => "Messages wait until it is resumed or edited.".to_owned(),
            0 => "No messages are waiting for it.".to_owned(),
            1 => "Sends the 1 message waiting for it now.".to_owned(),
            count => format!(
                "Sends the {} messages waiting for it now.",
                text::group_digits(count)
            ),
        }
    }

    pub(crate) fn last_change(&self) -> Option<(&str, &UndoAction)> {
        let done = self
            .done
            .last()
            .filter(|done| self.is_recent_enough(done))?;
        Some((&done.what, &done.back))
    }

    pub(crate) fn can_undo(&self) -> bool {
        self.done
            .last()
            .is_some_and(|done| self.is_recent_enough(done))
    }

    /// Removes the last change and returns it with the calls of its undo, so that it is undone only
    /// once.
    pub(crate) fn take_undo(&mut self) -> Option<(String, Vec<Call>)> {
        let done = self.done.pop()?;
        if !self.is_recent_enough(&done) {
            self.done.clear();
            return None;
        }
        let calls = done.back.undo_calls(self);
        Some((done.what, calls))
    }

    fn is_recent_enough(&self, done: &Undo) -> bool {
        self.now_ms - done.at_ms < limits::UNDO_MS
    }
}
