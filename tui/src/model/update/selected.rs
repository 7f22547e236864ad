//! The targets of actions: the selected, marked or shown resource, occurrence or rows.

use std::cmp::Reverse;

use bellwether_proto::v1;

use crate::{
    data::{EventRow, Screen, occurrence},
    kind::EventCell,
    limits,
    model::{Model, page::Content},
    route::Route,
};

/// Maximum number of events that a confirmation names.
const NAMED: usize = 5;

impl Model {
    pub(crate) fn resource_name(&self) -> Option<String> {
        match &self.page.route {
            Route::Object(_, name) => Some(name.clone()),
            route if route.is_list() => self.selected_id(),
            _ => None,
        }
    }

    pub(crate) fn occurrence(&self) -> Option<String> {
        match (&self.page.route, &self.page.content) {
            (Route::Screen(Screen::Events), _) => self.selected_id(),
            (Route::Event(id), _) if id.contains(':') => Some(id.clone()),
            (Route::Event(_), Content::Event { detail, .. }) => {
                let event = detail.value.as_ref()?;
                occurrence(event).map(|it| it.id.clone())
            }
            _ => None,
        }
    }

    pub(crate) fn shown_occurrence(&self) -> Option<&v1::Occurrence> {
        match &self.page.content {
            Content::Event { detail, .. } => occurrence(detail.value.as_ref()?),
            _ => None,
        }
    }

    /// Returns the marked rows, else the selected or shown occurrence or row.
    pub(crate) fn selected_targets(&self) -> Vec<String> {
        let marks = &self.page.list.marks;
        if !marks.is_empty() {
            return marks.iter().take(limits::BULK_ITEMS).cloned().collect();
        }
        let one = match self.page.route {
            Route::EVENTS | Route::Event(_) => self.occurrence(),
            _ => self.selected_id(),
        };
        one.into_iter().collect()
    }

    pub(crate) fn describe_worst_events(&self, ids: &[String]) -> Vec<String> {
        let mut cells: Vec<_> = ids.iter().filter_map(|id| self.event_cell(id)).collect();
        cells.sort_by_key(|cell| Reverse(cell.severity));
        let first = cells.iter().take(NAMED).map(EventCell::line);
        let more = ids.len().saturating_sub(cells.len().min(NAMED));
        let rest = (more > 0).then(|| format!("and {more} more"));
        first.chain(rest).collect()
    }

    fn event_cell(&self, id: &str) -> Option<EventCell> {
        let cell = |row: &EventRow| EventCell::from_row(row, &self.host_field);
        if let Some(row) = self.store.events.find(id) {
            return Some(cell(row));
        }
        let Content::Event { detail, .. } = &self.page.content else {
            return None;
        };
        let rows = EventRow::from_event(detail.value.clone()?);
        rows.first().map(cell)
    }
}
