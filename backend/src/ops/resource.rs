//! What triggers, destinations and rules have in common: being named, found, stored and listed.

mod list;
mod name_index;

use std::{marker::PhantomData, sync::Arc};

use tokio::sync::Mutex;

use crate::{
    clock::Clock,
    destination::Guard,
    domain::{Name, RecordId},
    error::Error,
    ops::{
        commit::commit,
        etag,
        fields::FieldsSeen,
        page::{Page, PageRequest},
        recent::Recent,
        revision,
        tag_scope::TagScope,
        wire::Shows,
    },
    store::{Changes, Direction, Lane, Range, Store, Stored},
};

use name_index::NameIndex;
pub(super) use name_index::alike;

pub use list::Filter;

pub use crate::ops::named::Resource;

/// What describes a resource, as its author sends it: not checked yet.
pub trait Described: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;
    /// Its labels.
    fn tags(&self) -> &[String];
    /// The etag that must be current; empty asks for no check.
    fn etag(&self) -> &str;
}

/// What names, describes and counts a kind whose fields are called so, and its message.
macro_rules! resource {
    ($kind:ty, $draft:ty, $word:literal, $was:expr) => {
        impl $crate::ops::resource::Described for $draft {
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

        impl $crate::ops::resource::Resource for $kind {
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
            fn was(&self) -> Option<$crate::domain::Revised> {
                let was: fn(Self) -> Option<$crate::domain::Revised> = $was;
                was(self.clone())
            }
        }
    };
}

pub(super) use resource;

/// Reads a resource by name.
///
/// # Errors
/// [`Error::NotFound`], also for a text that is no name.
pub async fn find<T: Resource>(store: &Store, name: &str) -> Result<Stored<T>, Error> {
    let found = match Name::parse(name) {
        Ok(name) => store.get(name.as_str().into()).await?,
        Err(_fault) => None,
    };
    found.ok_or_else(|| {
        let name: String = name
            .chars()
            .take(crate::domain::name::NAME_CHARACTERS_MAX)
            .collect();
        Error::NotFound(format!("there is no {} `{name}`", T::WORD))
    })
}

/// Refuses a name that is taken.
///
/// # Errors
/// [`Error::AlreadyExists`].
async fn check_free<T: Resource>(store: &Store, name: &Name) -> Result<(), Error> {
    match store.get::<T>(name.as_str().into()).await? {
        None => Ok(()),
        Some(_) => Err(Error::AlreadyExists(format!(
            "there is a {} `{name}` already",
            T::WORD
        ))),
    }
}

/// Refuses a change whose caller has read another revision.
///
/// # Errors
/// [`Error::Aborted`].
fn check_etag<T: Resource>(given: &str, stored: &T) -> Result<(), Error> {
    let what = format!("{} `{}`", T::WORD, stored.name());
    etag::check(given, stored.id(), stored.revision(), &what)
}

/// What an edit does not decide: who a resource is, and which revision it becomes.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    pub(super) id: RecordId,
    pub(super) revision: u64,
    pub(super) create_ms: i64,
    pub(super) update_ms: i64,
}

impl Origin {
    /// A resource that is made now.
    pub(super) fn new(now_ms: i64) -> Self {
        Self {
            id: RecordId::from_parts(now_ms.unsigned_abs(), rand::random()),
            revision: 1,
            create_ms: now_ms,
            update_ms: now_ms,
        }
    }

    /// A stored resource as it is.
    fn as_is<T: Resource>(stored: &T) -> Self {
        Self {
            id: stored.id(),
            revision: stored.revision(),
            create_ms: stored.create_ms(),
            update_ms: stored.update_ms(),
        }
    }

    /// The next revision of a stored resource.
    pub(super) fn of<T: Resource>(stored: &T, now_ms: i64) -> Self {
        Self {
            id: stored.id(),
            revision: stored.revision() + 1,
            create_ms: stored.create_ms(),
            update_ms: now_ms,
        }
    }
}

/// A resource as its authors define it: what a draft must hold, and what is known about its use.
pub trait Drafted: Resource + PartialEq {
    /// It as its author describes it.
    type Draft: Described;
    /// The form that readers get. Built only from the resource, it lacks what is known about its use.
    type View: Shows<Self> + Send;

    /// The resource that a draft describes, and what else changes with it; `stored` is what it
    /// takes the place of. What it refers to is touched in the changes, so that it cannot be
    /// deleted at the same moment.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong.
    fn checked(
        all: &Resources<Self>,
        draft: &Self::Draft,
        stored: Option<&Self>,
        origin: Origin,
    ) -> impl Future<Output = Result<(Self, Changes), Error>> + Send;

    /// What else changes when it is deleted; with `force`, it is taken out of what uses it.
    ///
    /// # Errors
    /// [`Error::FailedPrecondition`] when it is in use, without `force`.
    fn released(
        all: &Resources<Self>,
        _resource: &Self,
        _force: bool,
    ) -> impl Future<Output = Result<Changes, Error>> + Send {
        async move { Ok(all.store.changes()) }
    }

