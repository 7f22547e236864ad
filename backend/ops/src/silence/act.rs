//! Operations of users on silences.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    SilenceDraft, SilenceView, Silences, breadth, ensure_not_expired, generate_name,
    preview::{self, SilencePreview},
    to_millis,
};
use crate::{
    commit::commit,
    decide::LoadedSilence,
    decision_context::DecisionContext,
    domain::{
        Clause, Comment, EventId, Literal, Name, Occurrence, Progress, Query, RecordId,
        RevisedResource, Silence, SilenceState,
    },
    error::Error,
    find,
    intake::Intake,
    limits::{
        SILENCE_COMMENTS_MAX, SILENCE_LENGTH_MAX, SILENCE_TEXT_CHARACTERS_MAX, SILENCES_MAX,
        SILENCES_RECOUNTED_MAX,
    },
    page::{Page, PageRequest},
    resource::{self, AuthoredResource as _, Filter, SavedResource},
    revision,
    silence::lifecycle,
    store::Lane,
    validate::Violations,
};

#[derive(Debug, Clone)]
pub struct SilenceOperations {
    all: Silences,
    deciding: DecisionContext,
    intake: Intake,
}

#[derive(Debug, Clone, Default)]
pub struct SilenceFilter {
    /// Names, tags and text.
    pub named: Filter,
    pub states: Vec<SilenceState>,
    /// Only silences whose query matches the newest occurrence of this event.
    pub event: Option<EventId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extension {
    /// Extend by this many milliseconds.
    By(i64),
    /// Extend to this time, in milliseconds since the epoch.
    To(i64),
}

impl SilenceOperations {
    pub fn new(deciding: DecisionContext, intake: Intake) -> Self {
        let all = Silences::new(deciding.store.clone(), Arc::clone(&deciding.clock));
        Self {
            all,
            deciding,
            intake,
        }
    }

    /// Stores a new silence. With `validate_only`, only validates it. After this call, the silence
    /// applies to every accepted event.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] with all violations, [`Error::AlreadyExists`] if the name is
    /// taken, [`Error::Refused`] if it is too broad and that is not allowed, and
    /// [`Error::Exhausted`] if there are too many.
    pub async fn create(
        &self,
        mut draft: SilenceDraft,
        validate_only: bool,
        allow_broad: bool,
    ) -> Result<SilenceView, Error> {
        if draft.name.is_empty() {
            draft.name = generate_name();
        }
        self.fill_query(&mut draft).await?;
        let snapshot = self.deciding.ruleset.refresh().await?;
        if snapshot.silences().as_slice().len() >= SILENCES_MAX {
            return Err(Error::Exhausted {
                message: format!("limit of {SILENCES_MAX} silences reached; end some first"),
                retry_after: None,
            });
        }
        let checked = self.all.create(&draft, true).await?;
        self.check_breadth(&checked.resource, allow_broad).await?;
        if validate_only {
            return self.saved_view(checked).await;
        }
        self.saved_view(self.all.create(&draft, false).await?).await
    }

    /// Replaces a silence. With `validate_only`, only validates the draft.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Self::create`], [`Error::NotFound`] if there is
    /// none, [`Error::Aborted`] if the draft's etag is not current, and [`Error::Refused`] if the
    /// silence has expired.
    pub async fn update(
        &self,
        draft: SilenceDraft,
        validate_only: bool,
        allow_broad: bool,
    ) -> Result<SilenceView, Error> {
        let checked = self.all.update(&draft, true).await?;
        self.check_breadth(&checked.resource, allow_broad).await?;
        if validate_only {
            return self.saved_view(checked).await;
        }
        self.saved_view(self.all.update(&draft, false).await?).await
    }

    async fn saved_view(&self, saved: SavedResource<Silence>) -> Result<SilenceView, Error> {
        let SavedResource { view, warnings, .. } = saved;
        self.with_current_counts(SilenceView { warnings, ..view })
            .await
    }

    pub async fn get(&self, name: &str) -> Result<SilenceView, Error> {
        let view = self.all.get(name).await?;
        self.with_current_counts(view).await
    }

    /// Lists silences by name. Recounts only the first few of those edited recently.
    pub async fn list(
        &self,
        filter: &SilenceFilter,
        page: &PageRequest,
    ) -> Result<Page<SilenceView>, Error> {
        let newest: Option<Occurrence> = match filter.event {
            None => None,
            Some(event) => find::newest_occurrence(&self.deciding.store, event).await?,
        };
        let now_ms = self.deciding.clock.now_ms();
        let snapshot = self.deciding.ruleset.refresh().await?;
        let passes = |silence: &Silence| {
            let states = &filter.states;
            let matching = snapshot.silences().as_slice().iter();
            let mut matching = matching.filter(|it| it.silence.id == silence.id);
            let stands = matching
                .next()
                .map_or(silence.state_at(now_ms), |it| it.state_at(now_ms));
            let state = states.is_empty() || states.contains(&stands);
            let covers = || {
                let loaded = LoadedSilence::new(silence.clone());
                loaded
                    .zip(newest.as_ref())
                    .is_some_and(|(it, newest)| it.matches(newest))
            };
            state && (filter.event.is_none() || covers())
        };
        let mut page = self.all.list_where(&filter.named, page, &passes).await?;
        let uncounted = page.items.iter_mut().filter(|it| !it.is_counted);
        for view in uncounted.take(SILENCES_RECOUNTED_MAX) {
            *view = self.with_current_counts(view.clone()).await?;
        }
        Ok(page)
    }

