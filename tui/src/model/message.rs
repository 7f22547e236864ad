//! Inputs and effects of the model, as plain data.

use crossterm::event::{KeyEvent, MouseEvent};

use super::{overlay::PaletteTarget, write::TextEdit};
use crate::{
    client::{Command, News},
    keymap::Action,
    theme::Background,
};

/// An input of the model.
#[derive(Debug)]
pub(crate) enum Msg {
    Key(KeyEvent),
    /// A click or the wheel.
    Mouse(MouseEvent),
    /// An action, regardless of its keys.
    Act(Action),
    /// An entry chosen in the palette.
    Find(PaletteTarget),
    /// Selects rows of the list by id: one is selected, several are marked. With `true`, marks are
    /// added to existing ones.
    Choose(Vec<String>, bool),
    /// Selects a line of the page.
    Line(usize),
    /// Fills in a field of the form, by index.
    Fill(usize, String),
    /// Pasted text, never interpreted as keys.
    Paste(String),
    Resize(u16, u16),
    News(News),
    /// A requested time has come.
    Tick,
    /// The editor closed with this text, or failed to run.
    Edited(TextEdit, Result<String, String>),
    /// The terminal reported its background.
    Background(Background),
    /// The console resumed after it was suspended.
    Resumed,
}

/// An effect outside of the model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    Send(Command),
    /// Opens a text in `$EDITOR`.
    Edit(TextEdit),
    /// Copies text to the clipboard.
    Copy(String),
    /// Suspends the console.
    Suspend,
    /// Enables or disables mouse input.
    Mouse(bool),
}
