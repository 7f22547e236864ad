//! Which of the events in view are covered by an active silence, according to the service.

use std::collections::{HashMap, HashSet};

use bellwether_proto::v1;

use super::Model;
use crate::{
    client::Ticket,
    data::{EventRow, Failure, Severity, Status},
    limits,
    route::Route,
};

/// The fields of an event that can change and that silences often test.
type State = (Severity, Status, bool);

#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// Whether an active silence covers an occurrence in a state, by its id.
    known: HashMap<String, (State, bool)>,
    /// Revision of the list of silences at the last request, and whether any silence was active.
    revision: u64,
    is_any_active: bool,
    /// Occurrences in view whose coverage is unknown.
    missing: Vec<(String, State)>,
    waiting: Option<(Ticket, Vec<(String, State)>)>,
    /// Time before which no request is sent.
    not_before_ms: i64,
}

impl Coverage {
    pub(crate) fn is_silenced(&self, id: &str) -> bool {
        self.known.get(id).is_some_and(|(_, covered)| *covered)
    }

    /// Drops the coverage of all occurrences if the silences have another revision.
    pub(crate) fn drop_if_changed(&mut self, revision: u64, is_any_active: impl FnOnce() -> bool) {
        if self.revision != revision {
            *self = Self {
                revision,
                is_any_active: is_any_active(),
                not_before_ms: self.not_before_ms,
                ..Self::default()
            };
        }
    }

    /// Sets the occurrences in view.
    pub(crate) fn set_visible<'a>(&mut self, in_view: impl Iterator<Item = &'a EventRow>) {
        if self.known.len() > limits::HELD_EVENTS {
            self.known.clear();
        }
        self.missing.clear();
        if !self.is_any_active {
            return;
        }
        for row in in_view {
            let state = (row.severity, row.status, row.acknowledged);
            if self.known.get(&*row.id).is_none_or(|(it, _)| *it != state) {
                self.missing.push((row.id.to_string(), state));
            }
        }
    }

    /// Returns the time of the next request; `None` if there is nothing to request.
    pub(crate) fn due_ms(&self) -> Option<i64> {
        let is_idle = self.waiting.is_none() && !self.missing.is_empty();
        is_idle.then_some(self.not_before_ms)
    }

    pub(crate) fn missing_ids(&self) -> Vec<String> {
        self.missing.iter().map(|(id, _)| id.clone()).collect()
    }

    pub(crate) fn request(&mut self, ticket: Ticket, now_ms: i64) {
        self.waiting = Some((ticket, std::mem::take(&mut self.missing)));
        self.not_before_ms = now_ms.saturating_add(limits::COVERAGE_PACE_MS);
    }

    /// Records a response. After a failure, the request is repeated later.
    pub(crate) fn record(
        &mut self,
        ticket: Ticket,
        found: Result<v1::RouteEventsResponse, Failure>,
        now_ms: i64,
    ) -> bool {
        let Some((_, requested)) = self.waiting.take_if(|(it, _)| *it == ticket) else {
            return false;
        };
        let Ok(found) = found else {
            self.not_before_ms = now_ms.saturating_add(limits::COVERAGE_RETRY_MS);
            return true;
        };
        let covered = found.routes.into_iter();
        let covered = covered.filter(|it| !it.silence_names.is_empty());
        let covered: HashSet<_> = covered.map(|it| it.occurrence_id).collect();
        let known = requested.into_iter().map(|(id, state)| {
            let is_covered = covered.contains(&id);
            (id, (state, is_covered))
        });
        self.known.extend(known);
        true
    }
}

impl Model {
    pub(crate) fn coverage_at_ms(&self) -> Option<i64> {
        let due = self.store.coverage.due_ms();
        due.filter(|_| self.is_connected() && self.page.route == Route::EVENTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::FailureKind;

    fn sample_response(silenced: &[&str]) -> v1::RouteEventsResponse {
        let routes = silenced.iter().map(|id| v1::EventRoute {
            occurrence_id: (*id).to_owned(),
            silence_names: vec!["db-1-0301".to_owned()],
            ..v1::EventRoute::default()
        });
        v1::RouteEventsResponse {
            routes: routes.collect(),
        }
    }

    fn sample_row(id: &str) -> EventRow {
        let occurrence = v1::Occurrence {
            id: id.to_owned(),
            ..v1::Occurrence::default()
        };
        let event = v1::Event {
            occurrences: vec![occurrence],
            ..v1::Event::default()
        };
        EventRow::from_event(event).remove(0)
    }

    #[test]
    fn rows_in_view_are_requested_once_until_the_silences_change() {
        let mut coverage = Coverage::default();
        let rows = ["a", "b", "c"].map(sample_row);
        coverage.drop_if_changed(1, || true);
        coverage.set_visible(std::iter::empty());
        assert_eq!(coverage.due_ms(), None);
        coverage.set_visible(rows[..2].iter());
        assert!(coverage.due_ms().is_some_and(|at| at <= 5_000));
        coverage.request(Ticket(7), 5_000);
        coverage.set_visible(rows.iter());
        assert_eq!(coverage.due_ms(), None, "a request is in flight");
        assert!(
            !coverage.record(Ticket(6), Ok(sample_response(&["a"])), 5_000),
            "of another query"
        );
        assert!(coverage.record(Ticket(7), Ok(sample_response(&["a"])), 5_000));
        assert_eq!(
            ["a", "b", "c"].map(|id| coverage.is_silenced(id)),
            [true, false, false]
        );
        coverage.set_visible(rows.iter());
        assert_eq!(coverage.missing_ids(), ["c"]);
        assert_eq!(coverage.due_ms(), Some(5_000 + limits::COVERAGE_PACE_MS));
        coverage.drop_if_changed(1, || unreachable!("it is known"));
        coverage.drop_if_changed(2, || true);
        coverage.set_visible(rows[..1].iter());
        assert_eq!(coverage.missing_ids(), ["a"]);
        assert!(!coverage.is_silenced("a"));
        coverage.drop_if_changed(3, || false);
        coverage.set_visible(rows[..1].iter());
        assert_eq!(coverage.due_ms(), None, "no silence is active");
    }

    #[test]
    fn changed_event_is_requested_again() {
        let mut coverage = Coverage::default();
        let mut row = sample_row("a");
        coverage.drop_if_changed(1, || true);
        coverage.set_visible(std::iter::once(&row));
        coverage.request(Ticket(7), 5_000);
        coverage.record(Ticket(7), Ok(sample_response(&["a"])), 5_000);
        row.count += 1;
        coverage.set_visible(std::iter::once(&row));
        assert_eq!(coverage.due_ms(), None, "silences do not test the count");
        row.severity = Severity::Critical;
        coverage.set_visible(std::iter::once(&row));
        assert_eq!(coverage.missing_ids(), ["a"]);
        assert!(coverage.is_silenced("a"), "until the response arrives");
    }

    #[test]
    fn failed_request_is_repeated_later() {
        let mut coverage = Coverage::default();
        let row = sample_row("a");
        coverage.drop_if_changed(1, || true);
        coverage.set_visible(std::iter::once(&row));
        coverage.request(Ticket(8), 6_000);
        let failure = Failure::new(FailureKind::TimedOut, "no response");
        assert!(coverage.record(Ticket(8), Err(failure), 7_000));
        coverage.set_visible(std::iter::once(&row));
        let retry_ms = 7_000 + limits::COVERAGE_RETRY_MS;
        assert_eq!(coverage.due_ms(), Some(retry_ms));
    }
}
