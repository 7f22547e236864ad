//! The rows of the list on the screen: what its filter leaves of what is held, in its order.

use std::sync::Arc;

use super::{
    Model,
    list::{List, Rows},
    map::Map,
    sort::Sort,
    store::Store,
};
use crate::{
    data::{EventRow, Object},
    kind::{self, Around, Cell, Column, Head, Key},
    route::Route,
};

/// What is held for a list, whatever its rows are.
pub(crate) trait Table {
    fn len(&self) -> usize;
    fn id(&self, place: usize) -> &str;
    fn cells(&self, around: &dyn Around, place: usize) -> Vec<Cell>;
    fn heads(&self) -> Vec<&'static Head>;
    /// The columns that the rows can be sorted by; the first is what the service sorts by.
    fn sorts(&self) -> Vec<&'static Head>;
    /// The places of the rows that a filter leaves, in this order.
    fn places(&self, needle: &str, sort: Option<Sort>) -> Vec<usize>;
}

/// Rows held whole, with what is asked of each.
struct LoadedRows<'a, R: 'static> {
    rows: &'a [R],
    columns: &'static [Column<R>],
    id: fn(&R) -> &str,
    keeps: fn(&R, &str) -> bool,
}

impl<R> LoadedRows<'_, R> {
    fn key(&self, title: &str) -> Option<fn(&R) -> Key> {
        let mut columns = self.columns.iter();
        columns.find(|column| column.head.title == title)?.key
    }
}

impl<R> Table for LoadedRows<'_, R> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn id(&self, place: usize) -> &str {
        (self.id)(&self.rows[place])
    }

    fn cells(&self, around: &dyn Around, place: usize) -> Vec<Cell> {
        let row = self.rows.get(place);
        let columns = row.map(|row| self.columns.iter().map(|column| (column.cell)(around, row)));
        columns.into_iter().flatten().collect()
    }

    fn heads(&self) -> Vec<&'static Head> {
        self.columns.iter().map(|column| &column.head).collect()
    }

    fn sorts(&self) -> Vec<&'static Head> {
        let columns = self.columns.iter().filter(|column| column.key.is_some());
        let mut heads: Vec<_> = columns.map(|column| &column.head).collect();
        // The service has its groups by their counts.
        let first = |head: &&Head| matches!(head.title, "Name" | "Events");
        if let Some(at) = heads.iter().position(first) {
            heads[..=at].rotate_right(1);
        }
        heads
    }

    fn places(&self, needle: &str, sort: Option<Sort>) -> Vec<usize> {
        let kept = self.rows.iter().enumerate();
        let kept = kept.filter(|(_, row)| needle.is_empty() || (self.keeps)(row, needle));
        let key = sort.and_then(|sort| Some((sort, self.key(sort.column)?)));
        let Some((sort, key)) = key else {
            return kept.map(|(place, _)| place).collect();
        };
        // Rows without a difference keep the service's order, whichever way.
        let mut kept: Vec<_> = kept.map(|(place, row)| (key(row), place)).collect();
        if sort.descending {
            kept.sort_by(|(one, _), (other, _)| other.cmp(one));
        } else {
            kept.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        kept.into_iter().map(|(_, place)| place).collect()
    }
}

/// Whether a resource holds these words, in lower case.
fn holds(object: &Object, needle: &str) -> bool {
    let own = (kind::spec(object.kind).searched)(object);
    let texts = [object.name(), object.text("description")].into_iter();
    let mut texts = texts.chain(object.texts("tags")).chain(own);
    texts.any(|text| text.to_lowercase().contains(needle))
}

/// Events are held in the order of their window.
struct Window<'a>(&'a Store);

impl Table for Window<'_> {
    fn len(&self) -> usize {
        self.0.events.len()
    }

    fn id(&self, place: usize) -> &str {
        Rows::id(&self.0.events, place)
    }

    fn cells(&self, around: &dyn Around, place: usize) -> Vec<Cell> {
        let cells = |row: &EventRow| -> Vec<Cell> {
            let columns = kind::EVENTS.iter();
            columns.map(|column| (column.cell)(around, row)).collect()
        };
        self.0.events.get(place).map(cells).unwrap_or_default()
    }

    fn heads(&self) -> Vec<&'static Head> {
        kind::EVENTS.iter().map(|column| &column.head).collect()
    }

    fn sorts(&self) -> Vec<&'static Head> {
        let columns = kind::EVENTS.iter().filter(|column| column.key.is_some());
        columns.map(|column| &column.head).collect()
    }

    fn places(&self, _needle: &str, _sort: Option<Sort>) -> Vec<usize> {
        (0..self.len()).collect()
    }
}

