//! Silences: validation, editing, extension, expiry, and the check for overly broad silences.

mod act;
mod breadth;
pub mod lifecycle;
mod preview;
pub mod wire;

use std::{collections::BTreeMap, time::Duration};

use rand::{Rng as _, distr::Alphanumeric};

use crate::{
    clock::{DAY_MS, MINUTE_MS},
    decide::{Calendars, LoadedSilence},
    domain::{
        Calendar, Destination, EventId, Name, Query, RevisedResource, Rule, Silence, SilenceState,
        own_event::SILENCE, silence::NEVER_MS,
    },
    error::{Error, Reason, Violation},
    from_domain::FromDomain,
    limits::{
        SILENCE_ANNOTATIONS_MAX, SILENCE_IDLE_MAX, SILENCE_LENGTH_MAX, SILENCE_TEXT_CHARACTERS_MAX,
        SILENCES_COUNTED_MAX, TAG_CHARACTERS_MAX,
    },
    matching,
    refers::ReferenceChecker,
    resource::{AuthoredResource, Origin, Resources, resource},
    store::{
        Changes, EngineError, Index, SilenceStanding, Store, engine::Range, record::bytes::Key,
    },
    tag_scope::TagScope,
    validate::Violations,
};

pub use act::{Extension, SilenceFilter, SilenceOperations};
pub use preview::SilencePreview;

pub const QUERY_PATH: &str = "query";

/// A silence as described by its author, not validated yet.
#[derive(Debug, Clone)]
pub struct SilenceDraft {
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub reason: String,
    pub query: Option<Query>,
    pub rule_names: Vec<String>,
    pub destination_names: Vec<String>,
    pub annotations: BTreeMap<String, String>,
    /// Name of the calendar in whose windows the silence is active; empty if there is none.
    pub calendar: String,
    pub start_ms: Option<i64>,
    pub end_ms: Option<i64>,
    /// Time without covered events after which the silence expires, in milliseconds.
    pub expire_when_idle_ms: Option<i64>,
    pub warn_before_ms: Option<i64>,
    pub from_event: Option<EventId>,
    pub editor: Name,
    /// The etag that must be current in an update. An empty etag disables the check.
    pub etag: String,
    pub violations: Vec<Violation>,
}

#[derive(Debug, Clone)]
pub struct SilenceView {
    pub silence: Silence,
    pub state: SilenceState,
    /// Time at which the silence stops being active, in milliseconds since the epoch; `None` if it
    /// never stops.
    pub ends_ms: Option<i64>,
    /// Time at which the silence becomes active, in milliseconds since the epoch; `None` if it is
    /// already active or never will be.
    pub begins_ms: Option<i64>,
    pub covered: usize,
    /// Number of events for which the silence holds notifications.
    pub pending: usize,
    /// Number of events whose held notifications became obsolete.
    pub skipped: usize,
    /// Whether all open events were scanned since the last edit. Otherwise the counts above are
    /// from before the edit.
    pub is_counted: bool,
    /// Warnings about settings that the author possibly did not intend; only set when the silence
    /// is saved.
    pub warnings: Vec<String>,
}

pub type Silences = Resources<Silence>;

resource!(Silence, SilenceDraft, "silence", |was| Some(
    RevisedResource::Silence(was)
));

impl AuthoredResource for Silence {
    type Draft = SilenceDraft;
    type View = SilenceView;

