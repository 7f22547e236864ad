//! Common operations on resources such as triggers, destinations and rules: create, find, list,
//! update and delete.

mod list;
mod name_index;

use std::{marker::PhantomData, sync::Arc};

use tokio::sync::Mutex;

use crate::{
    clock::Clock,
    commit::commit,
    domain::{Name, RecordId},
    error::Error,
    etag,
    fields::FieldCache,
    from_domain::FromDomain,
    page::{Page, PageRequest},
    recent::RecentNotifications,
    revision,
    send::EgressGuard,
    store::{Changes, Direction, Lane, Range, Store, Stored},
    tag_scope::TagScope,
};

use name_index::NameIndex;
pub(super) use name_index::find_lookalike;

pub use list::Filter;

pub use crate::named::Resource;

/// A resource as described by its author, not validated yet.
pub trait ResourceDraft: Send + Sync {
    fn name(&self) -> &str;
    fn tags(&self) -> &[String];
    /// Returns the etag that must be current. An empty etag disables the check.
    fn etag(&self) -> &str;
}

/// Implements [`ResourceDraft`] and [`Resource`] for types with the common field names.
macro_rules! resource {
    ($kind:ty, $draft:ty, $word:literal, $was:expr) => {
        impl $crate::resource::ResourceDraft for $draft {
            fn name(&self) -> &str {
                &self.name
            }
            fn tags(&self) -> &[String] {
                &self.tags
            }
            fn etag(&self) -> &str {
                &self.etag
            }
        }

        impl $crate::resource::Resource for $kind {
            const WORD: &'static str = $word;
            fn id(&self) -> $crate::domain::RecordId {
                self.id
            }
            fn name(&self) -> &$crate::domain::Name {
                &self.name
            }
            fn description(&self) -> &str {
                &self.description
            }
            fn tags(&self) -> &[String] {
                &self.tags
            }
            fn revision(&self) -> u64 {
                self.revision
            }
            fn create_ms(&self) -> i64 {
                self.create_ms
            }
            fn update_ms(&self) -> i64 {
                self.update_ms
            }
            fn as_revision(&self) -> Option<$crate::domain::RevisedResource> {
                let as_revision: fn(Self) -> Option<$crate::domain::RevisedResource> = $was;
                as_revision(self.clone())
            }
        }
    };
}

pub(super) use resource;

pub async fn find<T: Resource>(store: &Store, name: &str) -> Result<Stored<T>, Error> {
    let found = match Name::parse(name) {
        Ok(name) => store.get(name.as_str().into()).await?,
        Err(_error) => None,
    };
    found.ok_or_else(|| {
        let name: String = name
            .chars()
            .take(crate::domain::name::NAME_CHARACTERS_MAX)
            .collect();
        Error::NotFound(format!("{} `{name}` not found", T::WORD))
    })
}

async fn check_free<T: Resource>(store: &Store, name: &Name) -> Result<(), Error> {
    match store.get::<T>(name.as_str().into()).await? {
        None => Ok(()),
        Some(_) => Err(Error::AlreadyExists(format!(
            "{} `{name}` already exists",
            T::WORD
        ))),
    }
}

fn check_etag<T: Resource>(given: &str, stored: &T) -> Result<(), Error> {
    let what = format!("{} `{}`", T::WORD, stored.name());
    etag::check_etag(given, stored.id(), stored.revision(), &what)
}

/// Identity, revision and timestamps of a resource, which are not part of an edit.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    pub(super) id: RecordId,
    pub(super) revision: u64,
    pub(super) create_ms: i64,
    pub(super) update_ms: i64,
}

impl Origin {
    pub(super) fn new(now_ms: i64) -> Self {
        Self {
            id: RecordId::from_parts(now_ms.unsigned_abs(), rand::random()),
            revision: 1,
            create_ms: now_ms,
            update_ms: now_ms,
        }
    }

