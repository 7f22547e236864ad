//! Rules: stored, edited and deleted, and never pointing at what is not there.

mod preview;

use std::{collections::HashSet, sync::Arc};

use crate::{
    clock::Clock,
    domain::{Destination, Name, Rule, Trigger, Was, rule::REPEAT_INTERVAL_SECONDS_DEFAULT},
    error::Error,
    limits::{REPEAT_INTERVAL_SECONDS_MAX, RULE_NAMES_MAX},
    message,
    ops::{
        commit::commit,
        page::{Page, PageRequest},
        recent::Recent,
        resource::{Filter, Origin, Resource, check_etag, check_free, find, list},
        revision,
        validate::Faults,
    },
    store::{Changes, Lane, Store, Stored},
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
        let decide = async || {
            let mut changes = self.store.changes();
            let rule = self.checked(&draft, &origin, &mut changes).await?;
            check_free::<Rule>(&self.store, &rule.name).await?;
            changes.insert(&rule);
            Ok((self.unless(validate_only, changes), rule))
        };
        let (rule, _) = commit(&self.store, Lane::Admin, decide).await?;
        self.view(rule).await
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
        let page = list::<Rule>(&self.store, filter, page).await?;
        let mut items = Vec::with_capacity(page.items.len());
        for rule in page.items {
            items.push(self.view(rule).await?);
        }
        Ok(Page {
            items,
            next_page_token: page.next_page_token,
            total: page.total,
        })
    }

    /// Replaces a rule; with `validate_only`, only checks that it could.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong, [`Error::NotFound`], and
    /// [`Error::Aborted`] when the draft's etag is not current.
    pub async fn update(&self, draft: RuleDraft, validate_only: bool) -> Result<RuleView, Error> {
        let decide = async || {
            let stored = find::<Rule>(&self.store, &draft.name).await?;
            check_etag(&draft.etag, &stored.value)?;
            let origin = Origin::of(&stored.value);
            let mut changes = self.store.changes();
            let rule = self.checked(&draft, &origin, &mut changes).await?;
            let was = Was::Rule(stored.value.clone());
            revision::keep(&self.store, was, rule.update_ms, false, &mut changes).await?;
            changes.update(&stored, &rule);
            Ok((self.unless(validate_only, changes), rule))
        };
        let (rule, _) = commit(&self.store, Lane::Admin, decide).await?;
        self.view(rule).await
    }

    /// Deletes a rule; what it has caused is still delivered.
    ///
    /// # Errors
    /// [`Error::NotFound`], and [`Error::Aborted`] when the etag is not current.
    pub async fn delete(&self, name: &str, etag: &str) -> Result<(), Error> {
        let decide = async || {
            let stored = find::<Rule>(&self.store, name).await?;
            check_etag(etag, &stored.value)?;
            let mut changes = self.store.changes();
            let was = Was::Rule(stored.value.clone());
            revision::keep(&self.store, was, self.clock.now_ms(), true, &mut changes).await?;
            changes.delete(&stored);
            Ok((changes, ()))
        };
        commit(&self.store, Lane::Admin, decide).await?;
        Ok(())
    }

    fn unless(&self, validate_only: bool, changes: Changes) -> Changes {
        if validate_only {
            self.store.changes()
        } else {
            changes
        }
    }

    /// The rule that a draft describes. What it refers to is touched in `changes`, so that it
    /// cannot be deleted at the same moment.
    async fn checked(
        &self,
        draft: &RuleDraft,
        origin: &Origin,
        changes: &mut Changes,
    ) -> Result<Rule, Error> {
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
        faults.or(name.map(|name| Rule {
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
        }))
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
