//! What lies over a page and takes the keys: confirmation, prompt, picker, palette and help.

mod palette;

pub(crate) use self::palette::{Item, Palette, PaletteTarget};
use super::{
    Model, bulk::Bulk, field::TextField, inquiry::Inquiry, silencing::SilenceChoice, write::Write,
};
use serde_json::Value;

use crate::{client::Call, data::Object, theme::Token};

/// What lies over a page.
#[derive(Clone, Debug)]
pub(crate) enum Overlay {
    Confirm(Confirm),
    Clash(Box<Clash>),
    Bulk(Box<Bulk>),
    Prompt(Prompt),
    Pick(Pick),
    Palette(Palette),
    Menu(Menu),
    Silence(Box<SilenceChoice>),
    /// A new client's key, which is shown this once.
    Key {
        name: String,
        key: String,
    },
}

impl Overlay {
    /// Whether keys type a text.
    pub(crate) fn takes_text(&self) -> bool {
        match self {
            Self::Prompt(_) | Self::Pick(_) | Self::Palette(_) => true,
            Self::Silence(choice) => choice.other.is_some(),
            Self::Confirm(_)
            | Self::Clash(_)
            | Self::Bulk(_)
            | Self::Menu(_)
            | Self::Key { .. } => false,
        }
    }
}

/// A question with what will change. The answer is No until a user says Yes.
#[derive(Clone, Debug)]
pub(crate) struct Confirm {
    pub(crate) title: String,
    pub(crate) lines: Vec<(Token, String)>,
    /// What Yes does, as `Delete`.
    pub(crate) verb: &'static str,
    pub(crate) yes: bool,
    /// The first line shown.
    pub(crate) top: usize,
    pub(crate) then: Consequence,
}

/// Two versions of one object: the one that was typed and the one that others stored meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Clash {
    pub(crate) mine: Object,
    pub(crate) theirs: Object,
    /// The version of theirs.
    pub(crate) etag: String,
    /// Both differences.
    pub(crate) lines: Vec<(Token, String)>,
    pub(crate) choice: ClashChoice,
    /// The first line shown.
    pub(crate) top: usize,
}

/// What to make of two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClashChoice {
    /// Continue editing what was typed.
    Edit,
    /// Give up what was typed.
    Theirs,
    /// Put what was typed over it.
    Mine,
}

impl ClashChoice {
    pub(crate) const ALL: [Self; 3] = [Self::Edit, Self::Theirs, Self::Mine];

    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Edit => "back to editing",
            Self::Theirs => "take theirs",
            Self::Mine => "mine over theirs",
        }
    }
}

/// What a Yes does.
#[derive(Clone, Debug)]
pub(crate) enum Consequence {
    Write(Box<Call>, Box<Write>),
    /// Leave the form and lose what was typed.
    LeaveForm,
    /// Make this test; without a title, the one on the screen again.
    Test(Option<String>, Box<Inquiry>),
    /// Take back what was done last.
    Undo,
    /// End the console and lose what was typed.
    Quit,
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

/// One line of text is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Prompt {
    pub(crate) title: String,
    pub(crate) help: &'static str,
    pub(crate) field: TextField,
    /// What may be meant: Tab completes what is typed to the first that begins with it.
    pub(crate) offers: Vec<String>,
    pub(crate) then: PromptPurpose,
}

impl Prompt {
    /// The offers that begin with what is typed.
    pub(crate) fn offered(&self) -> impl Iterator<Item = &str> {
        let typed = self.field.text();
        let offers = self.offers.iter().map(String::as_str);
        offers.filter(move |it| it.starts_with(typed) && *it != typed)
    }
}

/// One of a few things is wanted, each with a separate key.
#[derive(Clone, Debug)]
pub(crate) struct Menu {
    pub(crate) title: String,
    pub(crate) help: &'static str,
    pub(crate) items: Vec<MenuItem>,
    pub(crate) cursor: usize,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct MenuItem {
    pub(crate) key: char,
    pub(crate) label: String,
    pub(crate) what: What,
}

/// What choosing it copies or shows.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Text(String),
    /// The event with this id in full, which the service is asked for.
    Event(String),
    /// Events counted by what this field holds.
    Field(String),
    /// The view of this name; empty for all events.
    View(String),
}

impl What {
    /// Its beginning, for people.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
            Self::Event(_) => "the whole event, as the service has it".to_owned(),
            Self::Field(_) | Self::View(_) => String::new(),
        }
    }
}

/// What a prompt's text is for.
#[derive(Clone, Debug)]
pub(crate) enum PromptPurpose {
    /// A note on these occurrences, or on all that the list's filter leaves.
    Annotate(Vec<String>),
    AnnotateAll,
    /// Who is to look after what is marked, selected or shown.
    Assign,
    /// Who is on call instead by that schedule, and until when.
    Override(String),
    /// Which expectation of that heartbeat is forgotten.
    Forget(String),
    /// How long the acknowledgement of that response's event counts.
    AcknowledgeFor(String),
    /// What to look for in the document on the screen.
    Search,
    /// What an intake mapping is to be tested with: the title of the test, and the fields of its
    /// request.
    Document {
        title: String,
        fields: Value,
    },
}

/// Several of a list of names are wanted for the focused field of the form, or one event for the
/// report.
#[derive(Clone, Debug)]
pub(crate) struct Pick {
    pub(crate) title: String,
    pub(crate) items: Vec<String>,
    pub(crate) chosen: Vec<String>,
    /// The event of each item, when one event is wanted; empty for the sample.
    pub(crate) events: Option<Vec<String>>,
    /// Whether they are the columns of the list on the screen.
    pub(crate) is_of_columns: bool,
    pub(crate) needle: TextField,
    pub(crate) cursor: usize,
}

impl Pick {
    /// The names that the needle leaves.
    pub(crate) fn shown(&self) -> Vec<&String> {
        let needle = self.needle.text().to_lowercase();
        self.items
            .iter()
            .filter(|item| item.to_lowercase().contains(&needle))
            .collect()
    }

    /// The event under the cursor; what was typed when it is no item, as it may be an id.
    pub(crate) fn event(&self) -> Option<String> {
        let events = self.events.as_ref()?;
        let item = self.shown().get(self.cursor).copied();
        let at = item.and_then(|item| {
            self.items
                .iter()
                .position(|other| std::ptr::eq(other, item))
        });
        let event = at.and_then(|at| events.get(at)).cloned();
        Some(event.unwrap_or_else(|| self.needle.text().trim().to_owned()))
    }

    pub(crate) fn toggle(&mut self) {
        let Some(name) = self.shown().get(self.cursor).map(|name| (*name).clone()) else {
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
    /// What is done to many and lies over the page.
    pub(crate) fn bulk_mut(&mut self) -> Option<&mut Bulk> {
        match &mut self.overlay {
            Some(Overlay::Bulk(bulk)) => Some(bulk),
            _ => None,
        }
    }
}
