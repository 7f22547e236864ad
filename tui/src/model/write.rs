//! Writes in flight, and the texts that they came from.

use super::{form::Form, undo::Back};
use crate::{
    data::{Kind, Object},
    kind,
    route::Route,
};

/// A text for `$EDITOR`, and the resource it describes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TextEdit {
    pub(crate) kind: Kind,
    /// Name and etag of the edited resource; `None` for a new one.
    pub(crate) stored: Option<(String, String)>,
    /// The text before editing.
    pub(crate) text: String,
    /// Whether the text is returned to the form on the screen.
    pub(crate) into_form: bool,
}

/// A write in flight.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    /// Message shown on success.
    pub(crate) done: String,
    /// Whether to leave the form on success.
    pub(crate) closes_form: bool,
    /// The text it came from, reopened with the errors if the write is rejected.
    pub(crate) text: Option<TextEdit>,
    /// The page to open on success.
    pub(crate) then: Option<Route>,
    /// The undo of a write that was sent without a confirmation.
    pub(crate) back: Option<Back>,
    /// Whether it was sent without a confirmation.
    pub(crate) at_once: bool,
    /// The draft that replaces a stored resource, kept in case of an edit conflict.
    pub(crate) mine: Option<Box<Object>>,
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
            mine: None,
        }
    }
}

impl TextEdit {
    /// Returns the text of a form.
    pub(crate) fn of_form(form: &Form) -> Self {
        let kind = form.kind;
        let json = form.to_json();
        let text = kind::text(&Object { kind, json });
        Self {
            kind,
            stored: form.stored.clone(),
            text,
            into_form: true,
        }
    }
}
