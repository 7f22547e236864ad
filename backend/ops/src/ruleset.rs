//! The definitions in force, ready for matching.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, watch};
use tracing::warn;

use crate::{
    decide::{
        Calendars, Enrichments, Heartbeats, Inhibitions, LoadedEnrichment, LoadedHeartbeat,
        LoadedInhibition, LoadedSchedule, LoadedSilence, LoadedTrigger, Responders, Silences,
        Snapshot,
    },
    domain::{
        Calendar, Contact, Destination, EnrichmentTable, EscalationPolicy, Heartbeat, Inhibition,
        Name, Rule, Schedule, Settings, SharedSettings, Silence, Stage, Trigger,
    },
    matching,
    named::Resource,
    revision,
    store::{
        Direction, EngineError, Kind, LogPosition, Record, Store,
        engine::{LogStep, Range},
    },
};

const FOLLOWED: [Kind; 13] = [
    Kind::Trigger,
    Kind::Rule,
    Kind::Destination,
    Kind::Calendar,
    Kind::Inhibition,
    Kind::Silence,
    Kind::Settings,
    Kind::Heartbeat,
    Kind::Enrichment,
    Kind::Contact,
    Kind::Schedule,
    Kind::Policy,
    Kind::Revision,
];
/// Kinds whose edits do not affect held notifications, or are tracked separately.
const APART: [Kind; 7] = [
    Kind::Silence,
    Kind::Inhibition,
    Kind::Heartbeat,
    Kind::Enrichment,
    Kind::Contact,
    Kind::Schedule,
    Kind::Policy,
];
const PAGE: usize = 1_000;

/// The rules in force, kept up to date with the change log.
///
/// Once an edit is acknowledged, it is in the change log, and [`Ruleset::refresh`] reads the log up
/// to the head known to this process. A decision's commit checks the position read
/// ([`Snapshot::position`]), and conflicts if another process has edited since. An edit therefore
/// applies to every event accepted after its acknowledgement.
#[derive(Debug)]
pub struct Ruleset {
    store: Store,
    head: watch::Receiver<LogPosition>,
    current: ArcSwap<Snapshot>,
    settings: watch::Sender<Arc<SharedSettings>>,
    loaded: Mutex<LoadedDefinitions>,
}

#[derive(Debug, Default)]
struct LoadedDefinitions {
    position: LogPosition,
    /// Position of the last change that affects held notifications.
    edition: u64,
    triggers: BTreeMap<Name, Arc<LoadedTrigger>>,
    rules: BTreeMap<Name, Arc<Rule>>,
    destinations: BTreeMap<Name, Arc<Destination>>,
    newest_end_ms: Option<i64>,
    calendars: BTreeMap<Name, Arc<Calendar>>,
    query_calendars: Arc<Calendars>,
    /// Enabled inhibitions.
    inhibitions: BTreeMap<Name, Arc<LoadedInhibition>>,
    inhibiting: Arc<Inhibitions>,
    /// Enabled heartbeats.
    heartbeats: BTreeMap<Name, Arc<LoadedHeartbeat>>,
    beating: Heartbeats,
    /// Enabled enrichment tables.
    enrichments: BTreeMap<Name, Arc<LoadedEnrichment>>,
    enriching: Arc<Enrichments>,
    contacts: BTreeMap<Name, Arc<Contact>>,
    schedules: BTreeMap<Name, Arc<Schedule>>,
    policies: BTreeMap<Name, Arc<EscalationPolicy>>,
    responders: Arc<Responders>,
    settings: Arc<SharedSettings>,
    /// Silences that have not ended.
    silences: BTreeMap<Name, Arc<LoadedSilence>>,
    matched: Arc<Silences>,
}

impl Ruleset {
    pub async fn load(store: Store) -> Result<Self, EngineError> {
        let loaded = LoadedDefinitions::read(&store).await?;
        Ok(Self {
            head: store.engine().log_signal(),
            current: ArcSwap::from_pointee(loaded.snapshot()),
            settings: watch::Sender::new(Arc::clone(&loaded.settings)),
            loaded: Mutex::new(loaded),
            store,
        })
    }

    /// Returns the rules as of the last refresh.
    pub fn current_snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Returns the settings shared by all nodes, as of the last refresh.
    pub fn settings(&self) -> watch::Receiver<Arc<SharedSettings>> {
        self.settings.subscribe()
    }

