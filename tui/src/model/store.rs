//! The last reported value, kept until the next one.

use std::collections::HashMap;

use bellwether_proto::v1;

use super::events::EventWindow;
use crate::{
    client::Ticket,
    data::{Counted, Failure, Grouped, Kind, Object},
    kind::response,
    limits,
    route::Route,
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
    /// Processes what a reading brought; a failure keeps the value from before. Returns whether it
    /// is anything new.
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

/// What is known about a reading, whatever is read.
pub(crate) trait Slot {
    fn waiting(&self) -> Option<Ticket>;
    fn failure(&self) -> Option<&Failure>;
    fn at_ms(&self) -> Option<i64>;
    fn received_ms(&self) -> Option<i64>;
    fn revision(&self) -> u64;
    fn is_read(&self) -> bool;
    /// Nothing asked before will be answered any more.
    fn forget(&mut self);
}

impl<T> Slot for Loaded<T> {
    fn waiting(&self) -> Option<Ticket> {
        self.waiting
    }

    fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    fn at_ms(&self) -> Option<i64> {
        self.at_ms
    }

    fn received_ms(&self) -> Option<i64> {
        self.received_ms
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn is_read(&self) -> bool {
        self.value.is_some()
    }

    fn forget(&mut self) {
        self.waiting = None;
    }
}

/// Everything read from the service that outlives the page it was read for.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) overview: Loaded<v1::GetOverviewResponse>,
    /// What the overview shows in addition.
    pub(crate) wall: Loaded<Counted>,
    /// Which overview there was when that was asked for.
    pub(crate) counted_revision: u64,
    /// When that was asked for.
    pub(crate) counted_from_ms: i64,
    pub(crate) events: EventWindow,
    /// When the stream last reported that something was stored, whatever it was.
    pub(crate) changed_ms: Option<i64>,
    /// Events by what a field holds, and which route they were counted for.
    pub(crate) event_groups: Loaded<Grouped>,
    pub(crate) event_groups_of: Option<Route>,
    /// In the order of [`Kind::ALL`].
    resources: [Loaded<Vec<Object>>; Kind::ALL.len()],
    /// The most urgent response that is under way of each occurrence, by its place among the responses.
    pub(crate) responses: HashMap<String, usize>,
    /// The places of the responses, the most urgent first, and how many of them no one answered.
    responses_by_urgency: Vec<usize>,
    pub(crate) unanswered: usize,
    pub(crate) deliveries: Loaded<Vec<v1::Delivery>>,
    /// The filter the deliveries were read with, and where the next page starts.
    pub(crate) deliveries_filter: String,
    pub(crate) deliveries_next: String,
    /// How many there are that its filter leaves, by state; the filter without one of them.
    pub(crate) delivery_counts: Loaded<v1::DeliveryCounts>,
    pub(crate) delivery_counts_of: String,
    /// When that was asked for.
    pub(crate) delivery_counts_from_ms: i64,
    /// The same of all deliveries, for the tabs of screens.
    pub(crate) all_deliveries: Loaded<v1::DeliveryCounts>,
    /// When that was asked for.
    pub(crate) all_deliveries_from_ms: i64,
    /// What went to destinations in the last hour.
    pub(crate) last_hour: Loaded<v1::GetStatisticsResponse>,
    /// What the author of its filter may not mean.
    pub(crate) filter_warnings: Vec<String>,
    /// Where the next page starts of those between the newest and what was held before.
    pub(crate) deliveries_between: String,
}

impl Store {
    /// Nothing read yet; of the events only those that are open are wanted.
    pub(crate) fn new() -> Self {
        let mut store = Self::default();
        store.events.filter.open_only = true;
        store
    }

    /// Whether nothing was stored for a while before that moment and since, as far as the stream reports it, and
    /// what a route counts in addition was asked for since.
    pub(crate) fn is_settled(&self, route: &Route, at_ms: i64) -> bool {
        let reports = self.events.joined && self.events.stream_failure.is_none();
        let Some(changed_ms) = self.changed_ms.filter(|_| reports) else {
            return false;
        };
        let counted_ms = match route {
            Route::Overview => self.counted_from_ms,
            Route::Deliveries => self.delivery_counts_from_ms,
            // Who is on call changes by time alone.
            Route::OnCall => return false,
            _ => i64::MAX,
        };
        let counted_ms = counted_ms.min(self.all_deliveries_from_ms);
        changed_ms.saturating_add(limits::SETTLED_MS) < at_ms && changed_ms < counted_ms
    }

    /// The resources of a kind.
    pub(crate) fn of(&self, kind: Kind) -> &Loaded<Vec<Object>> {
        &self.resources[kind as usize]
    }

    pub(crate) fn of_mut(&mut self, kind: Kind) -> &mut Loaded<Vec<Object>> {
        &mut self.resources[kind as usize]
    }

    /// Orders the responses, and notes which occurrences they are about: once for each reading, since times are
    /// parsed for it.
    pub(crate) fn index_responses(&mut self) {
        let rows = self.of(Kind::Response).rows();
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_cached_key(|at| response::urgency(&rows[*at]));
        let is_active = |at: &&usize| rows[**at].text("state") == "ACTIVE";
        let unanswered = order.iter().take_while(is_active).count();
        let mut found: HashMap<String, usize> = HashMap::new();
        for at in &order {
            let one = &rows[*at];
            if one.text("state") != "ENDED" {
                let occurrence = one.text("occurrenceId").to_owned();
                found.entry(occurrence).or_insert(*at);
            }
        }
        self.responses = found;
        self.unanswered = unanswered;
        self.responses_by_urgency = order;
    }

    /// The responses, the most urgent first.
    pub(crate) fn responses_by_urgency(&self) -> impl Iterator<Item = &Object> {
        let rows = self.of(Kind::Response).rows();
        let order = self.responses_by_urgency.iter();
        order.filter_map(|at| rows.get(*at))
    }

    /// A resource by its name.
    pub(crate) fn object(&self, kind: Kind, name: &str) -> Option<&Object> {
        let mut rows = self.of(kind).rows().iter();
        rows.find(|row| row.name() == name)
    }

    /// Processes one resource that was read separately.
    pub(crate) fn replace(
        &mut self,
        kind: Kind,
        found: Result<Object, Failure>,
        now_ms: i64,
    ) -> bool {
        let rows = found.map(|found| {
            let mut rows = self.of(kind).rows().to_vec();
            match rows.iter_mut().find(|row| row.name() == found.name()) {
                Some(row) => *row = found,
                None => rows.push(found),
            }
            rows
        });
        self.of_mut(kind).set(rows, now_ms)
    }

    /// The events by what a field holds.
    pub(crate) fn grouped(&self) -> Option<&Grouped> {
        self.event_groups.value.as_ref()
    }

    /// The names of the stored resources of a kind.
    pub(crate) fn names(&self, kind: Kind) -> Vec<String> {
        let rows = self.of(kind).rows().iter();
        rows.map(|row| row.name().to_owned()).collect()
    }

    /// What a route shows, the most important first; nothing where it is streamed or a page's own.
    pub(crate) fn slots(&self, route: &Route) -> Vec<&dyn Slot> {
        match route {
            Route::Overview => vec![&self.overview],
            Route::OnCall => {
                let kinds = [Kind::Response, Kind::Schedule];
                kinds.map(|kind| self.of(kind) as &dyn Slot).to_vec()
            }
            Route::List(kind) | Route::Object(kind, _) => vec![self.of(*kind)],
            Route::EventGroups { .. } => vec![&self.event_groups],
            Route::Deliveries => vec![&self.deliveries],
            _ => Vec::new(),
        }
    }

    /// Nothing asked before will be answered any more.
    pub(crate) fn forget_waits(&mut self) {
        self.overview.forget();
        self.wall.forget();
        self.deliveries.forget();
        self.delivery_counts.forget();
        self.all_deliveries.forget();
        self.last_hour.forget();
        self.events.waiting = None;
        self.event_groups.forget();
        self.resources.iter_mut().for_each(Slot::forget);
    }

    /// Why what a route shows was not read, or not read afresh.
    pub(crate) fn failure(&self, route: &Route) -> Option<&Failure> {
        match route {
            Route::Events => self.events.failure.as_ref(),
            route => {
                let mut slots = self.slots(route).into_iter();
                slots.find_map(Slot::failure)
            }
        }
    }

    /// Whether what a route shows was read at all.
    pub(crate) fn is_read(&self, route: &Route) -> bool {
        match route {
            Route::Events => self.events.loaded,
            route => self.slots(route).into_iter().all(Slot::is_read),
        }
    }

    /// Compares the contents of a list with the earlier ones.
    pub(crate) fn revisions(&self, route: &Route) -> Vec<u64> {
        let slots = self.slots(route).into_iter();
        slots.map(Slot::revision).collect()
    }

    /// When what a route shows was received; of several the oldest. `None` when it is streamed or
    /// never was.
    pub(crate) fn received_ms(&self, route: &Route) -> Option<i64> {
        let slots = self.slots(route).into_iter();
        slots.filter_map(Slot::received_ms).min()
    }

    /// When what a route shows was read; `None` when it is streamed or under way.
    pub(crate) fn read_ms(&self, route: &Route) -> Option<i64> {
        let slots = self.slots(route);
        let slot = slots.first().filter(|slot| slot.waiting().is_none())?;
        slot.at_ms()
    }
}
