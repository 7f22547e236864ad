//! Views of events: from the configuration file, and shared views from the service.

use serde_json::{Value, json};

use super::{Model, sort::Sort};
use crate::{
    data::{Kind, Object},
    options::View,
    route::Route,
};

const COLUMNS: [&str; 3] = ["Seen", "Age", "Severity"];

fn sort_entries() -> impl Iterator<Item = (&'static str, &'static str)> {
    View::SORTS.iter().copied().zip(COLUMNS)
}

impl View {
    fn from_object(object: &Object) -> Self {
        Self {
            name: object.name().to_owned(),
            filter: object.text("filter").to_owned(),
            sort: object.text("sort").to_owned(),
            ascending: object.flag("ascending"),
            includes_closed: object.flag("includesClosed"),
            group_by: object.text("groupBy").to_owned(),
            columns: object.texts("columns").map(str::to_owned).collect(),
        }
    }

    pub(crate) fn sort(&self) -> Option<Sort> {
        let found = sort_entries().find(|(name, _)| *name == self.sort);
        let column = found.map_or(COLUMNS[0], |(_, column)| column);
        let descending = !self.ascending;
        let is_usual = column == COLUMNS[0] && descending;
        (!is_usual).then_some(Sort { column, descending })
    }
}

impl Model {
    /// Returns all views. Views from the configuration file come first and override shared views
    /// with the same name.
    pub(crate) fn views(&self) -> Vec<View> {
        let mut views = self.own_views.clone();
        let shared = self
            .store
            .resources(Kind::View)
            .rows()
            .iter()
            .map(View::from_object);
        for view in shared {
            if self.own_views.iter().all(|own| own.name != view.name) {
                views.push(view);
            }
        }
        views
    }

    /// Returns the view that the list shows: the chosen view if the list still matches it, else the
    /// first view that it matches.
    pub(crate) fn view(&self) -> Option<View> {
        if self.page.route != Route::EVENTS {
            return None;
        }
        let list = &self.page.list;
        let open_only = self.store.events.filter.open_only;
        let mut same: Vec<View> = self.views();
        same.retain(|view| {
            let is_list = view.group_by.is_empty() && view.filter == list.filter;
            is_list && view.sort() == list.sort && view.includes_closed != open_only
        });
        let chosen = same
            .iter()
            .position(|it| Some(&it.name) == list.view.as_ref());
        let is_any = same.is_empty();
        (!is_any).then(|| same.swap_remove(chosen.unwrap_or(0)))
    }

    /// Returns the columns chosen by the operator or the view; empty for the console's choice.
    pub(crate) fn configured_columns(&self) -> Vec<String> {
        let chosen = self.columns_of.get(self.page.route.screen_name());
        let chosen = chosen.filter(|_| !matches!(self.page.route, Route::EventGroups { .. }));
        chosen.cloned().unwrap_or_else(|| {
            let view = self.view();
            view.map_or_else(Vec::new, |view| view.columns)
        })
    }

    pub(crate) fn as_view(&self) -> Value {
        let (filter, group_by) = match &self.page.route {
            Route::EventGroups { field, filter } => (filter.clone(), field.clone()),
            _ => (self.page.list.filter.clone(), String::new()),
        };
        let sort = self.page.list.sort;
        let name = sort.and_then(|sort| sort_entries().find(|(_, column)| *column == sort.column));
        json!({
            "filter": filter,
            "sort": name.map_or(View::SORTS[0], |(name, _)| name),
            "ascending": sort.is_some_and(|sort| !sort.descending),
            "includesClosed": !self.store.events.filter.open_only,
            "groupBy": group_by,
            "columns": self.configured_columns(),
        })
    }
}
