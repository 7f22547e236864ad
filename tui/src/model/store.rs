//! The data read from the service.

use std::collections::HashMap;

use bellwether_proto::v1;

use super::{
    coverage::Coverage,
    events::EventWindow,
    loaded::{Loaded, Slot},
};
use crate::{
    data::{ChartData, Failure, GroupedEvents, Kind, Object, Screen},
    kind::response,
    limits,
    route::Route,
};

/// Data from the service that is kept after the page for which it was read.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) overview: Loaded<v1::GetOverviewResponse>,
    pub(crate) wall: Loaded<ChartData>,
    /// Revision of the overview at the time when the statistics were requested.
    pub(crate) counted_revision: u64,
    pub(crate) events: EventWindow,
    pub(crate) changed_ms: Option<i64>,
    /// Events counted by a field, and the route of the page that shows the counts.
    pub(crate) event_groups: Loaded<GroupedEvents>,
    pub(crate) event_groups_of: Option<Route>,
    /// Resources of each kind, in the order of [`Kind::ALL`].
    resources: [Loaded<Vec<Object>>; Kind::ALL.len()],
    /// Index of the most urgent active response of each occurrence.
    pub(crate) responses: HashMap<String, usize>,
    /// Indices of the responses, sorted by urgency, and the number of unanswered responses.
    responses_by_urgency: Vec<usize>,
    pub(crate) unanswered: usize,
    pub(crate) coverage: Coverage,
    pub(crate) deliveries: Loaded<Vec<v1::Delivery>>,
    /// The filter with which the deliveries were read, and the token of the next page.
    pub(crate) deliveries_filter: String,
    pub(crate) deliveries_next: String,
    /// Counts of deliveries by state, and the filter that they match, excluding its condition on the
    /// state.
    pub(crate) delivery_counts: Loaded<v1::DeliveryCounts>,
    pub(crate) delivery_counts_of: String,
    pub(crate) all_deliveries: Loaded<v1::DeliveryCounts>,
    pub(crate) last_hour: Loaded<v1::GetStatisticsResponse>,
    pub(crate) filter_warnings: Vec<String>,
    /// Token of the next page between the newest deliveries and older ones already read.
    pub(crate) deliveries_between: String,
}

impl Store {
    /// Creates an empty store that lists open events only.
    pub(crate) fn new() -> Self {
        let mut store = Self::default();
        store.events.filter.open_only = true;
        store
    }

    /// Whether there was no change shortly before this time or since, as far as the stream reports
    /// changes, and the counts of the route were requested since.
    pub(crate) fn is_up_to_date_since(&self, route: &Route, at_ms: i64) -> bool {
        let reports = self.events.joined && self.events.stream_failure.is_none();
        let Some(changed_ms) = self.changed_ms.filter(|_| reports) else {
            return false;
        };
        // Excludes the on-call screen, because the contacts on call change with time.
        let all_deliveries: &dyn Slot = &self.all_deliveries;
        let figures = self.count_slots(route).into_iter().chain([all_deliveries]);
        let counted_ms = figures.map(Slot::requested_ms).min();
        *route != Route::ON_CALL
            && changed_ms.saturating_add(limits::SETTLED_MS) < at_ms
            && counted_ms.is_none_or(|counted_ms| changed_ms < counted_ms)
    }

    pub(crate) fn resources(&self, kind: Kind) -> &Loaded<Vec<Object>> {
        &self.resources[kind as usize]
    }

    pub(crate) fn resources_mut(&mut self, kind: Kind) -> &mut Loaded<Vec<Object>> {
        &mut self.resources[kind as usize]
    }

