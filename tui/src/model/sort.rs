//! The sort order of lists. Events are sorted by the service, other lists by the console.

use super::{Model, store::Store};
use crate::{
    data::{EventKey, EventOrder, Screen},
    kind::ColumnHead,
    limits,
    route::Route,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sort {
    pub(crate) column: &'static str,
    pub(crate) descending: bool,
}

pub(crate) const NO_INDEX: &str = "the service cannot sort by this: it sorts events by last \
    report, severity and start";

pub(crate) fn sortable_columns(store: &Store, route: &Route) -> Vec<&'static ColumnHead> {
    let table = store.table_for_route(route);
    table
        .map(|table| table.sortable_columns())
        .unwrap_or_default()
}

impl Sort {
    pub(crate) fn by_column(head: &ColumnHead) -> Self {
        Self {
            column: head.title,
            descending: head.falls,
        }
    }

    /// Returns the next order. The orders are each column in both directions, and last the first
    /// column reversed.
    fn next(self, columns: &[&ColumnHead]) -> Option<Self> {
        let at = columns.iter().position(|head| head.title == self.column);
        let at = at.unwrap_or_default();
        let (first, own) = (
            Self::by_column(columns.first()?),
            Self::by_column(columns.get(at)?),
        );
        let reversed = |sort: Self| Self {
            descending: !sort.descending,
            ..sort
        };
        Some(match (at, self == own, columns.get(at + 1)) {
            (0, true, Some(next)) | (1.., false, Some(next)) => Self::by_column(next),
            (0, false, _) => first,
            (_, true, _) => reversed(own),
            (_, false, None) => reversed(first),
        })
    }

    /// Returns the corresponding order of events; `None` if the service has no index for it.
    pub(crate) fn event_order(self) -> Option<EventOrder> {
        let by = match self.column {
            "Seen" => EventKey::LastSeen,
            "Severity" => EventKey::Severity,
            "Age" => EventKey::Start,
            _ => return None,
        };
        let ascending = !self.descending;
        Some(EventOrder { by, ascending })
    }

    pub(crate) fn arrow(self) -> char {
        if self.descending { '↓' } else { '↑' }
    }
}

fn is_fully_loaded(store: &Store, route: &Route) -> bool {
    match route {
        Route::List(kind) => store.resources(*kind).rows().len() < limits::HELD_RESOURCES,
        Route::Screen(Screen::Deliveries) => store.deliveries_next.is_empty(),
        Route::EventGroups { .. } => store
            .loaded_groups()
            .is_some_and(|it| i64::try_from(it.rows.len()).unwrap_or(i64::MAX) >= it.group_count),
        // Sorted by the service.
        Route::Screen(Screen::Events) => true,
        _ => false,
    }
}

impl Model {
    pub(crate) fn current_sort(&self) -> Option<Sort> {
        let chosen = self.list_sort(self.page.list.sort);
        chosen.or_else(|| match self.page.route {
            Route::List(_) => None,
            _ => self.first_sort(),
        })
    }

    fn first_sort(&self) -> Option<Sort> {
        let columns = sortable_columns(&self.store, &self.page.route);
        columns.first().copied().map(Sort::by_column)
    }

    /// Returns the order in which the console sorts a list with this choice; `None` for the service's order.
    pub(super) fn list_sort(&self, chosen: Option<Sort>) -> Option<Sort> {
        let chosen = chosen.filter(|sort| self.can_sort(*sort));
        let first = || self.first_sort().filter(|sort| self.can_sort(*sort));
        match self.page.route {
            Route::List(_) => chosen.or_else(first),
            _ => chosen,
        }
    }

    pub(super) fn can_sort(&self, sort: Sort) -> bool {
        let route = &self.page.route;
        let columns = sortable_columns(&self.store, route);
        columns.iter().any(|head| head.title == sort.column) && is_fully_loaded(&self.store, route)
    }

    /// Applies the next sort order. Returns the order, or the reason why sorting is not possible.
    pub(crate) fn sort_next(&mut self) -> Result<Sort, &'static str> {
        let columns = sortable_columns(&self.store, &self.page.route);
        let next = self.current_sort().and_then(|now| now.next(&columns));
        self.set_sort(next.ok_or("this list cannot be sorted")?)
    }

    pub(crate) fn set_sort(&mut self, sort: Sort) -> Result<Sort, &'static str> {
        match self.page.route {
            Route::EVENTS => match sort.event_order() {
                // The service's default order needs no sort key, and the list can be followed live.
                Some(order) if order == EventOrder::default() => {
                    self.page.list.sort = None;
                    Ok(sort)
                }
                Some(_) => {
                    self.page.list.sort = Some(sort);
                    Ok(sort)
                }
                None => Err(NO_INDEX),
            },
            ref route if !is_fully_loaded(&self.store, route) => {
                Err("only part of the list is loaded; only a complete list can be sorted")
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
    use crate::data::Kind;

    #[test]
    fn sorting_cycles_through_every_column_in_both_orders() {
        let lists = Kind::ALL.iter().map(|kind| Route::List(*kind));
        for route in lists.chain([Route::DELIVERIES]) {
            let columns = sortable_columns(&Store::new(), &route);
            let first = Sort::by_column(columns[0]);
            let mut seen = vec![first];
            while seen.len() < 2 * columns.len() {
                let next = seen.last().unwrap().next(&columns).unwrap();
                assert!(!seen.contains(&next), "{next:?}");
                seen.push(next);
            }
            assert_eq!(seen.last().unwrap().next(&columns), Some(first));
        }
    }
}
