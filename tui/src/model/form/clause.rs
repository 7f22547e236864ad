//! A condition, written as a filter.

use bellwether_language::filter;
use bellwether_proto::{clause, json, v1};
use serde_json::Value;

use crate::model::field::TextField;

#[derive(Clone, Debug, Default)]
pub(crate) struct ClauseInput {
    pub(crate) line: TextField,
    /// The condition parsed from the last valid text.
    clause: Option<filter::Clause>,
    error: Option<String>,
    /// A condition that has no filter notation, such as one of a newer service; it is saved
    /// unchanged.
    unknown: Option<Value>,
}

impl ClauseInput {
    pub(super) fn read(value: Option<&Value>) -> Self {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Self::default();
        };
        let wire = json::from_json::<v1::Clause>(value.to_string().as_bytes()).ok();
        let clause = wire.as_ref().and_then(clause::from_wire);
        match clause {
            Some(clause) => Self::from_clause(clause),
            None => Self {
                unknown: Some(value.clone()),
                ..Self::default()
            },
        }
    }

    fn from_clause(clause: filter::Clause) -> Self {
        Self {
            line: TextField::new(filter::print_clause(&clause)),
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

    pub(crate) fn describe(&self) -> String {
        match &self.unknown {
            Some(value) => value.to_string(),
            None if self.line.text().is_empty() => "nothing".to_owned(),
            None => self.line.text().to_owned(),
        }
    }

    /// Parses a condition typed on one line, as JSON or as a filter.
    pub(super) fn parse_line(text: &str) -> Result<Self, String> {
        if text.starts_with('{') {
            let read = json::from_json::<v1::Clause>(text.as_bytes());
            read.map_err(|error| error.to_string())?;
            let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
            return Ok(Self::read(Some(&value)));
        }
        let read = filter::parse(text, None).map_err(|error| error.to_string())?;
        Ok(Self::from_clause(read.clause))
    }

    /// Returns the error. An empty condition is an error only if a condition is required.
    pub(super) fn error(&self, needed: bool) -> Option<String> {
        let is_missing = needed && self.clause.is_none() && self.unknown.is_none();
        let missing =
            || is_missing.then(|| "expected a condition, such as severity>=error".to_owned());
        self.error.clone().or_else(missing)
    }

    pub(crate) fn is_unknown(&self) -> bool {
        self.unknown.is_some() && self.clause.is_none() && self.line.text().is_empty()
    }

    /// Parses the text after an edit. An invalid filter leaves the condition unchanged.
    pub(super) fn parse_text(&mut self) {
        let text = self.line.text();
        if text.trim().is_empty() {
            (self.clause, self.error) = (None, None);
            return;
        }
        match filter::parse(text, None) {
            Ok(read) => (self.clause, self.error) = (Some(read.clause), None),
            Err(error) => self.error = Some(error.to_string()),
        }
    }
}
