//! A query as a list of clauses, or as JSON when it is nested; switching loses nothing.

use bellwether_proto::{
    filter, json,
    v1::{self, Clause, clause::Kind},
};
use serde_json::Value;

use crate::{
    data::{Comparison, describe},
    limits,
    model::field::TextField,
};

/// A query being written.
#[derive(Clone, Debug)]
pub(crate) struct ClauseInput {
    /// Whether one clause is enough, or all must hold.
    pub(crate) any: bool,
    pub(crate) rows: Vec<Row>,
    /// The query as JSON, while that is what is edited.
    pub(crate) json: Option<TextField>,
}

/// One comparison of the list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) negated: bool,
    pub(crate) field: TextField,
    /// The position among [`Comparison::ALL`].
    pub(crate) comparison: usize,
    pub(crate) value: TextField,
}

/// A place in the list that can be focused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Any,
    Negated(usize),
    Field(usize),
    Comparison(usize),
    Value(usize),
    Json,
}

const ROW_PARTS: usize = 4;

impl ClauseInput {
    pub(super) fn read(value: Option<&Value>) -> Self {
        let mut input = Self {
            any: false,
            rows: vec![Row::default()],
            json: None,
        };
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return input;
        };
        let clause = parsed(&value.to_string()).ok();
        match clause.as_ref().and_then(flat) {
            Some((any, rows)) => {
                input.any = any;
                input.rows = rows;
            }
            None => input.json = Some(json_field(value)),
        }
        input
    }

    pub(super) fn write(&self) -> Option<Value> {
        if let Some(field) = &self.json {
            serde_json::from_str(field.text()).ok()
        } else {
            written(&self.clause()?)
        }
    }

    /// The query in one line, for people.
    pub(crate) fn in_words(&self) -> String {
        let Some(value) = self.write() else {
            return "nothing".to_owned();
        };
        let clause = parsed(&value.to_string());
        clause.map_or_else(|_| value.to_string(), |clause| describe(&clause))
    }

    /// A query as it is typed on one line: as JSON, or as a filter of events.
    ///
    /// # Errors
    /// It is neither; a sentence for people.
    pub(super) fn typed(text: &str) -> Result<Self, String> {
        let value = if text.starts_with('{') {
            written(&parsed(text)?)
        } else {
            let read = filter::parse(text, None).map_err(|fault| fault.to_string())?;
            written(&(&read.clause).into())
        };
        Ok(Self::read(value.as_ref()))
    }

    fn clause(&self) -> Option<Clause> {
        let filled = self.rows.iter().filter(|row| !row.is_empty());
        let mut clauses: Vec<Clause> = filled.map(Row::clause).collect();
        match clauses.len() {
            0 => None,
            1 if !self.any => clauses.pop(),
            _ if self.any => Some(with(Kind::Or(v1::Or { clauses }))),
            _ => Some(with(Kind::And(v1::And { clauses }))),
        }
    }

    /// What is wrong with it; that there is none only where one is needed.
    pub(super) fn error(&self, needed: bool) -> Option<String> {
        let none = || needed.then(|| "a query is needed".to_owned());
        if let Some(field) = &self.json {
            let text = field.text();
            return match parsed(text) {
                Ok(_) => None,
                Err(_) if text.trim().is_empty() => none(),
                Err(error) => Some(error),
            };
        }
        if self.rows.iter().all(Row::is_empty) {
            return none();
        }
        let nameless = |row: &&Row| !row.is_empty() && row.field.text().trim().is_empty();
        self.rows
            .iter()
            .find(nameless)
            .map(|_| "a clause lacks its field".to_owned())
    }

    pub(super) fn parts(&self) -> usize {
        if self.json.is_some() {
            1
        } else {
            1 + self.rows.len() * ROW_PARTS
        }
    }

    /// What the part with this number is.
    pub(crate) fn part(&self, number: usize) -> Part {
        if self.json.is_some() {
            return Part::Json;
        }
        let Some(number) = number.checked_sub(1) else {
            return Part::Any;
        };
        let row = (number / ROW_PARTS).min(self.rows.len().saturating_sub(1));
        match number % ROW_PARTS {
            0 => Part::Negated(row),
            1 => Part::Field(row),
            2 => Part::Comparison(row),
            _ => Part::Value(row),
        }
    }

    /// The number of the field part of a row.
    fn field_part(row: usize) -> usize {
        2 + row * ROW_PARTS
    }

    /// The text that is typed into at a part.
    pub(crate) fn text_mut(&mut self, part: usize) -> Option<&mut TextField> {
        match self.part(part) {
            Part::Field(row) => Some(&mut self.rows[row].field),
            Part::Value(row) => Some(&mut self.rows[row].value),
            Part::Json => self.json.as_mut(),
            Part::Any | Part::Negated(_) | Part::Comparison(_) => None,
        }
    }

    /// Turns what is not text at a part; `false` for text.
    pub(crate) fn turn(&mut self, part: usize, forward: bool) -> bool {
        let count = Comparison::ALL.len();
        match self.part(part) {
            Part::Any => self.any = !self.any,
            Part::Negated(row) => self.rows[row].negated = !self.rows[row].negated,
            Part::Comparison(row) => {
                let at = &mut self.rows[row].comparison;
                *at = if forward { *at + 1 } else { *at + count - 1 } % count;
            }
            Part::Field(_) | Part::Value(_) | Part::Json => return false,
        }
        true
    }

    /// Adds a clause after the one at a part; says where the focus goes.
    pub(crate) fn add(&mut self, part: usize) -> usize {
        if self.json.is_some() || self.rows.len() >= limits::FORM_CLAUSES {
            return part;
        }
        let row = match part.checked_sub(1) {
            None => 0,
            Some(number) => (number / ROW_PARTS + 1).min(self.rows.len()),
        };
        self.rows.insert(row, Row::default());
        Self::field_part(row)
    }

    /// Removes the clause at a part; says where the focus goes.
    pub(crate) fn remove(&mut self, part: usize) -> usize {
        let Some(number) = part.checked_sub(1).filter(|_| self.json.is_none()) else {
            return part;
        };
        let row = number / ROW_PARTS;
        if row < self.rows.len() {
            self.rows.remove(row);
        }
        if self.rows.is_empty() {
            self.rows.push(Row::default());
        }
        Self::field_part(row.min(self.rows.len() - 1))
    }

    /// Shows the list as JSON or the JSON as a list.
    ///
    /// # Errors
    /// A sentence for people when the JSON cannot be shown as a list; nothing is changed then.
    pub(crate) fn switch(&mut self) -> Result<(), String> {
        match &self.json {
            None => {
                let clause = self.clause();
                let value = clause.as_ref().and_then(written);
                self.json = Some(json_field(&value.unwrap_or(Value::Null)));
            }
            Some(field) if field.text().trim().is_empty() || field.text().trim() == "null" => {
                self.json = None;
            }
            Some(field) => {
                let clause = parsed(field.text())?;
                let (any, rows) =
                    flat(&clause).ok_or("this query is nested; it can only be shown as JSON")?;
                self.any = any;
                self.rows = rows;
                self.json = None;
            }
        }
        Ok(())
    }
}