    /// What readers are shown, and how many bytes that adds to the resource itself.
    ///
    /// # Errors
    /// Those of the store.
    fn view(
        _all: &Resources<Self>,
        resource: Self,
    ) -> impl Future<Output = Result<(Self::View, usize), Error>> + Send {
        async move { Ok((Shows::of(resource), 0)) }
    }

    /// What its author may not have meant.
    ///
    /// # Errors
    /// Those of the store.
    fn warnings(
        &self,
        _all: &Resources<Self>,
    ) -> impl Future<Output = Result<Vec<String>, Error>> + Send {
        async { Ok(Vec::new()) }
    }

    /// The secrets that differ from those it had, as paths; none for a kind without secrets.
    fn new_secrets(&self, _before: &Self) -> Vec<String> {
        Vec::new()
    }
}

/// A resource that is stored, or that could be.
#[derive(Debug)]
pub struct Saved<T: Drafted> {
    /// The resource.
    pub resource: T,
    /// It as readers are shown it.
    pub view: T::View,
    /// What its author may not have meant.
    pub warnings: Vec<String>,
}

/// What happened to a resource that was put.
#[derive(Debug)]
pub enum Put<T> {
    /// It is stored so already.
    Unchanged(T),
    /// It is new.
    Created(T),
    /// It took the place of what was stored.
    Updated {
        /// As it was.
        before: T,
        /// As it is.
        after: T,
    },
}

