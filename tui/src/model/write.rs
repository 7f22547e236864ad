//! A write under way, and the text it came from.

use super::{form::Form, undo::Back};
use crate::{
    data::{Kind, Object},
    kind,
    route::Route,
};

/// A text on its way to `$EDITOR`, and what it is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TextEdit {
    pub(crate) kind: Kind,
    /// The name and etag of what is edited; absent for a new one.
    pub(crate) stored: Option<(String, String)>,
    /// The text as it was handed over.
    pub(crate) text: String,
    /// Whether the text goes back into the form on the screen.
    pub(crate) into_form: bool,
}

/// A write under way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    /// Said when it is done.
    pub(crate) done: String,
    /// Whether the form on the screen is left when it is done.
    pub(crate) closes_form: bool,
    /// The text it came from, reopened with the errors when it is refused.
    pub(crate) text: Option<TextEdit>,
    /// Shown when it is done.
    pub(crate) then: Option<Route>,
    /// What takes it back, where it left without a question because of that.
    pub(crate) back: Option<Back>,
    /// Whether it left without a question.
    pub(crate) at_once: bool,
    /// What was to replace something stored, kept for when that changed meanwhile.
    pub(crate) mine: Option<Box<Object>>,
}

impl Write {
    /// A write that is followed by nothing but this message.
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
    /// The text of what is in a form.
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
