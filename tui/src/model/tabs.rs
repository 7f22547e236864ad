//! The screens as tabs in the head, with what matters beside their names.

use bellwether_proto::v1::DestinationOverview;

use super::Model;
use crate::{
    data::{HealthState, Kind},
    route::Route,
    text,
};

/// One tab.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tab {
    pub(crate) route: Route,
    pub(crate) title: String,
    /// How much there is that matters.
    pub(crate) badge: Option<String>,
}

impl Tab {
    /// Cells that it takes, with the gap behind it.
    pub(crate) fn cells(&self) -> usize {
        let badge = self.badge.as_ref();
        text::width(&self.title) + badge.map_or(0, |words| text::width(words) + 1) + 2
    }
}

/// The screens and their keys.
fn all(model: &Model) -> Vec<Tab> {
    let overview = model.store.overview.value.as_ref();
    let destinations = overview.map(|overview| overview.destinations.as_slice());
    let destinations = destinations.unwrap_or_default();
    let is_failing = |one: &&DestinationOverview| {
        let health = one.health.as_ref();
        health.is_some_and(|health| health.state() == HealthState::Failing)
    };
    let failing = i64::try_from(destinations.iter().filter(is_failing).count());
    let dead: i32 = destinations.iter().filter_map(|one| one.dead_count).sum();
    let open: i32 = overview.map_or(0, |it| it.open_by_severity.values().sum());
    let count = |sign: &str, count: i64| (count > 0).then(|| format!("{sign}{}", short(count)));
    let rows = [
        (Route::Overview, None),
        (Route::Events, count("", open.into())),
        (Route::List(Kind::Trigger), None),
        (
            Route::List(Kind::Destination),
            count("✗", failing.unwrap_or(0)),
        ),
        (Route::List(Kind::Rule), None),
        (Route::Deliveries, count("✗", dead.into())),
        (Route::List(Kind::Client), None),
        (Route::Map, None),
    ];
    let tabs = rows.into_iter().zip(1..).map(|((route, badge), key)| Tab {
        title: format!("{key} {}", route.screen()),
        route,
        badge,
    });
    tabs.collect()
}

/// `940`, `94k`, `2M`.
fn short(count: i64) -> String {
    match count {
        ..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}M", count / 1_000_000),
    }
}

/// The tabs that there is room for in the head, and where they begin.
pub(crate) fn shown(model: &Model) -> (usize, Vec<Tab>) {
    let start = crate::limits::TABS_FROM;
    let tabs = all(model);
    let cells: usize = tabs.iter().map(Tab::cells).sum();
    let has_room = start + cells + crate::limits::HEAD_STATE <= model.columns();
    (start, if has_room { tabs } else { Vec::new() })
}

/// The screen whose tab is in a column of the head.
pub(crate) fn at(model: &Model, column: usize) -> Option<Route> {
    let (mut start, tabs) = shown(model);
    for tab in tabs {
        let end = start + tab.cells();
        if (start..end).contains(&column) {
            return Some(tab.route);
        }
        start = end;
    }
    None
}