    fn from_stored<T: Resource>(stored: &T) -> Self {
        Self {
            id: stored.id(),
            revision: stored.revision(),
            create_ms: stored.create_ms(),
            update_ms: stored.update_ms(),
        }
    }

    pub(super) fn next_revision<T: Resource>(stored: &T, now_ms: i64) -> Self {
        Self {
            id: stored.id(),
            revision: stored.revision() + 1,
            create_ms: stored.create_ms(),
            update_ms: now_ms,
        }
    }
}

pub trait AuthoredResource: Resource + PartialEq {
    /// The form in which authors describe the resource.
    type Draft: ResourceDraft;
    /// The form for readers. It is built only from the resource, so it does not contain who uses
    /// the resource.
    type View: FromDomain<Self> + Send;

    /// Returns the resource that a draft describes, and the additional changes required to store
    /// it. `stored` is the version that it replaces. The changes touch referenced resources, so
    /// that these cannot be deleted concurrently.
    fn from_draft(
        all: &Resources<Self>,
        draft: &Self::Draft,
        stored: Option<&Self>,
        origin: Origin,
    ) -> impl Future<Output = Result<(Self, Changes), Error>> + Send;

    /// Returns the additional changes required to delete the resource. With `force`, these remove
    /// the resource from its users.
    ///
    /// # Errors
    ///
    /// Returns [`Error::FailedPrecondition`] if the resource is in use and `force` is not set.
    fn changes_on_delete(
        all: &Resources<Self>,
        _resource: &Self,
        _force: bool,
    ) -> impl Future<Output = Result<Changes, Error>> + Send {
        async move { Ok(all.store.new_changes()) }
    }

    /// Returns the view for readers, and the number of bytes that the view has beyond the resource
    /// itself.
    fn view(
        _all: &Resources<Self>,
        resource: Self,
    ) -> impl Future<Output = Result<(Self::View, usize), Error>> + Send {
        async move { Ok((FromDomain::from_domain(resource), 0)) }
    }

    /// Returns warnings about settings that the author may not have intended.
    fn warnings(
        &self,
        _all: &Resources<Self>,
    ) -> impl Future<Output = Result<Vec<String>, Error>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Returns the paths of secrets that differ from those of `before`; empty for kinds without
    /// secrets.
    fn new_secrets(&self, _before: &Self) -> Vec<String> {
        Vec::new()
    }
}

#[derive(Debug)]
pub struct SavedResource<T: AuthoredResource> {
    pub resource: T,
    pub view: T::View,
    pub warnings: Vec<String>,
}

#[derive(Debug)]
pub enum PutOutcome<T> {
    /// The stored resource already matches the draft.
    Unchanged(T),
    Created(T),
    Updated {
        before: T,
        after: T,
    },
}

#[derive(Debug, Clone)]
pub struct Resources<T> {
    pub(super) store: Store,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) recent: RecentNotifications,
    pub(super) fields: FieldCache,
    pub(super) guard: Arc<EgressGuard>,
    /// Locked during creation, so that no two similar-looking names are created concurrently.
    names: Arc<Mutex<NameIndex>>,
    kind: PhantomData<fn() -> T>,
}

