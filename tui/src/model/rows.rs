//! The rows of the list on the screen: what its filter leaves of what is held, in its order.

use std::sync::Arc;

use super::{
    Model,
    list::{List, Rows},
    map::Map,
    page::Route,
    sort::Sort,
    store::Store,
};

/// Rows that were made once, and are kept until others would be made.
#[derive(Debug)]
pub(crate) struct Arranged {
    source: Source,
    made: Made,
}

/// What rows are made of.
#[derive(Debug, PartialEq)]
struct Source {
    route: Route,
    revisions: [u64; 3],
    filter: String,
    sort: Option<Sort>,
}

/// What the rows are, by their places in what is held.
#[derive(Clone, Debug)]
enum Made {
    /// All of them, as the service gave them.
    All(usize),
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
        let store = &self.store;
        let made = match &self.arranged {
            Some(arranged) if arranged.source == source => arranged.made.clone(),
            _ => make(store, &source),
        };
        let route = source.route;
        Box::new(HeldRows { store, route, made })
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
    let needle = source.filter.trim().to_lowercase();
    let keep = |texts: &[&str], tags: &[String]| {
        let found = |text: &str| text.to_lowercase().contains(&needle);
        needle.is_empty()
            || texts.iter().any(|text| found(text))
            || tags.iter().any(|tag| found(tag))
    };
    let sort = source.sort;
    match source.route {
        Route::Map => Made::Map(Arc::new(Map::of(store, &source.filter))),
        ref route if needle.is_empty() && sort.is_none() => Made::All(held(store, route)),
        Route::Triggers => some(
            store.triggers.rows(),
            |row| keep(&[&row.spec.name, &row.spec.description], &row.spec.tags),
            |rows| sort.iter().for_each(|sort| sort.triggers(rows)),
        ),
        Route::Destinations => some(
            store.destinations.rows(),
            |row| {
                let kind = row.spec.kind.as_ref();
                let target = kind.map_or("", |kind| kind.target());
                let word = kind.map_or("", |kind| kind.word());
                let health = row.health.state.word();
                let texts = [&row.spec.name, &row.spec.description, target, word, health];
                keep(&texts, &row.spec.tags)
            },
            |rows| sort.iter().for_each(|sort| sort.destinations(rows)),
        ),
        Route::Rules => some(
            store.rules.rows(),
            |row| {
                let spec = &row.spec;
                keep(&[&spec.name, &spec.description], &spec.tags)
                    || keep(&[], &spec.trigger_names)
                    || keep(&[], &spec.destination_names)
            },
            |rows| sort.iter().for_each(|sort| sort.rules(rows)),
        ),
        // The service filters them.
        Route::Deliveries => some(
            store.deliveries.rows(),
            |_| true,
            |rows| sort.iter().for_each(|sort| sort.deliveries(rows)),
        ),
        Route::Clients => some(
            store.clients.rows(),
            |row| keep(&[&row.name, row.role.word()], &[]),
            |rows| sort.iter().for_each(|sort| sort.clients(rows)),
        ),
        _ => Made::All(0),
    }
}

/// Those of the rows that are kept, in the order that they are put in.
fn some<R>(rows: &[R], keep: impl Fn(&R) -> bool, sort: impl FnOnce(&mut [(usize, &R)])) -> Made {
    let mut kept: Vec<_> = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| keep(row))
        .collect();
    sort(&mut kept);
    Made::Some(kept.into_iter().map(|(place, _)| place).collect())
}

/// How many rows are held for a list.
fn held(store: &Store, route: &Route) -> usize {
    match route {
        Route::Triggers => store.triggers.rows().len(),
        Route::Destinations => store.destinations.rows().len(),
        Route::Rules => store.rules.rows().len(),
        Route::Deliveries => store.deliveries.rows().len(),
        Route::Clients => store.clients.rows().len(),
        _ => 0,
    }
}

/// What names the row at a place of what is held.
fn id<'a>(store: &'a Store, route: &Route, place: usize) -> &'a str {
    match route {
        Route::Triggers => &store.triggers.rows()[place].spec.name,
        Route::Destinations => &store.destinations.rows()[place].spec.name,
        Route::Rules => &store.rules.rows()[place].spec.name,
        Route::Deliveries => &store.deliveries.rows()[place].id,
        _ => &store.clients.rows()[place].name,
    }
}

/// The rows of a list that is held whole.
struct HeldRows<'a> {
    store: &'a Store,
    route: Route,
    made: Made,
}

impl Rows for HeldRows<'_> {
    fn len(&self) -> usize {
        match &self.made {
            Made::All(count) => *count,
            Made::Some(places) => places.len(),
            Made::Map(map) => map.len(),
        }
    }

    fn place(&self, index: usize) -> usize {
        match &self.made {
            Made::Some(places) => places[index],
            Made::All(_) | Made::Map(_) => index,
        }
    }

    fn id(&self, index: usize) -> &str {
        match &self.made {
            Made::Map(map) => map.id(index),
            Made::All(_) | Made::Some(_) => id(self.store, &self.route, self.place(index)),
        }
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