    /// Returns the rules with all acknowledged edits.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect. The next call reads the same edits again.
    pub async fn refresh(&self) -> Result<Arc<Snapshot>, EngineError> {
        let head = *self.head.borrow();
        let mut loaded = self.loaded.lock().await;
        let changed = self.store.engine().last_changed(&FOLLOWED);
        if changed <= loaded.position {
            loaded.position = loaded.position.later(head);
        } else if loaded.position < head && loaded.catch_up(&self.store).await? {
            self.current.store(Arc::new(loaded.snapshot()));
            let settings = &loaded.settings;
            self.settings.send_if_modified(|before| {
                let is_other = before != settings;
                before.clone_from(settings);
                is_other
            });
        }
        Ok(self.current_snapshot())
    }
}

impl LoadedDefinitions {
    async fn read(store: &Store) -> Result<Self, EngineError> {
        // Read the log position first, so that concurrent edits are read again from there.
        let mut loaded = Self {
            position: store.engine().log_head().await?,
            ..Self::default()
        };
        loaded.edition = loaded.position.to_number();
        for trigger in read_all::<Trigger>(store).await? {
            loaded.add_trigger(trigger);
        }
        loaded.rules = read_by_name(store).await?;
        loaded.destinations = read_by_name(store).await?;
        loaded.newest_end_ms = revision::newest_end_ms(store).await?;
        loaded.calendars = read_by_name(store).await?;
        loaded.request_calendars();
        for inhibition in read_all::<Inhibition>(store).await? {
            let name = inhibition.name.clone();
            loaded.put_inhibition(name, Some(inhibition));
        }
        loaded.match_inhibitions();
        for silence in read_all::<Silence>(store).await? {
            loaded.add_silence(silence);
        }
        loaded.match_silences();
        let heartbeats = read_all::<Heartbeat>(store).await?.into_iter();
        loaded.put_heartbeats(heartbeats.map(|it| (it.name.clone(), Some(it))).collect());
        let tables = read_all::<EnrichmentTable>(store).await?.into_iter();
        loaded.put_enrichments(tables.map(|it| (it.name.clone(), Some(it))).collect());
        loaded.contacts = read_by_name(store).await?;
        loaded.schedules = read_by_name(store).await?;
        loaded.policies = read_by_name(store).await?;
        loaded.request_responders();
        loaded.read_settings(store).await?;
        Ok(loaded)
    }

    async fn read_settings(&mut self, store: &Store) -> Result<(), EngineError> {
        let found = store.get::<Settings>(Settings::NAME.into()).await?;
        self.settings = Arc::new(found.map(|it| it.value.values).unwrap_or_default());
        Ok(())
    }

    fn add_trigger(&mut self, trigger: Trigger) {
        let compiled = matching::compile(&trigger.query).inspect_err(|violations| {
            warn!(trigger = %trigger.name, ?violations, "a stored query is invalid and matches no event");
        });
        let loaded = LoadedTrigger {
            query: compiled.ok(),
            trigger,
        };
        self.triggers
            .insert(loaded.trigger.name.clone(), Arc::new(loaded));
    }

    fn add_silence(&mut self, silence: Silence) {
        let name = silence.name.clone();
        let is_over = silence.progress.stage == Stage::Over;
        let loaded = LoadedSilence::new(silence).filter(|_| !is_over);
        let loaded = loaded.map(|it| it.with_calendar(&self.query_calendars));
        match loaded {
            Some(loaded) => drop(self.silences.insert(name, Arc::new(loaded))),
            None => drop(self.silences.remove(&name)),
        }
    }

    /// Replaces an inhibition. Returns whether decisions are affected.
    fn put_inhibition(&mut self, name: Name, inhibition: Option<Inhibition>) -> bool {
        let identity = |it: &Arc<LoadedInhibition>| (it.inhibition.id, it.inhibition.revision);
        let enabled = inhibition.filter(|it| it.enabled);
        let loaded = enabled.and_then(LoadedInhibition::new).map(Arc::new);
        let before = self.inhibitions.get(&name).map(identity);
        let is_other = before != loaded.as_ref().map(identity);
        match loaded {
            Some(loaded) => drop(self.inhibitions.insert(name, loaded)),
            None => drop(self.inhibitions.remove(&name)),
        }
        is_other
    }

    fn put_heartbeats(&mut self, found: Vec<(Name, Option<Heartbeat>)>) {
        for (name, found) in found {
            let enabled = found.filter(|it| it.enabled);
            let loaded = enabled.and_then(|it| LoadedHeartbeat::new(it, &self.query_calendars));
            match loaded {
                Some(loaded) => drop(self.heartbeats.insert(name, Arc::new(loaded))),
                None => drop(self.heartbeats.remove(&name)),
            }
        }
        self.beating = self.heartbeats.values().cloned().collect();
    }

