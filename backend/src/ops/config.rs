//! Configuration as documents: resources stored, edited and deleted together, or not at all.

mod check;

use std::{collections::HashSet, sync::Arc};

use crate::{
    clock::Clock,
    destination::Guard,
    domain::{Destination, Rule, Trigger},
    error::{Error, Violation},
    limits::PAGE_SIZE_MAX,
    ops::{
        commit::commit,
        destination::{DestinationDraft, DestinationView, Destinations},
        etag::etag,
        resource::{Drafted, Put, Resource, Resources},
        rule::{RuleDraft, RuleView, Rules},
        trigger::{TriggerDraft, TriggerView, Triggers},
    },
    store::{Direction, Lane, Store, engine::Range},
};

pub use check::OWNER_CHARACTERS_MAX;

/// The start of the tag that says whose a resource is.
const OWNER: &str = "owner:";
/// Resources that a sentence names.
const NAMED_MAX: usize = 10;

/// A resource as its author describes it.
#[derive(Debug)]
pub enum Draft {
    /// A trigger.
    Trigger(TriggerDraft),
    /// A destination.
    Destination(DestinationDraft),
    /// A rule.
    Rule(RuleDraft),
}

/// A document.
#[derive(Debug)]
pub struct Document {
    /// What it describes.
    pub draft: Draft,
    /// Whether nothing may be stored under its name yet.
    pub must_be_new: bool,
}

/// A resource as readers see it, without what is known about its use.
#[derive(Debug)]
pub enum View {
    /// A trigger.
    Trigger(TriggerView),
    /// A destination.
    Destination(DestinationView),
    /// A rule.
    Rule(RuleView),
}

/// What was done with a resource.
#[derive(Debug)]
pub enum Action {
    /// It is stored so already.
    Unchanged,
    /// It is new.
    Created(Box<View>),
    /// It took the place of another.
    Updated {
        /// What was stored.
        before: Box<View>,
        /// What is stored.
        after: Box<View>,
        /// The secrets that differ, as paths.
        changed_secrets: Vec<String>,
    },
    /// It is gone.
    Deleted(Box<View>),
}

/// What became of one resource.
#[derive(Debug)]
pub struct Change {
    /// The word for its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The etag of what was stored before; empty when nothing was.
    pub etag: String,
    /// What was done.
    pub action: Action,
}

/// The configuration of a service.
#[derive(Debug, Clone)]
pub struct Configuration {
    store: Store,
    clock: Arc<dyn Clock>,
    guard: Arc<Guard>,
}

impl Configuration {
    /// Changes what that store holds; destinations lead to where the guard lets messages go.
    pub fn new(store: Store, clock: Arc<dyn Clock>, guard: Arc<Guard>) -> Self {
        Self {
            store,
            clock,
            guard,
        }
    }

    /// Makes what is stored as the documents say, and deletes what carries the owner's tag and is
    /// described by none of them; an empty owner deletes nothing. All of it is one commit. With
    /// `validate_only`, only answers what would change.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong with any document, [`Error::Aborted`] when
    /// what is stored is not what documents expect, and [`Error::FailedPrecondition`] when what
    /// would be deleted is in use by what stays.
    pub async fn apply(
        &self,
        documents: &[Document],
        prune_owner: &str,
        validate_only: bool,
    ) -> Result<Vec<Change>, Error> {
        check::documents(documents, prune_owner)?;
        let decide = async || {
            let staged = self.store.stage().await?;
            let stage = Stage::new(self, staged.store());
            let mut changes = stage.put_all(documents).await?;
            if !prune_owner.is_empty() {
                changes.extend(stage.prune(documents, prune_owner).await?);
            }
            let set = if validate_only {
                self.store.changes()
            } else {
                staged.changes()
            };
            Ok((set, changes))
        };
        Ok(commit(&self.store, Lane::Admin, decide).await?.0)
    }
}

/// The resources of a store whose changes are kept back.
struct Stage {
    store: Store,
    triggers: Triggers,
    destinations: Destinations,
    rules: Rules,
}

impl Stage {
    fn new(configuration: &Configuration, store: &Store) -> Self {
        let clock = || Arc::clone(&configuration.clock);
        let guard = Arc::clone(&configuration.guard);
        Self {
            triggers: Triggers::new(store.clone(), clock()),
            destinations: Destinations::new(store.clone(), clock()).behind(guard),
            rules: Rules::new(store.clone(), clock()),
            store: store.clone(),
        }
    }

    /// Stores what the documents say, what is referred to before what refers to it; answers in the
    /// order of the documents.
    async fn put_all(&self, documents: &[Document]) -> Result<Vec<Change>, Error> {
        let mut order: Vec<usize> = (0..documents.len()).collect();
        order.sort_by_key(|at| matches!(documents[*at].draft, Draft::Rule(_)));
        let mut changes: Vec<Option<Change>> = documents.iter().map(|_| None).collect();
        let mut failed = Failed::default();
        for at in order {
            let document = &documents[at];
            match self.put(document).await {
                Ok(change) => changes[at] = Some(change),
                Err(error) => failed.add(at, document, error)?,
            }
        }
        failed.or(changes.into_iter().flatten().collect())
    }

    async fn put(&self, document: &Document) -> Result<Change, Error> {
        let is_new = document.must_be_new;
        Ok(match &document.draft {
            Draft::Trigger(draft) => changed(self.triggers.put(draft, is_new).await?, no_secrets),
            Draft::Destination(draft) => {
                changed(self.destinations.put(draft, is_new).await?, secrets)
            }
            Draft::Rule(draft) => changed(self.rules.put(draft, is_new).await?, no_secrets),
        })
    }