/// The resources of one kind: made, read, listed, edited and deleted.
#[derive(Debug, Clone)]
pub struct Resources<T> {
    pub(super) store: Store,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) recent: Recent,
    pub(super) fields: FieldsSeen,
    /// Where destinations may lead.
    pub(super) guard: Arc<Guard>,
    /// Held while one is made, so that no two that look alike are created concurrently.
    names: Arc<Mutex<NameIndex>>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Drafted> Resources<T> {
    /// Manages the resources of a store.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            recent: Recent::new(store.clone(), Arc::clone(&clock)),
            fields: FieldsSeen::new(store.clone(), Arc::clone(&clock)),
            guard: Arc::default(),
            names: Arc::default(),
            store,
            clock,
            kind: PhantomData,
        }
    }

    /// Lets destinations lead to where the guard lets messages go.
    #[must_use]
    pub fn behind(mut self, guard: Arc<Guard>) -> Self {
        self.guard = guard;
        self
    }

    /// Stores a new resource; with `validate_only`, only checks that it could.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong, and [`Error::AlreadyExists`] when the name
    /// is taken, or when a name is that cannot be distinguished from it.
    pub async fn create(&self, draft: &T::Draft, validate_only: bool) -> Result<Saved<T>, Error> {
        let new = self.store_new(draft, validate_only).await?;
        self.saved(new).await
    }

    /// Refuses a further one where there are that many.
    ///
    /// # Errors
    /// [`Error::Exhausted`].
    pub(super) async fn check_room(&self, stored: Option<&T>, most: usize) -> Result<(), Error> {
        let all = Range::under(&[]);
        let page = self.store.page::<T>(all, Direction::Ascending, most);
        if stored.is_some() || page.await?.len() < most {
            return Ok(());
        }
        Err(Error::Exhausted {
            message: format!("there are {most} {}s; delete some first", T::WORD),
            retry_after: None,
        })
    }

    async fn saved(&self, resource: T) -> Result<Saved<T>, Error> {
        Ok(Saved {
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
            Ok(name) => names.alike::<T>(&self.store, &name).await?,
            Err(_fault) => None,
        };
        let decide = async || {
            let (new, mut changes) = T::checked(self, draft, None, origin).await?;
            if let Some(other) = &alike {
                return Err(Error::AlreadyExists(format!(
                    "there is a {} `{other}` already, which looks the same as `{text}`",
                    T::WORD
                )));
            }
            check_free::<T>(&self.store, new.name()).await?;
            changes.insert(&new);
            Ok((unless(validate_only, &self.store, changes)?, new))
        };
        Ok(commit(&self.store, Lane::Admin, decide).await?.0)
    }

    /// Reads the resource of a name.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn find(&self, name: &str) -> Result<T, Error> {
        Ok(find::<T>(&self.store, name).await?.value)
    }

    /// Reads the resource of a name that the caller acts on.
    ///
    /// # Errors
    /// [`Error::NotFound`], and [`Error::PermissionDenied`] when it carries none of the caller's tags.
    pub async fn find_own(&self, name: &str) -> Result<T, Error> {
        let found = self.find(name).await?;
        if let Some(scope) = TagScope::of_caller() {
            scope.check("name", &found)?;
        }
        Ok(found)
    }

    /// The resource of a name, as readers are shown it.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn get(&self, name: &str) -> Result<T::View, Error> {
        Ok(T::view(self, self.find(name).await?).await?.0)
    }

    /// Lists resources by name.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a filter, page size or token that is not accepted.
    pub async fn list(&self, filter: &Filter, page: &PageRequest) -> Result<Page<T::View>, Error> {
        let view = async |resource| T::view(self, resource).await;
        list::list(&self.store, filter, page, &|_| true, view).await
    }

    /// The same, leaving out those that do not pass; what decides that belongs into
    /// [`Filter::others`].
    ///
    /// # Errors
    /// As [`Self::list`].
    pub(super) async fn list_where(
        &self,
        filter: &Filter,
        page: &PageRequest,
        passes: &(dyn Fn(&T) -> bool + Send + Sync),
    ) -> Result<Page<T::View>, Error> {
        let view = async |resource| T::view(self, resource).await;
        list::list(&self.store, filter, page, passes, view).await
    }

    /// Replaces the resource of the draft's name and keeps what it was; with `validate_only`, only
    /// checks that it could.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong, [`Error::NotFound`], and
    /// [`Error::Aborted`] when the draft's etag is not current.
    pub async fn update(&self, draft: &T::Draft, validate_only: bool) -> Result<Saved<T>, Error> {
        let new = self.store_edited(draft, validate_only).await?;
        self.saved(new).await
    }

    async fn store_edited(&self, draft: &T::Draft, validate_only: bool) -> Result<T, Error> {
        let (name, etag) = (draft.name(), draft.etag());
        let decide = async || {
            let stored = find::<T>(&self.store, name).await?;
            check_etag(etag, &stored.value)?;
            let origin = Origin::of(&stored.value, self.clock.now_ms());
            let (new, mut changes) = T::checked(self, draft, Some(&stored.value), origin).await?;
            if let Some(was) = stored.value.was() {
                revision::keep(&self.store, was, new.update_ms(), false, &mut changes).await?;
            }
            changes.update(&stored, &new);
            Ok((unless(validate_only, &self.store, changes)?, new))
        };
        Ok(commit(&self.store, Lane::Admin, decide).await?.0)
    }

    /// Makes the resource of the draft's name what the draft says: stored again, edited, or left as
    /// it is when it is so already. With `must_be_new`, nothing may be stored under the name.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong, and [`Error::Aborted`] when it is not stored
    /// as the draft's etag or `must_be_new` expects.
    pub async fn put(&self, draft: &T::Draft, must_be_new: bool) -> Result<Put<T>, Error> {
        let (text, etag) = (draft.name(), draft.etag());
        let stored = match Name::parse(text) {
            Ok(name) => self.store.get::<T>(name.as_str().into()).await?,
            Err(_fault) => None,
        };
        let Some(Stored { value: stored, .. }) = stored else {
            if !etag.is_empty() {
                let word = T::WORD;
                let gone = format!("{word} `{text}` was deleted concurrently");
                return Err(Error::Aborted(gone));
            }
            return Ok(Put::Created(self.store_new(draft, false).await?));
        };
        if must_be_new {
            let word = T::WORD;
            let there = format!("{word} `{text}` was created concurrently");
            return Err(Error::Aborted(there));
        }
        check_etag(etag, &stored)?;
        let (same, _) = T::checked(self, draft, Some(&stored), Origin::as_is(&stored)).await?;
        if same == stored {
            return Ok(Put::Unchanged(stored));
        }
        let after = self.store_edited(draft, false).await?;
        Ok(Put::Updated {
            before: stored,
            after,
        })
    }

    /// Deletes the resource of a name and keeps what it was; with `force`, takes it out of what
    /// uses it in the same commit. What it has caused is still delivered.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Aborted`] when the etag is not current, and
    /// [`Error::FailedPrecondition`], which names what uses it, without `force`.
    pub async fn delete(&self, name: &str, etag: &str, force: bool) -> Result<(), Error> {
        let decide = async || {
            let stored = find::<T>(&self.store, name).await?;
            // Before its users, which are of no concern to who may not delete it.
            if let Some(scope) = TagScope::of_caller() {
                scope.check("name", &stored.value)?;
            }
            check_etag(etag, &stored.value)?;
            // The resource before what uses it: what takes it up in between touches it.
            let mut changes = T::released(self, &stored.value, force).await?;
            if let Some(was) = stored.value.was() {
                let now_ms = self.clock.now_ms();
                revision::keep(&self.store, was, now_ms, true, &mut changes).await?;
            }
            changes.delete(&stored);
            Ok((changes, ()))
        };
        commit(&self.store, Lane::Admin, decide).await?;
        Ok(())
    }
}

/// The changes, or none where they are only to be checked.
///
/// # Errors
/// [`Error::PermissionDenied`] where they could not be made.
fn unless(validate_only: bool, store: &Store, changes: Changes) -> Result<Changes, Error> {
    if !validate_only {
        return Ok(changes);
    }
    changes.check_scope()?;
    Ok(store.changes())
}
