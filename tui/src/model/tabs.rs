//! Screens as tabs below the header, with important counts.

use bellwether_proto::v1::DestinationOverview;

use super::Model;
use crate::{
    data::{HealthState, Kind},
    limits,
    route::Route,
    text,
};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tab {
    pub(crate) route: Route,
    pub(crate) title: String,
    pub(crate) badge: Option<String>,
    pub(crate) is_bad: bool,
    gap: usize,
}

impl Tab {
    pub(crate) fn gap(&self) -> &'static str {
        if self.gap > 1 { " " } else { "" }
    }

    pub(crate) fn width_cells(&self) -> usize {
        let badge = self.badge.as_ref();
        text::cell_width(&self.title)
            + badge.map_or(0, |words| text::cell_width(words) + 1)
            + self.gap
    }
}

pub(crate) const START: usize = 0;
const SHORT: [(&str, &str); 7] = [
    ("Overview", "Over"),
    ("Triggers", "Trig"),
    ("Destinations", "Dest"),
    ("Deliveries", "Deliv"),
    ("On call", "Call"),
    ("Reference", "Ref"),
    ("Silences", "Sil"),
];

fn all_tabs(model: &Model) -> Vec<Tab> {
    let overview = model.store.overview.value.as_ref();
    let destinations = overview.map(|overview| overview.destinations.as_slice());
    let destinations = destinations.unwrap_or_default();
    let is_failing = |one: &&DestinationOverview| {
        let health = one.health.as_ref();
        health.is_some_and(|health| health.state() == HealthState::Failing)
    };
    let failing = i64::try_from(destinations.iter().filter(is_failing).count());
    // Counts the dead letters that were not resent.
    let counts = model.store.all_deliveries.value.as_ref();
    let dead = counts.and_then(|it| it.dead_count).unwrap_or_default();
    let waiting: i32 = destinations
        .iter()
        .filter_map(|one| one.waiting_count)
        .sum();
    let open: i32 = overview.map_or(0, |it| it.open_by_severity.values().sum());
    let listed = model.open_event_count();
    let quiet = model.store.resources(Kind::Silence).rows().iter();
    let quiet = quiet.filter(|it| it.text("state") == "ACTIVE").count();
    let count =
        |sign: &str, count: i64| (count > 0).then(|| format!("{sign}{}", text::abbreviate(count)));
    let deliveries = match (dead, waiting) {
        (0, waiting) => (count("", waiting.into()), false),
        (dead, _) => (count("✗", dead.into()), true),
    };
    let quiet = i64::try_from(quiet).unwrap_or(0);
    let unanswered = i64::try_from(model.store.unanswered).unwrap_or(0);
    let unanswered = count("", unanswered);
    let rows = [
        ('1', Route::OVERVIEW, (None, false)),
        (
            '2',
            Route::EVENTS,
            (count("", listed.unwrap_or(open.into())), false),
        ),
        ('3', Route::List(Kind::Trigger), (None, false)),
        (
            '4',
            Route::List(Kind::Destination),
            (count("✗", failing.unwrap_or(0)), true),
        ),
        ('5', Route::List(Kind::Rule), (None, false)),
        ('6', Route::DELIVERIES, deliveries),
        ('7', Route::List(Kind::Client), (None, false)),
        ('8', Route::ON_CALL, (unanswered, true)),
        ('9', Route::REFERENCE, (None, false)),
        ('0', Route::List(Kind::Silence), (count("", quiet), false)),
    ];
    let tabs = rows.into_iter().map(|(key, route, (badge, is_bad))| Tab {
        title: format!("{key} {}", route.screen_name()),
        route,
        badge,
        is_bad,
        gap: 2,
    });
    tabs.collect()
}

pub(crate) fn has_tab_line(model: &Model) -> bool {
    model.size.1 >= limits::TAB_ROWS && model.cycle.is_none()
}

pub(crate) fn current_route(model: &Model) -> Route {
    let route = model.page.home_route();
    if Route::ON_CALL_TABS.iter().any(|(_, tab)| *tab == route) {
        return Route::ON_CALL;
    }
    route
}

pub(crate) fn visible_tabs(model: &Model) -> Vec<Tab> {
    if !has_tab_line(model) {
        return Vec::new();
    }
    let mut tabs = all_tabs(model);
    let own = current_route(model);
    let fits = |tabs: &[Tab]| {
        START + tabs.iter().map(Tab::width_cells).sum::<usize>() <= model.terminal_columns()
    };
    if !fits(&tabs) {
        for tab in &mut tabs {
            tab.gap = 1;
        }
    }
    for at in (0..tabs.len()).rev() {
        if fits(&tabs) {
            break;
        }
        let tab = &mut tabs[at];
        let mut short = SHORT.iter();
        let short = short.find(|(title, _)| tab.route != own && tab.title.ends_with(title));
        if let Some((title, short)) = short {
            tab.title = tab.title.replace(title, short);
        }
    }
    // The last tab is dropped first, as the least important one, unless it shows a warning.
    while !fits(&tabs) {
        let other = |tab: &Tab| tab.route != own;
        let warns = |tab: &Tab| tab.is_bad && tab.badge.is_some();
        let at = tabs.iter().rposition(|tab| other(tab) && !warns(tab));
        let Some(at) = at.or_else(|| tabs.iter().rposition(other)) else {
            break;
        };
        tabs.remove(at);
    }
    tabs
}

pub(crate) fn tab_at(model: &Model, column: usize) -> Option<Route> {
    let mut start = START;
    for tab in visible_tabs(model) {
        let end = start + tab.width_cells();
        if (start..end).contains(&column) {
            return Some(tab.route);
        }
        start = end;
    }
    None
}
