//! Snapshots of all definitions at one position of the change log.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{Calendars, Enrichments, Heartbeats, Inhibitions, Responders, Silences};
use crate::{
    domain::{Destination, Name, Occurrence, RecordId, Rule, SharedSettings, Status, Trigger},
    matching::{self, CompiledQuery, TriggerSet},
};

#[derive(Debug, Clone)]
pub struct LoadedTrigger {
    pub trigger: Trigger,
    /// The compiled query. `None` if the stored query does not compile; the trigger then matches no
    /// occurrence.
    pub query: Option<CompiledQuery>,
}

impl LoadedTrigger {
    pub fn new(trigger: Trigger) -> Self {
        let query = matching::compile(&trigger.query).ok();
        Self { trigger, query }
    }

    /// Whether the query uses the status, so that the trigger also applies to closed occurrences.
    pub fn uses_status(&self) -> bool {
        let query = self.query.as_ref();
        query.is_some_and(CompiledQuery::uses_status)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Match<'a> {
    pub rule: &'a Rule,
    /// The first matching trigger, in the author's order.
    pub trigger: &'a Trigger,
}

#[derive(Debug)]
pub struct Snapshot {
    triggers: BTreeMap<Name, Arc<LoadedTrigger>>,
    destinations: BTreeMap<Name, Arc<Destination>>,
    /// Sorted by name.
    rules: Vec<Arc<Rule>>,
    rule_by_id: HashMap<RecordId, usize>,
    destination_by_id: HashMap<RecordId, Arc<Destination>>,
    used: TriggerSet<Name>,
    enabled_by_trigger: HashMap<Name, Vec<usize>>,
    newest_edit_ms: i64,
    position: u64,
    silences: Arc<Silences>,
    calendars: Arc<Calendars>,
    inhibitions: Arc<Inhibitions>,
    heartbeats: Heartbeats,
    enrichments: Arc<Enrichments>,
    responders: Arc<Responders>,
    settings: Arc<SharedSettings>,
    edition: u64,
}

impl Snapshot {
    #[must_use]
    pub fn with_edition(mut self, edition: u64) -> Self {
        self.edition = edition;
        self
    }

    /// Returns the edition, which increases with every edit of triggers, rules, destinations,
    /// calendars and inhibitions, but not of silences.
    pub fn edition(&self) -> u64 {
        self.edition
    }

    #[must_use]
    pub fn with_silences(mut self, silences: Arc<Silences>) -> Self {
        self.silences = silences;
        self
    }

    #[must_use]
    pub fn with_settings(mut self, settings: Arc<SharedSettings>) -> Self {
        self.settings = settings;
        self
    }

    pub fn settings(&self) -> &SharedSettings {
        &self.settings
    }

    #[must_use]
    pub fn with_calendars(mut self, calendars: Arc<Calendars>) -> Self {
        self.calendars = calendars;
        self
    }

    #[must_use]
    pub fn with_inhibitions(mut self, inhibitions: Arc<Inhibitions>) -> Self {
        self.inhibitions = inhibitions;
        self
    }

    pub fn inhibitions(&self) -> &Arc<Inhibitions> {
        &self.inhibitions
    }

    #[must_use]
    pub fn with_heartbeats(mut self, heartbeats: Heartbeats) -> Self {
        self.heartbeats = heartbeats;
        self
    }

    pub fn heartbeats(&self) -> &Heartbeats {
        &self.heartbeats
    }

    #[must_use]
    pub fn with_enrichments(mut self, enrichments: Arc<Enrichments>) -> Self {
        self.enrichments = enrichments;
        self
    }

    pub fn enrichments(&self) -> &Arc<Enrichments> {
        &self.enrichments
    }

    #[must_use]
    pub fn with_responders(mut self, responders: Arc<Responders>) -> Self {
        self.responders = responders;
        self
    }

    pub fn responders(&self) -> &Arc<Responders> {
        &self.responders
    }

    pub fn calendars(&self) -> &Arc<Calendars> {
        &self.calendars
    }

    pub fn silences(&self) -> &Arc<Silences> {
        &self.silences
    }

