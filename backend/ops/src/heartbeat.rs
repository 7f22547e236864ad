//! Heartbeats: storage, editing and deletion, and their expectations.

mod alarm;
mod draft;
mod due;
mod flush;
mod preview;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bellwether_language::filter;
use bellwether_proto::v1;

use crate::{
    beats::new_expectation,
    clock::Clock,
    commit::commit,
    decide::{LoadedHeartbeat, alarm_violations},
    decision_context::DecisionContext,
    domain::{
        Calendar, Expectation, ExpectationState, Heartbeat, RecordId, Secret, event::SOURCE,
        hold::SharedValue, is_reserved_key,
    },
    error::Error,
    etag::compute_etag,
    from_domain::FromDomain,
    intake::Intake,
    limits::{EXPECTATIONS_MAX, HEARTBEAT_FIELDS_MAX, HEARTBEATS_MAX},
    link::LinkGrant,
    matching::{self, field::Field},
    page::{PageRequest, TokenScope},
    refers::ReferenceChecker,
    resource::{AuthoredResource, Origin, Resources, find, resource},
    store::{
        Changes, Direction, Index, Lane, PROOF_BYTES, Store,
        engine::Range,
        record::{beat_prefix, bytes::Key},
    },
    tag_scope::{check_owner, requires_own_dimension},
    validate::Violations,
    wire::{
        query,
        time::{self, timestamp},
    },
};

pub use flush::BeatFlush;
pub use preview::{HeartbeatPreview, HeartbeatPreviews};
pub use watch::HeartbeatWatch;

pub type Heartbeats = Resources<Heartbeat>;

const NAMED: &str = "heartbeat";

resource!(Heartbeat, v1::Heartbeat, "heartbeat", |_| None);

impl AuthoredResource for Heartbeat {
    type Draft = v1::Heartbeat;
    type View = v1::Heartbeat;

