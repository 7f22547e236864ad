//! Inputs and effects of the model, as plain data.

use crossterm::event::{KeyEvent, MouseEvent};

use super::{attention::Alert, overlay::PaletteTarget, write::TextEdit};
use crate::{
    client::{Command, ServerUpdate},
    keymap::Action,
    theme::Background,
};

#[derive(Debug)]
pub(crate) enum Msg {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Act(Action),
    Find(PaletteTarget),
    /// Selects one row of the list by its id, or marks several. `true` keeps existing marks.
    Choose(Vec<String>, bool),
    Line(usize),
    Fill(usize, String),
    /// Pasted text, never interpreted as keys.
    Paste(String),
    Resize(u16, u16),
    Server(ServerUpdate),
    Tick,
    Edited(TextEdit, Result<String, String>),
    Background(Background),
    Focus(bool),
    Resumed,
    NotOpened(String),
    ProgramEnded(ProgramOutput),
}

/// The output of an ended program.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgramOutput {
    pub(crate) text: String,
    /// How the program ended, such as `exit status: 0`.
    pub(crate) end: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    Send(Command),
    Edit(TextEdit),
    Copy(String),
    Suspend,
    Mouse(bool),
    Alert(Alert),
    EndAlert,
    Open(String),
    /// Run a program with these arguments, without a shell.
    Run(Vec<String>),
    StopRun,
}
