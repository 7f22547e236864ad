//! What triggers, destinations and rules have in common: being named, found, stored and listed.

mod list;

use crate::{
    domain::{Destination, Name, RecordId, Rule, Trigger, Was},
    error::Error,
    ops::{commit::commit, etag, revision},
    store::{Changes, Lane, Record, Store, Stored},
};

pub use list::Filter;
pub(super) use list::list;

/// A stored resource that people name, describe and edit.
pub trait Resource: Record {
    /// What people call it.
    const WORD: &'static str;
    /// Its identity.
    fn id(&self) -> RecordId;
    /// Its name.
    fn name(&self) -> &Name;
    /// What people wrote about it.
    fn description(&self) -> &str;
    /// Its labels.
    fn tags(&self) -> &[String];
    /// Counts its edits.
    fn revision(&self) -> u64;
    /// When it was made, in milliseconds since 1970.
    fn create_ms(&self) -> i64;
    /// When it was edited last, in milliseconds since 1970.
    fn update_ms(&self) -> i64;
    /// It as it is now, for a kind whose earlier revisions are kept.
    fn was(&self) -> Option<Was>;
}

macro_rules! resource {
    ($kind:ty, $word:literal, $was:expr) => {
        impl Resource for $kind {
            const WORD: &'static str = $word;
            fn id(&self) -> RecordId {
                self.id
            }
            fn name(&self) -> &Name {
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
            fn was(&self) -> Option<Was> {
                let was: fn(Self) -> Option<Was> = $was;
                was(self.clone())
            }
        }
    };
}

resource!(Trigger, "trigger", |was| Some(Was::Trigger(was)));
resource!(Destination, "destination", |_| None);
resource!(Rule, "rule", |was| Some(Was::Rule(was)));

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
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) id: RecordId,
    pub(super) revision: u64,
    pub(super) create_ms: i64,
}

impl Origin {
    /// A resource that is made now.
    pub(super) fn new(now_ms: i64) -> Self {
        Self {
            id: RecordId::from_parts(now_ms.unsigned_abs(), rand::random()),
            revision: 1,
            create_ms: now_ms,
        }
    }

    /// The next revision of a stored resource.
    pub(super) fn of<T: Resource>(stored: &T) -> Self {
        Self {
            id: stored.id(),
            revision: stored.revision() + 1,
            create_ms: stored.create_ms(),
        }
    }
}

/// Stores a new resource; with `validate_only`, only checks that it could. `decide` answers the
/// resource and what else is to change with it.
///
/// # Errors
/// Those of `decide`, and [`Error::AlreadyExists`].
pub(super) async fn create<T, F>(
    store: &Store,
    validate_only: bool,
    decide: impl Fn() -> F,
) -> Result<T, Error>
where
    T: Resource,
    F: Future<Output = Result<(T, Changes), Error>>,
{
    let decide = async || {
        let (new, mut changes) = decide().await?;
        check_free::<T>(store, new.name()).await?;
        changes.insert(&new);
        Ok((unless(validate_only, store, changes), new))
    };
    Ok(commit(store, Lane::Admin, decide).await?.0)
}

/// Replaces the resource of a name, keeps what it was, and leaves it alone with `validate_only`.
/// `decide` answers what becomes of the stored one, and what else is to change with it.
///
/// # Errors
/// Those of `decide`, [`Error::NotFound`], and [`Error::Aborted`] when the etag is not current.
pub(super) async fn update<T, F>(
    store: &Store,
    (name, etag): (&str, &str),
    validate_only: bool,
    decide: impl Fn(Stored<T>) -> F,
) -> Result<T, Error>
where
    T: Resource,
    F: Future<Output = Result<(T, Changes), Error>>,
{
    let decide = async || {
        let stored = find::<T>(store, name).await?;
        check_etag(etag, &stored.value)?;
        let (new, mut changes) = decide(stored.clone()).await?;
        if let Some(was) = stored.value.was() {
            revision::keep(store, was, new.update_ms(), false, &mut changes).await?;
        }
        changes.update(&stored, &new);
        Ok((unless(validate_only, store, changes), new))
    };
    Ok(commit(store, Lane::Admin, decide).await?.0)
}

/// Deletes the resource of a name and keeps what it was. `decide` answers what else is to change
/// with it.
///
/// # Errors
/// Those of `decide`, [`Error::NotFound`], and [`Error::Aborted`] when the etag is not current.
pub(super) async fn delete<T, F>(
    store: &Store,
    (name, etag): (&str, &str),
    now_ms: i64,
    decide: impl Fn(Stored<T>) -> F,
) -> Result<(), Error>
where
    T: Resource,
    F: Future<Output = Result<Changes, Error>>,
{
    let decide = async || {
        let stored = find::<T>(store, name).await?;
        check_etag(etag, &stored.value)?;
        let mut changes = decide(stored.clone()).await?;
        if let Some(was) = stored.value.was() {
            revision::keep(store, was, now_ms, true, &mut changes).await?;
        }
        changes.delete(&stored);
        Ok((changes, ()))
    };
    commit(store, Lane::Admin, decide).await?;
    Ok(())
}

fn unless(validate_only: bool, store: &Store, changes: Changes) -> Changes {
    if validate_only {
        store.changes()
    } else {
        changes
    }
}
