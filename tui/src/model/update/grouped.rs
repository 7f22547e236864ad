//! Events counted by a field, and the events of a group.

use bellwether_proto::v1;

use super::load;
use crate::{
    client::{EventFilter, message},
    limits,
    model::{
        Model, filter,
        overlay::{Menu, MenuAction, MenuItem, Overlay},
    },
    route::Route,
    theme::Token,
};

const FIELDS: [(char, &str); 6] = [
    ('n', "name"),
    ('s', "severity"),
    ('t', "status"),
    ('a', "acknowledged"),
    ('i', "assignee"),
    ('y', "type"),
];
const DIMENSIONS: usize = 12;

pub(super) fn choose_grouping(model: &mut Model) {
    model.overlay = Some(Overlay::Menu(Menu {
        title: "Count events by".to_owned(),
        help: "key or Enter · `:group FIELD` for any field · Esc",
        items: grouping_items(model),
        cursor: 0,
    }));
}

/// Returns the dimensions of events seen, then the common fields, each with a unique letter.
fn grouping_items(model: &Model) -> Vec<MenuItem> {
    let mut used: Vec<char> = FIELDS.iter().map(|(key, _)| *key).chain(['q']).collect();
    let mut items = Vec::new();
    for field in model.seen_dimensions().into_iter().take(DIMENSIONS) {
        let letters = field.chars().filter(char::is_ascii_lowercase);
        let mut keys = letters.chain('1'..='9').chain('a'..='z');
        if let Some(key) = keys.find(|key| !used.contains(key)) {
            used.push(key);
            items.push((key, field));
        }
    }
    let own = FIELDS.map(|(key, field)| (key, field.to_owned()));
    let all = items.into_iter().chain(own);
    all.map(|(key, field)| MenuItem {
        key,
        label: field.clone(),
        what: MenuAction::Field(field),
    })
    .collect()
}

pub(super) fn read_groups(model: &mut Model) {
    let route = model.page.route.clone();
    let Route::EventGroups { field, filter } = &route else {
        return;
    };
    let clause = match filter::parse_event_filter(filter, &model.filter_reader()) {
        Ok(clause) => clause,
        Err(error) => return model.show_notice(Token::Bad, error.to_string()),
    };
    let filter = EventFilter {
        clause,
        open_only: model.store.events.filter.open_only,
        ..EventFilter::default()
    };
    let group = filter.group(field, limits::EVENT_GROUPS);
    if model.store.event_groups_of.as_ref() != Some(&route) {
        model.store.event_groups.clear();
        model.store.event_groups_of = Some(route);
    }
    load(
        model,
        group,
        |it| &mut it.store.event_groups,
        |answer| {
            let found: v1::GroupEventsResponse = message(answer)?;
            Ok(found.into())
        },
    );
}

pub(super) fn open_only(model: &mut Model) {
    let open_only = &mut model.store.events.filter.open_only;
    *open_only = !*open_only;
    // The list of events is read again when it is shown.
    model.store.events.generation = crate::client::Ticket(0);
    model.store.event_groups.clear();
    read_groups(model);
}

pub(super) fn group_filter(model: &Model) -> Option<String> {
    Some(model.group()?.group_filter())
}
