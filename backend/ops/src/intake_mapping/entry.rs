//! An entry of a document that is mapped; no I/O.

use serde_json::Value;

use crate::{
    error::Error,
    matching::{Document, DocumentQuery},
    template::{Budget, RenderError},
};

/// Name of the request in templates and clauses.
pub(super) const REQUEST: &str = "request";

/// An entry with the shared budget of its document.
pub(super) struct EntryContext<'a> {
    pub(super) data: &'a Value,
    condition_document: Option<&'a Document>,
    budget: &'a mut Budget,
}

impl<'a> EntryContext<'a> {
    pub(super) fn new(
        data: &'a Value,
        condition_document: Option<&'a Document>,
        budget: &'a mut Budget,
    ) -> Self {
        Self {
            data,
            condition_document,
            budget,
        }
    }

    /// Returns whether the entry meets a condition; `None` without a condition.
    pub(super) fn is(
        &mut self,
        what: &str,
        query: Option<&DocumentQuery>,
    ) -> Result<Option<bool>, Error> {
        let Some((query, document)) = query.zip(self.condition_document) else {
            return Ok(None);
        };
        let spent = self.budget.spend(query.steps(document));
        spent.map_err(|error| limit_error(what, &error))?;
        Ok(Some(query.matches(document)))
    }

    pub(super) fn render(
        &mut self,
        what: &str,
        render: impl FnOnce(&Value, &mut Budget) -> Result<String, RenderError>,
    ) -> Result<String, Error> {
        render(self.data, self.budget).map_err(|error| limit_error(what, &error))
    }
}

fn limit_error(what: &str, error: &RenderError) -> Error {
    Error::invalid("body", format!("{what}: {error}"))
}

pub(super) fn without_request(data: &Value) -> Value {
    match data {
        Value::Object(members) => {
            let members = members.iter().filter(|(name, _)| *name != REQUEST);
            members
                .map(|(name, it)| (name.clone(), it.clone()))
                .collect()
        }
        other => other.clone(),
    }
}