    fn put_enrichments(&mut self, found: Vec<(Name, Option<EnrichmentTable>)>) {
        for (name, found) in found {
            let enabled = found.filter(|it| it.enabled);
            let loaded = enabled.and_then(|it| {
                let loaded = LoadedEnrichment::new(it).inspect_err(|violations| {
                    warn!(enrichment = %name, ?violations, "a stored table is invalid and sets no values");
                });
                loaded.ok()
            });
            match loaded {
                Some(loaded) => drop(self.enrichments.insert(name, Arc::new(loaded))),
                None => drop(self.enrichments.remove(&name)),
            }
        }
        let tables = self.enrichments.values().cloned().collect();
        self.enriching = Arc::new(Enrichments::new(tables));
    }

    fn match_inhibitions(&mut self) {
        let all = self.inhibitions.values().cloned().collect();
        self.inhibiting = Arc::new(Inhibitions::new(all));
    }

    fn apply_inhibitions(&mut self, found: Vec<(Name, Option<Inhibition>)>) -> bool {
        let mut is_other = false;
        for (name, found) in found {
            is_other |= self.put_inhibition(name, found);
        }
        self.match_inhibitions();
        is_other
    }

    fn request_calendars(&mut self) {
        self.query_calendars = Arc::new(Calendars::new(self.calendars.values().map(AsRef::as_ref)));
        for loaded in self.silences.values_mut() {
            if loaded.silence.calendar.is_some() {
                *loaded =
                    Arc::new(LoadedSilence::clone(loaded).with_calendar(&self.query_calendars));
            }
        }
        let heartbeats = self.heartbeats.values().map(|it| &it.heartbeat);
        let of_calendars = heartbeats.filter(|it| it.calendar.is_some()).cloned();
        let of_calendars: Vec<_> = of_calendars.map(|it| (it.name.clone(), Some(it))).collect();
        if !of_calendars.is_empty() {
            self.put_heartbeats(of_calendars);
        }
    }

    async fn apply_responders(
        &mut self,
        kind: Kind,
        store: &Store,
        keys: Vec<Vec<u8>>,
    ) -> Result<(), EngineError> {
        match kind {
            Kind::Contact => apply_changes(&mut self.contacts, read_named(store, keys).await?),
            Kind::Schedule => apply_changes(&mut self.schedules, read_named(store, keys).await?),
            _ => apply_changes(&mut self.policies, read_named(store, keys).await?),
        }
        self.request_responders();
        Ok(())
    }

    fn request_responders(&mut self) {
        let calendars = &self.query_calendars;
        let schedules = self.schedules.iter().filter_map(|(name, it)| {
            let loaded = LoadedSchedule::new(Schedule::clone(it), calendars);
            let loaded = loaded.inspect_err(|missing| {
                warn!(schedule = %name, error = %missing, "a schedule has no one on call");
            });
            Some((name.clone(), Arc::new(loaded.ok()?)))
        });
        self.responders = Arc::new(Responders {
            contacts: self.contacts.clone(),
            schedules: schedules.collect(),
            policies: self.policies.clone(),
            calendars: Arc::clone(&self.query_calendars),
        });
    }

    fn match_silences(&mut self) {
        self.matched = Arc::new(Silences::new(self.silences.values().cloned().collect()));
    }

    fn snapshot(&self) -> Snapshot {
        let snapshot = Snapshot::new(
            self.triggers.clone(),
            self.rules.values().cloned().collect(),
            self.destinations.clone(),
            self.newest_end_ms,
        );
        let snapshot = snapshot.with_position(self.position.to_number());
        let snapshot = snapshot.with_calendars(Arc::clone(&self.query_calendars));
        let snapshot = snapshot.with_inhibitions(Arc::clone(&self.inhibiting));
        let snapshot = snapshot.with_heartbeats(Arc::clone(&self.beating));
        let snapshot = snapshot.with_enrichments(Arc::clone(&self.enriching));
        let snapshot = snapshot.with_responders(Arc::clone(&self.responders));
        let snapshot = snapshot.with_settings(Arc::clone(&self.settings));
        let snapshot = snapshot.with_silences(Arc::clone(&self.matched));
        snapshot.with_edition(self.edition)
    }

