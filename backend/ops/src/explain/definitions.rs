//! Triggers and rules as of a decision.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use bellwether_proto::v1::Definition;

use super::timeline::DecisionPoint;
use crate::{
    decide::{LoadedTrigger, Snapshot},
    domain::{Name, RecordId, RevisedResource, Revision, RevisionId, Rule},
    matching::{self, CompiledQuery},
    store::{Direction, EngineError, Index, Store, engine::Range, record::bytes::Key},
    wire::to_i64,
};

const PAGE: usize = 500;

#[derive(Debug)]
pub(super) enum FoundDefinition<T> {
    InForce(Arc<T>, Definition),
    /// Created at this later time, in milliseconds since the epoch.
    NotYet(i64),
    /// Deleted at this earlier time, in milliseconds since the epoch.
    Deleted(i64),
    /// In force, but no longer stored.
    NotKept,
}

#[derive(Debug, Clone)]
struct DefinitionRevision<T> {
    value: Arc<T>,
    create_ms: i64,
    definition: Definition,
}

/// The current triggers and rules, and the past revisions since some time.
#[derive(Debug)]
pub(super) struct Definitions {
    /// Definitions by name, oldest first; a name may have been reused.
    triggers: BTreeMap<Name, Vec<DefinitionRevision<LoadedTrigger>>>,
    /// Revisions by name and id, oldest first.
    rules: BTreeMap<(Name, RecordId), Vec<DefinitionRevision<Rule>>>,
    compiled: HashMap<RevisionId, Option<CompiledQuery>>,
}

impl Definitions {
    /// Reads the definitions, without revisions that ended before `since_ms`.
    pub(super) async fn read(
        store: &Store,
        snapshot: &Snapshot,
        since_ms: i64,
    ) -> Result<Self, EngineError> {
        let mut definitions = Self {
            triggers: BTreeMap::new(),
            rules: BTreeMap::new(),
            compiled: HashMap::new(),
        };
        let mut range = Range {
            start: Key::new().time_ms(since_ms).build(),
            end: None,
        };
        loop {
            let index = Index::RevisionByEnd;
            let page = store
                .page_by_index::<Revision>(index, range.clone(), Direction::Ascending, PAGE)
                .await?;
            let Some((last, _)) = page.last() else { break };
            range.start = Key::new().remainder(last).byte(0).build();
            for (_, stored) in page {
                definitions.add(stored.value);
            }
        }
        for trigger in snapshot.triggers() {
            definitions.add_trigger(Arc::clone(trigger), None, false);
        }
        for rule in snapshot.rules() {
            definitions.add_rule(Arc::clone(rule), None, false);
        }
        let order = |definition: &Definition| (definition.since, definition.revision);
        for versions in definitions.triggers.values_mut() {
            versions.sort_by_key(|it| order(&it.definition));
        }
        for versions in definitions.rules.values_mut() {
            versions.sort_by_key(|it| it.definition.revision);
        }
        Ok(definitions)
    }

    fn add(&mut self, revision: Revision) {
        let until_ms = Some(revision.until_ms);
        match revision.was {
            RevisedResource::Trigger(trigger) => {
                // Compiled on first use.
                let query = None;
                let loaded = Arc::new(LoadedTrigger { trigger, query });
                self.add_trigger(loaded, until_ms, revision.deleted);
            }
            RevisedResource::Rule(rule) => {
                self.add_rule(Arc::new(rule), until_ms, revision.deleted);
            }
            RevisedResource::Silence(_) | RevisedResource::Schedule(_) => {}
        }
    }

    fn add_trigger(&mut self, loaded: Arc<LoadedTrigger>, until_ms: Option<i64>, deleted: bool) {
        let trigger = &loaded.trigger;
        let name = trigger.name.clone();
        let version = DefinitionRevision {
            create_ms: trigger.create_ms,
            definition: Definition {
                revision: to_i64(trigger.revision),
                since: trigger.update_ms,
                until: until_ms,
                deleted,
            },
            value: loaded,
        };
        self.triggers.entry(name).or_default().push(version);
    }

