//! The silences that have not ended, and the occurrences they cover.

use std::{collections::BTreeSet, sync::Arc};

use super::{Calendars, LoadedCalendar};
use crate::{
    domain::{Name, Occurrence, RecordId, Silence, SilenceState, Status, has_own_source},
    matching::{self, CompiledQuery, TriggerSet},
};

#[derive(Debug, Clone)]
pub struct LoadedSilence {
    pub silence: Silence,
    query: Option<CompiledQuery>,
    calendar: Option<Arc<LoadedCalendar>>,
}

impl LoadedSilence {
    /// Compiles a silence. `None` if the stored query does not compile; the silence then covers no
    /// events.
    pub fn new(silence: Silence) -> Option<Self> {
        let query = match &silence.query {
            None => None,
            Some(query) => Some(matching::compile(query).ok()?),
        };
        Some(Self {
            silence,
            query,
            calendar: None,
        })
    }

    /// Attaches the silence's calendar, if it has one. A calendar whose time zone is unknown has no
    /// windows.
    #[must_use]
    pub fn with_calendar(self, calendars: &Calendars) -> Self {
        let name = self.silence.calendar.as_ref();
        let calendar = name.and_then(|name| calendars.get(name)).cloned();
        Self { calendar, ..self }
    }

    fn next_change_ms(&self, now_ms: i64) -> Option<i64> {
        self.calendar
            .as_ref()
            .and_then(|it| it.status_at(now_ms).changes_ms)
    }

    pub fn current_end_ms(&self, now_ms: i64) -> Option<i64> {
        let ends = [self.silence.ends_ms(), self.next_change_ms(now_ms)];
        ends.into_iter().flatten().min()
    }

    /// Returns the time at which the silence next comes into force, in milliseconds since 1970.
    /// `None` if it is in force, has ended or will never start.
    pub fn next_start_ms(&self, now_ms: i64) -> Option<i64> {
        if self.is_in_force(now_ms) || self.silence.state_at(now_ms) == SilenceState::Expired {
            return None;
        }
        let first_ms = self.silence.start_ms.max(now_ms);
        let begins_ms = match (&self.silence.calendar, &self.calendar) {
            (None, _) => Some(first_ms),
            (Some(_), None) => None,
            (Some(_), Some(calendar)) => {
                let standing = calendar.status_at(first_ms);
                if standing.in_window {
                    Some(first_ms)
                } else {
                    standing.changes_ms
                }
            }
        };
        begins_ms.filter(|at_ms| *at_ms < self.silence.end_ms)
    }

    /// Returns the state at a time. Between two windows of its calendar, the silence is scheduled.
    pub fn state_at(&self, now_ms: i64) -> SilenceState {
        match self.silence.state_at(now_ms) {
            SilenceState::Active if !self.is_in_force(now_ms) => SilenceState::Scheduled,
            state => state,
        }
    }

    pub fn matches(&self, occurrence: &Occurrence) -> bool {
        let query = self.query.as_ref();
        !has_own_source(&occurrence.dimensions)
            && query.is_none_or(|query| query.matches(occurrence))
    }

    pub fn applies_to_rule(&self, rule: &Name) -> bool {
        let names = &self.silence.rule_names;
        names.is_empty() || names.contains(rule)
    }

    pub fn applies_to_destination(&self, destination: &Name) -> bool {
        let names = &self.silence.destination_names;
        names.is_empty() || names.contains(destination)
    }

    pub fn is_in_force(&self, now_ms: i64) -> bool {
        let is_inside = match (&self.silence.calendar, &self.calendar) {
            (None, _) => true,
            (Some(_), calendar) => calendar
                .as_ref()
                .is_some_and(|it| it.status_at(now_ms).in_window),
        };
        is_inside && self.silence.state_at(now_ms) == SilenceState::Active
    }

    pub fn covers(&self, occurrence: &Occurrence, matching_rules: &[&Name]) -> bool {
        let is_for_all = self.silence.rule_names.is_empty();
        let is_for_any = is_for_all || matching_rules.iter().any(|rule| self.applies_to_rule(rule));
        occurrence.status == Status::Open && is_for_any && self.matches(occurrence)
    }
}

#[derive(Debug, Default)]
pub struct Silences {
    all: Vec<Arc<LoadedSilence>>,
    by_query: Option<TriggerSet<usize>>,
    without_query: Vec<usize>,
}

impl Silences {
    pub fn new(all: Vec<Arc<LoadedSilence>>) -> Self {
        let with_query = (0..).zip(&all);
        let with_query = with_query.filter_map(|(at, it)| Some((at, it.query.clone()?)));
        let with_query: Vec<(usize, CompiledQuery)> = with_query.collect();
        let without = (0..).zip(&all).filter(|(_, it)| it.query.is_none());
        Self {
            without_query: without.map(|(at, _)| at).collect(),
            by_query: (!with_query.is_empty()).then(|| TriggerSet::build(with_query)),
            all,
        }
    }

    pub fn as_slice(&self) -> &[Arc<LoadedSilence>] {
        &self.all
    }

    /// Returns the silences in force whose query matches an occurrence; the one that ends last
    /// comes first.
    pub fn find_matching(&self, occurrence: &Occurrence, now_ms: i64) -> Vec<&LoadedSilence> {
        if self.all.is_empty() || has_own_source(&occurrence.dimensions) {
            return Vec::new();
        }
        let by_query = self.by_query.as_ref();
        let by_query = by_query.map(|set| set.find_matching(occurrence));
        let places = by_query.into_iter().flatten().copied();
        let places = places.chain(self.without_query.iter().copied());
        let found = places.filter_map(|at| self.all.get(at));
        let mut found: Vec<&LoadedSilence> = found
            .map(AsRef::as_ref)
            .filter(|it| it.is_in_force(now_ms))
            .collect();
        found.sort_by_key(|it| (std::cmp::Reverse(it.silence.end_ms), it.silence.id));
        found
    }
}

/// Returns the identities of the given silences that cover an occurrence. A silence for specific
/// rules covers only occurrences that one of these rules matches.
pub(super) fn covering_silences(
    silences: &[&LoadedSilence],
    occurrence: &Occurrence,
    matching_rules: impl Fn() -> BTreeSet<Name>,
) -> Vec<RecordId> {
    if silences.is_empty() || occurrence.status != Status::Open {
        return Vec::new();
    }
    let mut known: Option<BTreeSet<Name>> = None;
    let covering = silences.iter().filter(|it| {
        let names = &it.silence.rule_names;
        names.is_empty() || {
            let known = known.get_or_insert_with(&matching_rules);
            names.iter().any(|name| known.contains(name))
        }
    });
    covering.map(|it| it.silence.id).collect()
}
