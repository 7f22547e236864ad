//! Details that are read for the selected row of a list, once the cursor rests on it, and for the
//! page of a rule or destination.

use bellwether_proto::v1;

use super::{Model, form::LivePreview, loaded::Loaded};
use crate::{data::Kind, limits, route::Route};

#[derive(Debug, Default)]
pub(crate) struct RowDetails {
    row: Option<(Route, String)>,
    pub(crate) due_ms: Option<i64>,
    pub(crate) event: Loaded<v1::Event>,
    pub(crate) explanation: Loaded<v1::ExplainEventResponse>,
    /// The last deliveries of a rule or to a destination, or the selected one with its attempts.
    pub(crate) decided: Loaded<Vec<v1::Delivery>>,
    pub(crate) shifts: Loaded<v1::ListShiftsResponse>,
    /// The messages of a rule, or the request to a destination, for a sample event.
    pub(crate) message: Loaded<LivePreview>,
}

impl RowDetails {
    pub(crate) fn is_about_row(&self, route: &Route, id: &str) -> bool {
        let row = self.row.as_ref();
        row.is_some_and(|(list, row)| list == route && row == id)
    }

    /// Schedules another read of the details, since the row may have changed.
    pub(crate) fn refresh_soon(&mut self, now_ms: i64) {
        if self.row.is_some() {
            self.due_ms = Some(now_ms.saturating_add(limits::BESIDE_PAUSE_MS));
        }
    }

    fn is_waiting(&self) -> bool {
        let waiting = [
            self.event.waiting,
            self.explanation.waiting,
            self.decided.waiting,
            self.shifts.waiting,
            self.message.waiting,
        ];
        waiting.iter().any(Option::is_some)
    }

    pub(crate) fn current_row(&self) -> Option<(Route, String)> {
        self.row.clone()
    }
}

impl Model {
    /// Whether the list has the selected item beside it.
    pub(crate) fn shows_split(&self) -> bool {
        let fits = self.size.0 >= limits::SPLIT_COLUMNS && !self.is_plain;
        self.is_split && fits && self.page.route.is_list()
    }

    /// Drops the details of the previous row, and schedules a read of those of the selected row.
    pub(super) fn sync_row_details(&mut self) {
        let selected = match &self.page.route {
            Route::Object(Kind::Rule | Kind::Destination, name) => Some(name.clone()),
            _ => self.selected_id().filter(|_| self.shows_split()),
        };
        let is_same = match (&selected, &self.beside.row) {
            (Some(id), Some(_)) => self.beside.is_about_row(&self.page.route, id),
            (selected, row) => selected.is_none() && row.is_none(),
        };
        if !is_same {
            let row = selected.map(|id| (self.page.route.clone(), id));
            *self.beside = RowDetails {
                row,
                ..RowDetails::default()
            };
            self.beside.refresh_soon(self.now_ms);
        }
    }

    pub(crate) fn row_details_due_ms(&self) -> Option<i64> {
        let beside = &self.beside;
        let read = [
            beside.explanation.at_ms,
            beside.decided.at_ms,
            beside.shifts.at_ms,
        ];
        let refresh = read.into_iter().flatten().max();
        let refresh = refresh.map(|at| self.due_ms(at, limits::REFRESH_MS));
        let is_free = self.is_connected() && !beside.is_waiting();
        beside.due_ms.or(refresh).filter(|_| is_free)
    }
}
