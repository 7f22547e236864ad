//! A receiver that manages incidents by the key in the messages, as on-call services do.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex},
};

use super::{Answer, Rules};
use crate::receiver::Received;

/// A change of an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Opens the incident, or updates an open one.
    Open,
    Acknowledge,
    Close,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Incident {
    pub is_open: bool,
    pub is_acknowledged: bool,
    /// Texts of the messages about the incident, oldest first.
    pub texts: Vec<String>,
}

/// The state of a receiver.
#[derive(Debug, Default)]
pub struct State {
    pub incidents: BTreeMap<String, Incident>,
    /// Keys of messages that closed or acknowledged an incident that was never opened.
    pub unknown: Vec<String>,
    /// Whether the receiver applies each message at its first attempt, but responds with 503.
    pub answers_late: bool,
    /// Delivery ids of the messages received; the text if a message has no id.
    seen: HashSet<String>,
}

/// The incidents of a receiver, shared with the test.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Mutex<State>>);

impl Board {
    /// Calls `apply` with the receiver's state, which `apply` may change.
    pub fn with<T>(&self, apply: impl FnOnce(&mut State) -> T) -> T {
        apply(&mut self.0.lock().unwrap())
    }

    /// Returns the incidents by key.
    pub fn incidents(&self) -> BTreeMap<String, Incident> {
        self.with(|state| state.incidents.clone())
    }

    /// Returns the number of open incidents.
    pub fn open_count(&self) -> usize {
        self.incidents().values().filter(|it| it.is_open).count()
    }
}

/// Reads the key of the incident, the change and the text from a message.
pub type Read = fn(&Received) -> (String, Change, String);

/// A receiver that checks messages against the rules of a provider, and applies the messages to
/// incidents.
#[derive(Debug)]
pub struct Incidents<R> {
    rules: R,
    read: Read,
    board: Board,
}

impl<R> Incidents<R> {
    /// Creates a receiver and the board that shows its incidents.
    pub fn new(rules: R, read: Read) -> (Self, Board) {
        let board = Board::default();
        let incidents = Self {
            rules,
            read,
            board: board.clone(),
        };
        (incidents, board)
    }
}

impl<R: Rules> Rules for Incidents<R> {
    fn judge(&mut self, request: &Received) -> Answer {
        let answer = self.rules.judge(request);
        if !answer.is_accepted() {
            return answer;
        }
        let (key, change, text) = (self.read)(request);
        self.board.with(|state| {
            let known = state.incidents.contains_key(&key);
            if known || change == Change::Open {
                let incident = state.incidents.entry(key).or_default();
                incident.is_open = change != Change::Close;
                incident.is_acknowledged = change == Change::Acknowledge;
                incident.texts.push(text);
            } else {
                state.unknown.push(key);
            }
            let id = request.headers.get("webhook-id");
            let id = id.cloned().unwrap_or_else(|| request.text());
            if state.answers_late && state.seen.insert(id) {
                Answer::without_message(503, "")
            } else {
                answer
            }
        })
    }
}

/// Rules that accept every request.
#[derive(Debug, Clone, Copy)]
pub struct Accepts(
    /// Status of the responses.
    pub u16,
    /// The body of its answers.
    pub &'static str,
);

impl Rules for Accepts {
    fn judge(&mut self, _: &Received) -> Answer {
        Answer::accepted(self.0, self.1)
    }
}
