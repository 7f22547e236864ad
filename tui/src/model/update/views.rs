//! Switching between views of events.

use serde_json::json;

use super::{forms, navigate, read};
use crate::{
    data::Kind,
    model::{
        Model,
        form::Form,
        overlay::{Menu, MenuAction, MenuItem, Overlay},
    },
    options::View,
    route::Route,
    theme::Token,
};

/// Limit on the views in the menu, which have one key each.
const OFFERED: usize = 30;

pub(super) fn choose_view(model: &mut Model) {
    let views = model.views();
    if views.is_empty() && model.store.resources(Kind::View).value.is_none() {
        return model.show_notice(Token::Info, "reading…");
    }
    if views.is_empty() {
        let text =
            "no views yet: ‹save_view› saves this list, or add [views.NAME] to the settings file";
        let text = model.expand_keys(text);
        return model.show_notice(Token::Info, text);
    }
    let keys = ('1'..='9').chain('a'..='p').chain('r'..='z');
    let all = (String::new(), "all events".to_owned());
    let named = views.into_iter().map(|view| {
        let words = match (view.filter.as_str(), view.group_by.as_str()) {
            (filter, "") => filter.to_owned(),
            (filter, field) => format!("{filter} by {field}"),
        };
        let label = format!("{}  {}", view.name, words.trim());
        (view.name, label)
    });
    let items = std::iter::once(all).chain(named).take(OFFERED).zip(keys);
    let items = items.map(|((name, label), key)| MenuItem {
        key,
        label,
        what: MenuAction::View(name),
    });
    model.overlay = Some(Overlay::Menu(Menu {
        title: "Events".to_owned(),
        help: "key or Enter · `:view NAME` for any view · Esc",
        items: items.collect(),
        cursor: 0,
    }));
}

pub(super) fn show_view(model: &mut Model, name: &str) {
    let found = model.views().into_iter().find(|view| view.name == name);
    let view = match found {
        Some(view) => view,
        None if name.is_empty() => View::default(),
        None => return model.show_notice(Token::Warning, format!("unknown view `{name}`")),
    };
    model.columns_of.remove(Route::EVENTS.screen_name());
    model.store.events.filter.open_only = !view.includes_closed;
    if !view.group_by.is_empty() {
        let (field, filter) = (view.group_by, view.filter);
        return navigate::go_to_route(model, Route::EventGroups { field, filter });
    }
    if model.page.route != Route::EVENTS {
        navigate::push_page(model, crate::model::page::Page::new(Route::EVENTS));
    }
    let list = &mut model.page.list;
    list.sort = view.sort();
    list.given.clone_from(&view.filter);
    list.filter = view.filter;
    list.view = Some(view.name).filter(|name| !name.is_empty());
    list.marks.clear();
    list.selected = None;
    (list.index, list.came) = (0, 0);
    read::read_events(model, false);
}

/// Shows the next view that lists events; all events after the last one.
pub(super) fn next(model: &mut Model) {
    let views = model.views().into_iter();
    let views = views.filter(|view| view.group_by.is_empty());
    let names: Vec<String> = std::iter::once(String::new())
        .chain(views.map(|view| view.name))
        .collect();
    let own = model.view().map(|view| view.name);
    let at = names.iter().position(|name| Some(name) == own.as_ref());
    let next = names[(at.unwrap_or(0) + 1) % names.len()].clone();
    if names.len() == 1 {
        return choose_view(model);
    }
    show_view(model, &next);
}

pub(super) fn save_view(model: &mut Model) {
    let mut base = model.as_view();
    if let Some(view) = model.view() {
        base["description"] = json!(format!("like {}", view.name));
    }
    forms::open_form(model, Form::new(Kind::View, None, base));
}
