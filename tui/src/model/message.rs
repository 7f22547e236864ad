//! What can happen to the model, and what it asks of the world: plain data.

use crossterm::event::{KeyEvent, MouseEvent};

use super::{overlay::PaletteTarget, write::TextEdit};
use crate::{
    client::{Command, News},
    keymap::Action,
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
    Find(PaletteTarget),
    /// Rows of the list are meant, by their ids: one is selected, several are marked. With `true`
    /// they are marked in addition to those that are.
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
    /// The terminal reported its background.
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
