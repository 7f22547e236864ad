//! Configuration as documents: resources stored, edited and deleted together, or not at all.

mod check;
mod impact;
mod stopping;

use std::{collections::HashSet, fmt, sync::Arc};

use bellwether_proto::v1::config_document::Resource as Definition;

use crate::{
    clock::Clock,
    destination::Guard,
    domain::{Role, any_resource::each_documented},
    error::{Error, Violation},
    limits::PAGE_SIZE_MAX,
    ops::{
        commit::commit,
        etag::etag,
        resource::{Described, Drafted, Put, Resource, Resources},
        wire::Shows,
    },
    store::{Direction, Lane, StagedStore, Store, engine::Range},
};

pub use check::OWNER_CHARACTERS_MAX;
pub use impact::{Counted, Impact, Impacts};

/// The start of the tag that says whose a resource is.
const OWNER: &str = "owner:";
/// Resources that a sentence names.
const NAMED_MAX: usize = 10;

/// What is distinguished by kind.
macro_rules! kinds {
    ($($number:literal $word:ident $field:ident($kind:ident) $own:tt)+) => {
        /// The word for the kind of a definition, and its name.
        fn identity(definition: &Definition) -> (&'static str, &str) {
            match definition {
                $(Definition::$field(draft) => (crate::domain::$kind::WORD, draft.name()),)+
            }
        }

        fn tags(definition: &Definition) -> &[String] {
            match definition {
                $(Definition::$field(draft) => draft.tags(),)+
            }
        }

        $(impl Shows<crate::domain::$kind> for Definition {
            fn of(resource: crate::domain::$kind) -> Self {
                Self::$field(Shows::of(resource))
            }
        })+

        impl Stage {
            /// Stores what the documents of that order say; what happened to each is kept by its
            /// place.
            async fn put_each(
                &self,
                documents: &[Document],
                order: &[usize],
                changes: &mut [Option<Change>],
                failed: &mut Failed,
            ) -> Result<(), Error> {
                $(let all = self.all::<crate::domain::$kind>();
                for at in order {
                    let document = &documents[*at];
                    let Definition::$field(draft) = &document.definition else { continue };
                    match all.put(draft, document.must_be_new).await {
                        Ok(put) => changes[*at] = Some(changed(put)),
                        Err(error) => failed.add(*at, document, error)?,
                    }
                })+
                Ok(())
            }

            /// What carries a tag and is not described.
            async fn owned(
                &self,
                tag: &str,
                described: &HashSet<(&str, &str)>,
            ) -> Result<Vec<Change>, Error> {
                let mut owned = Vec::new();
                $(self.owned_of::<crate::domain::$kind>(tag, described, &mut owned).await?;)+
                Ok(owned)
            }

            async fn delete(&self, word: &str, name: &str) -> Result<(), Error> {
                match word {
                    $(crate::domain::$kind::WORD => self.all::<crate::domain::$kind>().delete(name, "", false).await,)+
                    _ => Ok(()),
                }
            }
        }
    };
}

each_documented!(kinds);

/// A document.
pub struct Document {
    /// A resource as its author describes it.
    pub definition: Definition,
    /// Whether nothing may be stored under its name yet.
    pub must_be_new: bool,
}

impl fmt::Debug for Document {
    /// Shows which resource it is about: its secrets are as they were sent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Document");
        shown.field("definition", &identity(&self.definition));
        shown.finish_non_exhaustive()
    }
}

/// What was done with a resource.
#[derive(Debug)]
pub enum Action {
    /// It is stored so already.
    Unchanged,
    /// It is new.
    Created(Box<Definition>),
    /// It took the place of another.
    Updated {
        /// What was stored.
        before: Box<Definition>,
        /// What is stored.
        after: Box<Definition>,
        /// The secrets that differ, as paths.
        changed_secrets: Vec<String>,
    },
    /// It is gone.
    Deleted(Box<Definition>),
}

