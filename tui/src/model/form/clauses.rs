//! A condition as one line of text and as the tree of its parts; each follows the other.

mod tree;

use bellwether_proto::{filter, json, v1};
use serde_json::Value;

pub(crate) use self::tree::{Node, Row, goes_on};
use crate::{limits, model::field::TextField};

/// A condition being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClauseInput {
    /// The whole as a filter.
    pub(crate) line: TextField,
    rows: Vec<Row>,
    /// What the line and the rows meant when they last meant something.
    clause: Option<filter::Clause>,
    fault: Option<String>,
    /// A condition that no filter says, as of a newer service: it stays as it is.
    unknown: Option<Value>,
}

impl ClauseInput {
    pub(super) fn read(value: Option<&Value>) -> Self {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Self::default();
        };
        let wire = json::from_json::<v1::Clause>(value.to_string().as_bytes()).ok();
        let clause = wire.as_ref().and_then(filter::Clause::of_wire);
        match clause {
            Some(clause) => Self::of(clause),
            None => Self {
                unknown: Some(value.clone()),
                ..Self::default()
            },
        }
    }

    fn of(clause: filter::Clause) -> Self {
        Self {
            line: TextField::new(filter::print(&clause)),
            rows: tree::rows_of(&clause),
            clause: Some(clause),
            ..Self::default()
        }
    }

    pub(super) fn write(&self) -> Option<Value> {
        let clause = self.clause.as_ref().map(v1::Clause::from);
        let written = clause.and_then(|it| json::to_json(&it).ok());
        let written = written.and_then(|it| serde_json::from_slice(&it).ok());
        written.or_else(|| self.unknown.clone())
    }

    /// The condition in one line, for people.
    pub(crate) fn in_words(&self) -> String {
        match &self.unknown {
            Some(value) => value.to_string(),
            None if self.line.text().is_empty() => "nothing".to_owned(),
            None => self.line.text().to_owned(),
        }
    }

    /// A condition as it is typed on one line: as JSON, or as a filter.
    ///
    /// # Errors
    /// It is neither; a sentence for people.
    pub(super) fn typed(text: &str) -> Result<Self, String> {
        if text.starts_with('{') {
            let read = json::from_json::<v1::Clause>(text.as_bytes());
            read.map_err(|error| error.to_string())?;
            let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
            return Ok(Self::read(Some(&value)));
        }
        let read = filter::parse(text, None).map_err(|fault| fault.to_string())?;
        Ok(Self::of(read.clause))
    }

    /// What is wrong with it; that there is none only where one is needed.
    pub(super) fn error(&self, needed: bool) -> Option<String> {
        let is_missing = needed && self.clause.is_none() && self.unknown.is_none();
        let missing = || is_missing.then(|| "a condition is needed, as severity>=error".to_owned());
        self.fault.clone().or_else(missing)
    }

    /// The rows that are shown below the line: those of a single part would only say it again.
    pub(crate) fn tree(&self) -> &[Row] {
        if self.rows.len() > 1 { &self.rows } else { &[] }
    }

    /// Whether it is shown here what it is.
    pub(crate) fn is_unknown(&self) -> bool {
        self.unknown.is_some() && self.clause.is_none() && self.line.text().is_empty()
    }

    /// The line, and each row of the tree.
    pub(super) fn parts(&self) -> usize {
        1 + self.tree().len()
    }

    /// The text that is typed into at a part.
    pub(crate) fn text(&self, part: usize) -> Option<&TextField> {
        let Some(row) = part.checked_sub(1) else {
            return Some(&self.line);
        };
        match &self.rows.get(row)?.node {
            Node::Part(field) => Some(field),
            Node::Group { .. } => None,
        }
    }

    pub(crate) fn text_mut(&mut self, part: usize) -> Option<&mut TextField> {
        let Some(row) = part.checked_sub(1) else {
            return Some(&mut self.line);
        };
        match &mut self.rows.get_mut(row)?.node {
            Node::Part(field) => Some(field),
            Node::Group { .. } => None,
        }
    }

    /// Has the line and the tree say the same, after something was typed at a part.
    pub(crate) fn follow(&mut self, part: usize) {
        if part > 0 {
            return self.follow_tree();
        }
        let text = self.line.text();
        if text.trim().is_empty() {
            (self.clause, self.fault) = (None, None);
            return self.rows.clear();
        }
        match filter::parse(text, None) {
            Ok(read) => {
                self.rows = tree::rows_of(&read.clause);
                (self.clause, self.fault) = (Some(read.clause), None);
            }
            Err(fault) => self.fault = Some(fault.to_string()),
        }
    }

    fn follow_tree(&mut self) {
        match tree::clause_of(&self.rows) {
            Ok(clause) => {
                let line = clause.as_ref().map_or_else(String::new, filter::print);
                self.line = TextField::new(line);
                (self.clause, self.fault) = (clause, None);
            }
            Err(fault) => self.fault = Some(fault.to_string()),
        }
    }

    /// Turns the group at a part into one of the other kind; `false` for text.
    pub(crate) fn turn(&mut self, part: usize) -> bool {
        let row = part.checked_sub(1).and_then(|row| self.rows.get_mut(row));
        match row.map(|row| &mut row.node) {
            Some(Node::Group { any }) => *any = !*any,
            _ => return false,
        }
        self.follow_tree();
        true
    }

    /// Adds a part after the one that has the focus; returns where the focus goes.
    ///
    /// # Errors
    /// The limit of clauses is reached; a sentence for people.
    pub(crate) fn add(&mut self, part: usize) -> Result<usize, String> {
        if self.rows.len() >= limits::FORM_CLAUSES {
            return Err(format!("at most {} rows", limits::FORM_CLAUSES));
        }
        let row = tree::add(&mut self.rows, part.checked_sub(1));
        Ok(self.focus_on(row))
    }

    /// Removes what has the focus; says where that goes.
    pub(crate) fn remove(&mut self, part: usize) -> usize {
        match part.checked_sub(1).filter(|row| *row < self.rows.len()) {
            None => {
                self.rows.clear();
                self.follow_tree();
                0
            }
            Some(row) => {
                let row = tree::remove(&mut self.rows, row);
                self.follow_tree();
                self.focus_on(row)
            }
        }
    }

    /// Has the opposite hold of what has the focus.
    pub(crate) fn negate(&mut self, part: usize) -> usize {
        if let Some(row) = self.rows.get_mut(part.saturating_sub(1)) {
            row.negated = !row.negated;
            self.follow_tree();
        }
        part.min(self.parts() - 1)
    }

    /// Joins what has the focus with what is before it.
    ///
    /// # Errors
    /// There is nothing; a sentence for people.
    pub(crate) fn nest(&mut self, part: usize) -> Result<usize, String> {
        self.moved(part, tree::nest)
    }

    /// Takes what has the focus out of its group.
    ///
    /// # Errors
    /// It is in none; a sentence for people.
    pub(crate) fn unnest(&mut self, part: usize) -> Result<usize, String> {
        self.moved(part, tree::unnest)
    }

    fn moved(
        &mut self,
        part: usize,
        change: fn(&mut Vec<Row>, usize) -> Result<usize, String>,
    ) -> Result<usize, String> {
        let row = part.checked_sub(1).filter(|row| *row < self.rows.len());
        let row = row.ok_or("go to a row of the tree first")?;
        let row = change(&mut self.rows, row)?;
        self.follow_tree();
        Ok(self.focus_on(row))
    }

    /// The part that a row is.
    fn focus_on(&self, row: usize) -> usize {
        if self.tree().is_empty() { 0 } else { row + 1 }
    }
}
