//! A receiver that keeps incidents by the key that messages name, as on-call services do.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex},
};

use super::{Answer, Rules};
use crate::receiver::Received;

/// What a message does to an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Opens it, or counts once more.
    Open,
    /// Acknowledges it.
    Acknowledge,
    /// Closes it.
    Close,
}

/// An incident.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Incident {
    /// Whether it is open.
    pub is_open: bool,
    /// Whether it is acknowledged.
    pub is_acknowledged: bool,
    /// What the messages about it said, oldest first.
    pub texts: Vec<String>,
}

/// What a receiver holds.
#[derive(Debug, Default)]
pub struct State {
    /// The incidents by key.
    pub incidents: BTreeMap<String, Incident>,
    /// Keys of messages that closed or acknowledged what was never opened.
    pub unknown: Vec<String>,
    /// Whether every message is answered with 503 when it comes first, after it was taken.
    pub answers_late: bool,
    /// Messages that came, by the id of their delivery or else their text.
    seen: HashSet<String>,
}

/// The incidents of a receiver, which a test looks at.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Mutex<State>>);

impl Board {
    /// Looks at what the receiver holds, or changes it.
    ///
    /// # Panics
    /// Never, unless another holder has.
    pub fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap())
    }

    /// The incidents by key.
    pub fn incidents(&self) -> BTreeMap<String, Incident> {
        self.with(|state| state.incidents.clone())
    }

    /// How many are open.
    pub fn open_count(&self) -> usize {
        self.incidents().values().filter(|it| it.is_open).count()
    }
}

/// Returns which incident a message is about, what it does to it, and what it says.
pub type Read = fn(&Received) -> (String, Change, String);

/// A receiver whose messages are judged by its own rules, and change incidents.
#[derive(Debug)]
pub struct Incidents<R> {
    rules: R,
    read: Read,
    board: Board,
}

impl<R> Incidents<R> {
    /// A receiver, and the board that it keeps.
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
        if !answer.is_taken() {
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
                Answer::aside(503, "")
            } else {
                answer
            }
        })
    }
}

/// Takes every request.
#[derive(Debug, Clone, Copy)]
pub struct Accepts(
    /// The status of its answers.
    pub u16,
    /// The body of its answers.
    pub &'static str,
);

impl Rules for Accepts {
    fn judge(&mut self, _: &Received) -> Answer {
        Answer::taken(self.0, self.1)
    }
}
