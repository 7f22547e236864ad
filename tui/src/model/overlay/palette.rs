//! The palette: actions, screens, resources, and commands with an argument.

use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{CaseMatching, Normalization, Pattern},
};

use crate::{
    data::Kind,
    keymap::{self, Action, ActionPlace, Entry, Group},
    kind, limits,
    model::{
        Model, access,
        field::TextField,
        filter,
        sort::{self, Sort},
    },
    options::View,
    route::Route,
    theme::Theme,
};

#[derive(Clone, Debug, Default)]
pub(crate) struct Palette {
    pub(crate) field: TextField,
    pub(crate) cursor: usize,
    /// Whether only actions available on this screen are listed: the help.
    pub(crate) here: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) title: String,
    pub(crate) keys: String,
    pub(crate) refusal: Option<String>,
    /// The group of an action.
    pub(crate) group: Option<Group>,
    pub(crate) target: PaletteTarget,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PaletteTarget {
    Act(Action),
    ActOn(Route, Action),
    Go(Route),
    Theme(Theme),
    Sort(Sort),
    Group(String),
    View(String),
    Context(String),
    Filter(String),
    List(Route, String),
    /// Silences the events that match a filter until the typed end.
    Silence(String, String),
    /// The index of a custom command in the keymap.
    Run(usize),
    Type(String),
}

const ON_OBJECTS: [(&str, Action); 8] = [
    ("edit", Action::Edit),
    ("text", Action::EditText),
    ("duplicate", Action::Duplicate),
    ("delete", Action::Delete),
    ("test", Action::TestDestination),
    ("try", Action::TestTrigger),
    ("preview", Action::PreviewRule),
    ("switch", Action::Toggle),
];

const WORDS: [(&str, &str); 9] = [
    ("events", "with a filter, such as severity>=error host=db-*"),
    ("deliveries", "with a filter, such as state=dead since=2h"),
    ("silence", "events matching a filter, such as host=db-13 2h"),
    ("theme", "colours of the console"),
    ("sort", "by a column"),
    ("group", "events by a field, such as host"),
    ("view", "events by one of your or the shared views"),
    ("filter", "this list; no text removes the filter"),
    ("event", "by id, or one on the screen"),
];

impl Item {
    fn new(title: impl Into<String>, target: PaletteTarget) -> Self {
        Self {
            title: title.into(),
            keys: String::new(),
            refusal: None,
            group: None,
            target,
        }
    }

    pub(crate) fn completion_text(&self) -> &str {
        match &self.target {
            PaletteTarget::Type(typed) => typed,
            _ => &self.title,
        }
    }
}

impl Palette {
    pub(crate) fn set_text(&mut self, typed: impl Into<String>) {
        self.field = TextField::new(typed);
        self.cursor = 0;
    }

    pub(crate) fn items(&self, model: &Model) -> Vec<Item> {
        let typed = self.field.text().trim_start();
        if self.here {
            let mut items = action_items(model);
            items.sort_by_key(|item| item.group);
            return rank_items(items, typed, 0);
        }
        if let Some((word, rest)) = typed.split_once(' ')
            && let Some(items) = argument_items(model, &word.to_lowercase(), rest)
        {
            let free = matches!(
                items[..],
                [Item {
                    target: PaletteTarget::Filter(_)
                        | PaletteTarget::List(..)
                        | PaletteTarget::Silence(..)
                        | PaletteTarget::Group(_),
                    ..
                }]
            );
            let found = if free {
                items
            } else {
                rank_items(items, rest, word.len() + 1)
            };
            if !found.is_empty() {
                return found;
            }
        }
        let mut items = action_items(model);
        // Actions that navigate come before other actions.
        items.sort_by_key(|item| !item.title.starts_with("Go to"));
        items.extend(command_items(model));
        items.extend(
            resources(model).map(|(route, title)| Item::new(title, PaletteTarget::Go(route))),
        );
        rank_items(items, typed, 0)
    }
}

