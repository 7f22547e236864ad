//! Rules: stored, edited and deleted, and never pointing at what is not there.

mod preview;

use std::{collections::HashSet, sync::Arc};

use crate::{
    clock::Clock,
    domain::{Destination, Name, Rule, Trigger, rule::REPEAT_INTERVAL_SECONDS_DEFAULT},
    error::Error,
    limits::{REPEAT_INTERVAL_SECONDS_MAX, RULE_NAMES_MAX},
    message,
    ops::{
        page::{Page, PageRequest},
        recent::Recent,
        resource::{Filter, Origin, Resource, create, delete, find, list, update},
        validate::Faults,
    },
    store::{Changes, Store, Stored},
};

pub use preview::{Installation, Preview, Previews};

/// A rule as its author describes it, not checked yet.
#[derive(Debug, Clone, Default)]
pub struct RuleDraft {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Labels.
    pub tags: Vec<String>,
    /// Whether it notifies.
    pub enabled: bool,
    /// The triggers.
    pub trigger_names: Vec<String>,
    /// The destinations.
    pub destination_names: Vec<String>,
    /// The message's template.
    pub message: String,
    /// Whether later matches notify again.
    pub repeat: bool,
    /// Seconds between repeats; none means the default.
    pub repeat_interval: Option<i64>,
    /// Whether changes notify again.
    pub send_updates: bool,
    /// For an update: the etag that must be current; empty asks for no check.
    pub etag: String,
}

/// A rule, and what is known about its use.
#[derive(Debug, Clone)]
pub struct RuleView {
    /// The rule.
    pub rule: Rule,
    /// Its notifications in the last 24 hours.
    pub recent_notifications: usize,
    /// When it notified last, in milliseconds since 1970.
    pub last_notification_ms: Option<i64>,
}

/// Manages rules.
#[derive(Debug, Clone)]
pub struct Rules {
    store: Store,
    clock: Arc<dyn Clock>,
    recent: Recent,
}

impl Rules {
    /// Manages the rules in a store.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        let recent = Recent::new(store.clone(), Arc::clone(&clock));
        Self {
            store,
            clock,
            recent,
        }
    }

    /// Stores a new rule; with `validate_only`, only checks it.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong, [`Error::AlreadyExists`].
    pub async fn create(&self, draft: RuleDraft, validate_only: bool) -> Result<RuleView, Error> {
        let now_ms = self.clock.now_ms();
        let origin = Origin::new(now_ms);
        let decide = async || self.checked(&draft, &origin).await;
        self.view(create(&self.store, validate_only, decide).await?)
            .await
    }

    /// Reads a rule.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn get(&self, name: &str) -> Result<RuleView, Error> {
        self.view(find::<Rule>(&self.store, name).await?.value)
            .await
    }

    /// Lists rules by name.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a filter, page size or token that is not accepted.
    pub async fn list(&self, filter: &Filter, page: &PageRequest) -> Result<Page<RuleView>, Error> {
        let view = async |rule| Ok((self.view(rule).await?, 0));
        list(&self.store, filter, page, view).await
    }

    /// Replaces a rule; with `validate_only`, only checks that it could.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong, [`Error::NotFound`], and
    /// [`Error::Aborted`] when the draft's etag is not current.
    pub async fn update(&self, draft: RuleDraft, validate_only: bool) -> Result<RuleView, Error> {
        let decide =
            async |stored: Stored<Rule>| self.checked(&draft, &Origin::of(&stored.value)).await;
        let name = (&*draft.name, &*draft.etag);
        self.view(update(&self.store, name, validate_only, decide).await?)
            .await
    }

    /// Deletes a rule; what it has caused is still delivered.
    ///
    /// # Errors
    /// [`Error::NotFound`], and [`Error::Aborted`] when the etag is not current.
    pub async fn delete(&self, name: &str, etag: &str) -> Result<(), Error> {
        let decide = async |_rule: Stored<Rule>| Ok(self.store.changes());
        delete(&self.store, (name, etag), self.clock.now_ms(), decide).await
    }

    /// The rule that a draft describes. What it refers to is touched in the changes beside it, so
    /// that it cannot be deleted at the same moment.
    async fn checked(&self, draft: &RuleDraft, origin: &Origin) -> Result<(Rule, Changes), Error> {
        let mut changes = self.store.changes();
        let mut faults = Faults::default();
        let name = faults.name(&draft.name);
        faults.texts(&draft.description, &draft.tags);
        faults.extend(message::check_message(&draft.message));
        let repeat_interval_seconds = repeat_interval(draft, &mut faults);
        let triggers = self
            .referred::<Trigger>("triggerNames", &draft.trigger_names, &mut faults)
            .await?;
        let destinations = self
            .referred::<Destination>("destinationNames", &draft.destination_names, &mut faults)
            .await?;
        for trigger in &triggers {
            changes.touch(trigger);
        }
        for destination in &destinations {
            changes.touch(destination);
        }
        let rule = name.map(|name| Rule {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            enabled: draft.enabled,
            trigger_names: names(&triggers),
            destination_names: names(&destinations),
            message: draft.message.clone(),
            repeat: draft.repeat,
            repeat_interval_seconds,
            send_updates: draft.send_updates,
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: self.clock.now_ms(),
        });
        Ok((faults.or(rule)?, changes))
    }

    /// The resources of those names, without repeats; each name of nothing is a fault.
    async fn referred<T: Resource>(
        &self,
        field: &str,
        texts: &[String],
        faults: &mut Faults,
    ) -> Result<Vec<Stored<T>>, Error> {
        if texts.len() > RULE_NAMES_MAX {
            let count = texts.len();
            faults.add(
                field,
                format!("holds {count} names; at most {RULE_NAMES_MAX} are kept"),
            );
            return Ok(Vec::new());
        }
        let keys = texts.iter().map(|text| text.clone().into_bytes()).collect();
        let stored = self.store.get_many::<T>(keys).await?;
        let (mut seen, mut found) = (HashSet::new(), Vec::new());
        for (at, (text, stored)) in texts.iter().zip(stored).enumerate() {
            match stored {
                Some(stored) if seen.insert(text) => found.push(stored),
                Some(_) => {}
                None => faults.add(
                    format!("{field}[{at}]"),
                    match Name::parse(text) {
                        Ok(name) => format!("there is no {} `{name}`", T::WORD),
                        Err(fault) => fault,
                    },
                ),
            }
        }
        Ok(found)
    }

    async fn view(&self, rule: Rule) -> Result<RuleView, Error> {
        Ok(RuleView {
            recent_notifications: self.recent.of_rule(rule.id).await?,
            last_notification_ms: self.recent.last_of_rule(rule.id).await?,
            rule,
        })
    }
}

fn names<T: Resource>(resources: &[Stored<T>]) -> Vec<Name> {
    let name = |stored: &Stored<T>| stored.value.name().clone();
    resources.iter().map(name).collect()
}

fn repeat_interval(draft: &RuleDraft, faults: &mut Faults) -> u32 {
    let Some(seconds) = draft.repeat_interval else {
        return REPEAT_INTERVAL_SECONDS_DEFAULT;
    };
    let taken = u32::try_from(seconds).ok();
    taken
        .filter(|seconds| *seconds <= REPEAT_INTERVAL_SECONDS_MAX)
        .unwrap_or_else(|| {
            faults.add(
                "repeatInterval",
                format!("is {seconds}; give 0 to {REPEAT_INTERVAL_SECONDS_MAX} seconds"),
            );
            REPEAT_INTERVAL_SECONDS_DEFAULT
        })
}