    fn add_rule(&mut self, rule: Arc<Rule>, until_ms: Option<i64>, deleted: bool) {
        let version = DefinitionRevision {
            create_ms: rule.create_ms,
            definition: Definition {
                revision: to_i64(rule.revision),
                since: rule.update_ms,
                until: until_ms,
                deleted,
            },
            value: rule,
        };
        let name = (version.value.name.clone(), version.value.id);
        self.rules.entry(name).or_default().push(version);
    }

    pub(super) fn rules(&self) -> impl Iterator<Item = (&Name, RecordId, Option<i64>)> {
        self.rules.iter().map(|((name, id), versions)| {
            let last = versions.last().map(|it| &it.definition);
            let deleted = last.filter(|it| it.deleted).and_then(|it| it.until);
            (name, *id, deleted)
        })
    }

    pub(super) fn len(&self) -> usize {
        let triggers: usize = self.triggers.values().map(Vec::len).sum();
        self.rules.len() + triggers
    }

    pub(super) fn rule(
        &self,
        name: &Name,
        id: RecordId,
        point: DecisionPoint,
    ) -> FoundDefinition<Rule> {
        let versions = self.rules.get(&(name.clone(), id));
        find_version(versions.map_or(&[], Vec::as_slice), point)
    }

    pub(super) fn rule_revision(
        &self,
        name: &Name,
        id: RecordId,
        revision: u64,
    ) -> Option<(Arc<Rule>, Definition)> {
        let mut versions = self.rules.get(&(name.clone(), id))?.iter();
        let found = versions.find(|it| it.definition.revision == to_i64(revision))?;
        Some((Arc::clone(&found.value), found.definition))
    }

    pub(super) fn current_rule(
        &self,
        name: &Name,
        id: RecordId,
    ) -> Option<(Arc<Rule>, Definition)> {
        let last = self.rules.get(&(name.clone(), id))?.last()?;
        let is_now = last.definition.until.is_none();
        is_now.then(|| (Arc::clone(&last.value), last.definition))
    }

    pub(super) fn trigger(
        &self,
        name: &Name,
        point: DecisionPoint,
    ) -> FoundDefinition<LoadedTrigger> {
        find_version(self.triggers.get(name).map_or(&[], Vec::as_slice), point)
    }

    pub(super) fn trigger_revision(
        &self,
        id: &RevisionId,
    ) -> Option<(Arc<LoadedTrigger>, Definition)> {
        let mut versions = self.triggers.get(&id.name)?.iter();
        let found = versions.find(|it| RevisionId::from(&it.value.trigger) == *id)?;
        Some((Arc::clone(&found.value), found.definition))
    }

    pub(super) fn current_trigger(&self, name: &Name) -> Option<(Arc<LoadedTrigger>, Definition)> {
        let last = self.triggers.get(name)?.last()?;
        let is_now = last.definition.until.is_none();
        is_now.then(|| (Arc::clone(&last.value), last.definition))
    }

    /// Returns the compiled query of a trigger; `None` if it is no longer valid.
    pub(super) fn query<'a>(&'a mut self, loaded: &'a LoadedTrigger) -> Option<&'a CompiledQuery> {
        if loaded.query.is_some() {
            return loaded.query.as_ref();
        }
        let trigger = &loaded.trigger;
        let compile = || matching::compile(&trigger.query).ok();
        let compiled = self.compiled.entry(trigger.into());
        compiled.or_insert_with(compile).as_ref()
    }
}

fn find_version<T>(versions: &[DefinitionRevision<T>], point: DecisionPoint) -> FoundDefinition<T> {
    let at_ms = point.rules_ms;
    let begun = versions.iter().rev();
    let Some(found) = { begun }.find(|it| it.definition.since <= at_ms) else {
        return match versions.first() {
            Some(first) if first.create_ms <= at_ms => FoundDefinition::NotKept,
            Some(first) => FoundDefinition::NotYet(first.create_ms),
            None => FoundDefinition::NotKept,
        };
    };
    match found.definition.until {
        Some(until_ms) if found.definition.deleted && until_ms <= at_ms => {
            FoundDefinition::Deleted(until_ms)
        }
        _ => FoundDefinition::InForce(Arc::clone(&found.value), found.definition),
    }
}