    /// Ends and deletes a silence.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if there is none, and [`Error::Aborted`] if the etag is not
    /// current.
    pub async fn delete(&self, name: &str, etag: &str) -> Result<(), Error> {
        let silence = self.all.find(name).await?;
        self.all.delete(name, etag, false).await?;
        let deciding = (&self.deciding, &self.intake);
        lifecycle::close_event(deciding, &silence, "it was deleted").await
    }

    /// Returns the events that a draft would cover now, and the recent messages that it would have
    /// held. Nothing is stored.
    pub async fn preview(&self, mut draft: SilenceDraft) -> Result<SilencePreview, Error> {
        self.fill_query(&mut draft).await?;
        let silence = Self::to_silence(&draft)?;
        let warnings = silence.warnings(&self.all).await?;
        let mut preview = self.count_covered(&silence).await?;
        let loaded = load_silence(&silence)?;
        let (store, clock) = (&self.deciding.store, &*self.deciding.clock);
        let (messages, is_cut) = preview::silenced_messages(store, clock, &loaded).await?;
        preview.messages = messages;
        preview.stopped_early |= is_cut;
        preview.too_broad = breadth::breadth_problem(silence.query.as_ref(), &preview);
        preview.warnings = warnings;
        preview.query.clone_from(&silence.query);
        Ok(preview)
    }

    /// Moves the end of a silence to a later time.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if there is none, [`Error::Invalid`] if the new end is invalid,
    /// and [`Error::Refused`] if the silence has expired.
    pub async fn extend(
        &self,
        name: &str,
        extension: Extension,
        editor: &Name,
    ) -> Result<SilenceView, Error> {
        let change = |silence: &mut Silence, now_ms: i64| {
            ensure_not_expired(silence, now_ms)?;
            if silence.calendar.is_some() {
                return Err(Error::FailedPrecondition(
                    "a calendar controls this silence; edit its `calendar.endTime`".into(),
                ));
            }
            let (field, end_ms) = match extension {
                Extension::By(ms) => ("duration", silence.end_ms.saturating_add(ms)),
                Extension::To(end_ms) => ("endTime", end_ms),
            };
            if end_ms <= silence.end_ms {
                let message = "must be later than the current end; `:expire` ends a silence";
                return Err(Error::invalid(field, message));
            }
            if end_ms - silence.start_ms > to_millis(SILENCE_LENGTH_MAX) {
                let message = "would make the silence longer than 30 days";
                return Err(Error::invalid(field, message));
            }
            silence.end_ms = end_ms;
            Ok(())
        };
        self.modify_silence(name, editor, change).await
    }

    /// Ends a silence now without deleting it.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if there is none, and [`Error::Refused`] if it has already
    /// expired.
    pub async fn expire(&self, name: &str, editor: &Name) -> Result<SilenceView, Error> {
        let change = |silence: &mut Silence, now_ms: i64| {
            ensure_not_expired(silence, now_ms)?;
            silence.end_ms = now_ms;
            silence.start_ms = silence.start_ms.min(now_ms);
            Ok(())
        };
        self.modify_silence(name, editor, change).await
    }

    /// # Errors
    /// Returns [`Error::NotFound`] if there is none, [`Error::Invalid`] if the comment is invalid,
    /// and [`Error::Exhausted`] if there are too many.
    pub async fn comment(
        &self,
        name: &str,
        text: &str,
        editor: &Name,
    ) -> Result<SilenceView, Error> {
        let mut violations = Violations::default();
        violations.check_sentence("text", text, SILENCE_TEXT_CHARACTERS_MAX);
        violations.into_result(Some(()))?;
        let change = |silence: &mut Silence, now_ms: i64| {
            if silence.comments.len() >= SILENCE_COMMENTS_MAX {
                return Err(Error::Exhausted {
                    message: format!(
                        "the silence has {SILENCE_COMMENTS_MAX} comments, the maximum"
                    ),
                    retry_after: None,
                });
            }
            silence.comments.push(Comment {
                author: editor.clone(),
                at_ms: now_ms,
                text: text.to_owned(),
            });
            Ok(())
        };
        self.modify_silence(name, editor, change).await
    }

