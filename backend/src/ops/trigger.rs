//! Triggers: stored, edited, and deleted when no rule needs them.

use std::sync::Arc;

use crate::{
    clock::Clock,
    domain::{Name, Query, Trigger},
    error::{Error, Violation},
    limits::TRIGGER_TEST_OCCURRENCES_MAX,
    matching::{self, CompiledQuery},
    ops::{
        fields::FieldsSeen,
        page::{Page, PageRequest},
        recent::Recent,
        resource::{Filter, Origin, create, delete, find, list, update},
        search,
        test_trigger::Trial,
        users::{Used, bytes_of, release, users_of},
        validate::Faults,
    },
    store::{Store, Stored},
};

/// Where the query stands in a request.
pub const QUERY_PATH: &str = "type.event.query";

const DAY_MS: i64 = 24 * 3_600_000;

/// A trigger as its author describes it, not checked yet.
#[derive(Debug, Clone, Default)]
pub struct TriggerDraft {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Labels.
    pub tags: Vec<String>,
    /// The condition; none only together with a fault.
    pub query: Option<Query>,
    /// For an update: the etag that must be current; empty asks for no check.
    pub etag: String,
    /// What was wrong with how the draft was written.
    pub faults: Vec<Violation>,
}

/// A trigger, and what is known about its use.
#[derive(Debug, Clone)]
pub struct TriggerView {
    /// The trigger.
    pub trigger: Trigger,
    /// The rules that use it, by name.
    pub rule_names: Vec<Name>,
    /// Notifications it caused in the last 24 hours.
    pub recent_notifications: usize,
    /// What its author may not have meant; told only when it is stored.
    pub warnings: Vec<String>,
}

/// Manages triggers.
#[derive(Debug, Clone)]
pub struct Triggers {
    store: Store,
    clock: Arc<dyn Clock>,
    recent: Recent,
    fields: FieldsSeen,
}

