//! Overlays, which receive the keys: confirmation, prompt, picker, palette and help.

mod palette;

pub(crate) use self::palette::{Item, Palette, PaletteTarget};
use super::{
    Model, bulk::Bulk, field::TextField, inquiry::Inquiry, silencing::SilenceChoice, write::Write,
};
use serde_json::Value;

use crate::{client::Call, data::Object, kind::line_format::LineFormat, theme::Token};

#[derive(Clone, Debug)]
pub(crate) enum Overlay {
    Confirm(Confirm),
    Clash(Box<Clash>),
    Bulk(Box<Bulk>),
    Prompt(Prompt),
    Picker(Picker),
    Palette(Palette),
    Menu(Menu),
    Silence(Box<SilenceChoice>),
    Key { name: String, key: String },
    Program(ProgramPane),
}

impl Overlay {
    pub(crate) fn accepts_text(&self) -> bool {
        match self {
            Self::Prompt(_) | Self::Picker(_) | Self::Palette(_) => true,
            Self::Silence(choice) => choice.typing.is_some(),
            Self::Confirm(_)
            | Self::Clash(_)
            | Self::Bulk(_)
            | Self::Menu(_)
            | Self::Key { .. }
            | Self::Program(_) => false,
        }
    }
}

/// A question about a change. The default is No, since keys may have been typed ahead.
#[derive(Clone, Debug)]
pub(crate) struct Confirm {
    pub(crate) title: String,
    pub(crate) lines: Vec<(Token, String)>,
    pub(crate) verb: &'static str,
    pub(crate) yes: bool,
    pub(crate) top: usize,
    pub(crate) then: Consequence,
}

#[derive(Clone, Debug)]
pub(crate) struct Clash {
    pub(crate) mine: Object,
    pub(crate) theirs: Object,
    pub(crate) etag: String,
    pub(crate) lines: Vec<(Token, String)>,
    pub(crate) choice: ClashChoice,
    pub(crate) top: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClashChoice {
    Edit,
    TakeTheirs,
    Overwrite,
}

impl ClashChoice {
    pub(crate) const ALL: [Self; 3] = [Self::Edit, Self::TakeTheirs, Self::Overwrite];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Edit => "back to editing",
            Self::TakeTheirs => "take theirs",
            Self::Overwrite => "mine over theirs",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Consequence {
    Write(Box<Call>, Box<Write>),
    LeaveForm,
    /// Run this test; without a title, repeat the test on the screen.
    Test(Option<String>, Box<Inquiry>),
    Undo,
    Quit,
    Run(Box<Program>),
}

/// A custom command with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) words: Vec<String>,
    /// The command as a line for a shell, for display.
    pub(crate) shown: String,
}

/// The pane with the output of a command.
#[derive(Clone, Debug)]
pub(crate) struct ProgramPane {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    /// How the program ended; `None` while it runs.
    pub(crate) end: Option<String>,
    pub(crate) top: usize,
}

impl Confirm {
    pub(crate) fn new(title: impl Into<String>, verb: &'static str, then: Consequence) -> Self {
        Self {
            title: title.into(),
            lines: Vec::new(),
            verb,
            yes: false,
            top: 0,
            then,
        }
    }

    pub(crate) fn line(mut self, token: Token, text: impl Into<String>) -> Self {
        self.lines.push((token, text.into()));
        self
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Prompt {
    pub(crate) title: String,
    pub(crate) help: &'static str,
    pub(crate) field: TextField,
    /// Suggestions; Tab completes the text to the first that begins with it.
    pub(crate) offers: Vec<String>,
    pub(crate) then: PromptPurpose,
}

impl Prompt {
    pub(crate) fn suggestions(&self) -> impl Iterator<Item = &str> {
        let typed = self.field.text();
        let offers = self.offers.iter().map(String::as_str);
        offers.filter(move |it| it.starts_with(typed) && *it != typed)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Menu {
    pub(crate) title: String,
    pub(crate) help: &'static str,
    pub(crate) items: Vec<MenuItem>,
    pub(crate) cursor: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct MenuItem {
    pub(crate) key: char,
    pub(crate) label: String,
    pub(crate) what: MenuAction,
}

#[derive(Clone, Debug)]
pub(crate) enum MenuAction {
    Text(String),
    /// Copy the event with this id in full, as read from the service.
    Event(String),
    Field(String),
    /// Show the view of this name; empty for all events.
    View(String),
    /// Open this URL in a browser.
    Open(String),
}

impl MenuAction {
    pub(crate) fn preview(&self) -> String {
        match self {
            Self::Text(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
            Self::Open(url) => url.clone(),
            Self::Event(_) => "the whole event as stored".to_owned(),
            Self::Field(_) | Self::View(_) => String::new(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum PromptPurpose {
    /// Adds a note to these occurrences.
    Annotate(Vec<String>),
    AnnotateAll,
    Assign,
    Override(String),
    Forget(String),
    /// The duration of the acknowledgement of that response's event.
    AcknowledgeFor(String),
    Search,
    /// The document to test an intake mapping with: the title of the test, and the fields of its
    /// request.
    Document {
        title: String,
        fields: Value,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Picker {
    pub(crate) title: String,
    pub(crate) items: Vec<String>,
    pub(crate) chosen: Vec<String>,
    /// The value of each item, if a single one is picked.
    pub(crate) values: Option<Vec<String>>,
    pub(crate) purpose: PickerPurpose,
    pub(crate) needle: TextField,
    pub(crate) cursor: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PickerPurpose {
    /// Names for the focused field of the form.
    Names,
    Choice,
    Columns,
    /// An event for a test; the value is its id, empty for the sample.
    Event,
    /// Names for a new line of the focused field.
    Line(LineFormat),
    /// The wait after a step with these targets.
    Wait(String),
    /// The hand-offs of a layer with these contacts.
    HandOff(String),
}

impl Picker {
    pub(crate) fn matching_items(&self) -> Vec<&String> {
        let needle = self.needle.text().to_lowercase();
        self.items
            .iter()
            .filter(|item| item.to_lowercase().contains(&needle))
            .collect()
    }

    pub(crate) fn has_marks(&self) -> bool {
        self.values.is_none() && self.purpose != PickerPurpose::Choice
    }

    /// Returns the value under the cursor; else the text typed. `None` if items have no values.
    pub(crate) fn value(&self) -> Option<String> {
        let values = self.values.as_ref()?;
        let item = self.matching_items().get(self.cursor).copied();
        let at = item.and_then(|item| {
            self.items
                .iter()
                .position(|other| std::ptr::eq(other, item))
        });
        let value = at.and_then(|at| values.get(at)).cloned();
        Some(value.unwrap_or_else(|| self.needle.text().trim().to_owned()))
    }

    pub(crate) fn toggle(&mut self) {
        let Some(name) = self
            .matching_items()
            .get(self.cursor)
            .map(|name| (*name).clone())
        else {
            return;
        };
        match self.chosen.iter().position(|other| *other == name) {
            Some(at) => {
                self.chosen.remove(at);
            }
            None => self.chosen.push(name),
        }
    }
}

impl Model {
    pub(crate) fn bulk_mut(&mut self) -> Option<&mut Bulk> {
        match &mut self.overlay {
            Some(Overlay::Bulk(bulk)) => Some(bulk),
            _ => None,
        }
    }
}