/// A condition of its JSON.
fn parsed(text: &str) -> Result<Clause, String> {
    json::from_json(text.as_bytes()).map_err(|error| error.to_string())
}

/// The JSON of a condition.
fn written(clause: &Clause) -> Option<Value> {
    serde_json::from_slice(&json::to_json(clause).ok()?).ok()
}

fn with(kind: Kind) -> Clause {
    Clause { kind: Some(kind) }
}

fn json_field(value: &Value) -> TextField {
    let text = if value.is_null() {
        String::new()
    } else {
        serde_json::to_string_pretty(value).unwrap_or_default()
    };
    TextField::new(text).with_lines()
}

impl Row {
    fn is_empty(&self) -> bool {
        self.field.text().trim().is_empty() && self.value.text().trim().is_empty()
    }

    fn clause(&self) -> Clause {
        let comparison = Comparison::ALL[self.comparison % Comparison::ALL.len()];
        let clause = comparison.clause(self.field.text(), self.value.text());
        if self.negated {
            with(Kind::Not(Box::new(v1::Not {
                clause: Some(Box::new(clause)),
            })))
        } else {
            clause
        }
    }

    fn read(clause: &Clause) -> Option<Self> {
        let (negated, inner) = match &clause.kind {
            Some(Kind::Not(not)) => (true, not.clause.as_deref()?),
            _ => (false, clause),
        };
        let (field, comparison, value) = Comparison::of(inner)?;
        let row = Self {
            negated,
            field: TextField::new(field),
            comparison: Comparison::ALL
                .iter()
                .position(|other| *other == comparison)?,
            value: TextField::new(value),
        };
        // What the list cannot say exactly is left to JSON.
        (row.clause() == *clause && !row.is_empty()).then_some(row)
    }
}

/// The query as a list, when a list can say exactly the same.
fn flat(clause: &Clause) -> Option<(bool, Vec<Row>)> {
    let (any, clauses) = match clause.kind.as_ref()? {
        Kind::And(and) if and.clauses.len() > 1 => (false, and.clauses.as_slice()),
        Kind::Or(or) if !or.clauses.is_empty() => (true, or.clauses.as_slice()),
        Kind::And(_) | Kind::Or(_) => return None,
        _ => (false, std::slice::from_ref(clause)),
    };
    if clauses.len() > limits::FORM_CLAUSES {
        return None;
    }
    let rows = clauses.iter().map(Row::read).collect::<Option<Vec<_>>>()?;
    Some((any, rows))
}