    /// Sorts and indexes the responses; done once per read because it parses times.
    pub(crate) fn index_responses(&mut self) {
        let rows = self.resources(Kind::Response).rows();
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_cached_key(|at| response::urgency_key(&rows[*at]));
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

    /// Updates which events in view may be covered by an active silence.
    pub(crate) fn settle_coverage(&mut self, top: usize) {
        let silences = &self.resources[Kind::Silence as usize];
        let mut rows = silences.rows().iter();
        let is_any_active = || rows.any(|it| it.text("state") == "ACTIVE");
        self.coverage
            .drop_if_changed(silences.revision, is_any_active);
        let in_view = top..top.saturating_add(limits::COVERAGE_ROWS);
        let in_view = in_view.map_while(|at| self.events.get(at));
        self.coverage.set_visible(in_view);
    }

    pub(crate) fn responses_by_urgency(&self) -> impl Iterator<Item = &Object> {
        let rows = self.resources(Kind::Response).rows();
        let order = self.responses_by_urgency.iter();
        order.filter_map(|at| rows.get(*at))
    }

    pub(crate) fn object(&self, kind: Kind, name: &str) -> Option<&Object> {
        let mut rows = self.resources(kind).rows().iter();
        rows.find(|row| row.name() == name)
    }

    /// Returns a dimension of the event that a resource is about, from the resource or else from
    /// the event, if it is loaded. Empty if unknown.
    pub(crate) fn host(&self, object: &Object, field: &str) -> String {
        let dimensions = object.value_at("dimensions");
        let own = dimensions.and_then(|it| it.get(field)?.as_str());
        if let Some(own) = own {
            return own.to_owned();
        }
        let event = self.events.find(object.text("occurrenceId"));
        let host = event.and_then(|event| event.dimension(field));
        host.unwrap_or_default()
    }

    pub(crate) fn replace(
        &mut self,
        kind: Kind,
        found: Result<Object, Failure>,
        now_ms: i64,
    ) -> bool {
        let rows = found.map(|found| {
            let mut rows = self.resources(kind).rows().to_vec();
            match rows.iter_mut().find(|row| row.name() == found.name()) {
                Some(row) => *row = found,
                None => rows.push(found),
            }
            rows
        });
        self.resources_mut(kind).record(rows, now_ms)
    }

    pub(crate) fn loaded_groups(&self) -> Option<&GroupedEvents> {
        self.event_groups.value.as_ref()
    }

    pub(crate) fn names(&self, kind: Kind) -> Vec<String> {
        let rows = self.resources(kind).rows().iter();
        rows.map(|row| row.name().to_owned()).collect()
    }

    /// Returns the data of a route, most important first; empty if it is streamed or belongs to the
    /// page.
    pub(crate) fn loaded_slots(&self, route: &Route) -> Vec<&dyn Slot> {
        match route {
            Route::Screen(Screen::Overview) => vec![&self.overview],
            Route::Screen(Screen::OnCall) => {
                let kinds = [Kind::Response, Kind::Schedule];
                kinds.map(|kind| self.resources(kind) as &dyn Slot).to_vec()
            }
            Route::List(kind) | Route::Object(kind, _) => vec![self.resources(*kind)],
            Route::EventGroups { .. } => vec![&self.event_groups],
            Route::Screen(Screen::Deliveries) => vec![&self.deliveries],
            _ => Vec::new(),
        }
    }

    /// Returns the counts that a screen shows in addition to its rows. They are read less often if
    /// counting is slow.
    pub(crate) fn count_slots(&self, route: &Route) -> Vec<&dyn Slot> {
        match route {
            Route::Screen(Screen::Overview) => vec![&self.wall],
            // If the console holds all rows, it counts them itself.
            Route::Screen(Screen::Events) if !self.events.next.is_empty() => {
                vec![&self.events.total]
            }
            Route::Screen(Screen::Deliveries) => vec![&self.delivery_counts],
            Route::List(Kind::Destination) => vec![&self.last_hour],
            _ => Vec::new(),
        }
    }

    /// Returns the time of the oldest data of a route for which the stream has reported a change
    /// since.
    pub(crate) fn outdated_since_ms(&self, route: &Route) -> Option<i64> {
        let changed_ms = self.changed_ms.unwrap_or(i64::MAX);
        let shown = self
            .loaded_slots(route)
            .into_iter()
            .chain(self.count_slots(route));
        let oldest_ms = shown.filter_map(Slot::as_of_ms).min();
        oldest_ms.filter(|as_of_ms| *as_of_ms <= changed_ms)
    }

    pub(crate) fn reconnect(&mut self) {
        self.overview.reconnect();
        self.wall.reconnect();
        self.deliveries.reconnect();
        self.delivery_counts.reconnect();
        self.all_deliveries.reconnect();
        self.last_hour.reconnect();
        self.events.waiting = None;
        self.events.failure = None;
        self.events.stream_failure = None;
        self.coverage = Coverage::default();
        self.events.total.reconnect();
        self.event_groups.reconnect();
        self.resources.iter_mut().for_each(Slot::reconnect);
    }

    pub(crate) fn failure(&self, route: &Route) -> Option<&Failure> {
        match route {
            Route::Screen(Screen::Events) => self.events.failure.as_ref(),
            route => {
                let mut slots = self.loaded_slots(route).into_iter();
                slots.find_map(Slot::failure)
            }
        }
    }

    pub(crate) fn is_loaded(&self, route: &Route) -> bool {
        match route {
            Route::Screen(Screen::Events) => self.events.loaded,
            route => self.loaded_slots(route).into_iter().all(Slot::is_loaded),
        }
    }

    /// Returns the revisions of a route's data, by which changes are detected.
    pub(crate) fn revisions(&self, route: &Route) -> Vec<u64> {
        let slots = self.loaded_slots(route).into_iter();
        slots.map(Slot::revision).collect()
    }

    /// Returns the time at which the data of a route was received, the earliest if there are
    /// several; `None` if it is streamed or was never received.
    pub(crate) fn received_ms(&self, route: &Route) -> Option<i64> {
        let slots = self.loaded_slots(route).into_iter();
        slots.filter_map(Slot::received_ms).min()
    }

    /// Returns the time at which the data of a route was read; `None` if it is streamed or being
    /// read.
    pub(crate) fn read_ms(&self, route: &Route) -> Option<i64> {
        let slots = self.loaded_slots(route);
        let slot = slots
            .first()
            .filter(|slot| slot.pending_ticket().is_none())?;
        slot.at_ms()
    }
}
