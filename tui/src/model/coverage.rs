//! Which of the events in view are covered by an active silence, according to the service.

use std::collections::HashMap;

use bellwether_proto::v1;

use super::Model;
use crate::{client::Ticket, data::Failure, limits, route::Route};

#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// Whether an active silence covers an occurrence, keyed by the occurrence's id.
    known: HashMap<String, bool>,
    /// Revision of the list of silences at the last request, and whether any silence was active.
    revision: u64,
    is_any_active: bool,
    /// Occurrences in view whose coverage is unknown.
    missing: Vec<String>,
    waiting: Option<(Ticket, Vec<String>)>,
    requested_ms: i64,
}

impl Coverage {
    pub(crate) fn is_silenced(&self, id: &str) -> bool {
        self.known.get(id).copied().unwrap_or_default()
    }

    /// Drops the coverage of all occurrences if the silences have another revision.
    pub(crate) fn drop_if_changed(&mut self, revision: u64, is_any_active: impl FnOnce() -> bool) {
        if self.revision != revision {
            *self = Self {
                revision,
                is_any_active: is_any_active(),
                requested_ms: self.requested_ms,
                ..Self::default()
            };
        }
    }

    pub(crate) fn set_visible<'a>(&mut self, in_view: impl Iterator<Item = &'a str>) {
        if self.known.len() > limits::HELD_EVENTS {
            self.known.clear();
        }
        let is_missing = |id: &&str| self.is_any_active && !self.known.contains_key(*id);
        let missing = in_view.filter(is_missing);
        self.missing = missing.map(str::to_owned).collect();
    }

    /// Returns the time of the next request; `None` if there is nothing to request.
    pub(crate) fn due_ms(&self) -> Option<i64> {
        let is_idle = self.waiting.is_none() && !self.missing.is_empty();
        is_idle.then(|| self.requested_ms.saturating_add(limits::COVERAGE_PACE_MS))
    }

    pub(crate) fn missing_ids(&self) -> &[String] {
        &self.missing
    }

    pub(crate) fn request(&mut self, ticket: Ticket, now_ms: i64) {
        self.waiting = Some((ticket, std::mem::take(&mut self.missing)));
        self.requested_ms = now_ms;
    }

    /// Records a response. A failure counts as not covered until the silences change.
    pub(crate) fn record(
        &mut self,
        ticket: Ticket,
        found: Result<v1::RouteEventsResponse, Failure>,
    ) -> bool {
        let Some((_, requested)) = self.waiting.take_if(|(it, _)| *it == ticket) else {
            return false;
        };
        self.known
            .extend(requested.into_iter().map(|id| (id, false)));
        let routes = found.map(|it| it.routes).unwrap_or_default().into_iter();
        let covered = routes.filter(|it| !it.silence_names.is_empty());
        self.known
            .extend(covered.map(|it| (it.occurrence_id, true)));
        true
    }
}

impl Model {
    pub(crate) fn coverage_at_ms(&self) -> Option<i64> {
        let due = self.store.coverage.due_ms();
        due.filter(|_| self.is_connected() && self.page.route == Route::Events)
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

    #[test]
    fn rows_in_view_are_requested_once_until_the_silences_change() {
        let mut coverage = Coverage::default();
        coverage.drop_if_changed(1, || true);
        coverage.set_visible(std::iter::empty());
        assert_eq!(coverage.due_ms(), None);
        coverage.set_visible(["a", "b"].into_iter());
        assert!(coverage.due_ms().is_some_and(|at| at <= 5_000));
        coverage.request(Ticket(7), 5_000);
        coverage.set_visible(["a", "b", "c"].into_iter());
        assert_eq!(coverage.due_ms(), None, "a request is in flight");
        assert!(
            !coverage.record(Ticket(6), Ok(sample_response(&["a"]))),
            "of another query"
        );
        assert!(coverage.record(Ticket(7), Ok(sample_response(&["a"]))));
        assert_eq!(
            ["a", "b", "c"].map(|id| coverage.is_silenced(id)),
            [true, false, false]
        );
        coverage.set_visible(["a", "b", "c"].into_iter());
        assert_eq!(coverage.missing_ids(), ["c"]);
        assert_eq!(coverage.due_ms(), Some(5_000 + limits::COVERAGE_PACE_MS));
        coverage.drop_if_changed(1, || unreachable!("it is known"));
        coverage.drop_if_changed(2, || true);
        coverage.set_visible(["a"].into_iter());
        assert_eq!(coverage.missing_ids(), ["a"]);
        assert!(!coverage.is_silenced("a"));
        coverage.request(Ticket(8), 6_000);
        let failure = Failure::new(FailureKind::TimedOut, "no response");
        assert!(coverage.record(Ticket(8), Err(failure)));
        coverage.set_visible(["a"].into_iter());
        assert_eq!(
            coverage.due_ms(),
            None,
            "failures are not retried immediately"
        );
        coverage.drop_if_changed(3, || false);
        coverage.set_visible(["a"].into_iter());
        assert_eq!(coverage.due_ms(), None, "no silence is active");
    }
}