impl<T: AuthoredResource> Resources<T> {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            recent: RecentNotifications::new(store.clone(), Arc::clone(&clock)),
            fields: FieldCache::new(store.clone(), Arc::clone(&clock)),
            guard: Arc::default(),
            names: Arc::default(),
            store,
            clock,
            kind: PhantomData,
        }
    }

    /// Restricts destinations to addresses that the guard allows.
    #[must_use]
    pub fn with_guard(mut self, guard: Arc<EgressGuard>) -> Self {
        self.guard = guard;
        self
    }

    /// Stores a new resource. With `validate_only`, only validates it.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] with all violations, and [`Error::AlreadyExists`] if the name or
    /// one that looks the same is taken.
    pub async fn create(
        &self,
        draft: &T::Draft,
        validate_only: bool,
    ) -> Result<SavedResource<T>, Error> {
        let new = self.store_new(draft, validate_only).await?;
        self.saved_resource(new).await
    }

    /// Returns [`Error::Exhausted`] if creating another one would exceed the limit.
    pub(super) async fn check_room(&self, stored: Option<&T>, most: usize) -> Result<(), Error> {
        let all = Range::with_prefix(&[]);
        let page = self.store.page::<T>(all, Direction::Ascending, most);
        if stored.is_some() || page.await?.len() < most {
            return Ok(());
        }
        Err(Error::Exhausted {
            message: format!(
                "limit of {most} reached for the kind `{}`; delete some first",
                T::WORD
            ),
            retry_after: None,
        })
    }

    async fn saved_resource(&self, resource: T) -> Result<SavedResource<T>, Error> {
        Ok(SavedResource {
            warnings: resource.warnings(self).await?,
            view: T::view(self, resource.clone()).await?.0,
            resource,
        })
    }

    async fn store_new(&self, draft: &T::Draft, validate_only: bool) -> Result<T, Error> {
        let origin = Origin::new(self.clock.now_ms());
        let mut names = self.names.lock().await;
        let text = draft.name();
        let alike = match Name::parse(text) {
            Ok(name) => names.find_lookalike::<T>(&self.store, &name).await?,
            Err(_error) => None,
        };
        let decide = async || {
            let (new, mut changes) = T::from_draft(self, draft, None, origin).await?;
            if let Some(other) = &alike {
                return Err(Error::AlreadyExists(format!(
                    "{} `{other}` already exists and looks like `{text}`",
                    T::WORD
                )));
            }
            check_free::<T>(&self.store, new.name()).await?;
            changes.insert(&new);
            Ok((changes_to_commit(validate_only, &self.store, changes)?, new))
        };
        Ok(commit(&self.store, Lane::Admin, decide).await?.0)
    }

    pub async fn find(&self, name: &str) -> Result<T, Error> {
        Ok(find::<T>(&self.store, name).await?.value)
    }

    /// Reads a resource that the caller is about to act on.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if there is none, and [`Error::PermissionDenied`] if it has none
    /// of the caller's tags.
    pub async fn find_in_scope(&self, name: &str) -> Result<T, Error> {
        let found = self.find(name).await?;
        if let Some(scope) = TagScope::from_caller() {
            scope.check("name", &found)?;
        }
        Ok(found)
    }

    pub async fn get(&self, name: &str) -> Result<T::View, Error> {
        Ok(T::view(self, self.find(name).await?).await?.0)
    }

    pub async fn list(&self, filter: &Filter, page: &PageRequest) -> Result<Page<T::View>, Error> {
        let view = async |resource| T::view(self, resource).await;
        list::list_page(&self.store, filter, page, &|_| true, view).await
    }

    /// Like [`Self::list`], with an additional predicate. Values that the predicate depends on must
    /// be in [`Filter::others`].
    pub(super) async fn list_where(
        &self,
        filter: &Filter,
        page: &PageRequest,
        passes: &(dyn Fn(&T) -> bool + Send + Sync),
    ) -> Result<Page<T::View>, Error> {
        let view = async |resource| T::view(self, resource).await;
        list::list_page(&self.store, filter, page, passes, view).await
    }

    /// Replaces the resource with the draft's name and stores the previous revision. With
    /// `validate_only`, only validates the draft.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] with all violations, [`Error::NotFound`] if there is none, and
    /// [`Error::Aborted`] if the draft's etag is not current.
    pub async fn update(
        &self,
        draft: &T::Draft,
        validate_only: bool,
    ) -> Result<SavedResource<T>, Error> {
        let new = self.store_edited(draft, validate_only).await?;
        self.saved_resource(new).await
    }

    async fn store_edited(&self, draft: &T::Draft, validate_only: bool) -> Result<T, Error> {
        let (name, etag) = (draft.name(), draft.etag());
        let decide = async || {
            let stored = find::<T>(&self.store, name).await?;
            check_etag(etag, &stored.value)?;
            let origin = Origin::next_revision(&stored.value, self.clock.now_ms());
            let (new, mut changes) =
                T::from_draft(self, draft, Some(&stored.value), origin).await?;
            if let Some(was) = stored.value.as_revision() {
                revision::store_revision(&self.store, was, new.update_ms(), false, &mut changes)
                    .await?;
            }
            changes.update(&stored, &new);
            Ok((changes_to_commit(validate_only, &self.store, changes)?, new))
        };
        Ok(commit(&self.store, Lane::Admin, decide).await?.0)
    }

    /// Creates or updates the resource with the draft's name, or leaves it unchanged if it already
    /// matches the draft. With `must_be_new`, the name must not exist.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] with all violations, and [`Error::Aborted`] if the draft's etag
    /// or `must_be_new` does not match the stored state.
    pub async fn create_or_update(
        &self,
        draft: &T::Draft,
        must_be_new: bool,
    ) -> Result<PutOutcome<T>, Error> {
        let (text, etag) = (draft.name(), draft.etag());
        let stored = match Name::parse(text) {
            Ok(name) => self.store.get::<T>(name.as_str().into()).await?,
            Err(_error) => None,
        };
        let Some(Stored { value: stored, .. }) = stored else {
            if !etag.is_empty() {
                let word = T::WORD;
                let gone = format!("{word} `{text}` was deleted concurrently");
                return Err(Error::Aborted(gone));
            }
            return Ok(PutOutcome::Created(self.store_new(draft, false).await?));
        };
        if must_be_new {
            let word = T::WORD;
            let there = format!("{word} `{text}` was created concurrently");
            return Err(Error::Aborted(there));
        }
        check_etag(etag, &stored)?;
        let (same, _) =
            T::from_draft(self, draft, Some(&stored), Origin::from_stored(&stored)).await?;
        if same == stored {
            return Ok(PutOutcome::Unchanged(stored));
        }
        let after = self.store_edited(draft, false).await?;
        Ok(PutOutcome::Updated {
            before: stored,
            after,
        })
    }

    /// Deletes the resource with the given name, and stores its last revision. With `force`,
    /// removes the resource from its users in the same commit. Pending deliveries are still sent.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if there is none, and [`Error::Aborted`] if the etag is not
    /// current. Returns [`Error::FailedPrecondition`] with the names of the resources that use this
    /// one, unless `force` is set.
    pub async fn delete(&self, name: &str, etag: &str, force: bool) -> Result<(), Error> {
        let decide = async || {
            let stored = find::<T>(&self.store, name).await?;
            // The scope is checked before the references to the resource, so that a caller without
            // permission does not learn its users.
            if let Some(scope) = TagScope::from_caller() {
                scope.check("name", &stored.value)?;
            }
            check_etag(etag, &stored.value)?;
            // Read the resource before its users: a user added later touches it, so the commit
            // conflicts.
            let mut changes = T::changes_on_delete(self, &stored.value, force).await?;
            if let Some(was) = stored.value.as_revision() {
                let now_ms = self.clock.now_ms();
                revision::store_revision(&self.store, was, now_ms, true, &mut changes).await?;
            }
            changes.delete(&stored);
            Ok((changes, ()))
        };
        commit(&self.store, Lane::Admin, decide).await?;
        Ok(())
    }
}

/// Returns the changes, or an empty set with `validate_only`.
///
/// # Errors
/// Returns [`Error::PermissionDenied`] if the changes are outside the caller's scope.
fn changes_to_commit(
    validate_only: bool,
    store: &Store,
    changes: Changes,
) -> Result<Changes, Error> {
    if !validate_only {
        return Ok(changes);
    }
    changes.check_scope()?;
    Ok(store.new_changes())
}
