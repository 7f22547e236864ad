//! What a list is sorted by: of those that are held whole, the operator chooses.

use std::cmp::Ordering;

use super::{Model, page::Route, store::Store};
use crate::{
    data::{Client, Delivery, Destination, DestinationType, Rule, Trigger},
    limits,
};

/// A column by its title, and which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sort {
    pub(crate) column: &'static str,
    pub(crate) descending: bool,
}

/// The columns that a list can be sorted by, as its heading calls them; the first is what the
/// service sorts by.
pub(crate) fn columns(route: &Route) -> &'static [&'static str] {
    match route {
        Route::Events => &["Seen"],
        Route::Triggers => &["Name", "Rules", "24 h"],
        Route::Destinations => &["Name", "Type", "Health", "24 h"],
        Route::Rules => &["Name", "On", "24 h", "Last notified"],
        Route::Deliveries => &[
            "Decided",
            "State",
            "Destination",
            "Rule",
            "Tries",
            "Next try",
        ],
        Route::Clients => &["Name", "Role", "Last used", "Made"],
        _ => &[],
    }
}

/// Whether large values of a column are what one looks for first.
fn starts_descending(column: &str) -> bool {
    matches!(
        column,
        "Seen" | "Rules" | "24 h" | "Last notified" | "Decided" | "Tries" | "Last used" | "Made"
    )
}

impl Sort {
    /// By a column, the way that one looks for first.
    pub(crate) fn by(column: &'static str) -> Self {
        Self {
            column,
            descending: starts_descending(column),
        }
    }

    /// The other way, then the next column.
    fn next(self, route: &Route) -> Self {
        let columns = columns(route);
        let other = Self {
            descending: !self.descending,
            ..self
        };
        if self == Self::by(self.column) {
            return other;
        }
        let at = columns.iter().position(|column| *column == self.column);
        let next = at.map_or(0, |at| (at + 1) % columns.len());
        Self::by(columns[next])
    }

    pub(crate) fn arrow(self) -> char {
        if self.descending { '↓' } else { '↑' }
    }

    /// Rows without a difference keep the service's order, whichever way.
    fn order<R, K: Ord>(self, rows: &mut [(usize, &R)], key: impl Fn(&R) -> K) {
        self.arrange(rows, |one, other| key(one).cmp(&key(other)));
    }

    fn arrange<R>(self, rows: &mut [(usize, &R)], compare: impl Fn(&R, &R) -> Ordering) {
        if self.descending {
            rows.sort_by(|(_, one), (_, other)| compare(other, one));
        } else {
            rows.sort_by(|(_, one), (_, other)| compare(one, other));
        }
    }

    pub(super) fn triggers(self, rows: &mut [(usize, &Trigger)]) {
        match self.column {
            "Rules" => self.order(rows, |row| row.rule_names.len()),
            "24 h" => self.order(rows, |row| row.recent_count),
            _ => self.arrange(rows, |one, other| one.spec.name.cmp(&other.spec.name)),
        }
    }

    pub(super) fn destinations(self, rows: &mut [(usize, &Destination)]) {
        match self.column {
            "Type" => self.order(rows, |row| {
                row.spec.kind.as_ref().map(DestinationType::word)
            }),
            "Health" => self.order(rows, |row| row.health.state),
            "24 h" => self.order(rows, |row| row.recent_count),
            _ => self.arrange(rows, |one, other| one.spec.name.cmp(&other.spec.name)),
        }
    }

    pub(super) fn rules(self, rows: &mut [(usize, &Rule)]) {
        match self.column {
            "On" => self.order(rows, |row| !row.spec.enabled),
            "24 h" => self.order(rows, |row| row.recent_count),
            "Last notified" => self.order(rows, |row| row.last_notification_ms),
            _ => self.arrange(rows, |one, other| one.spec.name.cmp(&other.spec.name)),
        }
    }

    pub(super) fn deliveries(self, rows: &mut [(usize, &Delivery)]) {
        match self.column {
            "State" => self.order(rows, |row| row.state.word()),
            "Destination" => self.arrange(rows, |one, other| {
                one.destination_name.cmp(&other.destination_name)
            }),
            "Rule" => self.arrange(rows, |one, other| one.rule_name.cmp(&other.rule_name)),
            "Tries" => self.order(rows, |row| row.attempt_count),
            // What has no next try comes last.
            "Next try" => self.order(rows, |row| row.next_attempt_ms.unwrap_or(i64::MAX)),
            _ => self.arrange(rows, |one, other| {
                (one.create_ms, &one.id).cmp(&(other.create_ms, &other.id))
            }),
        }
    }

    pub(super) fn clients(self, rows: &mut [(usize, &Client)]) {
        match self.column {
            "Role" => self.order(rows, |row| row.role),
            "Last used" => self.order(rows, |row| row.last_used_ms),
            "Made" => self.order(rows, |row| row.create_ms),
            _ => self.arrange(rows, |one, other| one.name.cmp(&other.name)),
        }
    }
}

/// Whether all that the service has of a list is here.
fn is_whole(store: &Store, route: &Route) -> bool {
    let held = match route {
        Route::Triggers => store.triggers.rows().len(),
        Route::Destinations => store.destinations.rows().len(),
        Route::Rules => store.rules.rows().len(),
        Route::Clients => store.clients.rows().len(),
        Route::Deliveries => return store.deliveries_next.is_empty(),
        _ => return false,
    };
    held < limits::HELD_RESOURCES
}

impl Model {
    /// What the list on the screen is sorted by.
    pub(crate) fn sorted(&self) -> Option<Sort> {
        let first = columns(&self.page.route).first().copied().map(Sort::by);
        let chosen = self.page.list.sort;
        chosen.filter(|sort| self.can_sort(*sort)).or(first)
    }

    /// Whether the list on the screen can be sorted like that now.
    pub(super) fn can_sort(&self, sort: Sort) -> bool {
        let route = &self.page.route;
        columns(route).contains(&sort.column) && is_whole(&self.store, route)
    }

    /// Sorts the list by the next column, or the other way. Says what it is sorted by, or why it
    /// cannot be.
    pub(crate) fn sort_next(&mut self) -> Result<Sort, &'static str> {
        let now = self.sorted().ok_or("this is no list that can be sorted")?;
        self.sort_by(now.next(&self.page.route))
    }

    pub(crate) fn sort_by(&mut self, sort: Sort) -> Result<Sort, &'static str> {
        match self.page.route {
            Route::Events => Err("events are always sorted by when they were last seen"),
            ref route if !is_whole(&self.store, route) => {
                Err("the service has more than is shown; only a whole list can be sorted")
            }
            _ => {
                self.page.list.sort = Some(sort);
                Ok(sort)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_reached_both_ways_and_the_round_ends_where_it_began() {
        for route in [
            Route::Triggers,
            Route::Destinations,
            Route::Rules,
            Route::Deliveries,
            Route::Clients,
        ] {
            let columns = columns(&route);
            let first = Sort::by(columns[0]);
            let mut seen = vec![first];
            while seen.len() < 2 * columns.len() {
                let next = seen.last().unwrap().next(&route);
                assert!(!seen.contains(&next), "{next:?}");
                seen.push(next);
            }
            assert_eq!(seen.last().unwrap().next(&route), first);
        }
    }
}