    async fn from_draft(
        all: &Heartbeats,
        draft: &v1::Heartbeat,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut violations = Violations::default();
        let condition = (draft.query.clone(), &*draft.filter);
        let condition =
            violations.read(|it| query::query_or_filter(condition, ("query", "filter"), it));
        let name = violations.name(&draft.name, stored.is_none());
        violations.check_texts(&draft.description, &draft.tags);
        if let Some(Err(found)) = condition.as_ref().map(matching::compile) {
            violations.add_with_prefix("query", found);
        }
        draft::check_fields(&draft.by, &mut violations);
        let mut changes = all.store.new_changes();
        let mut refers = ReferenceChecker::new(all, stored, (&mut violations, &mut changes));
        let calendar = refers
            .resolve_optional::<Calendar>("calendarName", &draft.calendar_name)
            .await?;
        let times = draft::HeartbeatTimes::check(draft, &mut violations);
        let event = draft::parse_event(draft.event.clone().unwrap_or_default(), &mut violations);
        violations.extend_new(alarm_violations(&draft.by, &event));
        all.check_room(stored, HEARTBEATS_MAX).await?;
        let heartbeat = name.map(|name| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            enabled: draft.enabled.unwrap_or_default(),
            query: condition,
            by: draft.by.clone(),
            every_ms: times.every,
            calendar: calendar.map(|it| it.value.name),
            cron: draft.cron.clone(),
            time_zone: draft.time_zone.clone(),
            max_run_ms: times.max_run,
            grace_ms: times.grace,
            forget_ms: times.forget,
            event,
            key_number: stored.map_or(0, |it| it.key_number),
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((violations.into_result(heartbeat)?, changes))
    }

    async fn view(all: &Heartbeats, heartbeat: Self) -> Result<(v1::Heartbeat, usize), Error> {
        let ranges = [
            ExpectationState::Unreported,
            ExpectationState::Late,
            ExpectationState::Awaited,
        ]
        .map(|standing| Range::with_prefix(&beat_prefix(heartbeat.id, standing).build()));
        let (engine, index) = (all.store.engine(), Index::ExpectationByBeat);
        let counts = engine.count_ranges(index, &ranges, EXPECTATIONS_MAX);
        let counts = counts.await?;
        let count = |many: usize| Some(i32::try_from(many).unwrap_or(i32::MAX));
        let newest =
            Range::with_prefix(&beat_prefix(heartbeat.id, ExpectationState::Awaited).build());
        let newest = all
            .store
            .page_by_index::<Expectation>(index, newest, Direction::Descending, 1)
            .await?;
        let last = newest.first().and_then(|(_, it)| it.value.last_ms);
        let view = v1::Heartbeat {
            expected_count: count(counts.iter().sum()),
            late_count: count(counts[..2].iter().sum()),
            last_beat_time: last.map(timestamp),
            ..FromDomain::from_domain(heartbeat)
        };
        Ok((view, 0))
    }

    async fn warnings(&self, all: &Heartbeats) -> Result<Vec<String>, Error> {
        match &self.query {
            Some(query) => Ok(all.fields.field_warnings(query).await?),
            None => Ok(Vec::new()),
        }
    }
}

impl FromDomain<Heartbeat> for v1::Heartbeat {
    fn from_domain(heartbeat: Heartbeat) -> Self {
        let every_ms = (!heartbeat.has_windows()).then_some(heartbeat.every_ms);
        let event = heartbeat.event;
        Self {
            name: heartbeat.name.to_string(),
            description: heartbeat.description,
            tags: heartbeat.tags,
            enabled: Some(heartbeat.enabled),
            query: heartbeat.query.as_ref().map(query::to_wire),
            filter: heartbeat
                .query
                .map(|query| filter::print_clause(&query.clause))
                .unwrap_or_default(),
            by: heartbeat.by,
            every: every_ms.map(time::duration_from_ms),
            calendar_name: heartbeat
                .calendar
                .map(|it| it.to_string())
                .unwrap_or_default(),
            cron: heartbeat.cron,
            time_zone: heartbeat.time_zone,
            max_run: heartbeat.max_run_ms.map(time::duration_from_ms),
            grace: Some(time::duration_from_ms(heartbeat.grace_ms)),
            forget_after: Some(time::duration_from_ms(heartbeat.forget_ms)),
            event: Some(v1::HeartbeatEvent {
                name: event.name,
                severity: event.severity as i32,
                summary: event.summary,
                dimensions: event.dimensions,
            }),
            expected_count: None,
            late_count: None,
            last_beat_time: None,
            expectations: Vec::new(),
            has_key: Some(heartbeat.key_number > 0),
            create_time: Some(timestamp(heartbeat.create_ms)),
            update_time: Some(timestamp(heartbeat.update_ms)),
            etag: compute_etag(heartbeat.id, heartbeat.revision),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The start of a run, which is not a beat.
    Start,
    Beat,
    /// A beat of a failed run.
    Failure,
    /// A log message of a run, which is not a beat.
    Log,
}

impl Signal {
    /// Returns the signal of a call.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] for a start with an exit code.
    pub fn from_call(start: bool, exit: Option<i32>) -> Result<Self, Error> {
        match (start, exit) {
            (true, Some(_)) => Err(Error::invalid(
                "start",
                "is not allowed with `exit`: a starting run has no exit code",
            )),
            (true, None) => Ok(Self::Start),
            (false, exit) => Ok(Self::from_exit(exit.unwrap_or_default())),
        }
    }

    fn from_exit(code: i32) -> Self {
        if code == 0 { Self::Beat } else { Self::Failure }
    }

    /// Returns the signal of a request to a heartbeat's URL.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] for an unknown signal or status, and for more than one signal.
    pub fn from_request(request: &v1::BeatByKeyRequest) -> Result<Self, Error> {
        let path = match request.signal.as_str() {
            "" => None,
            "start" => Some(Self::Start),
            "fail" => Some(Self::Failure),
            "log" => Some(Self::Log),
            code => {
                let code = code.parse::<u8>().map_err(|_no_code| {
                    let message = "is not `start`, `fail`, `log` or an exit code from 0 to 255";
                    Error::invalid("signal", message)
                })?;
                Some(Self::from_exit(code.into()))
            }
        };
        let status = match request.status.as_str() {
            "" => None,
            "up" => Some(Self::Beat),
            "down" => Some(Self::Failure),
            _ => return Err(Error::invalid("status", "is not `up` or `down`")),
        };
        let start = request.start.then_some(Self::Start);
        let fail = request.fail.then_some(Self::Failure);
        let given = [path, start, request.exit.map(Self::from_exit), fail, status];
        let mut given = given.into_iter().flatten();
        let signal = given.next().unwrap_or(Self::Beat);
        if given.next().is_some() {
            let message =
                "is set more than once: in the path, or by `exit`, `start`, `fail` or `status`";
            return Err(Error::invalid("signal", message));
        }
        Ok(signal)
    }

    fn apply(self, before: &Expectation, now_ms: i64, service_ms: i64) -> Expectation {
        match self {
            Self::Start => before.with_start(now_ms, service_ms),
            Self::Log => before.clone(),
            Self::Beat => before.with_beat(now_ms, service_ms, false),
            Self::Failure => before.with_beat(now_ms, service_ms, true),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Expectations {
    deciding: DecisionContext,
    intake: Intake,
}

impl Expectations {
    /// Creates the operations on the current heartbeats. Events of forgotten expectations are
    /// closed through the intake.
    pub fn new(deciding: DecisionContext, intake: Intake) -> Self {
        Self { deciding, intake }
    }

    /// Records a beat of a heartbeat or the start of a run, and returns once it is on disk. A
    /// caller that is restricted to some sources can only send beats from these.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if the heartbeat does not exist, [`Error::FailedPrecondition`]
    /// if it is disabled, [`Error::Invalid`] for too many values or the service's own source,
    /// [`Error::PermissionDenied`] for a beat from another source, [`Error::Exhausted`] at the
    /// limit of expectations, and an error if the store fails.
    pub async fn record_beat_from_source(
        &self,
        sources: &BTreeSet<String>,
        name: &str,
        values: &BTreeMap<String, String>,
        signal: Signal,
    ) -> Result<(), Error> {
        let DecisionContext { store, ruleset, .. } = &self.deciding;
        if values.len() > HEARTBEAT_FIELDS_MAX {
            let count = values.len();
            let message = format!("has {count} entries; the limit is {HEARTBEAT_FIELDS_MAX}");
            return Err(Error::invalid("dimensions", message));
        }
        let reserved = |(key, value): (&String, &String)| {
            let key = key.rsplit('.').next().unwrap_or_default();
            is_reserved_key(key, value)
        };
        if values.iter().any(reserved) {
            let message =
                "has `source` = `bellwether`, which is reserved for events of the service";
            return Err(Error::invalid("dimensions", message));
        }
        let stored = find::<Heartbeat>(store, name).await?.value;
        let snapshot = ruleset.refresh().await?;
        let mut loaded = snapshot.heartbeats().iter();
        let loaded = loaded.find(|it| it.heartbeat.id == stored.id);
        let loaded = loaded.ok_or_else(|| {
            Error::FailedPrecondition(format!("heartbeat `{name}` is not enabled"))
        })?;
        let named = |name: &str, field: &Field| {
            let of_dimension = match field {
                Field::Dimension(key) | Field::Either(key) => values.get(key.as_str()),
                _ => None,
            };
            values.get(name).or(of_dimension).cloned()
        };
        let values = loaded.values(named);
        check_source(&loaded.heartbeat, &values, sources)?;
        self.store_expectation(loaded, values, signal).await
    }

    /// Like [`Self::record_beat_from_source`], for a caller without restrictions on sources.
    pub async fn record_beat(
        &self,
        name: &str,
        values: &BTreeMap<String, String>,
        signal: Signal,
    ) -> Result<(), Error> {
        self.record_beat_from_source(&BTreeSet::new(), name, values, signal)
            .await
    }

    async fn store_expectation(
        &self,
        loaded: &Arc<LoadedHeartbeat>,
        values: Vec<(String, Option<String>)>,
        signal: Signal,
    ) -> Result<(), Error> {
        let DecisionContext {
            store,
            clock,
            beats,
            ..
        } = &self.deciding;
        let (heartbeat, key) = (loaded.heartbeat.id, loaded.key(&values));
        beats.refresh_service_time(store, clock.as_ref()).await?;
        let decide = async || {
            let mut changes = store.new_changes();
            let (now_ms, service_ms) = (clock.now_ms(), beats.service_ms(clock.as_ref()));
            let found = store.get::<Expectation>(Key::new().id(heartbeat).id(key).build());
            if let Some(found) = found.await? {
                let next = signal.apply(&found.value, now_ms, service_ms);
                changes.update(&found, &next);
                return Ok((changes, None));
            }
            beats.check_room(store, &loaded.heartbeat).await?;
            let new = new_expectation(heartbeat, key, values.clone(), service_ms);
            changes.insert(&signal.apply(&new, now_ms, service_ms));
            Ok((changes, Some(heartbeat)))
        };
        let (added, _) = commit(store, Lane::Bulk, decide).await?;
        beats.mark_changed_by_call(added);
        Ok(())
    }

    /// Lists the expectations of a heartbeat: pending reports and late ones first, then by last
    /// beat.
    pub async fn list(
        &self,
        name: &str,
        page: &PageRequest,
    ) -> Result<(Vec<v1::Expectation>, String), Error> {
        let store = &self.deciding.store;
        let heartbeat = find::<Heartbeat>(store, name).await?.value;
        let limit = page.limit()?;
        let scope =
            TokenScope::new("expectations").with_field("heartbeat", &[heartbeat.id.to_string()]);
        let mut range = Range::with_prefix(&Key::new().id(heartbeat.id).build());
        if let Some(last) = scope.last_key(&page.token)? {
            range.exclude_through(&last);
        }
        let (index, ascending) = (Index::ExpectationByBeat, Direction::Ascending);
        let found = store.page_by_index::<Expectation>(index, range, ascending, limit + 1);
        let mut found = found.await?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let token = match found.last() {
            Some((last, _)) if has_more => scope.encode_token(last),
            _ => String::new(),
        };
        let beats = &self.deciding.beats;
        beats
            .refresh_service_time(store, self.deciding.clock.as_ref())
            .await?;
        let due = due::DueData::load(&self.deciding, heartbeat).await?;
        let show = |it: Expectation| {
            let due_ms = due.expectation_due_ms(&it);
            expectation_view(it, due_ms)
        };
        let shown = found.into_iter().map(|(_, stored)| show(stored.value));
        Ok((shown.collect(), token))
    }

    /// Adds the first expectations to a heartbeat.
    pub async fn with_details(&self, view: v1::Heartbeat) -> Result<v1::Heartbeat, Error> {
        let (expectations, _) = self.list(&view.name, &PageRequest::default()).await?;
        Ok(v1::Heartbeat {
            expectations,
            ..view
        })
    }

    /// Deletes an expectation and closes its event.
    pub async fn delete(&self, name: &str, key: &str) -> Result<(), Error> {
        let store = &self.deciding.store;
        let heartbeat = find::<Heartbeat>(store, name).await?;
        let unknown = || {
            Error::NotFound(format!(
                "heartbeat `{name}` has no expectation with that key"
            ))
        };
        let key = RecordId::parse(key).ok_or_else(unknown)?;
        let decide = async || {
            let mut changes = store.new_changes();
            check_owner(&mut changes, "name", &heartbeat)?;
            let found = Key::new().id(heartbeat.value.id).id(key).build();
            let found = store.get::<Expectation>(found).await?;
            let found = found.ok_or_else(unknown)?;
            if let Some(open) = found.value.open {
                // Close the event first, so that a retry after a failure still finds the
                // expectation.
                alarm::close_alarm(&self.deciding, &self.intake, open.event, "it is forgotten")
                    .await?;
            }
            changes.delete(&found);
            Ok((changes, ()))
        };
        commit(store, Lane::Admin, decide).await?;
        self.deciding
            .beats
            .forget_expectation(heartbeat.value.id, key);
        Ok(())
    }
}

/// Returns an error unless the values of the beat or the heartbeat itself specify one of these
/// sources.
fn check_source(
    heartbeat: &Heartbeat,
    values: &[SharedValue],
    sources: &BTreeSet<String>,
) -> Result<(), Error> {
    let is_own = |key: &str, value: &str| key == SOURCE && sources.contains(value);
    let is_of_source = |(field, value): &SharedValue| {
        let field = Field::parse(field);
        let value = value.as_deref().unwrap_or_default();
        matches!(field, Ok(Field::Dimension(key) | Field::Either(key)) if is_own(&key, value))
    };
    let is_bound = || {
        let query = heartbeat.query.as_ref();
        query.is_some_and(|it| requires_own_dimension(&it.clause, &is_own))
    };
    if sources.is_empty() || values.iter().any(is_of_source) || is_bound() {
        return Ok(());
    }
    let own: Vec<_> = sources.iter().map(|it| format!("`{it}`")).collect();
    Err(Error::PermissionDenied(format!(
        "this key may send only beats of the source {}; heartbeat `{}` must distinguish beats by \
         `source`, or require it in its filter",
        own.join(" or "),
        heartbeat.name
    )))
}

fn expectation_view(it: Expectation, due_ms: Option<i64>) -> v1::Expectation {
    use v1::expectation::State;
    let state = match it.static_state() {
        _ if it.has_failed => State::Failed,
        ExpectationState::Late => State::Late,
        ExpectationState::Unreported | ExpectationState::Awaited => State::Beating,
    };
    let values = it.values.into_iter();
    v1::Expectation {
        key: it.key.to_string(),
        values: values
            .filter_map(|(name, value)| Some((name, value?)))
            .collect(),
        state: state.into(),
        last_beat_time: it.last_ms.map(timestamp),
        due_time: due_ms.filter(|_| state == State::Beating).map(timestamp),
        event_id: it.open.map(|it| it.event.to_string()).unwrap_or_default(),
        last_run: it.run_ms.map(time::duration_from_ms),
        run_start_time: it.run.map(|it| timestamp(it.start_ms)),
        gaps: it.gaps_ms.into_iter().map(time::duration_from_ms).collect(),
    }
}

#[derive(Debug, Clone)]
pub struct HeartbeatKeys {
    store: Store,
    clock: Arc<dyn Clock>,
}

impl HeartbeatKeys {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Replaces the key of a heartbeat; the previous one is no longer accepted.
    pub async fn rotate(&self, name: &str) -> Result<Secret, Error> {
        let decide = async || {
            let found = find::<Heartbeat>(&self.store, name).await?;
            let next = Heartbeat {
                key_number: found.value.key_number.saturating_add(1),
                revision: found.value.revision + 1,
                update_ms: self.clock.now_ms(),
                ..found.value.clone()
            };
            let mut changes = self.store.new_changes();
            changes.update(&found, &next);
            Ok((changes, next))
        };
        let (next, _) = commit(&self.store, Lane::Admin, decide).await?;
        Ok(self.derive_key(&next))
    }

    /// Returns the key, which consists of the proof and the name of the heartbeat.
    fn derive_key(&self, heartbeat: &Heartbeat) -> Secret {
        let proof = LinkGrant::Beat(heartbeat).prove(&self.store);
        let key = [&proof[..], heartbeat.name.as_str().as_bytes()].concat();
        Secret::new(URL_SAFE_NO_PAD.encode(key))
    }

    /// Returns the name of the heartbeat whose current key is `key`. Keys of earlier versions do
    /// not contain the name, but their URLs do.
    ///
    /// # Errors
    /// Returns [`Error::Unauthenticated`] if the key is not valid or the heartbeat does not exist,
    /// and an error if the store fails.
    pub async fn check_key(&self, named: &str, key: &str) -> Result<String, Error> {
        let refused = || Error::Unauthenticated("invalid heartbeat URL".into());
        let bytes = URL_SAFE_NO_PAD.decode(key).map_err(|_no_key| refused())?;
        let (proof, of) = bytes.split_at_checked(PROOF_BYTES).ok_or_else(refused)?;
        let of = str::from_utf8(of).map_err(|_no_name| refused())?;
        let name = match (named, of) {
            (name, "") | ("", name) => name,
            (named, of) if named == of => of,
            _ => return Err(refused()),
        };
        let heartbeat = match find::<Heartbeat>(&self.store, name).await {
            Ok(found) => found.value,
            Err(Error::NotFound(_)) => return Err(refused()),
            Err(error) => return Err(error),
        };
        if LinkGrant::Beat(&heartbeat).is_proven(&self.store, proof) {
            Ok(name.to_owned())
        } else {
            Err(refused())
        }
    }
}

#[cfg(test)]
mod tests;