    async fn from_draft(
        all: &Silences,
        draft: &SilenceDraft,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let now_ms = origin.update_ms;
        if let Some(stored) = stored {
            ensure_not_expired(stored, now_ms)?;
        }
        let mut changes = all.store.new_changes();
        let mut violations = Violations::new(&draft.violations);
        let name = violations.name(&draft.name, stored.is_none());
        violations.check_texts(&draft.description, &draft.tags);
        violations.check_sentence("reason", &draft.reason, SILENCE_TEXT_CHARACTERS_MAX);
        check_coverage(draft, &mut violations);
        let mut refers = ReferenceChecker::new(all, stored, (&mut violations, &mut changes));
        let rules = refers
            .resolve_all::<Rule>("ruleNames", &draft.rule_names)
            .await?;
        let destinations = refers
            .resolve_all::<Destination>("destinationNames", &draft.destination_names)
            .await?;
        let calendar = refers
            .resolve_optional::<Calendar>("calendar.calendarName", &draft.calendar)
            .await?;
        if let (Some(scope), Some(query), []) = (TagScope::from_caller(), &draft.query, &*rules) {
            scope.check_query("query", query)?;
        }
        let span = check_span(draft, stored, now_ms, &mut violations);
        check_lengths(draft, span, &mut violations);
        check_annotations(&draft.annotations, &mut violations);
        let is_same = stored.filter(|it| it.revision == origin.revision);
        let silence = name.zip(span).map(|(name, (start_ms, end_ms))| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            reason: draft.reason.clone(),
            query: draft.query.clone(),
            rule_names: rules.iter().map(|it| it.value.name.clone()).collect(),
            destination_names: destinations
                .iter()
                .map(|it| it.value.name.clone())
                .collect(),
            annotations: draft.annotations.clone(),
            calendar: calendar.map(|it| it.value.name),
            start_ms,
            end_ms,
            expire_when_idle_ms: draft.expire_when_idle_ms,
            warn_before_ms: draft.warn_before_ms,
            comments: stored.map_or_else(Vec::new, |it| it.comments.clone()),
            from_event: stored.map_or(draft.from_event, |it| it.from_event),
            author: stored.map_or_else(|| draft.editor.clone(), |it| it.author.clone()),
            last_editor: is_same.map_or(&draft.editor, |it| &it.last_editor).clone(),
            progress: stored.map(|it| it.progress).unwrap_or_default(),
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((violations.into_result(silence)?, changes))
    }

    async fn view(all: &Silences, silence: Self) -> Result<(SilenceView, usize), Error> {
        let count = async |standing| count_with_standing(&all.store, standing, &silence).await;
        let comments = silence.comments.iter();
        let bytes = comments.map(|it| it.text.len() + it.author.as_str().len());
        let bytes = bytes.sum();
        let now_ms = all.clock.now_ms();
        let loaded = LoadedSilence::new(silence.clone());
        let loaded = match loaded {
            Some(loaded) => {
                Some(loaded.with_calendar(&load_calendars(&all.store, &silence).await?))
            }
            None => None,
        };
        let loaded = loaded.as_ref();
        let is_in_force = loaded.is_some_and(|it| it.is_in_force(now_ms));
        let current = async |standing| {
            if is_in_force {
                count(standing).await
            } else {
                // Events that the silence covered before are released by the next pass.
                Ok(0)
            }
        };
        let view = SilenceView {
            is_counted: !is_in_force || silence.progress.counted_revision == silence.revision,
            state: loaded.map_or(silence.state_at(now_ms), |it| it.state_at(now_ms)),
            ends_ms: loaded.and_then(|it| {
                let first_ms = it.next_start_ms(now_ms).unwrap_or(now_ms);
                it.current_end_ms(first_ms)
            }),
            begins_ms: loaded.and_then(|it| it.next_start_ms(now_ms)),
            covered: current(SilenceStanding::Covered).await?,
            pending: current(SilenceStanding::Pending).await?,
            skipped: count(SilenceStanding::Skipped).await?,
            warnings: Vec::new(),
            silence,
        };
        Ok((view, bytes))
    }

    async fn warnings(&self, all: &Silences) -> Result<Vec<String>, Error> {
        match &self.query {
            Some(query) => Ok(all.fields.field_warnings(query).await?),
            None => Ok(Vec::new()),
        }
    }
}

impl FromDomain<Silence> for SilenceView {
    fn from_domain(silence: Silence) -> Self {
        Self {
            // The caller fills in what depends on the progress.
            state: silence.state_at(silence.update_ms),
            ends_ms: silence.ends_ms(),
            begins_ms: None,
            silence,
            covered: 0,
            pending: 0,
            skipped: 0,
            is_counted: true,
            warnings: Vec::new(),
        }
    }
}

/// Returns the calendar of a silence, with the calendars that it excludes.
async fn load_calendars(store: &Store, silence: &Silence) -> Result<Calendars, Error> {
    let Some(name) = &silence.calendar else {
        return Ok(Calendars::default());
    };
    let mut all = Vec::new();
    let found = store.get::<Calendar>(name.as_str().into()).await?;
    if let Some(found) = found {
        let keys = found.value.except.iter().map(|it| it.as_str().into());
        let except = store.get_many::<Calendar>(keys.collect()).await?;
        all.extend(except.into_iter().flatten().map(|it| it.value));
        all.push(found.value);
    }
    Ok(Calendars::new(all.iter()))
}

async fn count_with_standing(
    store: &Store,
    standing: SilenceStanding,
    silence: &Silence,
) -> Result<usize, EngineError> {
    let prefix = Key::new().byte(standing as u8).id(silence.id).build();
    let (engine, range) = (store.engine(), Range::with_prefix(&prefix));
    engine
        .count(Index::OccurrenceBySilence, range, SILENCES_COUNTED_MAX)
        .await
}

fn ensure_not_expired(silence: &Silence, now_ms: i64) -> Result<(), Error> {
    if silence.state_at(now_ms) != SilenceState::Expired {
        return Ok(());
    }
    Err(Error::Refused {
        reason: Reason::SilenceExpired,
        message: format!(
            "silence `{}` has ended and cannot be restarted; create a new one",
            silence.name
        ),
    })
}

fn check_coverage(draft: &SilenceDraft, violations: &mut Violations) {
    match &draft.query {
        Some(query) => {
            if let Err(found) = matching::compile(query) {
                violations.add_with_prefix(QUERY_PATH, found);
            }
        }
        None if draft.rule_names.is_empty() => {
            violations.add_new(QUERY_PATH, "is required unless `ruleNames` is set");
        }
        None => {}
    }
}

fn check_span(
    draft: &SilenceDraft,
    stored: Option<&Silence>,
    now_ms: i64,
    violations: &mut Violations,
) -> Option<(i64, i64)> {
    let (start_field, end_field) = if draft.calendar.is_empty() {
        ("span.startTime", "span.endTime")
    } else {
        ("calendar.startTime", "calendar.endTime")
    };
    let begun = stored.filter(|it| it.start_ms <= now_ms);
    let start_ms = match (begun, draft.start_ms) {
        (Some(begun), Some(requested)) if requested != begun.start_ms => {
            let message = "has passed and can no longer be changed; omit it";
            violations.add(start_field, message);
            return None;
        }
        (Some(begun), _) => begun.start_ms,
        (None, requested) => requested.unwrap_or(now_ms),
    };
    let Some(end_ms) = draft.end_ms else {
        if draft.calendar.is_empty() {
            violations.add_new(end_field, "is required");
            return None;
        }
        return Some((start_ms, NEVER_MS));
    };
    if begun.is_some() && end_ms <= now_ms {
        return Some((start_ms, now_ms));
    }
    let length_max_ms = to_millis(SILENCE_LENGTH_MAX);
    let message = if end_ms <= now_ms {
        Some("has passed".to_owned())
    } else if end_ms <= start_ms {
        Some(format!("must be after `{start_field}`"))
    } else if draft.calendar.is_empty() && end_ms.saturating_sub(start_ms) > length_max_ms {
        Some(format!(
            "is {} after the start; the limit is {}",
            format_days(end_ms - start_ms),
            format_days(length_max_ms)
        ))
    } else {
        None
    };
    match message {
        None => Some((start_ms, end_ms)),
        Some(message) => {
            violations.add(end_field, message);
            None
        }
    }
}

fn check_lengths(draft: &SilenceDraft, span: Option<(i64, i64)>, violations: &mut Violations) {
    let idle_max_ms = to_millis(SILENCE_IDLE_MAX);
    let is_idle_wrong = |it: &i64| !(0..=idle_max_ms).contains(it);
    if draft
        .expire_when_idle_ms
        .is_some_and(|it| is_idle_wrong(&it))
    {
        let message = format!("must be a duration from 0 to {}", format_days(idle_max_ms));
        violations.add("expireWhenIdle", message);
    }
    let (Some(before_ms), Some((start_ms, end_ms))) = (draft.warn_before_ms, span) else {
        return;
    };
    if before_ms < 0 {
        violations.add("warnBefore", "is negative; use 0 for no warning");
    } else if !draft.calendar.is_empty() {
        violations.add(
            "warnBefore",
            "requires a `span`; calendar windows have no warning",
        );
    } else if before_ms > end_ms.saturating_sub(start_ms) {
        violations.add("warnBefore", "is longer than the silence itself");
    }
}

fn check_annotations(annotations: &BTreeMap<String, String>, violations: &mut Violations) {
    let count = annotations.len();
    if count > SILENCE_ANNOTATIONS_MAX {
        let message = format!("has {count} entries; the limit is {SILENCE_ANNOTATIONS_MAX}");
        return violations.add("annotations", message);
    }
    for (key, value) in annotations {
        let (keys, values) = (key.chars().count(), value.chars().count());
        if !(1..=TAG_CHARACTERS_MAX).contains(&keys) {
            let message = format!(
                "has a key of {keys} characters; expected 1 to {TAG_CHARACTERS_MAX} characters"
            );
            violations.add("annotations", message);
        } else if values > SILENCE_TEXT_CHARACTERS_MAX {
            let message =
                format!("has {values} characters; the limit is {SILENCE_TEXT_CHARACTERS_MAX}");
            violations.add(format!("annotations.{key}"), message);
        }
    }
}

/// Formats a length in days and minutes, rounded up to a minute.
fn format_days(ms: i64) -> String {
    let minutes = (ms + MINUTE_MS - 1) / MINUTE_MS;
    let minutes_per_day = DAY_MS / MINUTE_MS;
    let (days, rest) = (minutes / minutes_per_day, minutes % minutes_per_day);
    let counted = |count: i64, unit: &str| match count {
        1 => format!("1 {unit}"),
        _ => format!("{count} {unit}s"),
    };
    match (days, rest) {
        (days, 0) => counted(days, "day"),
        (0, minutes) => counted(minutes, "minute"),
        (days, minutes) => format!(
            "{} and {}",
            counted(days, "day"),
            counted(minutes, "minute")
        ),
    }
}

fn to_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub fn generate_name() -> String {
    let mut chance = rand::rng();
    let characters = (0..8).map(|_| char::from(chance.sample(Alphanumeric)));
    let characters: String = characters.collect();
    format!("silence-{}", characters.to_ascii_lowercase())
}

pub fn silence_event_id(silence: &Name) -> EventId {
    SILENCE.id([silence.as_str()])
}

#[cfg(test)]
mod tests;
