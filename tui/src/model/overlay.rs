//! What lies over a page and takes the keys: confirmation, prompt, picker, palette and help.

use nucleo_matcher::{
    Config, Matcher,
    pattern::{CaseMatching, Normalization, Pattern},
};

use super::{Model, access, field::TextField, message::Write, page::Route};
use crate::{
    client::Request,
    keymap::{self, Action},
    theme::Token,
};

/// What lies over a page.
#[derive(Clone, Debug)]
pub(crate) enum Overlay {
    Confirm(Confirm),
    Prompt(Prompt),
    Pick(Pick),
    Palette(Palette),
    /// A new client's key, which is shown this once.
    Key {
        name: String,
        key: String,
    },
}

/// A question with what will change. The answer is No until somebody says Yes.
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

/// What a Yes does.
#[derive(Clone, Debug)]
pub(crate) enum Consequence {
    Write(Box<Request>, Box<Write>),
    /// Leave the form and lose what was typed.
    LeaveForm,
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
    pub(crate) then: Asked,
}

/// What a prompt's text is for.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// A note on this occurrence.
    Annotate(String),
    /// The event that the report's request is repeated with.
    ReportEvent,
}

/// Several of a list of names are wanted, for the focused field of the form.
#[derive(Clone, Debug)]
pub(crate) struct Pick {
    pub(crate) title: String,
    pub(crate) items: Vec<String>,
    pub(crate) chosen: Vec<String>,
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

/// A list of what can be done, searched by typing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Palette {
    pub(crate) field: TextField,
    pub(crate) cursor: usize,
    /// Only what can be done here: the help.
    pub(crate) here: bool,
}

/// One entry of the palette.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) title: String,
    pub(crate) keys: String,
    /// Why it cannot be done now.
    pub(crate) refusal: Option<String>,
    pub(crate) target: Target,
}

/// What an entry of the palette does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    Act(Action),
    Go(Route),
}

impl Palette {
    /// The entries that what is typed leaves, best first.
    pub(crate) fn items(&self, model: &Model) -> Vec<Item> {
        let mut items = actions(model);
        if !self.here {
            // Where to go stands before what to do.
            items.sort_by_key(|item| !item.title.starts_with("Go to"));
            items.extend(objects(model));
        }
        let typed = self.field.text().trim();
        if typed.is_empty() {
            return items;
        }
        let pattern = Pattern::parse(typed, CaseMatching::Ignore, Normalization::Smart);
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut buffer = Vec::new();
        let mut ranked: Vec<(u32, Item)> = items
            .into_iter()
            .filter_map(|item| {
                if item.keys == typed {
                    return Some((u32::MAX, item));
                }
                let text = nucleo_matcher::Utf32Str::new(&item.title, &mut buffer);
                pattern.score(text, &mut matcher).map(|score| (score, item))
            })
            .collect();
        ranked.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        ranked.into_iter().map(|(_, item)| item).collect()
    }
}

fn actions(model: &Model) -> Vec<Item> {
    let places = model.page.route.places();
    let item = |entry: &keymap::Entry| Item {
        title: entry.title.to_owned(),
        keys: model
            .keymap
            .keys(entry, &places)
            .map(keymap::shown)
            .collect::<Vec<_>>()
            .join("  "),
        refusal: access::refusal(model, entry).err(),
        target: Target::Act(entry.action),
    };
    let applying = keymap::available(&places).filter(|entry| access::applies(model, entry));
    applying.map(item).collect()
}

fn objects(model: &Model) -> Vec<Item> {
    let store = &model.store;
    let triggers = store
        .triggers
        .rows()
        .iter()
        .map(|row| Route::Trigger(row.spec.name.clone()));
    let destinations = store
        .destinations
        .rows()
        .iter()
        .map(|row| Route::Destination(row.spec.name.clone()));
    let rules = store
        .rules
        .rows()
        .iter()
        .map(|row| Route::Rule(row.spec.name.clone()));
    let item = |route: Route| {
        let word = route.screen().to_lowercase();
        let word = word.trim_end_matches('s');
        let title = format!("{word} {}", route.object());
        Item {
            title,
            keys: String::new(),
            refusal: None,
            target: Target::Go(route),
        }
    };
    triggers
        .chain(destinations)
        .chain(rules)
        .map(item)
        .collect()
}
