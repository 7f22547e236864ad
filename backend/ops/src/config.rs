//! Configuration as documents: resources are stored, edited and deleted together, all or none.

mod check;
mod impact;
mod silences;
mod stopped_responses;

use std::{collections::HashSet, fmt, sync::Arc};

use bellwether_proto::v1::config_document::Resource as DefinitionVersion;

use crate::{
    clock::Clock,
    commit::commit,
    domain::{Role, Silence, any_resource::each_documented},
    error::{Error, Violation},
    etag::compute_etag,
    from_domain::FromDomain,
    resource::{AuthoredResource, PutOutcome, Resource, ResourceDraft, Resources},
    send::EgressGuard,
    settings,
    store::{Lane, StagedStore, Store, engine::Range},
};

pub use check::OWNER_CHARACTERS_MAX;
pub use impact::Impacts;

/// Prefix of the tag that names the owner of a resource.
const OWNER: &str = "owner:";
const NAMED_MAX: usize = 10;

macro_rules! kinds {
    ($($number:literal $word:ident $field:ident($kind:ident) $own:tt)+) => {
        fn kind_and_name(definition: &DefinitionVersion) -> (&'static str, &str) {
            match definition {
                $(DefinitionVersion::$field(draft) => (crate::domain::$kind::WORD, draft.name()),)+
                DefinitionVersion::Silence(draft) => (Silence::WORD, &draft.name),
            }
        }

        fn definition_tags(definition: &DefinitionVersion) -> &[String] {
            match definition {
                $(DefinitionVersion::$field(draft) => draft.tags(),)+
                DefinitionVersion::Silence(draft) => &draft.tags,
            }
        }

        $(impl FromDomain<crate::domain::$kind> for DefinitionVersion {
            fn from_domain(resource: crate::domain::$kind) -> Self {
                Self::$field(FromDomain::from_domain(resource))
            }
        })+

        impl ConfigStage {
            async fn put_documents(
                &self,
                documents: &[Document],
                order: &[usize],
                changes: &mut [Option<Change>],
                failed: &mut DocumentErrors,
            ) -> Result<(), Error> {
                $(let all = self.resources::<crate::domain::$kind>();
                for at in order {
                    let document = &documents[*at];
                    let DefinitionVersion::$field(draft) = &document.definition else { continue };
                    match all.create_or_update(draft, document.must_be_new).await {
                        Ok(put) => changes[*at] = Some(to_change(put)),
                        Err(error) => failed.add(*at, document, error)?,
                    }
                })+
                self.put_silences(documents, changes, failed).await
            }

            /// Returns the deletion of each resource that has a tag but is not described by any
            /// document.
            async fn stale_deletions(
                &self,
                tag: &str,
                described: &HashSet<(&str, &str)>,
            ) -> Result<Vec<Change>, Error> {
                let mut owned = Vec::new();
                $(self.add_stale_deletions::<crate::domain::$kind>(tag, described, &mut owned).await?;)+
                Ok(owned)
            }

            async fn delete(&self, word: &str, name: &str) -> Result<(), Error> {
                match word {
                    $(crate::domain::$kind::WORD => self.resources::<crate::domain::$kind>().delete(name, "", false).await,)+
                    _ => Ok(()),
                }
            }
        }
    };
}

each_documented!(kinds);

pub struct Document {
    pub definition: DefinitionVersion,
    pub must_be_new: bool,
}