    /// Reads the change log to its end. Returns whether any definition in force changed.
    async fn catch_up(&mut self, store: &Store) -> Result<bool, EngineError> {
        let mut changed = false;
        loop {
            let Some(news) = store.engine().log_after(self.position, PAGE).await? else {
                *self = Self::read(store).await?;
                return Ok(true);
            };
            let Some(last) = news.last().map(|logged| logged.position) else {
                return Ok(changed);
            };
            changed |= self.apply_steps(store, &news).await?;
            self.position = last;
        }
    }

    async fn apply_steps(&mut self, store: &Store, news: &[LogStep]) -> Result<bool, EngineError> {
        let mut changed = false;
        for kind in FOLLOWED.into_iter().filter(|it| *it != Kind::Revision) {
            let all = news.iter().flat_map(|logged| &logged.changed);
            let mut keys: Vec<_> = all
                .filter(|(other, _)| *other == kind)
                .map(|(_, key)| key.clone())
                .collect();
            if keys.is_empty() {
                continue;
            }
            changed = true;
            if !APART.contains(&kind) {
                let last = news.last().map(|logged| logged.position.to_number());
                self.edition = last.unwrap_or(self.edition);
            }
            keys.sort_unstable();
            keys.dedup();
            match kind {
                Kind::Trigger => {
                    for (name, found) in read_named::<Trigger>(store, keys).await? {
                        match found {
                            Some(trigger) => self.add_trigger(trigger),
                            None => drop(self.triggers.remove(&name)),
                        }
                    }
                }
                Kind::Settings => self.read_settings(store).await?,
                Kind::Heartbeat => self.put_heartbeats(read_named(store, keys).await?),
                Kind::Enrichment => self.put_enrichments(read_named(store, keys).await?),
                Kind::Rule => apply_changes(&mut self.rules, read_named(store, keys).await?),
                Kind::Inhibition => {
                    let is_other = self.apply_inhibitions(read_named(store, keys).await?);
                    if let (true, Some(last)) = (is_other, news.last()) {
                        self.edition = last.position.to_number();
                    }
                }
                Kind::Calendar => {
                    apply_changes(&mut self.calendars, read_named(store, keys).await?);
                    self.request_calendars();
                    self.match_silences();
                    self.request_responders();
                }
                Kind::Contact | Kind::Schedule | Kind::Policy => {
                    self.apply_responders(kind, store, keys).await?;
                }
                Kind::Silence => {
                    for (name, found) in read_named::<Silence>(store, keys).await? {
                        match found {
                            Some(silence) => self.add_silence(silence),
                            None => drop(self.silences.remove(&name)),
                        }
                    }
                    self.match_silences();
                }
                _ => apply_changes(&mut self.destinations, read_named(store, keys).await?),
            }
        }
        if changed {
            self.newest_end_ms = revision::newest_end_ms(store)
                .await?
                .max(self.newest_end_ms);
        }
        Ok(changed)
    }
}

fn apply_changes<T>(map: &mut BTreeMap<Name, Arc<T>>, found: Vec<(Name, Option<T>)>) {
    for (name, value) in found {
        match value {
            Some(value) => drop(map.insert(name, Arc::new(value))),
            None => drop(map.remove(&name)),
        }
    }
}

async fn read_named<T: Record>(
    store: &Store,
    keys: Vec<Vec<u8>>,
) -> Result<Vec<(Name, Option<T>)>, EngineError> {
    let names: Vec<_> = keys
        .iter()
        .map(|key| {
            std::str::from_utf8(key)
                .ok()
                .and_then(|text| Name::parse(text).ok())
        })
        .collect();
    let found = store.get_many::<T>(keys).await?;
    let pairs = names.into_iter().zip(found);
    Ok(pairs
        .filter_map(|(name, found)| Some((name?, found.map(|stored| stored.value))))
        .collect())
}

async fn read_by_name<T: Resource>(store: &Store) -> Result<BTreeMap<Name, Arc<T>>, EngineError> {
    let all = read_all::<T>(store).await?.into_iter();
    Ok(all.map(|it| (it.name().clone(), Arc::new(it))).collect())
}

async fn read_all<T: Record>(store: &Store) -> Result<Vec<T>, EngineError> {
    let mut all: Vec<T> = Vec::new();
    let mut start = Vec::new();
    loop {
        let range = Range { start, end: None };
        let page = store.page::<T>(range, Direction::Ascending, PAGE).await?;
        let is_last = page.len() < PAGE;
        all.extend(page.into_iter().map(|stored| stored.value));
        match all.last() {
            Some(last) if !is_last => {
                start = last.key();
                start.push(0);
            }
            _ => return Ok(all),
        }
    }
}

#[cfg(test)]
mod tests;
