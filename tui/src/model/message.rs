//! What can happen to the model, and what it asks of the world: plain data.

use crossterm::event::{KeyEvent, MouseEvent};

use super::{form::Form, overlay::Target};
use crate::{
    client::{Command, News},
    data::{Kind, Object},
    keymap::Action,
    kind,
    route::Route,
    theme::Background,
};

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Msg {
    Key(KeyEvent),
    /// A click or the wheel.
    Mouse(MouseEvent),
    /// An action of the list, whatever its keys.
    Act(Action),
    /// What was found in the palette.
    Find(Target),
    /// Rows of the list are meant, by their ids: one is selected, several are marked. With `true`
    /// they are marked besides those that are.
    Choose(Vec<String>, bool),
    /// A line of the document is meant.
    Line(usize),
    /// A text for a field of the form, by the field's number.
    Fill(usize, String),
    /// Pasted text; never taken as keys.
    Paste(String),
    Resize(u16, u16),
    News(News),
    /// A time the model asked for has come.
    Tick,
    /// The editor closed with this text, or could not be run.
    Edited(TextEdit, Result<String, String>),
    /// The terminal told what it writes on.
    Background(Background),
    /// The terminal is ours again after the shell had it.
    Resumed,
}

/// Something to be done outside the model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    Send(Command),
    /// Let the operator edit a text in `$EDITOR`.
    Edit(TextEdit),
    /// Put text on the terminal's clipboard.
    Copy(String),
    /// Hand the terminal back to the shell.
    Suspend,
    /// Take the mouse, or leave it to the terminal.
    Mouse(bool),
}

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
    /// What was to replace something stored, kept for when that changed meanwhile.
    pub(crate) mine: Option<Box<Object>>,
}

impl TextEdit {
    /// The text of what stands in a form.
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