/// Returns the items that match the text, best first. The first `common` bytes of the titles are
/// not searched.
fn rank_items(items: Vec<Item>, typed: &str, common: usize) -> Vec<Item> {
    let typed = typed.trim();
    if typed.is_empty() {
        return items;
    }
    let pattern = Pattern::parse(typed, CaseMatching::Ignore, Normalization::Smart);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut buffer = Vec::new();
    let mut ranked: Vec<(u32, Item)> = items
        .into_iter()
        .filter_map(|item| {
            if item.keys.split("  ").any(|key| key == typed) {
                return Some((u32::MAX, item));
            }
            let text = item.title.get(common..).unwrap_or_default();
            let text = Utf32Str::new(text, &mut buffer);
            pattern.score(text, &mut matcher).map(|score| (score, item))
        })
        .collect();
    // Entries that contain the typed text come first, then those with a word that begins with a
    // typed word. Commands come before resources.
    let lower = typed.to_lowercase();
    ranked.sort_by_key(|(score, item)| {
        let title = item.title.get(common..).unwrap_or_default().to_lowercase();
        let is_other = !title.contains(&lower) && *score < u32::MAX;
        let is_stored = matches!(
            item.target,
            PaletteTarget::Go(Route::Object(..) | Route::Event(_))
        );
        let mut words = title.split([' ', '-', '/']);
        let begins_word = words.any(|word| word.starts_with(&lower));
        (is_other, !begins_word, is_stored, std::cmp::Reverse(*score))
    });
    ranked.into_iter().map(|(_, item)| item).collect()
}

/// Returns the actions available on this screen.
fn action_items(model: &Model) -> Vec<Item> {
    let places = model.page.route.key_places();
    let applying =
        keymap::available_entries(&places).filter(|entry| access::has_target(model, entry));
    let item = |entry: &'static Entry| Item {
        keys: format_entry_keys(model, entry, &places),
        refusal: access::check_allowed(model, entry).err(),
        group: Some(entry.group),
        ..Item::new(entry.title, PaletteTarget::Act(entry.action))
    };
    let commands = model.keymap.commands_in(&places);
    // In plain mode, commands would act on a row that is not visibly selected.
    let commands = commands.filter(|_| !model.is_plain);
    let commands = commands.map(|(at, command)| Item {
        keys: command.hint(),
        group: Some(Group::Console),
        ..Item::new(format!("run {}", command.name), PaletteTarget::Run(at))
    });
    applying.map(item).chain(commands).collect()
}

fn format_entry_keys(model: &Model, entry: &Entry, places: &[ActionPlace]) -> String {
    let keys: Vec<String> = model
        .keymap
        .keys_for(entry, places)
        .map(keymap::format_keys)
        .collect();
    keys.join("  ")
}

fn command_items(model: &Model) -> impl Iterator<Item = Item> + '_ {
    let word = |word: &str, what: &str| {
        Item::new(
            format!("{word} … {what}"),
            PaletteTarget::Type(format!("{word} ")),
        )
    };
    let on_objects = ON_OBJECTS.iter().map(move |(name, action)| {
        let entry = keymap::entry_for(*action);
        Item {
            refusal: access::check_allowed(model, entry).err(),
            ..word(name, &entry.title.to_lowercase())
        }
    });
    let contexts = context_items(model);
    let context =
        (!contexts.is_empty()).then(|| word("context", "switch the console to another service"));
    WORDS
        .iter()
        .map(move |(name, what)| word(name, what))
        .chain(context)
        .chain(on_objects)
}

fn context_items(model: &Model) -> Vec<Item> {
    let own = model.context.as_ref().map(|context| context.name.as_str());
    let others = model
        .contexts
        .iter()
        .filter(|name| Some(name.as_str()) != own);
    others
        .map(|name| {
            Item::new(
                format!("context {name}"),
                PaletteTarget::Context(name.clone()),
            )
        })
        .collect()
}

fn argument_items(model: &Model, word: &str, rest: &str) -> Option<Vec<Item>> {
    let is_list = model.page.route.is_list();
    let items = match word {
        "theme" => Theme::ALL
            .map(|theme| {
                Item::new(
                    format!("theme {}", theme.as_str()),
                    PaletteTarget::Theme(theme),
                )
            })
            .to_vec(),
        "sort" => sort::sortable_columns(&model.store, &model.page.route)
            .into_iter()
            .flat_map(|head| {
                let first = Sort::by_column(head);
                let descending = !first.descending;
                [
                    first,
                    Sort {
                        descending,
                        ..first
                    },
                ]
            })
            .map(|sort| {
                let title = format!("sort {} {}", sort.column, sort.arrow());
                Item::new(title, PaletteTarget::Sort(sort))
            })
            .chain(unsortable_columns(model))
            .collect(),
        "context" => context_items(model),
        "view" => {
            let views = model.views().into_iter();
            let item = |view: View| {
                let title = format!("view {}", view.name);
                Item::new(title, PaletteTarget::View(view.name))
            };
            views.map(item).collect()
        }
        "group" => {
            let field = rest.trim().to_owned();
            vec![Item::new(
                format!("group {field}"),
                PaletteTarget::Group(field),
            )]
        }
        "filter" if is_list => {
            let filter = rest.trim().to_owned();
            vec![Item::new(
                format!("filter {filter}"),
                PaletteTarget::Filter(filter),
            )]
        }
        "events" | "deliveries" => {
            let filter = rest.trim().to_owned();
            let route = match word {
                "events" => Route::EVENTS,
                _ => Route::DELIVERIES,
            };
            let title = format!("{word} {filter}");
            vec![Item::new(title, PaletteTarget::List(route, filter))]
        }
        "silence" => vec![silence_item(model, rest.trim())],
        "event" => event_items(model, rest.trim()),
        _ => {
            let (_, action) = ON_OBJECTS.iter().find(|(name, _)| *name == word)?;
            object_items(model, word, *action)
        }
    };
    Some(items)
}

