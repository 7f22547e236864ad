//! What the service told, kept until it tells anew.

use super::{events::EventWindow, page::Route};
use crate::{
    client::Ticket,
    data::{Client, Delivery, Destination, Failure, Kind, Overview, Rule, Trigger},
};

/// Something read from the service, with what is known about the reading.
#[derive(Clone, Debug)]
pub(crate) struct Loaded<T> {
    pub(crate) value: Option<T>,
    pub(crate) waiting: Option<Ticket>,
    pub(crate) failure: Option<Failure>,
    /// When it was last read, or the reading last failed.
    pub(crate) at_ms: Option<i64>,
    /// When the value was received.
    pub(crate) received_ms: Option<i64>,
    /// Counts the changes of the value.
    pub(crate) revision: u64,
}

impl<T> Default for Loaded<T> {
    fn default() -> Self {
        Self {
            value: None,
            waiting: None,
            failure: None,
            at_ms: None,
            received_ms: None,
            revision: 0,
        }
    }
}

impl<T> Loaded<T> {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        let revision = self.revision + 1;
        *self = Self {
            revision,
            ..Self::default()
        };
    }
}

impl<T: PartialEq> Loaded<T> {
    /// Takes in what a reading brought; a failure keeps the value from before. Says whether it is
    /// anything new.
    pub(crate) fn set(&mut self, result: Result<T, Failure>, now_ms: i64) -> bool {
        self.waiting = None;
        self.at_ms = Some(now_ms);
        match result {
            Ok(value) => {
                self.received_ms = Some(now_ms);
                let failed = self.failure.take().is_some();
                let value = Some(value);
                let changed = self.value != value;
                self.revision += u64::from(changed);
                self.value = value;
                changed || failed
            }
            Err(failure) => {
                self.failure = Some(failure);
                true
            }
        }
    }
}

impl<T> Loaded<Vec<T>> {
    pub(crate) fn rows(&self) -> &[T] {
        self.value.as_deref().unwrap_or_default()
    }
}

/// Everything read from the service that outlives the page it was read for.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) overview: Loaded<Overview>,
    pub(crate) events: EventWindow,
    pub(crate) triggers: Loaded<Vec<Trigger>>,
    pub(crate) destinations: Loaded<Vec<Destination>>,
    pub(crate) rules: Loaded<Vec<Rule>>,
    pub(crate) deliveries: Loaded<Vec<Delivery>>,
    /// The filter the deliveries were read with, and where the next page starts.
    pub(crate) deliveries_filter: String,
    pub(crate) deliveries_next: String,
    pub(crate) clients: Loaded<Vec<Client>>,
}

impl Store {
    /// Nothing read yet; of the events only those that are open are wanted.
    pub(crate) fn new() -> Self {
        let mut store = Self::default();
        store.events.filter.open_only = true;
        store
    }

    pub(crate) fn trigger(&self, name: &str) -> Option<&Trigger> {
        self.triggers
            .rows()
            .iter()
            .find(|trigger| trigger.spec.name == name)
    }

    pub(crate) fn destination(&self, name: &str) -> Option<&Destination> {
        self.destinations
            .rows()
            .iter()
            .find(|destination| destination.spec.name == name)
    }

    pub(crate) fn rule(&self, name: &str) -> Option<&Rule> {
        self.rules.rows().iter().find(|rule| rule.spec.name == name)
    }

    /// The names of the stored resources of a kind.
    pub(crate) fn names(&self, kind: Kind) -> Vec<String> {
        match kind {
            Kind::Trigger => self
                .triggers
                .rows()
                .iter()
                .map(|row| row.spec.name.clone())
                .collect(),
            Kind::Destination => self
                .destinations
                .rows()
                .iter()
                .map(|row| row.spec.name.clone())
                .collect(),
            Kind::Rule => self
                .rules
                .rows()
                .iter()
                .map(|row| row.spec.name.clone())
                .collect(),
        }
    }

    /// Why the list that a route shows was not read, or not read afresh.
    pub(crate) fn failure(&self, route: &Route) -> Option<&Failure> {
        match route {
            Route::Overview => self.overview.failure.as_ref(),
            Route::Events => self.events.failure.as_ref(),
            Route::Triggers => self.triggers.failure.as_ref(),
            Route::Destinations => self.destinations.failure.as_ref(),
            Route::Rules | Route::Map => self.rules.failure.as_ref(),
            Route::Deliveries => self.deliveries.failure.as_ref(),
            Route::Clients => self.clients.failure.as_ref(),
            _ => None,
        }
    }

    /// Tells what a list is made of from what it was made of before.
    pub(crate) fn revisions(&self, route: &Route) -> [u64; 3] {
        let (triggers, destinations, rules) = (
            self.triggers.revision,
            self.destinations.revision,
            self.rules.revision,
        );
        match route {
            Route::Triggers => [triggers, 0, 0],
            Route::Destinations => [destinations, 0, 0],
            Route::Rules => [rules, 0, 0],
            Route::Deliveries => [self.deliveries.revision, 0, 0],
            Route::Clients => [self.clients.revision, 0, 0],
            _ => [triggers, destinations, rules],
        }
    }

    /// When what a list shows was received; of several the oldest. `None` when it is streamed or
    /// never was.
    pub(crate) fn received_ms(&self, route: &Route) -> Option<i64> {
        let (triggers, destinations, rules) = (
            self.triggers.received_ms,
            self.destinations.received_ms,
            self.rules.received_ms,
        );
        match route {
            Route::Overview => self.overview.received_ms,
            Route::Triggers | Route::Trigger(_) => triggers,
            Route::Destinations | Route::Destination(_) => destinations,
            Route::Rules | Route::Rule(_) => rules,
            Route::Map => [triggers, destinations, rules].into_iter().flatten().min(),
            Route::Deliveries => self.deliveries.received_ms,
            Route::Clients => self.clients.received_ms,
            _ => None,
        }
    }

    /// When what a route shows was read; `None` when it is streamed or under way.
    pub(crate) fn read_ms(&self, route: &Route) -> Option<i64> {
        let (waiting, at_ms) = match route {
            Route::Overview => (self.overview.waiting, self.overview.at_ms),
            Route::Triggers | Route::Trigger(_) => (self.triggers.waiting, self.triggers.at_ms),
            Route::Destinations | Route::Destination(_) => {
                (self.destinations.waiting, self.destinations.at_ms)
            }
            Route::Rules | Route::Rule(_) | Route::Map => (self.rules.waiting, self.rules.at_ms),
            Route::Deliveries => (self.deliveries.waiting, self.deliveries.at_ms),
            Route::Clients => (self.clients.waiting, self.clients.at_ms),
            Route::Events
            | Route::Event(_)
            | Route::Delivery(_)
            | Route::Reference
            | Route::Topic(_)
            | Route::Form
            | Route::Report => return None,
        };
        if waiting.is_some() { None } else { at_ms }
    }
}
