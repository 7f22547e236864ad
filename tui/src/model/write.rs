//! Writes in flight, and the texts they came from.

use super::{form::Form, undo::UndoAction};
use crate::{
    data::{Kind, Object},
    kind,
    route::Route,
};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TextEdit {
    pub(crate) kind: Kind,
    /// Name and etag of the edited resource; `None` for a new one.
    pub(crate) stored: Option<(String, String)>,
    pub(crate) text: String,
    pub(crate) into_form: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub(crate) done: String,
    pub(crate) closes_form: bool,
    /// The text that the write came from, reopened with the errors if the write is rejected.
    pub(crate) text: Option<TextEdit>,
    pub(crate) then: Option<Route>,
    pub(crate) back: Option<UndoAction>,
    pub(crate) at_once: bool,
    /// The draft to be stored.
    pub(crate) draft: Option<Box<Object>>,
    /// Whether the draft replaces a stored resource, so that an edit conflict is possible.
    pub(crate) replaces: bool,
}

impl Write {
    /// Creates a write that only shows a message on success.
    pub(crate) fn new(done: impl Into<String>) -> Self {
        Self {
            done: done.into(),
            closes_form: false,
            text: None,
            then: None,
            back: None,
            at_once: false,
            draft: None,
            replaces: false,
        }
    }
}

impl TextEdit {
    pub(crate) fn from_form(form: &Form) -> Self {
        let kind = form.kind;
        let json = form.to_json();
        let text = kind::field_text(&Object { kind, json });
        Self {
            kind,
            stored: form.stored.clone(),
            text,
            into_form: true,
        }
    }
}