    /// Creates a snapshot; `rules` must be sorted by name. `newest_end_ms` is the time at which a
    /// trigger or rule was last replaced or deleted.
    pub fn new(
        triggers: BTreeMap<Name, Arc<LoadedTrigger>>,
        rules: Vec<Arc<Rule>>,
        destinations: BTreeMap<Name, Arc<Destination>>,
        newest_end_ms: Option<i64>,
    ) -> Self {
        let edits = triggers.values().map(|it| it.trigger.update_ms);
        let edits = edits.chain(rules.iter().map(|it| it.update_ms));
        let newest_edit_ms = edits.chain(newest_end_ms).max().unwrap_or(0);
        let mut enabled_by_trigger: HashMap<Name, Vec<usize>> = HashMap::new();
        for (at, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.enabled) {
            for name in &rule.trigger_names {
                enabled_by_trigger.entry(name.clone()).or_default().push(at);
            }
        }
        let query_of = |name: &Name| Some((name.clone(), triggers.get(name)?.query.clone()?));
        let used = enabled_by_trigger.keys().filter_map(query_of).collect();
        Self {
            used: TriggerSet::build(used),
            enabled_by_trigger,
            rule_by_id: (0..).zip(&rules).map(|(at, it)| (it.id, at)).collect(),
            destination_by_id: destinations
                .values()
                .map(|it| (it.id, Arc::clone(it)))
                .collect(),
            triggers,
            rules,
            destinations,
            newest_edit_ms,
            position: 0,
            silences: Arc::default(),
            calendars: Arc::default(),
            inhibitions: Arc::default(),
            heartbeats: Heartbeats::default(),
            enrichments: Arc::default(),
            responders: Arc::default(),
            settings: Arc::default(),
            edition: 0,
        }
    }

    #[must_use]
    pub fn with_position(self, position: u64) -> Self {
        Self { position, ..self }
    }

    /// Returns the position in the change log up to which the snapshot was read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the time of the newest edit or deletion of a trigger or rule in effect, in
    /// milliseconds since 1970.
    pub fn newest_edit_ms(&self) -> i64 {
        self.newest_edit_ms
    }

    /// Returns the enabled rules that match an occurrence, by name. Closed occurrences match only
    /// triggers that use the status.
    pub fn matching_triggers(&self, occurrence: &Occurrence) -> Vec<Match<'_>> {
        let mut triggers = self.used.find_matching(occurrence);
        if occurrence.status == Status::Closed {
            triggers.retain(|name| {
                self.loaded_trigger(name)
                    .is_some_and(LoadedTrigger::uses_status)
            });
        }
        let rules: BTreeSet<usize> = triggers
            .iter()
            .filter_map(|name| self.enabled_by_trigger.get(*name))
            .flatten()
            .copied()
            .collect();
        let of_rule = |at: usize| {
            let rule = self.rules.get(at)?.as_ref();
            let mut names = rule.trigger_names.iter();
            let first = names.find(|name| triggers.contains(name))?;
            let trigger = self.trigger(first)?;
            Some(Match { rule, trigger })
        };
        rules.into_iter().filter_map(of_rule).collect()
    }

    #[must_use]
    pub fn with_rule(&self, rule: Rule) -> Self {
        let mut rules = self.rules.clone();
        rules.retain(|it| it.name != rule.name);
        let at = rules.partition_point(|it| it.name < rule.name);
        rules.insert(at, Arc::new(rule));
        self.with_definitions(self.triggers.clone(), rules)
    }

    #[must_use]
    pub fn with_trigger(&self, trigger: Trigger) -> Self {
        let mut triggers = self.triggers.clone();
        let name = trigger.name.clone();
        triggers.insert(name, Arc::new(LoadedTrigger::new(trigger)));
        self.with_definitions(triggers, self.rules.clone())
    }

    fn with_definitions(
        &self,
        triggers: BTreeMap<Name, Arc<LoadedTrigger>>,
        rules: Vec<Arc<Rule>>,
    ) -> Self {
        let newest_ms = Some(self.newest_edit_ms);
        let same = Self::new(triggers, rules, self.destinations.clone(), newest_ms);
        let same = same.with_position(self.position);
        let same = same.with_calendars(Arc::clone(&self.calendars));
        let same = same.with_inhibitions(Arc::clone(&self.inhibitions));
        let same = same.with_responders(Arc::clone(&self.responders));
        same.with_silences(Arc::clone(&self.silences))
    }

    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    pub fn rule(&self, id: RecordId) -> Option<&Rule> {
        Some(self.rules.get(*self.rule_by_id.get(&id)?)?.as_ref())
    }

    pub fn trigger(&self, name: &Name) -> Option<&Trigger> {
        Some(&self.loaded_trigger(name)?.trigger)
    }

    pub fn loaded_trigger(&self, name: &Name) -> Option<&LoadedTrigger> {
        self.triggers.get(name).map(AsRef::as_ref)
    }

    pub fn triggers(&self) -> impl ExactSizeIterator<Item = &Arc<LoadedTrigger>> {
        self.triggers.values()
    }

    pub fn trigger_count(&self) -> usize {
        self.triggers.len()
    }

    pub fn destination(&self, id: RecordId) -> Option<&Destination> {
        self.destination_by_id.get(&id).map(AsRef::as_ref)
    }

    pub fn destination_by_name(&self, name: &Name) -> Option<&Destination> {
        self.destinations.get(name).map(AsRef::as_ref)
    }

    pub fn destinations(&self) -> impl ExactSizeIterator<Item = &Destination> {
        self.destinations.values().map(AsRef::as_ref)
    }
}