impl Store {
    /// What is held for a list of rows.
    pub(crate) fn table(&self, route: &Route) -> Option<Box<dyn Table + '_>> {
        Some(match route {
            Route::Events => Box::new(Window(self)),
            Route::List(kind) => Box::new(LoadedRows {
                rows: self.of(*kind).rows(),
                columns: kind::spec(*kind).columns,
                id: Object::name,
                keeps: holds,
            }),
            Route::EventGroups { .. } => Box::new(LoadedRows {
                rows: self.grouped().map_or(&[], |grouped| &grouped.rows),
                columns: kind::GROUPS,
                id: |row| &row.value,
                keeps: |row, needle| row.value.to_lowercase().contains(needle),
            }),
            Route::Deliveries => Box::new(LoadedRows {
                rows: self.deliveries.rows(),
                columns: kind::DELIVERIES,
                id: |row| &row.id,
                // The service filters them.
                keeps: |_, _| true,
            }),
            _ => return None,
        })
    }
}

/// Rows that were made once, and are kept until others would be made.
#[derive(Debug)]
pub(crate) struct Arranged {
    source: Source,
    made: Made,
}

/// What rows are built from.
#[derive(Debug, PartialEq)]
struct Source {
    route: Route,
    revisions: Vec<u64>,
    filter: String,
    sort: Option<Sort>,
}

/// What the rows are, by their places in what is held.
#[derive(Clone, Debug)]
enum Made {
    Some(Arc<[usize]>),
    Map(Arc<Map>),
}

impl Model {
    /// The rows of the list on the screen, after its filter.
    pub(crate) fn rows(&self) -> Box<dyn Rows + '_> {
        self.rows_for(&self.page.list)
    }

    /// The rows of this screen for a list taken out of its page.
    pub(super) fn rows_for(&self, list: &List) -> Box<dyn Rows + '_> {
        if self.page.route == Route::Events {
            return Box::new(EventRows(self));
        }
        let source = self.source(list);
        let made = match &self.arranged {
            Some(arranged) if arranged.source == source => arranged.made.clone(),
            _ => make(&self.store, &source),
        };
        match (made, self.store.table(&source.route)) {
            (Made::Some(places), Some(table)) => Box::new(HeldRows { table, places }),
            (Made::Map(map), _) => Box::new(map),
            (Made::Some(_), None) => Box::new(Vec::<&str>::new()),
        }
    }

    /// Makes the rows for a list taken out of its page, if they are others than before.
    pub(super) fn arrange(&mut self, list: &List) {
        let source = self.source(list);
        if self.page.route == Route::Events
            || matches!(&self.arranged, Some(arranged) if arranged.source == source)
        {
            return;
        }
        let made = make(&self.store, &source);
        self.arranged = Some(Arranged { source, made });
    }

    fn source(&self, list: &List) -> Source {
        let typed = list.typing.as_ref();
        Source {
            route: self.page.route.clone(),
            revisions: self.store.revisions(&self.page.route),
            filter: typed.map_or_else(|| list.filter.clone(), |field| field.text().to_owned()),
            sort: list.sort.filter(|sort| self.can_sort(*sort)),
        }
    }

    /// The map with the filter of the page, also while it is typed.
    pub(crate) fn map(&self) -> Arc<Map> {
        let source = self.source(&self.page.list);
        match &self.arranged {
            Some(Arranged {
                source: known,
                made: Made::Map(map),
            }) if *known == source => Arc::clone(map),
            _ => Arc::new(Map::of(&self.store, &source.filter)),
        }
    }
}

fn make(store: &Store, source: &Source) -> Made {
    if source.route == Route::Map {
        return Made::Map(Arc::new(Map::of(store, &source.filter)));
    }
    let needle = source.filter.trim().to_lowercase();
    let table = store.table(&source.route);
    let places = table.map(|table| table.places(&needle, source.sort));
    Made::Some(places.unwrap_or_default().into())
}

/// The rows of a list that is held whole.
struct HeldRows<'a> {
    table: Box<dyn Table + 'a>,
    places: Arc<[usize]>,
}

impl Rows for HeldRows<'_> {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn place(&self, index: usize) -> usize {
        self.places[index]
    }

    fn id(&self, index: usize) -> &str {
        self.table.id(self.places[index])
    }
}

impl Rows for Arc<Map> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn id(&self, index: usize) -> &str {
        self.rows[index].id()
    }
}

/// The rows of the events window; a wrapper because the window is borrowed.
struct EventRows<'a>(&'a Model);

impl Rows for EventRows<'_> {
    fn len(&self) -> usize {
        self.0.store.events.len()
    }

    fn id(&self, index: usize) -> &str {
        Rows::id(&self.0.store.events, index)
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.0.store.events.position(id)
    }
}