    /// Deletes what carries the owner's tag and no document describes, what refers before what is
    /// referred to.
    async fn prune(&self, documents: &[Document], owner: &str) -> Result<Vec<Change>, Error> {
        let described: HashSet<_> = documents.iter().map(|it| it.draft.identity()).collect();
        let tag = format!("{OWNER}{owner}");
        let mut changes = Vec::new();
        self.prune_kind(&self.rules, &tag, &described, &mut changes)
            .await?;
        self.prune_kind(&self.destinations, &tag, &described, &mut changes)
            .await?;
        self.prune_kind(&self.triggers, &tag, &described, &mut changes)
            .await?;
        Ok(changes)
    }

    async fn prune_kind<T: Drafted>(
        &self,
        all: &Resources<T>,
        tag: &str,
        described: &HashSet<(&str, &str)>,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error>
    where
        View: From<T>,
    {
        let mut range = Range::under(&[]);
        loop {
            let page = self
                .store
                .page::<T>(range.clone(), Direction::Ascending, PAGE_SIZE_MAX);
            let page = page.await?;
            for stored in &page {
                let resource = &stored.value;
                let name = resource.name().as_str();
                let is_owned = resource.tags().iter().any(|it| it == tag);
                if is_owned && !described.contains(&(T::WORD, name)) {
                    all.delete(name, "", false).await?;
                    changes.push(Change {
                        kind: T::WORD,
                        name: name.to_owned(),
                        etag: etag(resource.id(), resource.revision()),
                        action: Action::Deleted(boxed(resource.clone())),
                    });
                }
            }
            match page.last() {
                Some(last) if page.len() == PAGE_SIZE_MAX => range.go_on_after(&last.value.key()),
                _ => return Ok(()),
            }
        }
    }
}

impl Draft {
    /// The word for its kind, and its name.
    fn identity(&self) -> (&'static str, &str) {
        match self {
            Self::Trigger(draft) => (Trigger::WORD, &draft.name),
            Self::Destination(draft) => (Destination::WORD, &draft.name),
            Self::Rule(draft) => (Rule::WORD, &draft.name),
        }
    }

    fn tags(&self) -> &[String] {
        match self {
            Self::Trigger(draft) => &draft.tags,
            Self::Destination(draft) => &draft.tags,
            Self::Rule(draft) => &draft.tags,
        }
    }
}

impl From<Trigger> for View {
    fn from(trigger: Trigger) -> Self {
        Self::Trigger(trigger.bare())
    }
}

impl From<Destination> for View {
    fn from(destination: Destination) -> Self {
        Self::Destination(destination.bare())
    }
}

impl From<Rule> for View {
    fn from(rule: Rule) -> Self {
        Self::Rule(rule.bare())
    }
}

fn boxed<T>(resource: T) -> Box<View>
where
    View: From<T>,
{
    Box::new(resource.into())
}

fn changed<T: Resource>(put: Put<T>, changed_secrets: fn(&T, &T) -> Vec<String>) -> Change
where
    View: From<T>,
{
    let etag = |stored: &T| etag(stored.id(), stored.revision());
    let (name, etag, action) = match put {
        Put::Unchanged(stored) => (stored.name().to_string(), etag(&stored), Action::Unchanged),
        Put::Created(new) => (
            new.name().to_string(),
            String::new(),
            Action::Created(boxed(new)),
        ),
        Put::Updated { before, after } => (
            after.name().to_string(),
            etag(&before),
            Action::Updated {
                changed_secrets: changed_secrets(&before, &after),
                before: boxed(before),
                after: boxed(after),
            },
        ),
    };
    Change {
        kind: T::WORD,
        name,
        etag,
        action,
    }
}

fn no_secrets<T>(_before: &T, _after: &T) -> Vec<String> {
    Vec::new()
}

fn secrets(before: &Destination, after: &Destination) -> Vec<String> {
    after.changed_secrets(Some(before))
}

/// What is wrong with documents, so far.
#[derive(Debug, Default)]
struct Failed {
    violations: Vec<Violation>,
    /// What others must not be blamed for: that they refer to a document which failed.
    missing: HashSet<String>,
    changed_meanwhile: Vec<String>,
}

impl Failed {
    /// Adds why a document was not stored.
    ///
    /// # Errors
    /// The error itself when it is not the document's.
    fn add(&mut self, at: usize, document: &Document, error: Error) -> Result<(), Error> {
        let (kind, name) = document.draft.identity();
        self.missing.insert(format!("there is no {kind} `{name}`"));
        match error {
            Error::Invalid(violations) => {
                let own = violations
                    .into_iter()
                    .filter(|violation| !self.missing.contains(&violation.description));
                self.violations.extend(own.map(|violation| {
                    let field = violation.field;
                    Violation::new(
                        format!("documents[{at}].{kind}.{field}"),
                        violation.description,
                    )
                }));
            }
            Error::AlreadyExists(why) => {
                let field = format!("documents[{at}].{kind}.name");
                self.violations.push(Violation::new(field, why));
            }
            Error::Aborted(why) => self.changed_meanwhile.push(why),
            other => return Err(other),
        }
        Ok(())
    }

    /// What was done when nothing is wrong.
    ///
    /// # Errors
    /// All that is wrong.
    fn or(self, changes: Vec<Change>) -> Result<Vec<Change>, Error> {
        if !self.violations.is_empty() {
            return Err(Error::Invalid(self.violations));
        }
        if self.changed_meanwhile.is_empty() {
            return Ok(changes);
        }
        let more = self.changed_meanwhile.len().saturating_sub(NAMED_MAX);
        let mut why = self.changed_meanwhile;
        why.truncate(NAMED_MAX);
        if more > 0 {
            why.push(format!("and {more} more"));
        }
        Err(Error::Aborted(why.join("; ")))
    }
}

#[cfg(test)]
mod tests;