    async fn modify_silence(
        &self,
        name: &str,
        editor: &Name,
        change: impl Fn(&mut Silence, i64) -> Result<(), Error>,
    ) -> Result<SilenceView, Error> {
        let store = &self.deciding.store;
        let decide = async || {
            let stored = resource::find::<Silence>(store, name).await?;
            let now_ms = self.deciding.clock.now_ms();
            let mut next = stored.value.clone();
            change(&mut next, now_ms)?;
            next.last_editor = editor.clone();
            next.revision += 1;
            next.update_ms = now_ms;
            let mut changes = store.new_changes();
            let was = RevisedResource::Silence(stored.value.clone());
            revision::store_revision(store, was, now_ms, false, &mut changes).await?;
            changes.update(&stored, &next);
            Ok((changes, next))
        };
        let (next, _) = commit(store, Lane::Admin, decide).await?;
        self.with_current_counts(Silence::view(&self.all, next).await?.0)
            .await
    }

    /// Fills in the query of a draft that only names an event: its name and all dimensions.
    async fn fill_query(&self, draft: &mut SilenceDraft) -> Result<(), Error> {
        let Some(event) = draft.from_event else {
            return Ok(());
        };
        let newest = find::newest_occurrence(&self.deciding.store, event).await?;
        let Some(newest) = newest else {
            return Err(Error::invalid(
                "fromEventId",
                format!("event `{event}` not found"),
            ));
        };
        let is_written = draft.query.is_some() || !draft.violations.is_empty();
        if !is_written && draft.rule_names.is_empty() {
            draft.query = Some(query_for_occurrence(&newest));
        }
        Ok(())
    }

    /// Returns the view with current counts, if the stored ones are from before the last edit.
    async fn with_current_counts(&self, view: SilenceView) -> Result<SilenceView, Error> {
        if view.is_counted {
            return Ok(view);
        }
        let preview = self.count_covered(&view.silence).await?;
        let mut warnings = view.warnings;
        if preview.stopped_early {
            warnings.push(format!(
                "deadline reached before all open events were checked: the silence covers at least {}",
                preview.covered_count
            ));
        }
        Ok(SilenceView {
            covered: preview.covered_count,
            pending: preview.pending_count,
            warnings,
            ..view
        })
    }

    async fn check_breadth(&self, silence: &Silence, allow_broad: bool) -> Result<(), Error> {
        if allow_broad || silence.state_at(self.deciding.clock.now_ms()) == SilenceState::Expired {
            return Ok(());
        }
        let preview = self.count_covered(silence).await?;
        breadth::reject_if_too_broad(silence.query.as_ref(), &preview)
    }

    async fn count_covered(&self, silence: &Silence) -> Result<SilencePreview, Error> {
        let snapshot = self.deciding.ruleset.refresh().await?;
        let (store, clock) = (&self.deciding.store, &*self.deciding.clock);
        preview::preview_open_events(store, clock, &snapshot, &load_silence(silence)?).await
    }

    /// Converts a draft into a silence that is complete enough to determine the events that it
    /// covers.
    fn to_silence(draft: &SilenceDraft) -> Result<Silence, Error> {
        let mut violations = Violations::new(&draft.violations);
        super::check_coverage(draft, &mut violations);
        let names = draft.rule_names.iter().enumerate();
        let rule_names = names.filter_map(|(at, text)| {
            let invalid = |message| violations.add(format!("ruleNames[{at}]"), message);
            Name::parse(text).map_err(invalid).ok()
        });
        let rule_names = rule_names.collect();
        let names = draft.destination_names.iter();
        let destination_names = names.filter_map(|text| Name::parse(text).ok()).collect();
        let silence = Silence {
            id: RecordId::from_parts(0, 0),
            name: draft.editor.clone(),
            description: String::new(),
            tags: Vec::new(),
            reason: String::new(),
            query: draft.query.clone(),
            rule_names,
            destination_names,
            annotations: BTreeMap::new(),
            calendar: None,
            start_ms: 0,
            end_ms: i64::MAX,
            expire_when_idle_ms: None,
            warn_before_ms: None,
            comments: Vec::new(),
            from_event: None,
            author: draft.editor.clone(),
            last_editor: draft.editor.clone(),
            progress: Progress::default(),
            revision: 0,
            create_ms: 0,
            update_ms: 0,
        };
        violations.into_result(Some(silence))
    }
}

fn load_silence(silence: &Silence) -> Result<LoadedSilence, Error> {
    LoadedSilence::new(silence.clone())
        .ok_or_else(|| Error::invalid(super::QUERY_PATH, "cannot be asked"))
}

fn query_for_occurrence(occurrence: &Occurrence) -> Query {
    let text = |text: &str| Literal::Text(text.to_owned());
    let mut clauses = vec![Clause::Equals("name".into(), text(&occurrence.name))];
    let dimensions = occurrence.dimensions.iter();
    clauses.extend(
        dimensions.map(|(key, value)| Clause::Equals(format!("dimensions.{key}"), text(value))),
    );
    Query {
        clause: Clause::And(clauses),
    }
}