const SILENCE: &str = "2h";

/// Returns the entry for a silence. The last one or two words are its end.
fn silence_item(model: &Model, typed: &str) -> Item {
    let words: Vec<&str> = typed.split_whitespace().collect();
    let ends = [2, 1].into_iter().filter(|count| *count < words.len());
    let mut read = ends.filter_map(|count| {
        let (filter, end) = words.split_at(words.len() - count);
        let end = end.join(" ");
        model
            .silence_end(&end)
            .ok()
            .map(|at| (filter.join(" "), end, at))
    });
    let (filter, end, until) = match read.next() {
        Some((filter, end, at)) => (filter, end, model.format_silence_end(at)),
        None => (
            typed.to_owned(),
            SILENCE.to_owned(),
            format!("for {SILENCE}"),
        ),
    };
    let entry = keymap::entry_for(Action::Silence);
    let error = filter::parse_event_filter(&filter, &model.filter_reader()).err();
    let refusal = access::check_allowed(model, entry).err();
    let refusal = refusal.or_else(|| error.map(|error| error.to_string()));
    let is_empty = filter
        .is_empty()
        .then(|| "expected a filter, such as host=db-13 2h".to_owned());
    Item {
        refusal: refusal.or(is_empty),
        ..Item::new(
            format!("silence {filter} {until}"),
            PaletteTarget::Silence(filter, end),
        )
    }
}

fn unsortable_columns(model: &Model) -> Vec<Item> {
    if model.page.route != Route::EVENTS {
        return Vec::new();
    }
    let sorted = sort::sortable_columns(&model.store, &model.page.route);
    let columns = kind::EVENTS.iter().map(|column| &column.head);
    let others = columns.filter(|head| !sorted.iter().any(|other| other.title == head.title));
    let item = |head| Item {
        refusal: Some(sort::NO_INDEX.to_owned()),
        ..Item::new(
            format!("sort {}", Sort::by_column(head).column),
            PaletteTarget::Sort(Sort::by_column(head)),
        )
    };
    others.map(item).collect()
}

fn event_items(model: &Model, id: &str) -> Vec<Item> {
    let held = &model.store.events;
    let count = held.len().min(limits::PALETTE_EVENTS);
    let rows = (0..count).filter_map(|index| held.get(index));
    let mut items: Vec<Item> = rows
        .map(|row| {
            let title = format!("event {} {} {}", row.id, row.name, row.summary);
            Item::new(title, PaletteTarget::Go(Route::Event(row.id.to_string())))
        })
        .collect();
    let is_id = id.len() >= limits::EVENT_ID_BYTES && !id.contains(' ');
    if is_id && !items.iter().any(|item| item.title.contains(id)) {
        let route = Route::Event(id.to_owned());
        items.push(Item::new(format!("event {id}"), PaletteTarget::Go(route)));
    }
    items
}

fn object_items(model: &Model, word: &str, action: Action) -> Vec<Item> {
    let entry = keymap::entry_for(action);
    let refusal = access::check_allowed(model, entry).err();
    resources(model)
        .filter(|(route, _)| {
            let own = route.key_places()[0];
            entry.places.contains(&own)
        })
        .map(|(route, title)| Item {
            keys: format_entry_keys(model, entry, &route.key_places()),
            refusal: refusal.clone(),
            ..Item::new(
                format!("{word} {title}"),
                PaletteTarget::ActOn(route, action),
            )
        })
        .collect()
}

/// Returns the resources that have a page, with their kind and displayed name.
fn resources(model: &Model) -> impl Iterator<Item = (Route, String)> + '_ {
    let kinds = Kind::ALL.iter().copied();
    let kinds = kinds.filter(|kind| kind.has_page());
    kinds.flat_map(move |kind| {
        let rows = model.store.resources(kind).rows().iter();
        rows.map(move |row| {
            let title = format!("{} {}", kind.singular(), kind::displayed_name(model, row));
            (Route::Object(kind, row.name().to_owned()), title)
        })
    })
}