impl Triggers {
    /// Manages the triggers in a store.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        let recent = Recent::new(store.clone(), Arc::clone(&clock));
        let fields = FieldsSeen::new(store.clone(), Arc::clone(&clock));
        Self {
            store,
            clock,
            recent,
            fields,
        }
    }

    /// Stores a new trigger; with `validate_only`, only checks it.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong, [`Error::AlreadyExists`].
    pub async fn create(
        &self,
        draft: TriggerDraft,
        validate_only: bool,
    ) -> Result<TriggerView, Error> {
        let now_ms = self.clock.now_ms();
        let trigger = checked(draft)?.into_trigger(&Origin::new(now_ms), now_ms);
        let decide = async || Ok((trigger.clone(), self.store.changes()));
        let trigger = create(&self.store, validate_only, decide).await?;
        self.stored(trigger).await
    }

    /// Reads a trigger.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn get(&self, name: &str) -> Result<TriggerView, Error> {
        self.view(find::<Trigger>(&self.store, name).await?.value)
            .await
    }

    /// Lists triggers by name.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a filter, page size or token that is not accepted.
    pub async fn list(
        &self,
        filter: &Filter,
        page: &PageRequest,
    ) -> Result<Page<TriggerView>, Error> {
        let view = async |trigger| {
            let view = self.view(trigger).await?;
            let bytes = bytes_of(&view.rule_names);
            Ok((view, bytes))
        };
        list(&self.store, filter, page, view).await
    }

    /// Replaces a trigger; with `validate_only`, only checks that it could.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong, [`Error::NotFound`], and
    /// [`Error::Aborted`] when the draft's etag is not current.
    pub async fn update(
        &self,
        draft: TriggerDraft,
        validate_only: bool,
    ) -> Result<TriggerView, Error> {
        let etag = draft.etag.clone();
        let checked = checked(draft)?;
        let decide = async |stored: Stored<Trigger>| {
            let origin = Origin::of(&stored.value);
            let trigger = checked.clone().into_trigger(&origin, self.clock.now_ms());
            Ok((trigger, self.store.changes()))
        };
        let name = (checked.name.as_str(), &*etag);
        let trigger = update(&self.store, name, validate_only, decide).await?;
        self.stored(trigger).await
    }

    /// Deletes a trigger; with `force`, takes it out of the rules that use it in the same commit.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Aborted`] when the etag is not current, and
    /// [`Error::FailedPrecondition`], which names the rules that use it, without `force`.
    pub async fn delete(&self, name: &str, etag: &str, force: bool) -> Result<(), Error> {
        let now_ms = self.clock.now_ms();
        // The trigger before its rules: a rule that takes it up in between touches it.
        let decide = async |stored: Stored<Trigger>| {
            let mut changes = self.store.changes();
            let used = Used::Trigger(&stored.value.name);
            release(&self.store, used, force, now_ms, &mut changes).await?;
            Ok(changes)
        };
        delete(&self.store, (name, etag), now_ms, decide).await
    }

    /// Tries a draft as [`Triggers::trial`] prepares it, until it was long enough.
    ///
    /// # Errors
    /// Those of [`Triggers::trial`] and of the store.
    pub async fn test(
        &self,
        draft: TriggerDraft,
        span: (Option<i64>, Option<i64>),
    ) -> Result<Trial, Error> {
        let mut trial = self.trial(draft, span).await?;
        trial
            .run(&*self.clock, TRIGGER_TEST_OCCURRENCES_MAX)
            .await?;
        Ok(trial)
    }

    /// Prepares to try a draft's query on stored occurrences of a span of time, beside that of the
    /// stored trigger of its name; nothing is stored, and the draft needs no name. Without start
    /// and end, the span begins 24 hours ago.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong.
    pub async fn trial(
        &self,
        draft: TriggerDraft,
        (start_ms, end_ms): (Option<i64>, Option<i64>),
    ) -> Result<Trial, Error> {
        let mut faults = Faults::new(&draft.faults);
        let query = compiled(draft.query.as_ref(), &mut faults);
        if start_ms.zip(end_ms).is_some_and(|(start, end)| start > end) {
            faults.add("timeRange", "ends before it starts");
        }
        let query = faults.or(query)?;
        let warnings = match &draft.query {
            Some(draft) => self.fields.warnings(draft).await?,
            None => Vec::new(),
        };
        let saved = match Name::parse(&draft.name) {
            Ok(name) => self.store.get::<Trigger>(name.as_str().into()).await?,
            Err(_fault) => None,
        };
        // A stored query that this version does not take any more matches nothing.
        let saved = saved.and_then(|stored| matching::compile(&stored.value.query).ok());
        let day_ago_ms = self.clock.now_ms() - DAY_MS;
        let span = search::Filter {
            start_ms: start_ms.or_else(|| end_ms.is_none().then_some(day_ago_ms)),
            end_ms,
            ..search::Filter::default()
        };
        Ok(Trial::new(self.store.clone(), query, saved, span).warning(warnings))
    }

    /// What its author is told of a trigger that was stored.
    async fn stored(&self, trigger: Trigger) -> Result<TriggerView, Error> {
        let warnings = self.fields.warnings(&trigger.query).await?;
        let view = self.view(trigger).await?;
        Ok(TriggerView { warnings, ..view })
    }

    async fn view(&self, trigger: Trigger) -> Result<TriggerView, Error> {
        Ok(TriggerView {
            rule_names: users_of(&self.store, Used::Trigger(&trigger.name)).await?,
            recent_notifications: self.recent.of_trigger(trigger.id).await?,
            warnings: Vec::new(),
            trigger,
        })
    }
}

/// A draft that was found right.
#[derive(Debug, Clone)]
struct Checked {
    name: Name,
    description: String,
    tags: Vec<String>,
    query: Query,
}

impl Checked {
    fn into_trigger(self, origin: &Origin, update_ms: i64) -> Trigger {
        Trigger {
            id: origin.id,
            name: self.name,
            description: self.description,
            tags: self.tags,
            query: self.query,
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms,
        }
    }
}

fn checked(draft: TriggerDraft) -> Result<Checked, Error> {
    let mut faults = Faults::new(&draft.faults);
    let name = faults.name(&draft.name);
    faults.texts(&draft.description, &draft.tags);
    compiled(draft.query.as_ref(), &mut faults);
    let checked = name.zip(draft.query).map(|(name, query)| Checked {
        name,
        description: draft.description,
        tags: draft.tags,
        query,
    });
    faults.or(checked)
}

/// The query made ready; none when there is none or it is wrong, which is added then.
fn compiled(query: Option<&Query>, faults: &mut Faults) -> Option<CompiledQuery> {
    matching::compile(query?)
        .map_err(|violations| faults.add_under(QUERY_PATH, violations))
        .ok()
}
