//! Triggers: stored, edited, and deleted when no rule needs them.

use crate::{
    clock::DAY_MS,
    domain::{Name, Query, Trigger},
    error::{Error, Violation},
    limits::TRIGGER_TEST_OCCURRENCES_MAX,
    matching::{self, CompiledQuery},
    ops::{
        resource::{Drafted, Origin, Resources},
        search,
        test_trigger::TestRun,
        users::{Used, bytes_of, release, users_of},
        validate::Faults,
    },
    store::Changes,
};

/// Where the query is in a request.
pub const QUERY_PATH: &str = "type.event.query";

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
    /// What its author may not have meant; reported only when it is stored.
    pub warnings: Vec<String>,
}

/// Manages triggers.
pub type Triggers = Resources<Trigger>;

impl Drafted for Trigger {
    type Draft = TriggerDraft;
    type View = TriggerView;

    fn named(draft: &TriggerDraft) -> (&str, &str) {
        (&draft.name, &draft.etag)
    }

    async fn checked(
        all: &Triggers,
        draft: &TriggerDraft,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut faults = Faults::new(&draft.faults);
        let name = faults.name(&draft.name, stored.is_none());
        faults.texts(&draft.description, &draft.tags);
        compiled(draft.query.as_ref(), &mut faults);
        let trigger = name.zip(draft.query.clone()).map(|(name, query)| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            query,
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((faults.or(trigger)?, all.store.changes()))
    }

    async fn released(all: &Triggers, trigger: &Self, force: bool) -> Result<Changes, Error> {
        let mut changes = all.store.changes();
        let used = Used::Trigger(&trigger.name);
        release(&all.store, used, force, all.clock.now_ms(), &mut changes).await?;
        Ok(changes)
    }

    async fn view(all: &Triggers, trigger: Self) -> Result<(TriggerView, usize), Error> {
        let rule_names = users_of(&all.store, Used::Trigger(&trigger.name)).await?;
        let bytes = bytes_of(&rule_names);
        let view = TriggerView {
            rule_names,
            recent_notifications: all.recent.of_trigger(trigger.id).await?,
            warnings: Vec::new(),
            trigger,
        };
        Ok((view, bytes))
    }

    fn bare(self) -> TriggerView {
        TriggerView {
            trigger: self,
            rule_names: Vec::new(),
            recent_notifications: 0,
            warnings: Vec::new(),
        }
    }

    async fn answer(all: &Triggers, trigger: Self) -> Result<TriggerView, Error> {
        let warnings = all.fields.warnings(&trigger.query).await?;
        let (view, _) = Self::view(all, trigger).await?;
        Ok(TriggerView { warnings, ..view })
    }
}

impl Triggers {
    /// Tries a draft as [`Triggers::begin_test`] prepares it, until it was long enough.
    ///
    /// # Errors
    /// Those of [`Triggers::begin_test`] and of the store.
    pub async fn test(
        &self,
        draft: TriggerDraft,
        span: (Option<i64>, Option<i64>),
    ) -> Result<TestRun, Error> {
        let mut run = self.begin_test(draft, span).await?;
        run.run(&*self.clock, TRIGGER_TEST_OCCURRENCES_MAX).await?;
        Ok(run)
    }

    /// Prepares to try a draft's query on stored occurrences of a span of time, beside that of the
    /// stored trigger of its name; nothing is stored, and the draft needs no name. Without start
    /// and end, the span begins 24 hours ago.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong.
    pub async fn begin_test(
        &self,
        draft: TriggerDraft,
        (start_ms, end_ms): (Option<i64>, Option<i64>),
    ) -> Result<TestRun, Error> {
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
        Ok(TestRun::new(self.store.clone(), query, saved, span).warning(warnings))
    }
}

/// The query made ready; none when there is none or it is wrong, which is added then.
fn compiled(query: Option<&Query>, faults: &mut Faults) -> Option<CompiledQuery> {
    matching::compile(query?)
        .map_err(|violations| faults.add_under(QUERY_PATH, violations))
        .ok()
}