impl Document {
    fn is_settings(&self) -> bool {
        matches!(self.definition, DefinitionVersion::Settings(_))
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Document");
        shown.field("definition", &kind_and_name(&self.definition));
        shown.finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub enum Action {
    Unchanged,
    Created(Box<DefinitionVersion>),
    Updated {
        before: Box<DefinitionVersion>,
        after: Box<DefinitionVersion>,
        changed_secrets: Vec<String>,
    },
    Deleted(Box<DefinitionVersion>),
}

#[derive(Debug)]
pub struct Change {
    pub kind: &'static str,
    pub name: String,
    /// Etag of the resource before the change; empty if it did not exist.
    pub etag: String,
    pub action: Action,
    /// Number of running responses that the change stops; only counted in a dry run.
    pub stopped_responses: usize,
}

#[derive(Debug, Clone)]
pub struct Configuration {
    store: Store,
    clock: Arc<dyn Clock>,
    guard: Arc<EgressGuard>,
}

impl Configuration {
    pub fn new(store: Store, clock: Arc<dyn Clock>, guard: Arc<EgressGuard>) -> Self {
        Self {
            store,
            clock,
            guard,
        }
    }

    /// Stores the documents, and deletes resources that have the owner's tag but are not described
    /// by any document. With an empty owner, no resources are deleted. All changes are made in one
    /// commit, with the permissions of `role`. With `validate_only`, only returns the changes.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] with all violations in any document, [`Error::PermissionDenied`]
    /// if the settings would change and the caller is not an admin, [`Error::Aborted`] if a
    /// document's etag does not match the stored resource, and [`Error::FailedPrecondition`] if a
    /// resource to delete is still used by a remaining one.
    pub async fn apply(
        &self,
        documents: &[Document],
        (prune_owner, role): (&str, Role),
        validate_only: bool,
    ) -> Result<Vec<Change>, Error> {
        check::check_documents(documents, prune_owner)?;
        let decide = async || {
            let (staged, mut changes) = self.stage_documents(documents, prune_owner).await?;
            check::check_role(&changes, role)?;
            let set = if validate_only {
                stopped_responses::count_stopped_responses(
                    (&self.store, staged.store()),
                    &mut changes,
                )
                .await?;
                self.store.new_changes()
            } else {
                staged.take_changes()
            };
            Ok((set, changes))
        };
        Ok(commit(&self.store, Lane::Admin, decide).await?.0)
    }

    async fn stage_documents(
        &self,
        documents: &[Document],
        prune_owner: &str,
    ) -> Result<(StagedStore, Vec<Change>), Error> {
        let staged = self.store.stage().await?;
        let stage = ConfigStage::new(self, staged.store());
        let mut changes = stage.put_all(documents).await?;
        if !prune_owner.is_empty() {
            changes.extend(stage.prune(documents, prune_owner).await?);
        }
        if let Some(at) = documents.iter().position(Document::is_settings) {
            let before = settings::read_values(&self.store).await?.templates;
            let new = settings::read_values(staged.store()).await?.templates;
            let broken =
                settings::snippets::broken_templates(staged.store(), &before, &new).await?;
            let mut failed = DocumentErrors::default();
            failed.add(at, &documents[at], Error::Invalid(broken))?;
            changes = failed.into_result(changes)?;
        }
        Ok((staged, changes))
    }
}

/// A store with uncommitted changes, and its resources.
struct ConfigStage {
    store: Store,
    clock: Arc<dyn Clock>,
    guard: Arc<EgressGuard>,
}

impl ConfigStage {
    fn new(configuration: &Configuration, store: &Store) -> Self {
        Self {
            store: store.clone(),
            clock: Arc::clone(&configuration.clock),
            guard: Arc::clone(&configuration.guard),
        }
    }

    fn resources<T: AuthoredResource>(&self) -> Resources<T> {
        let all = Resources::new(self.store.clone(), Arc::clone(&self.clock));
        all.with_guard(Arc::clone(&self.guard))
    }

    async fn put_all(&self, documents: &[Document]) -> Result<Vec<Change>, Error> {
        let mut order: Vec<usize> = (0..documents.len()).collect();
        // A calendar can only exclude calendars that exclude none; these must be stored first.
        order.sort_by_key(|at| {
            matches!(
                &documents[*at].definition,
                DefinitionVersion::Calendar(draft) if !draft.except_calendar_names.is_empty()
            )
        });
        let mut changes: Vec<Option<Change>> = documents.iter().map(|_| None).collect();
        let mut failed = DocumentErrors::default();
        self.put_documents(documents, &order, &mut changes, &mut failed)
            .await?;
        failed.into_result(changes.into_iter().flatten().collect())
    }

    /// Deletes the resources that have the owner's tag and that no document describes; silences are
    /// ended. Resources that refer to other definitions are deleted first.
    async fn prune(&self, documents: &[Document], owner: &str) -> Result<Vec<Change>, Error> {
        let described = documents
            .iter()
            .map(|it| kind_and_name(&it.definition))
            .collect();
        let tag = format!("{OWNER}{owner}");
        let mut left = self.stale_deletions(&tag, &described).await?;
        left.reverse();
        let mut deleted = self.end_stale_silences(&tag, &described).await?;
        while !left.is_empty() {
            let (count, mut refused) = (left.len(), None);
            for change in std::mem::take(&mut left) {
                match self.delete(change.kind, &change.name).await {
                    Ok(()) => deleted.push(change),
                    // Try again: its users may be of the same kind, and be deleted later.
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

    async fn add_stale_deletions<T: AuthoredResource>(
        &self,
        tag: &str,
        described: &HashSet<(&str, &str)>,
        owned: &mut Vec<Change>,
    ) -> Result<(), Error>
    where
        DefinitionVersion: FromDomain<T>,
    {
        let mut pages = self.store.pages::<T>(Range::with_prefix(&[]));
        while let Some(page) = pages.next().await? {
            for stored in &page {
                let resource = &stored.value;
                let name = resource.name().as_str();
                let is_owned = resource.tags().iter().any(|it| it == tag);
                if is_owned && !described.contains(&(T::WORD, name)) {
                    owned.push(Change {
                        kind: T::WORD,
                        name: name.to_owned(),
                        etag: compute_etag(resource.id(), resource.revision()),
                        action: Action::Deleted(box_resource(resource.clone())),
                        stopped_responses: 0,
                    });
                }
            }
        }
        Ok(())
    }
}

fn box_resource<T>(resource: T) -> Box<DefinitionVersion>
where
    DefinitionVersion: FromDomain<T>,
{
    Box::new(DefinitionVersion::from_domain(resource))
}

fn to_change<T: AuthoredResource>(put: PutOutcome<T>) -> Change
where
    DefinitionVersion: FromDomain<T>,
{
    let etag = |stored: &T| compute_etag(stored.id(), stored.revision());
    let (name, etag, action) = match put {
        PutOutcome::Unchanged(stored) => {
            (stored.name().to_string(), etag(&stored), Action::Unchanged)
        }
        PutOutcome::Created(new) => (
            new.name().to_string(),
            String::new(),
            Action::Created(box_resource(new)),
        ),
        PutOutcome::Updated { before, after } => (
            after.name().to_string(),
            etag(&before),
            Action::Updated {
                changed_secrets: after.new_secrets(&before),
                before: box_resource(before),
                after: box_resource(after),
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

#[derive(Debug, Default)]
struct DocumentErrors {
    violations: Vec<Violation>,
    /// Documents that failed. References to them are not reported as further errors.
    missing: HashSet<String>,
    changed_meanwhile: Vec<String>,
}

impl DocumentErrors {
    /// Adds the error of a document. Returns the error itself if the document did not cause it.
    fn add(&mut self, at: usize, document: &Document, error: Error) -> Result<(), Error> {
        let (kind, name) = kind_and_name(&document.definition);
        self.missing.insert(format!("{kind} `{name}` not found"));
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

    fn into_result(self, changes: Vec<Change>) -> Result<Vec<Change>, Error> {
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