/// What happened to one resource.
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
    /// Responses under way that it stops. Counted only where nothing is stored.
    pub stopped_responses: usize,
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
    /// described by none of them; an empty owner deletes nothing. All of it is one commit, for a caller
    /// of that role. With
    /// `validate_only`, only answers what would change.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong with any document,
    /// [`Error::PermissionDenied`] when they change the settings and the caller is no administrator,
    /// [`Error::Aborted`] when
    /// what is stored is not what documents expect, and [`Error::FailedPrecondition`] when what
    /// would be deleted is in use by what stays.
    pub async fn apply(
        &self,
        documents: &[Document],
        (prune_owner, role): (&str, Role),
        validate_only: bool,
    ) -> Result<Vec<Change>, Error> {
        check::documents(documents, prune_owner)?;
        let decide = async || {
            let (staged, mut changes) = self.staged(documents, prune_owner).await?;
            check::role(&changes, role)?;
            let set = if validate_only {
                stopping::note((&self.store, staged.store()), &mut changes).await?;
                self.store.changes()
            } else {
                staged.changes()
            };
            Ok((set, changes))
        };
        Ok(commit(&self.store, Lane::Admin, decide).await?.0)
    }

    /// What is stored as it would be then, and the outcome of each document.
    async fn staged(
        &self,
        documents: &[Document],
        prune_owner: &str,
    ) -> Result<(StagedStore, Vec<Change>), Error> {
        let staged = self.store.stage().await?;
        let stage = Stage::new(self, staged.store());
        let mut changes = stage.put_all(documents).await?;
        if !prune_owner.is_empty() {
            changes.extend(stage.prune(documents, prune_owner).await?);
        }
        Ok((staged, changes))
    }
}

/// The resources of a store whose changes are kept back.
struct Stage {
    store: Store,
    clock: Arc<dyn Clock>,
    guard: Arc<Guard>,
}

impl Stage {
    fn new(configuration: &Configuration, store: &Store) -> Self {
        Self {
            store: store.clone(),
            clock: Arc::clone(&configuration.clock),
            guard: Arc::clone(&configuration.guard),
        }
    }

    /// The resources of a kind.
    fn all<T: Drafted>(&self) -> Resources<T> {
        let all = Resources::new(self.store.clone(), Arc::clone(&self.clock));
        all.behind(Arc::clone(&self.guard))
    }

    /// Stores what the documents say; answers in their order.
    async fn put_all(&self, documents: &[Document]) -> Result<Vec<Change>, Error> {
        let mut order: Vec<usize> = (0..documents.len()).collect();
        // A calendar that takes out others comes after them; they take out none.
        order.sort_by_key(|at| {
            matches!(
                &documents[*at].definition,
                Definition::Calendar(draft) if !draft.except_calendar_names.is_empty()
            )
        });
        let mut changes: Vec<Option<Change>> = documents.iter().map(|_| None).collect();
        let mut failed = Failed::default();
        self.put_each(documents, &order, &mut changes, &mut failed)
            .await?;
        failed.or(changes.into_iter().flatten().collect())
    }

    /// Deletes what carries the owner's tag and no document describes, what refers before what is
    /// referred to.
    async fn prune(&self, documents: &[Document], owner: &str) -> Result<Vec<Change>, Error> {
        let described = documents
            .iter()
            .map(|it| identity(&it.definition))
            .collect();
        let mut left = self.owned(&format!("{OWNER}{owner}"), &described).await?;
        left.reverse();
        let mut deleted = Vec::new();
        while !left.is_empty() {
            let (count, mut refused) = (left.len(), None);
            for change in std::mem::take(&mut left) {
                match self.delete(change.kind, &change.name).await {
                    Ok(()) => deleted.push(change),
                    // What uses it may be of the same kind, and come later.
                    Err(error @ (Error::FailedPrecondition(_) | Error::Refused { .. })) => {
                        refused = Some(error);
                        left.push(change);
                    }
                    Err(error) => return Err(error),
                }
            }
            if let Some(error) = refused.filter(|_| left.len() == count) {
                return Err(error);
            }
        }
        Ok(deleted)
    }

    async fn owned_of<T: Drafted>(
        &self,
        tag: &str,
        described: &HashSet<(&str, &str)>,
        owned: &mut Vec<Change>,
    ) -> Result<(), Error>
    where
        Definition: Shows<T>,
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
                    owned.push(Change {
                        kind: T::WORD,
                        name: name.to_owned(),
                        etag: etag(resource.id(), resource.revision()),
                        action: Action::Deleted(boxed(resource.clone())),
                        stopped_responses: 0,
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

fn boxed<T>(resource: T) -> Box<Definition>
where
    Definition: Shows<T>,
{
    Box::new(Definition::of(resource))
}

fn changed<T: Drafted>(put: Put<T>) -> Change
where
    Definition: Shows<T>,
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
                changed_secrets: after.new_secrets(&before),
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
        stopped_responses: 0,
    }
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
        let (kind, name) = identity(&document.definition);
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
